// SPDX-License-Identifier: BSD-3-Clause
// See topo.h. Which PCI function a device is, and the processors next to it, is a file of sysfs
// each. The topology, which costs milliseconds (it reads the configuration space of every
// function), is loaded once for a process that asks for more.
#include "ucs/topo.h"

#include "ucs/log.h"

#include <hwloc.h>
#include <hwloc/linux.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <sched.h>
#include <unistd.h>
#include <vector>

namespace ucs::topo {
namespace {

// What crossing from one NUMA node to another adds and leaves, as order-of-magnitude figures of
// current two-socket machines; only their order matters to a choice.
constexpr ucs_sys_dev_distance_t near = {.latency = 0.0,
                                         .bandwidth = std::numeric_limits<double>::max()};
constexpr ucs_sys_dev_distance_t far = {.latency = 500e-9, .bandwidth = 17e9};

std::string text_of(const ucs_sys_bus_id_t &id)
{
    char text[32];
    snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", id.domain, id.bus, id.slot, id.function);
    return text;
}

std::string folder_of(const ucs_sys_bus_id_t &id)
{
    return "/sys/bus/pci/devices/" + text_of(id);
}

// The function that a device is a part of: the last one of its path.
std::optional<ucs_sys_bus_id_t> function_of(const std::string &device)
{
    for (const char *kind : {"/sys/class/net/", "/sys/class/infiniband/"}) {
        char path[PATH_MAX];
        if (device.find('/') != std::string::npos || !realpath((kind + device).c_str(), path)) {
            continue;
        }
        std::string rest = path;
        for (size_t at; (at = rest.rfind('/')) != std::string::npos; rest.resize(at)) {
            if (auto function = parse_bus_id(rest.c_str() + at + 1)) {
                return function;
            }
        }
    }
    return std::nullopt;
}

// The functions that were asked for; the index is what UCX calls a system device.
class device_table {
  public:
    static device_table &get()
    {
        static device_table *instance = new device_table(); // never destroyed, as the topology
        return *instance;
    }

    ucs_sys_device_t add(const ucs_sys_bus_id_t &id)
    {
        std::lock_guard lock(mutex_);
        for (size_t i = 0; i < ids_.size(); ++i) {
            if (text_of(ids_[i]) == text_of(id)) {
                return static_cast<ucs_sys_device_t>(i);
            }
        }
        if (ids_.size() >= UCS_SYS_DEVICE_ID_MAX) {
            return UCS_SYS_DEVICE_ID_UNKNOWN;
        }
        ids_.push_back(id);
        return static_cast<ucs_sys_device_t>(ids_.size() - 1);
    }

    std::optional<ucs_sys_bus_id_t> find(ucs_sys_device_t device)
    {
        std::lock_guard lock(mutex_);
        return device < ids_.size() ? std::optional(ids_[device]) : std::nullopt;
    }

    unsigned count()
    {
        std::lock_guard lock(mutex_);
        return static_cast<unsigned>(ids_.size());
    }

  private:
    std::mutex mutex_;
    std::vector<ucs_sys_bus_id_t> ids_;
};

class machine {
  public:
    static machine &get()
    {
        // Never destroyed: hwloc would unload its plugins, whose libraries keep memory that is then
        // lost.
        static machine *instance = new machine();
        return *instance;
    }

    hwloc_obj_t find(const ucs_sys_bus_id_t &id) const
    {
        return loaded_
                   ? hwloc_get_pcidev_by_busid(topology_, id.domain, id.bus, id.slot, id.function)
                   : nullptr;
    }

    // The NUMA nodes next to a PCI function.
    hwloc_const_nodeset_t nodes(hwloc_obj_t pci) const
    {
        return hwloc_get_non_io_ancestor_obj(topology_, pci)->nodeset;
    }

    hwloc_topology_t topology() const { return loaded_ ? topology_ : nullptr; }

  private:
    machine()
    {
        loaded_ =
            hwloc_topology_init(&topology_) == 0 &&
            hwloc_topology_set_io_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) == 0 &&
            hwloc_topology_load(topology_) == 0;
        if (!loaded_) {
            ucs_warn("hwloc cannot read this machine's topology: devices are chosen without regard "
                     "to it");
        }
    }

    hwloc_topology_t topology_ = nullptr;
    bool loaded_ = false;
};

// The topology is not loaded for a device that is in no table.
hwloc_obj_t pci_of(ucs_sys_device_t device)
{
    auto id = device_table::get().find(device);
    return id ? machine::get().find(*id) : nullptr;
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

ucs_sys_device_t device_by_bus_id(const ucs_sys_bus_id_t &bus_id)
{
    return access(folder_of(bus_id).c_str(), F_OK) == 0 ? device_table::get().add(bus_id)
                                                        : UCS_SYS_DEVICE_ID_UNKNOWN;
}

ucs_sys_device_t device_by_name(const std::string &os_name)
{
    auto function = function_of(os_name);
    return function ? device_table::get().add(*function) : UCS_SYS_DEVICE_ID_UNKNOWN;
}

unsigned device_count()
{
    return device_table::get().count();
}

bool bus_id(ucs_sys_device_t device, ucs_sys_bus_id_t *id)
{
    auto known = device_table::get().find(device);
    if (known) {
        *id = *known;
    }
    return known.has_value();
}

const char *name(ucs_sys_device_t device)
{
    if (!device_table::get().find(device)) {
        return nullptr;
    }
    hwloc_obj_t pci = pci_of(device);
    if (pci && pci->io_first_child && pci->io_first_child->name) {
        return pci->io_first_child->name;
    }
    static std::mutex mutex;
    static auto *names = new std::map<ucs_sys_device_t, std::string>(); // as long as the process
    std::lock_guard lock(mutex);
    return names->try_emplace(device, bus_id_string(device)).first->second.c_str();
}

ucs_numa_node_t numa_node(ucs_sys_device_t device)
{
    hwloc_obj_t pci = pci_of(device);
    int node = pci ? hwloc_bitmap_first(machine::get().nodes(pci)) : -1;
    return node >= 0 ? static_cast<ucs_numa_node_t>(node) : UCS_NUMA_NODE_UNDEFINED;
}

void local_cpus(ucs_sys_device_t device, ucs_cpu_set_t *cpus)
{
    memset(cpus, 0xff, sizeof(*cpus));
    auto id = device_table::get().find(device);
    if (!id) {
        return;
    }
    hwloc_cpuset_t close_cpus = hwloc_bitmap_alloc();
    if (hwloc_linux_read_path_as_cpumask((folder_of(*id) + "/local_cpus").c_str(), close_cpus) ==
        0) {
        memset(cpus, 0, sizeof(*cpus));
        for (int cpu = hwloc_bitmap_first(close_cpus); cpu >= 0 && cpu < UCS_CPU_SETSIZE;
             cpu = hwloc_bitmap_next(close_cpus, cpu)) {
            UCS_CPU_SET(cpu, cpus);
        }
    }
    hwloc_bitmap_free(close_cpus);
}

std::string bus_id_string(ucs_sys_device_t device)
{
    auto id = device_table::get().find(device);
    return id ? text_of(*id) : "unknown";
}

ucs_sys_dev_distance_t distance_from_cpu(ucs_sys_device_t device)
{
    ucs_cpu_set_t close_cpus;
    local_cpus(device, &close_cpus);
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof(own), &own) != 0) {
        return near;
    }
    for (unsigned cpu = 0; cpu < std::min<unsigned>(CPU_SETSIZE, UCS_CPU_SETSIZE); ++cpu) {
        if (CPU_ISSET(cpu, &own) && ucs_cpu_is_set(cpu, &close_cpus)) {
            return near;
        }
    }
    return far;
}

ucs_sys_dev_distance_t distance(ucs_sys_device_t a, ucs_sys_device_t b)
{
    hwloc_obj_t first = pci_of(a);
    hwloc_obj_t second = pci_of(b);
    if (!first || !second ||
        hwloc_bitmap_intersects(machine::get().nodes(first), machine::get().nodes(second))) {
        return near;
    }
    return far;
}

struct memory_near::previous {
    hwloc_nodeset_t nodes = hwloc_bitmap_alloc();
    hwloc_membind_policy_t policy = HWLOC_MEMBIND_DEFAULT;

    ~previous() { hwloc_bitmap_free(nodes); }
};

memory_near::memory_near(const ucs_cpu_set_t &processors)
{
    hwloc_topology_t topology = machine::get().topology();
    if (!topology) {
        return;
    }
    hwloc_cpuset_t wanted = hwloc_bitmap_alloc();
    for (unsigned cpu = 0; cpu < UCS_CPU_SETSIZE; ++cpu) {
        if (processors.ucs_bits[UCS_CPUELT(cpu)] & UCS_CPUMASK(cpu)) {
            hwloc_bitmap_set(wanted, cpu);
        }
    }
    hwloc_bitmap_and(wanted, wanted, hwloc_topology_get_complete_cpuset(topology));
    auto before = std::make_unique<previous>();
    constexpr int thread_nodes = HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET;
    if (!hwloc_bitmap_iszero(wanted) &&
        hwloc_get_membind(topology, before->nodes, &before->policy, thread_nodes) == 0 &&
        hwloc_set_membind(topology, wanted, HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_THREAD) == 0) {
        // What hwloc calls the default policy of a thread that never had one.
        if (before->policy == HWLOC_MEMBIND_FIRSTTOUCH) {
            before->policy = HWLOC_MEMBIND_DEFAULT;
        }
        previous_ = std::move(before);
    }
    hwloc_bitmap_free(wanted);
}

memory_near::~memory_near()
{
    if (previous_ &&
        hwloc_set_membind(machine::get().topology(), previous_->nodes, previous_->policy,
                          HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET) != 0) {
        ucs_warn("the memory binding of this thread cannot be restored");
    }
}

} // namespace ucs::topo
