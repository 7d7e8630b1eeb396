// SPDX-License-Identifier: BSD-3-Clause
// ucxlike_info's parts: each makes one report, which is printed as text or as JSON.
#pragma once

#include <ucp/api/ucp.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/types.h>

namespace tools {

// Members keep the order in which they were added.
using json = nlohmann::ordered_json;

struct options {
    bool version = false;
    bool build = false;
    bool types = false;
    bool system = false;
    bool topology = false;
    bool copy_rate = false;
    bool devices = false;
    bool config = false;
    bool comment_defaults = false;
    bool docs = false;
    bool context = false;
    bool worker = false;
    bool endpoint = false;
    bool error_handling = false;
    bool why_not = false;
    bool doctor = false;
    bool as_json = false;
    pid_t pid = 0;         // the process that the doctor inspects; 0: this one
    std::string memory;    // size of -m
    std::string transport; // of -t
    std::string types_of_devices = "all";
    uint64_t features = 0; // none were given
    size_t num_eps = 1;
    size_t num_eps_per_node = 1;
};

// Tells on standard error. True when it is an error.
bool failed(ucs_status_t status, const char *what);

// What a function prints to a stream.
std::string printed(const std::function<void(FILE *)> &print);
// As it is printed outside of JSON: a text without quotes, nothing for null.
std::string text(const json &value);
// The same of a member, which may be missing.
std::string text(const json &object, const char *member);
// One text for each line.
json lines_of(const std::string &text);

// Fills the options, or ends the process.
options parse_options(int argc, char **argv);

// Versions of what is involved.
json version_report();
void print_version(const json &report);

// The compiler, the sizes of types, the machine, how fast memory is copied.
json build_report();
json types_report();
json system_report();
double copy_rate(); // bytes a second
// "# name: value" lines of an object.
void print_members(const json &report);

// Memory domains, transports and devices.
bool report_devices(const options &opts, json *report);
void print_devices(const json &report);

// Every variable that the library reads by a table: its value, where that comes from.
bool report_settings(json *report);
void print_settings(const json &report, const options &opts);

// Providers and devices that are here and not used, and the reason.
bool report_unused(json *report);
void print_unused(const json &report);

// What may be wrong on this machine; whether something is.
json doctor_report(pid_t pid);
void print_doctor(const json &report);
bool has_findings(const json &report);

// Context, worker, endpoint, memory: ucp_*_print_info().
bool report_ucp(const options &opts, json *report);

} // namespace tools
