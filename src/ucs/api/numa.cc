// SPDX-License-Identifier: BSD-3-Clause
// ucs_numa_*: what sysfs tells about memory nodes. Read anew at each call; these are not for data
// paths.
#include "ucs/compiler.h"

#include <ucs/memory/numa.h>

#include <cctype>
#include <climits>
#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <memory>
#include <string>
#include <unistd.h>

namespace {

// Calls f with the number of each entry "<prefix><number>" of a folder.
template <class F>
void for_each_number(const std::string &folder, const std::string &prefix, F &&f)
{
    std::unique_ptr<DIR, int (*)(DIR *)> dir(opendir(folder.c_str()), closedir);
    while (const dirent *entry = dir ? readdir(dir.get()) : nullptr) {
        std::string name = entry->d_name;
        if (name.starts_with(prefix) && name.size() > prefix.size() &&
            isdigit(static_cast<unsigned char>(name[prefix.size()]))) {
            f(atoi(name.c_str() + prefix.size()));
        }
    }
}

} // namespace

extern "C" {

const char *ucs_numa_policy_names[] = {"default", "preferred", "bind", nullptr};

void ucs_numa_init(void) {}

void ucs_numa_cleanup(void) {}

unsigned ucs_numa_num_configured_cpus(void)
{
    long count = sysconf(_SC_NPROCESSORS_CONF);
    return count > 0 ? static_cast<unsigned>(count) : 1;
}

unsigned ucs_numa_num_configured_nodes(void)
{
    unsigned count = 0;
    for_each_number("/sys/devices/system/node", "node", [&](int) { ++count; });
    return count ? count : 1;
}

ucs_numa_node_t ucs_numa_node_of_cpu(int cpu)
{
    ucs_numa_node_t node = UCS_NUMA_NODE_UNDEFINED;
    for_each_number("/sys/devices/system/cpu/cpu" + std::to_string(cpu), "node",
                    [&](int n) { node = static_cast<ucs_numa_node_t>(n); });
    return node;
}

ucs_numa_node_t ucs_numa_node_of_device(const char *dev_path)
{
    std::ifstream file(std::string(dev_path) + "/numa_node");
    int node;
    return file >> node && node >= 0 && node <= SHRT_MAX ? static_cast<ucs_numa_node_t>(node)
                                                         : UCS_NUMA_NODE_UNDEFINED;
}

ucs_numa_distance_t ucs_numa_distance(ucs_numa_node_t node1, ucs_numa_node_t node2)
{
    std::ifstream file("/sys/devices/system/node/node" + std::to_string(node1) + "/distance");
    int distance = node1 == node2 ? 10 : 20; // what firmware without a table means
    for (int node = 0, value; node <= node2 && file >> value; ++node) {
        if (node == node2) {
            distance = value;
        }
    }
    return distance;
}
}
