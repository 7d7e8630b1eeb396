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
           text(report, "library").c_str(), text(report, "api").c_str(),
           text(report, "ucxlike").c_str(), text(report, "libfabric").c_str(),
           text(report, "libfabric_built_with").c_str());
    if (std::string commit = text(report, "commit"); !commit.empty()) {
        printf("# Commit: %s\n", commit.c_str());
    }
}

} // namespace tools
