// SPDX-License-Identifier: BSD-3-Clause
// What Linux tells below /sys: the PCI function of a device, the processors and the NUMA node next
// to it. Each call reads a few small files, and none of the configuration space of PCI, which takes
// milliseconds.
#pragma once

#include <ucs/memory/numa.h>
#include <ucs/sys/topo/base/topo.h>
#include <ucs/type/cpu_set.h>

#include <optional>
#include <string>
#include <vector>

namespace ucs {

// "0000:3b:00.0" or, in domain 0, "3b:00.0"; nothing else may follow.
std::optional<ucs_sys_bus_id_t> parse_bus_id(const char *text);
std::string to_string(const ucs_sys_bus_id_t &id);

// Adds what a list such as "0-3,8" names; false, and some of it added, for another text.
bool add_list(const std::string &list, ucs_cpu_set_t *set);

// Whether a processor is in both sets.
bool meet(const ucs_cpu_set_t &a, const ucs_cpu_set_t &b);

class sysfs {
  public:
    explicit sysfs(std::string root = "/sys") : root_(std::move(root)) {}

    // The function behind a device of this name ("eth0", "mlx5_0"); none for one that is not on a
    // PCI bus.
    std::optional<ucs_sys_bus_id_t> function_of(const std::string &device) const;

    // The name of a network device that belongs to the function; empty without one.
    std::string device_of(const ucs_sys_bus_id_t &function) const;

    bool exists(const ucs_sys_bus_id_t &function) const;
    ucs_numa_node_t numa_node(const ucs_sys_bus_id_t &function) const;

    // None where the kernel does not tell.
    std::optional<ucs_cpu_set_t> local_cpus(const ucs_sys_bus_id_t &function) const;

    // The NUMA nodes that have one of these processors.
    std::vector<unsigned> nodes_of(const ucs_cpu_set_t &processors) const;

  private:
    std::string folder(const ucs_sys_bus_id_t &function) const;

    std::string root_;
};

} // namespace ucs
