// SPDX-License-Identifier: BSD-3-Clause
// ucs_topo_*: the public calls around topo.h. Devices are those that hwloc knows; what would change
// that picture (names, classes, user values, other sources) is not supported.
#include "ucs/topo.h"
#include "ucs/check.h"
#include "ucs/error.h"

#include <cfloat>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace topo = ucs::topo;

namespace {

ucs_status_t found(ucs_sys_device_t device, ucs_sys_device_t *device_p)
{
    if (device == UCS_SYS_DEVICE_ID_UNKNOWN) {
        return UCS_ERR_NO_ELEM;
    }
    *device_p = device;
    return UCS_OK;
}

// The PCI address that a folder of sysfs ends with, after links are followed.
std::optional<ucs_sys_bus_id_t> sysfs_bus_id(const char *path)
{
    char resolved[PATH_MAX];
    const char *name = path && realpath(path, resolved) ? strrchr(resolved, '/') : nullptr;
    return name ? topo::parse_bus_id(name + 1) : std::nullopt;
}

// Bytes a second of one lane, after line coding, by the speed in GT/s that sysfs has.
double lane_bandwidth(double gigatransfers)
{
    double coding = gigatransfers > 5.0 ? 128.0 / 130.0 : 0.8;
    return gigatransfers * 1e9 * coding / 8.0;
}

} // namespace

extern "C" {

const ucs_sys_dev_distance_t ucs_topo_default_distance = {.latency = 0.0, .bandwidth = DBL_MAX};
const ucs_sys_dev_distance_t ucs_topo_max_distance = {.latency = 1.0, .bandwidth = 0.0};

void ucs_sys_topo_reset_provider(void) {}

ucs_status_t ucs_sys_topo_provider_push(const ucs_sys_topo_ops_t *)
{
    return UCS_ERR_UNSUPPORTED;
}

void ucs_sys_topo_provider_pop(void) {}

ucs_status_t ucs_topo_find_device_by_bus_id(const ucs_sys_bus_id_t *bus_id,
                                            ucs_sys_device_t *sys_dev)
{
    UCS_CHECK_ARG(bus_id, "ucs_topo_find_device_by_bus_id: bus_id must not be NULL");
    UCS_CHECK_ARG(sys_dev, "ucs_topo_find_device_by_bus_id: sys_dev must not be NULL");
    return ucs::guard([&] { return found(topo::device_by_bus_id(*bus_id), sys_dev); });
}

ucs_status_t ucs_topo_find_device_by_bus_id_and_user_value(const ucs_sys_bus_id_t *bus_id,
                                                           uintptr_t user_value,
                                                           ucs_sys_device_t *sys_dev_p)
{
    if (user_value != UCS_SYS_DEVICE_USER_VALUE_EMPTY) {
        return UCS_ERR_UNSUPPORTED;
    }
    return ucs_topo_find_device_by_bus_id(bus_id, sys_dev_p);
}

ucs_status_t ucs_topo_get_device_bus_id(ucs_sys_device_t sys_dev, ucs_sys_bus_id_t *bus_id)
{
    UCS_CHECK_ARG(bus_id, "ucs_topo_get_device_bus_id: bus_id must not be NULL");
    return topo::bus_id(sys_dev, bus_id) ? UCS_OK : UCS_ERR_NO_ELEM;
}

ucs_bus_id_bit_rep_t ucs_topo_get_bus_id_bit_repr(const ucs_sys_bus_id_t *bus_id)
{
    return static_cast<int64_t>(bus_id->domain) << 24 | bus_id->bus << 16 | bus_id->slot << 8 |
           bus_id->function;
}

ucs_status_t ucs_topo_get_distance(ucs_sys_device_t device1, ucs_sys_device_t device2,
                                   ucs_sys_dev_distance_t *distance)
{
    UCS_CHECK_ARG(distance, "ucs_topo_get_distance: distance must not be NULL");
    *distance = topo::distance(device1, device2);
    return UCS_OK;
}

void ucs_topo_get_memory_distance(ucs_sys_device_t device, ucs_sys_dev_distance_t *distance)
{
    *distance = topo::distance_from_cpu(device);
}

void ucs_topo_get_memory_distance_for_cpuset(ucs_sys_device_t device, const ucs_cpu_set_t *cpuset,
                                             ucs_sys_dev_distance_t *distance)
{
    ucs_numa_node_t near = topo::numa_node(device);
    ucs_numa_node_t own = ucs_numa_node_of_cpu(ucs_cpu_set_find_lcs(cpuset));
    bool meets = near == UCS_NUMA_NODE_UNDEFINED || own == UCS_NUMA_NODE_UNDEFINED || near == own;
    *distance = meets ? ucs_topo_default_distance
                      : ucs_sys_dev_distance_t{.latency = 500e-9, .bandwidth = 17e9};
}

const char *ucs_topo_distance_str(const ucs_sys_dev_distance_t *distance, char *buffer, size_t max)
{
    if (distance->bandwidth == DBL_MAX) {
        snprintf(buffer, max, "lat %.0f ns bw inf", distance->latency * 1e9);
    } else {
        snprintf(buffer, max, "lat %.0f ns bw %.2f MB/s", distance->latency * 1e9,
                 distance->bandwidth / 1e6);
    }
    return buffer;
}

int ucs_topo_distance_cmp(const ucs_sys_dev_distance_t *distance1,
                          const ucs_sys_dev_distance_t *distance2)
{
    if (distance1->latency != distance2->latency) {
        return distance1->latency < distance2->latency ? -1 : 1;
    }
    return (distance1->bandwidth < distance2->bandwidth) -
           (distance1->bandwidth > distance2->bandwidth);
}

ucs_sys_device_t ucs_topo_get_sysfs_dev(const char *, const char *sysfs_path, unsigned)
{
    auto id = sysfs_bus_id(sysfs_path);
    return id ? topo::device_by_bus_id(*id) : UCS_SYS_DEVICE_ID_UNKNOWN;
}

const char *ucs_topo_sys_device_bdf_name(ucs_sys_device_t sys_dev, char *buffer, size_t max)
{
    ucs_sys_bus_id_t id;
    bool known = topo::bus_id(sys_dev, &id);
    snprintf(buffer, max, "%s", known ? topo::bus_id_string(sys_dev).c_str() : "<unknown>");
    return buffer;
}

ucs_status_t ucs_topo_find_device_by_bdf_name(const char *name, ucs_sys_device_t *sys_dev)
{
    UCS_CHECK_ARG(name, "ucs_topo_find_device_by_bdf_name: name must not be NULL");
    auto id = topo::parse_bus_id(name);
    UCS_CHECK_ARG(id, "ucs_topo_find_device_by_bdf_name: name \"%s\" is not a PCI address", name);
    return ucs_topo_find_device_by_bus_id(&*id, sys_dev);
}

ucs_status_t ucs_topo_sys_device_set_name(ucs_sys_device_t, const char *, unsigned)
{
    return UCS_ERR_UNSUPPORTED;
}

double ucs_topo_get_pci_bw(const char *, const char *sysfs_path)
{
    std::string folder = sysfs_path ? sysfs_path : "";
    double speed;
    unsigned width;
    if (!(std::ifstream(folder + "/current_link_speed") >> speed) ||
        !(std::ifstream(folder + "/current_link_width") >> width) || width == 0) {
        return DBL_MAX;
    }
    return lane_bandwidth(speed) * width;
}

const char *ucs_topo_resolve_sysfs_path(const char *dev_path, char *path_buffer)
{
    char resolved[PATH_MAX];
    std::string link = std::string(dev_path) + "/device";
    if (!realpath(link.c_str(), resolved)) {
        return nullptr;
    }
    return strcpy(path_buffer, resolved);
}

const char *ucs_topo_sys_device_get_name(ucs_sys_device_t sys_dev)
{
    return topo::name(sys_dev);
}

ucs_status_t ucs_topo_sys_device_set_class(ucs_sys_device_t, ucs_topo_device_class_t)
{
    return UCS_ERR_UNSUPPORTED;
}

unsigned ucs_topo_sys_device_get_bdf_class_ordinal(ucs_sys_device_t)
{
    return UCS_SYS_DEVICE_ORDINAL_INVALID;
}

ucs_numa_node_t ucs_topo_sys_device_get_numa_node(ucs_sys_device_t sys_dev)
{
    return topo::numa_node(sys_dev);
}

ucs_status_t ucs_topo_sys_device_set_numa_node(ucs_sys_device_t, ucs_numa_node_t)
{
    return UCS_ERR_UNSUPPORTED;
}

uintptr_t ucs_topo_sys_device_get_user_value(ucs_sys_device_t)
{
    return UCS_SYS_DEVICE_USER_VALUE_EMPTY;
}

ucs_status_t ucs_topo_sys_device_set_sys_dev_aux(ucs_sys_device_t, ucs_sys_device_t)
{
    return UCS_ERR_UNSUPPORTED;
}

ucs_status_t ucs_topo_sys_device_enable_aux_path(ucs_sys_device_t)
{
    return UCS_ERR_UNSUPPORTED;
}

// Host memory is reached from everywhere, and no other kind is handled.
int ucs_topo_is_reachable(ucs_sys_device_t, ucs_sys_device_t)
{
    return 1;
}

int ucs_topo_is_sibling(ucs_sys_device_t, ucs_sys_device_t)
{
    return 0;
}

int ucs_topo_device_has_sibling(ucs_sys_device_t)
{
    return 0;
}

unsigned ucs_topo_num_devices(void)
{
    return topo::device_count();
}

void ucs_topo_print_info(FILE *stream)
{
    unsigned count = topo::device_count();
    for (unsigned i = 0; i < count; ++i) {
        auto device = static_cast<ucs_sys_device_t>(i);
        ucs_sys_dev_distance_t distance = topo::distance_from_cpu(device);
        char text[64];
        fprintf(stream, "# device %u: %s %s, memory at %s\n", i,
                topo::bus_id_string(device).c_str(), topo::name(device),
                ucs_topo_distance_str(&distance, text, sizeof(text)));
    }
}

ucs_global_state_t *ucs_topo_extract_state(void)
{
    return nullptr;
}

void ucs_topo_restore_state(ucs_global_state_t *) {}

void ucs_topo_init(void) {}

void ucs_topo_cleanup(void) {}
}
