// SPDX-License-Identifier: BSD-3-Clause
// See sysfs.h. A device of a class is a link to its folder below /sys/devices, whose path names the
// buses on the way: /sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/infiniband/mlx5_0 belongs to
// 0000:3b:00.0.
#include "ucs/sysfs.h"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <memory>
#include <sstream>
#include <unistd.h>

namespace ucs {
namespace {

constexpr const char *classes[] = {"infiniband", "cxi", "net"};

std::string first_line(const std::string &path)
{
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

template <class F>
void for_each_entry(const std::string &folder, F &&f)
{
    std::unique_ptr<DIR, int (*)(DIR *)> dir(opendir(folder.c_str()), closedir);
    while (const dirent *entry = dir ? readdir(dir.get()) : nullptr) {
        if (entry->d_name[0] != '.') {
            f(std::string(entry->d_name));
        }
    }
}

// The last PCI function on the way to a folder, after links are followed.
std::optional<ucs_sys_bus_id_t> last_function(const std::string &path)
{
    std::optional<ucs_sys_bus_id_t> found;
    char resolved[PATH_MAX];
    if (!realpath(path.c_str(), resolved)) {
        return found;
    }
    std::istringstream names(resolved);
    for (std::string name; std::getline(names, name, '/');) {
        if (auto function = parse_bus_id(name.c_str())) {
            found = function;
        }
    }
    return found;
}

bool same(const ucs_sys_bus_id_t &a, const ucs_sys_bus_id_t &b)
{
    return a.domain == b.domain && a.bus == b.bus && a.slot == b.slot && a.function == b.function;
}

} // namespace

std::optional<ucs_sys_bus_id_t> parse_bus_id(const char *text)
{
    unsigned domain = 0, bus, slot, function;
    int end = 0;
    bool whole = sscanf(text, "%x:%x:%x.%x%n", &domain, &bus, &slot, &function, &end) == 4;
    if (!whole) {
        domain = 0;
        whole = sscanf(text, "%x:%x.%x%n", &bus, &slot, &function, &end) == 3;
    }
    if (!whole || text[end] || domain > 0xffff || bus > 0xff || slot > 0x1f || function > 7) {
        return std::nullopt;
    }
    return ucs_sys_bus_id_t{.domain = static_cast<uint16_t>(domain),
                            .bus = static_cast<uint8_t>(bus),
                            .slot = static_cast<uint8_t>(slot),
                            .function = static_cast<uint8_t>(function)};
}

std::string to_string(const ucs_sys_bus_id_t &id)
{
    char text[UCS_SYS_BDF_NAME_MAX];
    snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", id.domain, id.bus, id.slot, id.function);
    return text;
}

bool add_list(const std::string &list, ucs_cpu_set_t *set)
{
    std::istringstream ranges(list);
    for (std::string range; std::getline(ranges, range, ',');) {
        unsigned first, last;
        int end = 0;
        if (sscanf(range.c_str(), "%u%n-%u%n", &first, &end, &last, &end) < 2) {
            last = first;
        }
        if (end == 0 || range[end] || last >= UCS_CPU_SETSIZE) {
            return false;
        }
        for (; first <= last; ++first) {
            UCS_CPU_SET(first, set);
        }
    }
    return true;
}

bool meet(const ucs_cpu_set_t &a, const ucs_cpu_set_t &b)
{
    for (size_t word = 0; word < std::size(a.ucs_bits); ++word) {
        if (a.ucs_bits[word] & b.ucs_bits[word]) {
            return true;
        }
    }
    return false;
}

std::string sysfs::folder(const ucs_sys_bus_id_t &function) const
{
    return root_ + "/bus/pci/devices/" + to_string(function);
}

std::optional<ucs_sys_bus_id_t> sysfs::function_of(const std::string &device) const
{
    if (device.empty() || device.find('/') != std::string::npos) {
        return std::nullopt;
    }
    for (const char *name : classes) {
        if (auto function = last_function(root_ + "/class/" + name + "/" + device)) {
            return function;
        }
    }
    return std::nullopt;
}

std::string sysfs::device_of(const ucs_sys_bus_id_t &function) const
{
    std::string found;
    for (const char *name : classes) {
        std::string all = root_ + "/class/" + name;
        for_each_entry(all, [&](const std::string &device) {
            auto owner = found.empty() ? last_function(all + "/" + device) : std::nullopt;
            if (owner && same(*owner, function)) {
                found = device;
            }
        });
    }
    return found;
}

bool sysfs::exists(const ucs_sys_bus_id_t &function) const
{
    return access(folder(function).c_str(), F_OK) == 0;
}

ucs_numa_node_t sysfs::numa_node(const ucs_sys_bus_id_t &function) const
{
    return ucs_numa_node_of_device(folder(function).c_str());
}

std::optional<ucs_cpu_set_t> sysfs::local_cpus(const ucs_sys_bus_id_t &function) const
{
    ucs_cpu_set_t set{};
    bool whole = add_list(first_line(folder(function) + "/local_cpulist"), &set);
    return whole && !ucs_cpu_set_is_empty(&set) ? std::optional(set) : std::nullopt;
}

std::vector<unsigned> sysfs::nodes_of(const ucs_cpu_set_t &processors) const
{
    std::vector<unsigned> nodes;
    std::string all = root_ + "/devices/system/node";
    for_each_entry(all, [&](const std::string &name) {
        unsigned node;
        int end = 0;
        ucs_cpu_set_t own{};
        if (sscanf(name.c_str(), "node%u%n", &node, &end) == 1 && !name[end] &&
            add_list(first_line(all + "/" + name + "/cpulist"), &own) && meet(own, processors)) {
            nodes.push_back(node);
        }
    });
    return nodes;
}

} // namespace ucs
