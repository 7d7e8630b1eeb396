// SPDX-License-Identifier: BSD-3-Clause
// Versions of what is involved: see info.h.
#include "tools/info.h"

#include "config.h"
#include "inspect/inspect.h"
#include "ucxlike_info_commit.h"

namespace tools {

json version_report()
{
    json report = json::object();
    report["library"] = ucp_get_version_string();
    report["api"] = std::to_string(UCP_API_MAJOR) + "." + std::to_string(UCP_API_MINOR);
    report["ucxlike"] = PACKAGE_VERSION;
    report["libfabric"] = inspect::libfabric_version();
    report["libfabric_built_with"] = inspect::libfabric_headers();
    if (*UCXLIKE_COMMIT) {
        report["commit"] = UCXLIKE_COMMIT;
    }
    return report;
}

void print_version(const json &report)
{
    printf("# Library version: %s\n# API version: %s\n# ucxlike version: %s\n"
           "# libfabric version: %s (built with %s)\n",
           report.at("library").text().c_str(), report.at("api").text().c_str(),
           report.at("ucxlike").text().c_str(), report.at("libfabric").text().c_str(),
           report.at("libfabric_built_with").text().c_str());
    if (const std::string &commit = report.at("commit").text(); !commit.empty()) {
        printf("# Commit: %s\n", commit.c_str());
    }
}

} // namespace tools
