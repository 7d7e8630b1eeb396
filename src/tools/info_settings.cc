// SPDX-License-Identifier: BSD-3-Clause
// The settings of all layers and where they come from: see info.h.
#include "tools/info.h"

#include "inspect/inspect.h"

namespace tools {

bool report_settings(json *report)
{
    std::vector<inspect::setting> list;
    bool ok = inspect::settings(&list);
    *report = json::array();
    for (const inspect::setting &s : list) {
        json row = json::object();
        row["name"] = s.name;
        row["value"] = s.value;
        row["default"] = s.deflt;
        row["source"] = s.source;
        if (!s.from.empty()) {
            row["from"] = s.from;
        }
        row["syntax"] = s.syntax;
        row["meaning"] = s.meaning;
        row["section"] = s.section;
        report->push(row);
    }
    return ok;
}

void print_settings(const json &report, const options &opts)
{
    std::string section;
    for (auto &[unused, row] : report.members()) {
        if (opts.docs && row.at("section").text() != section) {
            section = row.at("section").text();
            printf("#\n# %s configuration\n#\n\n", section.c_str());
        }
        bool is_default = row.at("source").text() == "default";
        if (opts.docs) {
            printf("#\n# %s\n#\n# Syntax: %s\n# Source: %s%s%s\n#\n",
                   row.at("meaning").text().c_str(), row.at("syntax").text().c_str(),
                   row.at("source").text().c_str(), is_default ? "" : ", ",
                   row.at("from").text().c_str());
        }
        printf("%s%s=%s\n", opts.comment_defaults && is_default ? "# " : "",
               row.at("name").text().c_str(), row.at("value").text().c_str());
    }
}

} // namespace tools
