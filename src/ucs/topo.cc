// SPDX-License-Identifier: BSD-3-Clause
// See topo.h. A table of the devices that somebody asked for; what is told of them is read when it
// is asked.
#include "ucs/topo.h"

#include "ucs/sysfs.h"

#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <sched.h>

namespace ucs::topo {
namespace {

// What crossing from one NUMA node to another adds and leaves, as order-of-magnitude figures of
// current two-socket machines; only their order matters to a choice.
constexpr ucs_sys_dev_distance_t near = {.latency = 0.0,
                                         .bandwidth = std::numeric_limits<double>::max()};
constexpr ucs_sys_dev_distance_t far = {.latency = 500e-9, .bandwidth = 17e9};

struct known_device {
    ucs_sys_bus_id_t function;
    std::string name;
};

// References to its devices stay valid.
class table {
  public:
    // Never destroyed: names of devices live as long as the process.
    static table &get()
    {
        static table *instance = new table();
        return *instance;
    }

    ucs_sys_device_t add(const ucs_sys_bus_id_t &function)
    {
        std::string name = to_string(function);
        std::lock_guard lock(mutex_);
        for (size_t i = 0; i < devices_.size(); ++i) {
            if (to_string(devices_[i].function) == name) {
                return static_cast<ucs_sys_device_t>(i);
            }
        }
        if (devices_.size() >= UCS_SYS_DEVICE_ID_MAX) {
            return UCS_SYS_DEVICE_ID_UNKNOWN;
        }
        std::string device = machine.device_of(function);
        devices_.push_back({function, device.empty() ? name : device});
        return static_cast<ucs_sys_device_t>(devices_.size() - 1);
    }

    const known_device *find(ucs_sys_device_t device)
    {
        std::lock_guard lock(mutex_);
        return device < devices_.size() ? &devices_[device] : nullptr;
    }

    unsigned count()
    {
        std::lock_guard lock(mutex_);
        return static_cast<unsigned>(devices_.size());
    }

    const sysfs machine;

  private:
    std::mutex mutex_;
    std::deque<known_device> devices_;
};

} // namespace

ucs_sys_device_t device_by_bus_id(const ucs_sys_bus_id_t &bus_id)
{
    return table::get().machine.exists(bus_id) ? table::get().add(bus_id)
                                               : UCS_SYS_DEVICE_ID_UNKNOWN;
}

ucs_sys_device_t device_by_name(const std::string &os_name)
{
    auto function = table::get().machine.function_of(os_name);
    return function ? table::get().add(*function) : UCS_SYS_DEVICE_ID_UNKNOWN;
}

unsigned device_count()
{
    return table::get().count();
}

bool bus_id(ucs_sys_device_t device, ucs_sys_bus_id_t *id)
{
    const known_device *known = table::get().find(device);
    if (known) {
        *id = known->function;
    }
    return known;
}

const char *name(ucs_sys_device_t device)
{
    const known_device *known = table::get().find(device);
    return known ? known->name.c_str() : nullptr;
}

ucs_numa_node_t numa_node(ucs_sys_device_t device)
{
    const known_device *known = table::get().find(device);
    return known ? table::get().machine.numa_node(known->function) : UCS_NUMA_NODE_UNDEFINED;
}

void local_cpus(ucs_sys_device_t device, ucs_cpu_set_t *cpus)
{
    const known_device *known = table::get().find(device);
    auto close_cpus = known ? table::get().machine.local_cpus(known->function) : std::nullopt;
    if (close_cpus) {
        *cpus = *close_cpus;
    } else {
        memset(cpus, 0xff, sizeof(*cpus));
    }
}

std::string bus_id_string(ucs_sys_device_t device)
{
    const known_device *known = table::get().find(device);
    return known ? to_string(known->function) : "unknown";
}

ucs_sys_dev_distance_t distance_from_cpu(ucs_sys_device_t device)
{
    ucs_cpu_set_t close_cpus;
    local_cpus(device, &close_cpus);
    cpu_set_t allowed;
    ucs_cpu_set_t own;
    static_assert(sizeof(allowed) == sizeof(own));
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return near;
    }
    memcpy(&own, &allowed, sizeof(own));
    return meet(own, close_cpus) ? near : far;
}

ucs_sys_dev_distance_t distance(ucs_sys_device_t a, ucs_sys_device_t b)
{
    ucs_cpu_set_t near_a, near_b;
    local_cpus(a, &near_a);
    local_cpus(b, &near_b);
    return meet(near_a, near_b) ? near : far;
}

} // namespace ucs::topo
