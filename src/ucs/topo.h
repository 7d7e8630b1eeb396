// SPDX-License-Identifier: BSD-3-Clause
// Where devices sit in the machine, from hwloc: which PCI function a network device is, and how far
// it is from the processors this process may run on. Used to choose among devices that reach a peer
// equally well.
#pragma once

#include <ucs/sys/topo/base/topo.h>
#include <ucs/type/cpu_set.h>

#include <memory>
#include <optional>
#include <string>

namespace ucs::topo {

// "0000:3b:00.0" or, in domain 0, "3b:00.0"; none for another text.
std::optional<ucs_sys_bus_id_t> parse_bus_id(const char *text);

// The index of a PCI function in this process's table, assigned on first sight. UNKNOWN when the
// machine has no such function.
ucs_sys_device_t device_by_bus_id(const ucs_sys_bus_id_t &bus_id);

// By the name the kernel gives it ("eth0", "rxe0", "mlx5_0"). UNKNOWN for one that is not on a PCI
// bus.
ucs_sys_device_t device_by_name(const std::string &os_name);

// Devices seen so far have the indices below this.
unsigned device_count();

// False for an index that no device has.
bool bus_id(ucs_sys_device_t device, ucs_sys_bus_id_t *id);

// The name the kernel gives it, its PCI address where it gives none; null for an index that no
// device has. Lives as long as the process.
const char *name(ucs_sys_device_t device);

// The first NUMA node next to the device, or UNDEFINED.
ucs_numa_node_t numa_node(ucs_sys_device_t device);

// The processors next to the device; for an unknown device all of them, without a look at the
// machine.
void local_cpus(ucs_sys_device_t device, ucs_cpu_set_t *cpus);

// "0000:3b:00.0", or "unknown".
std::string bus_id_string(ucs_sys_device_t device);

// From the processors of this process's affinity mask to the device: no cost inside one NUMA node
// or for an unknown device, one interconnect crossing otherwise.
ucs_sys_dev_distance_t distance_from_cpu(ucs_sys_device_t device);

// While it lives, memory that this thread touches first comes from the NUMA nodes of these
// processors, where there is any left. Does nothing for a set without processors of this machine.
class memory_near {
  public:
    explicit memory_near(const ucs_cpu_set_t &processors);
    ~memory_near();
    memory_near(const memory_near &) = delete;
    memory_near &operator=(const memory_near &) = delete;

  private:
    struct previous;
    std::unique_ptr<previous> previous_;
};

ucs_sys_dev_distance_t distance(ucs_sys_device_t a, ucs_sys_device_t b);

} // namespace ucs::topo
