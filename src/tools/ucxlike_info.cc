// SPDX-License-Identifier: BSD-3-Clause
// ucxlike_info: what the library found on this machine, how it is configured, and what is wrong.
#include "tools/info.h"

#include <ucs/sys/topo/base/topo.h>

#include <cstdlib>

namespace tools {

bool failed(ucs_status_t status, const char *what)
{
    if (status == UCS_OK) {
        return false;
    }
    fprintf(stderr, "ucxlike_info: %s: %s\n", what, ucs_status_string(status));
    return true;
}

std::string printed(const std::function<void(FILE *)> &print)
{
    char *text = nullptr;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream) {
        return {};
    }
    print(stream);
    fclose(stream);
    std::string result(text, size);
    free(text);
    return result;
}

std::string text(const json &value)
{
    return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

std::string text(const json &object, const char *member)
{
    auto found = object.find(member);
    return found == object.end() ? "" : text(*found);
}

json lines_of(const std::string &text)
{
    json lines = json::array();
    for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
        lines.push_back(text.substr(begin, end - begin));
    }
    return lines;
}

} // namespace tools

namespace {

using tools::json;
using tools::options;

// Prints a part, or keeps it for the end.
void show(const options &opts, json *all, const char *name, const json &report,
          void (*print)(const json &))
{
    if (opts.as_json) {
        (*all)[name] = report;
    } else {
        print(report);
    }
}

void show_machine(const options &opts, json *all)
{
    if (opts.build) {
        show(opts, all, "build", tools::build_report(), tools::print_members);
    }
    if (opts.types) {
        show(opts, all, "types", tools::types_report(), tools::print_members);
    }
    if (opts.system) {
        show(opts, all, "system", tools::system_report(), tools::print_members);
    }
    if (opts.copy_rate) {
        json rate = json::object();
        rate["memcpy MB/s"] = tools::copy_rate() / 1e6;
        show(opts, all, "copy_rate", rate, tools::print_members);
    }
    if (opts.topology) {
        show(opts, all, "topology", tools::lines_of(tools::printed(ucs_topo_print_info)),
             [](const json &lines) {
                 for (const json &line : lines) {
                     printf("%s\n", tools::text(line).c_str());
                 }
             });
    }
}

bool show_devices(const options &opts, json *all)
{
    bool ok = true;
    json report;
    if (opts.devices) {
        ok = tools::report_devices(opts, &report);
        show(opts, all, "devices", report, tools::print_devices);
    }
    if (opts.why_not || (opts.devices && opts.transport.empty())) {
        ok &= tools::report_unused(&report);
        show(opts, all, "not_used", report, tools::print_unused);
    }
    return ok;
}

bool show_settings(const options &opts, json *all)
{
    json report;
    if (!tools::report_settings(opts, &report)) {
        return false;
    }
    if (opts.as_json) {
        (*all)["settings"] = report;
    } else {
        tools::print_settings(report, opts);
    }
    return true;
}

} // namespace

int main(int argc, char **argv)
{
    options opts = tools::parse_options(argc, argv);
    tools::other_process peer(opts);
    json all = json::object();
    bool ok = true;
    if (opts.version) {
        show(opts, &all, "version", tools::version_report(), tools::print_version);
    }
    show_machine(opts, &all);
    ok &= show_devices(opts, &all);
    if (opts.config) {
        ok &= show_settings(opts, &all);
    }
    if (opts.context || opts.worker || opts.endpoint || !opts.memory.empty()) {
        ok &= tools::report_ucp(opts, peer, &all);
    }
    if (opts.doctor) {
        json report = tools::doctor_report(opts.pid);
        show(opts, &all, "doctor", report, tools::print_doctor);
        ok &= !tools::has_findings(report);
    }
    if (opts.as_json) {
        printf("%s\n", all.dump(2, ' ', false, json::error_handler_t::replace).c_str());
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
