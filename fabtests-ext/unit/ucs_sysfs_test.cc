// SPDX-License-Identifier: BSD-3-Clause
// What is read from sysfs, on a made-up machine with two NUMA nodes.
#include "ucs/memory_near.h"
#include "ucs/sysfs.h"
#include "ucs/topo.h"

#include <gtest/gtest.h>

#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace {

constexpr ucs_sys_bus_id_t mlx = {.domain = 0, .bus = 0x3b, .slot = 0, .function = 1};
constexpr ucs_sys_bus_id_t virtio = {.domain = 0x10, .bus = 0, .slot = 3, .function = 0};

class sysfs_test : public testing::Test {
  protected:
    sysfs_test()
    {
        char name[] = "/tmp/ucs_sysfs.XXXXXX";
        EXPECT_NE(nullptr, mkdtemp(name));
        root_ = name;
        function("pci0000:3a/0000:3a:00.0", "-1", "0-7");
        function("pci0000:3a/0000:3a:00.0/0000:3b:00.1", "1", "4-5,7");
        function("pci0010:00/0010:00:03.0", "-1", "");
        device("net", "pci0000:3a/0000:3a:00.0/0000:3b:00.1", "ens1np1");
        device("infiniband", "pci0000:3a/0000:3a:00.0/0000:3b:00.1", "mlx5_1");
        device("net", "pci0010:00/0010:00:03.0/virtio2", "eth0");
        device("net", "virtual", "lo");
        write("devices/system/node/node0/cpulist", "0-3");
        write("devices/system/node/node1/cpulist", "4-7");
        write("devices/system/node/node12/cpulist", "");
        write("devices/system/node/nodes/cpulist", "0-7");
    }
    ~sysfs_test() override { fs::remove_all(root_); }

    void write(const std::string &file, const std::string &text)
    {
        fs::create_directories((root_ / file).parent_path());
        std::ofstream(root_ / file) << text << "\n";
    }

    void function(const std::string &path, const std::string &node, const std::string &cpus)
    {
        write("devices/" + path + "/numa_node", node);
        write("devices/" + path + "/local_cpulist", cpus);
        fs::create_directories(root_ / "bus/pci/devices");
        fs::create_directory_symlink(root_ / "devices" / path,
                                     root_ / "bus/pci/devices" / fs::path(path).filename());
    }

    void device(const std::string &cls, const std::string &parent, const std::string &name)
    {
        fs::path folder = root_ / "devices" / parent / cls / name;
        fs::create_directories(folder);
        fs::create_directories(root_ / "class" / cls);
        fs::create_directory_symlink(folder, root_ / "class" / cls / name);
    }

    std::string function_of(const std::string &device) const
    {
        auto found = ucs::sysfs(root_).function_of(device);
        return found ? ucs::to_string(*found) : "none";
    }

    fs::path root_;
};

ucs_cpu_set_t set_of(const std::string &list)
{
    ucs_cpu_set_t set{};
    EXPECT_TRUE(ucs::add_list(list, &set)) << list;
    return set;
}

} // namespace

TEST_F(sysfs_test, device_belongs_to_the_last_function_on_its_path)
{
    EXPECT_EQ("0000:3b:00.1", function_of("mlx5_1"));
    EXPECT_EQ("0000:3b:00.1", function_of("ens1np1"));
    EXPECT_EQ("0010:00:03.0", function_of("eth0"));
}

TEST_F(sysfs_test, device_without_a_bus_has_no_function)
{
    for (const char *name : {"lo", "nosuch", "", ".", "../net/eth0", "eth0/"}) {
        EXPECT_EQ("none", function_of(name)) << name;
    }
}

TEST_F(sysfs_test, function_has_the_name_of_its_fabric_device)
{
    EXPECT_EQ("mlx5_1", ucs::sysfs(root_).device_of(mlx));
    EXPECT_EQ("eth0", ucs::sysfs(root_).device_of(virtio));
    EXPECT_EQ("", ucs::sysfs(root_).device_of({.bus = 0x3a}));
}

TEST_F(sysfs_test, function_exists_when_the_bus_has_it)
{
    EXPECT_TRUE(ucs::sysfs(root_).exists(mlx));
    EXPECT_FALSE(ucs::sysfs(root_).exists({.bus = 0x3b}));
}

TEST_F(sysfs_test, processors_and_node_are_the_functions)
{
    ucs::sysfs machine(root_);
    EXPECT_EQ(1, machine.numa_node(mlx));
    EXPECT_EQ(UCS_NUMA_NODE_UNDEFINED, machine.numa_node(virtio));
    auto cpus = machine.local_cpus(mlx);
    ASSERT_TRUE(cpus);
    for (int cpu = 0; cpu < UCS_CPU_SETSIZE; ++cpu) {
        EXPECT_EQ(cpu == 4 || cpu == 5 || cpu == 7, ucs_cpu_is_set(cpu, &*cpus)) << cpu;
    }
    EXPECT_FALSE(machine.local_cpus(virtio));
}

TEST_F(sysfs_test, nodes_are_those_that_have_one_of_the_processors)
{
    ucs::sysfs machine(root_);
    EXPECT_EQ(std::vector<unsigned>({0}), machine.nodes_of(set_of("3")));
    EXPECT_EQ(2u, machine.nodes_of(set_of("3-4")).size());
    EXPECT_TRUE(machine.nodes_of(set_of("8-1023")).empty());
}

TEST(sysfs_lists, take_numbers_and_ranges_only)
{
    EXPECT_TRUE(ucs::meet(set_of("0,2-4"), set_of("4")));
    EXPECT_FALSE(ucs::meet(set_of("0,2-4"), set_of("1,5-1023")));
    ucs_cpu_set_t set{};
    for (const char *list : {"1-", "a", "1 2", "1024", "0-1024", "-1", "1,,2"}) {
        EXPECT_FALSE(ucs::add_list(list, &set)) << list;
    }
}

TEST(memory_near, binds_this_thread_and_restores_it)
{
    auto mode = [] {
        int now = -1;
        return syscall(SYS_get_mempolicy, &now, nullptr, 0, nullptr, 0) == 0 ? now : -1;
    };
    if (mode() != MPOL_DEFAULT || ucs::sysfs().nodes_of(set_of("0")).empty()) {
        GTEST_SKIP() << "this kernel or container has no memory policies";
    }
    {
        ucs::memory_near near(set_of("0"));
        EXPECT_EQ(MPOL_BIND, mode());
    }
    EXPECT_EQ(MPOL_DEFAULT, mode());
    ucs::memory_near nowhere(set_of("1023"));
    EXPECT_EQ(MPOL_DEFAULT, mode());
}

// hwloc reads the configuration space of every PCI function, which takes 10 ms and more.
TEST(topology, is_told_without_hwloc)
{
    ucs_cpu_set_t cpus;
    ucs::topo::local_cpus(ucs::topo::device_by_name("eth0"), &cpus);
    EXPECT_FALSE(ucs_cpu_set_is_empty(&cpus));
    EXPECT_EQ(nullptr, dlopen("libhwloc.so.15", RTLD_NOW | RTLD_NOLOAD));
}
