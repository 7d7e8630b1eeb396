// SPDX-License-Identifier: BSD-3-Clause
// What is here and not used, and why: see info.h.
#include "tools/info.h"

#include "inspect/inspect.h"

namespace tools {

bool report_unused(json *report)
{
    std::vector<inspect::unused> list;
    bool ok = inspect::not_used(&list);
    *report = json::array();
    for (const inspect::unused &u : list) {
        json row = json::object();
        row[u.kind] = u.name;
        if (!u.device.empty()) {
            row["device"] = u.device;
        }
        row["why"] = u.why;
        report->push_back(row);
    }
    return ok;
}

void print_unused(const json &report)
{
    printf("# Not used:\n");
    for (const json &row : report) {
        auto what = row.begin(); // the kind and its name
        std::string device = text(row, "device");
        printf("#     %s %s%s%s: %s\n", what.key().c_str(), text(*what).c_str(),
               device.empty() ? "" : " on ", device.c_str(), text(row, "why").c_str());
    }
    printf("#\n");
}

} // namespace tools
