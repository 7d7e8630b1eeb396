// SPDX-License-Identifier: BSD-3-Clause
// What no public call tells, for the tools of this tree: looks into all layers, and none knows it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace inspect {

struct setting {
    std::string name; // the variable
    std::string value;
    std::string deflt;
    std::string source; // "default", "file" or "environment"
    std::string from;   // the file, or the variable that was set; else ""
    std::string syntax;
    std::string meaning;
    std::string section; // "tcp interface"
};

// Every variable that a table has, of UCP and of the transports that are here. False: the
// configuration has an error, which was logged.
bool settings(std::vector<setting> *list);

struct unused {
    std::string kind; // "provider", "transport", "domain" or "cache"
    std::string name;
    std::string device; // or ""
    std::string why;
};

// What is here and would not be used by a program that is started now. False: as above.
bool not_used(std::vector<unused> *list);

struct core {
    std::string transport;
    std::string device;
    std::string provider;                                     // libfabric's name
    size_t max_message;                                       // bytes
    std::vector<std::pair<std::string, std::string>> offered; // what, how much of it
    std::vector<std::string> supplied;                        // one line each
};

// What libfabric's core of each transport and device offers, and what is supplied for it. False:
// libfabric could not be asked.
bool cores(std::vector<core> *list);

// Versions of libfabric, "1.17": of the one in the process, of the headers.
std::string libfabric_version();
std::string libfabric_headers();

// Whether a device registers memory by locking it; loads all providers.
bool locks_memory();

} // namespace inspect
