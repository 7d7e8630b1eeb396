// SPDX-License-Identifier: BSD-3-Clause
// See topo.h. The topology is loaded once per process; it costs milliseconds.
#include "ucs/topo.h"

#include "ucs/log.h"

#include <hwloc.h>

#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

namespace ucs::topo {
namespace {

// What crossing from one NUMA node to another adds and leaves, as order-of-magnitude figures of
// current two-socket machines; only their order matters to a choice.
constexpr ucs_sys_dev_distance_t near = {.latency = 0.0,
                                         .bandwidth = std::numeric_limits<double>::max()};
constexpr ucs_sys_dev_distance_t far = {.latency = 500e-9, .bandwidth = 17e9};

class machine {
  public:
    static machine &get()
    {
        // Never destroyed: hwloc would unload its plugins, whose libraries keep memory that is then
        // lost.
        static machine *instance = new machine();
        return *instance;
    }

    ucs_sys_device_t device(hwloc_obj_t pci)
    {
        if (!pci) {
            return UCS_SYS_DEVICE_ID_UNKNOWN;
        }
        std::lock_guard lock(mutex_);
        for (size_t i = 0; i < devices_.size(); ++i) {
            if (devices_[i] == pci) {
                return static_cast<ucs_sys_device_t>(i);
            }
        }
        if (devices_.size() >= UCS_SYS_DEVICE_ID_MAX) {
            return UCS_SYS_DEVICE_ID_UNKNOWN;
        }
        devices_.push_back(pci);
        return static_cast<ucs_sys_device_t>(devices_.size() - 1);
    }

    hwloc_obj_t pci(ucs_sys_device_t device)
    {
        std::lock_guard lock(mutex_);
        return device < devices_.size() ? devices_[device] : nullptr;
    }

    unsigned count()
    {
        std::lock_guard lock(mutex_);
        return static_cast<unsigned>(devices_.size());
    }

    hwloc_obj_t find(const ucs_sys_bus_id_t &id) const
    {
        return loaded_
                   ? hwloc_get_pcidev_by_busid(topology_, id.domain, id.bus, id.slot, id.function)
                   : nullptr;
    }

    hwloc_obj_t find(const std::string &os_name) const
    {
        for (hwloc_obj_t os = nullptr; loaded_ && (os = hwloc_get_next_osdev(topology_, os));) {
            if (os->name && os_name == os->name) {
                return pci_parent(os);
            }
        }
        return nullptr;
    }

    // The NUMA nodes next to a PCI function.
    hwloc_const_nodeset_t nodes(hwloc_obj_t pci) const
    {
        return hwloc_get_non_io_ancestor_obj(topology_, pci)->nodeset;
    }

    // The NUMA nodes of the processors that this thread may run on.
    bool own_nodes(hwloc_nodeset_t nodes) const
    {
        hwloc_cpuset_t cpus = hwloc_bitmap_alloc();
        bool known = loaded_ && hwloc_get_cpubind(topology_, cpus, HWLOC_CPUBIND_THREAD) == 0;
        if (known) {
            hwloc_cpuset_to_nodeset(topology_, cpus, nodes);
        }
        hwloc_bitmap_free(cpus);
        return known;
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

    static hwloc_obj_t pci_parent(hwloc_obj_t object)
    {
        while (object && object->type != HWLOC_OBJ_PCI_DEVICE) {
            object = object->parent;
        }
        return object;
    }

    hwloc_topology_t topology_ = nullptr;
    bool loaded_ = false;
    std::mutex mutex_;
    std::vector<hwloc_obj_t> devices_;
};

// The topology is not loaded for a device that nobody knows.
hwloc_obj_t pci_of(ucs_sys_device_t device)
{
    return device == UCS_SYS_DEVICE_ID_UNKNOWN ? nullptr : machine::get().pci(device);
}

} // namespace

ucs_sys_device_t device_by_bus_id(const ucs_sys_bus_id_t &bus_id)
{
    return machine::get().device(machine::get().find(bus_id));
}

ucs_sys_device_t device_by_name(const std::string &os_name)
{
    return machine::get().device(machine::get().find(os_name));
}

unsigned device_count()
{
    return machine::get().count();
}

bool bus_id(ucs_sys_device_t device, ucs_sys_bus_id_t *id)
{
    hwloc_obj_t pci = pci_of(device);
    if (!pci) {
        return false;
    }
    const auto &at = pci->attr->pcidev;
    *id = {.domain = static_cast<uint16_t>(at.domain),
           .bus = at.bus,
           .slot = at.dev,
           .function = at.func};
    return true;
}

const char *name(ucs_sys_device_t device)
{
    hwloc_obj_t pci = pci_of(device);
    if (!pci) {
        return nullptr;
    }
    if (pci->io_first_child && pci->io_first_child->name) {
        return pci->io_first_child->name;
    }
    static std::mutex mutex;
    static std::map<ucs_sys_device_t, std::string> names;
    std::lock_guard lock(mutex);
    return names.try_emplace(device, bus_id_string(device)).first->second.c_str();
}

ucs_numa_node_t numa_node(ucs_sys_device_t device)
{
    hwloc_obj_t pci = pci_of(device);
    int node = pci ? hwloc_bitmap_first(machine::get().nodes(pci)) : -1;
    return node >= 0 ? static_cast<ucs_numa_node_t>(node) : UCS_NUMA_NODE_UNDEFINED;
}

void local_cpus(ucs_sys_device_t device, ucs_cpu_set_t *cpus)
{
    hwloc_obj_t pci = pci_of(device);
    if (!pci) {
        memset(cpus, 0xff, sizeof(*cpus));
        return;
    }
    memset(cpus, 0, sizeof(*cpus));
    hwloc_const_cpuset_t close_cpus =
        hwloc_get_non_io_ancestor_obj(machine::get().topology(), pci)->cpuset;
    for (int cpu = hwloc_bitmap_first(close_cpus); cpu >= 0 && cpu < UCS_CPU_SETSIZE;
         cpu = hwloc_bitmap_next(close_cpus, cpu)) {
        UCS_CPU_SET(cpu, cpus);
    }
}

std::string bus_id_string(ucs_sys_device_t device)
{
    hwloc_obj_t pci = pci_of(device);
    if (!pci) {
        return "unknown";
    }
    char text[32];
    const auto &id = pci->attr->pcidev;
    snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", id.domain, id.bus, id.dev, id.func);
    return text;
}

ucs_sys_dev_distance_t distance_from_cpu(ucs_sys_device_t device)
{
    hwloc_obj_t pci = pci_of(device);
    if (!pci) {
        return near;
    }
    hwloc_nodeset_t own = hwloc_bitmap_alloc();
    bool known = machine::get().own_nodes(own);
    bool meets = !known || hwloc_bitmap_intersects(own, machine::get().nodes(pci));
    hwloc_bitmap_free(own);
    return meets ? near : far;
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
