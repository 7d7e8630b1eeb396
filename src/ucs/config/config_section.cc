// SPDX-License-Identifier: BSD-3-Clause
//
// What the conditions of a section are compared with: see config_section.h.
#include "ucs/config/config_section.h"

#include <algorithm>
#include <fnmatch.h>
#include <fstream>
#include <iterator>
#include <string_view>

namespace ucs::config {
namespace {

// A line "NAME : VALUE" of /proc/cpuinfo.
std::string cpuinfo(std::string_view name)
{
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        size_t colon = line.find(':');
        if (line.compare(0, name.size(), name) == 0 && colon != std::string::npos &&
            line.find_last_not_of(" \t", colon - 1) + 1 == name.size()) {
            size_t first = line.find_first_not_of(" \t", colon + 1);
            return first == std::string::npos ? "" : line.substr(first);
        }
    }
    return "";
}

std::string cpu_vendor()
{
    static constexpr struct {
        std::string_view id, name;
    } vendors[] = {{"GenuineIntel", "Intel"},
                   {"AuthenticAMD", "AMD"},
                   {"CentaurHauls", "Zhaoxin"},
                   {"  Shanghai  ", "Zhaoxin"}};
    std::string id = cpuinfo("vendor_id");
    auto found = std::find_if(std::begin(vendors), std::end(vendors),
                              [&](const auto &vendor) { return vendor.id == id; });
    if (found != std::end(vendors)) {
        return std::string(found->name);
    }
    std::string implementer = cpuinfo("CPU implementer");
    if (implementer.empty()) {
        return "unknown";
    }
    return implementer == "0x46" ? "Fujitsu ARM" : "Generic ARM";
}

std::string cpu_model()
{
    return cpuinfo("model name");
}

std::string product_name()
{
    std::ifstream file("/sys/devices/virtual/dmi/id/product_name");
    std::string name;
    std::getline(file, name);
    return name;
}

} // namespace

bool section::condition(const std::string &name, const std::string &pattern)
{
    static constexpr struct {
        std::string_view name;
        std::string (*value)();
    } conditions[] = {
        {"CPU vendor", cpu_vendor}, {"CPU model", cpu_model}, {"Product name", product_name}};
    auto found = std::find_if(std::begin(conditions), std::end(conditions),
                              [&](const auto &c) { return c.name == name; });
    if (found == std::end(conditions)) {
        return false;
    }
    applies_ = applies_ && fnmatch(pattern.c_str(), found->value().c_str(), FNM_CASEFOLD) == 0;
    return true;
}

} // namespace ucs::config
