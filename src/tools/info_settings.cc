// SPDX-License-Identifier: BSD-3-Clause
// The settings of all layers and where they come from: see info.h.
#include "tools/info.h"

#include "inspect/inspect.h"

namespace tools {

bool report_settings(const options &opts, json *report)
{
    std::vector<inspect::setting> list;
    bool ok = inspect::settings(&list);
    *report = json::array();
    for (const inspect::setting &s : list) {
        if (s.name.find(opts.part_of_name) == std::string::npos) {
            continue;
        }
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
        report->push_back(row);
    }
    return ok;
}

void print_settings(const json &report, const options &opts)
{
    std::string section;
    for (const json &row : report) {
        if (opts.docs && text(row, "section") != section) {
            section = text(row, "section");
            printf("#\n# %s configuration\n#\n\n", section.c_str());
        }
        bool is_default = text(row, "source") == "default";
        if (opts.docs) {
            printf("#\n# %s\n#\n# Syntax: %s\n# Source: %s%s%s\n#\n", text(row, "meaning").c_str(),
                   text(row, "syntax").c_str(), text(row, "source").c_str(), is_default ? "" : ", ",
                   text(row, "from").c_str());
        }
        printf("%s%s=%s\n", opts.comment_defaults && is_default ? "# " : "",
               text(row, "name").c_str(), text(row, "value").c_str());
    }
}

} // namespace tools
