// SPDX-License-Identifier: BSD-3-Clause
// Memory domains: what is told of memory, advice, the flags of registration and allocation, the
// configuration of every kind, and that attributes hold together.
#include "fabtests-ext/conformance/common/uct_entity.h"

#include "ucs/log.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <netinet/in.h>
#include <sys/mman.h>
#include <unistd.h>

namespace uct_conformance {
namespace {

class uct_md : public uct_test {
  protected:
    static constexpr size_t page = 4096;

    static int errors;
    void SetUp() override
    {
        uct_test::SetUp();
        errors = 0;
        ucs::log::set_sink([](ucs::log::level l, const char *, int, const char *) {
            errors += l == ucs::log::level::error;
        });
    }
    void TearDown() override
    {
        ucs::log::set_sink(nullptr);
        uct_test::TearDown();
    }

    // Resident kB of the mapping that holds an address.
    static size_t locked_kb()
    {
        std::ifstream status("/proc/self/status");
        for (std::string line; std::getline(status, line);) {
            if (line.rfind("VmLck:", 0) == 0) {
                return std::stoul(line.substr(6));
            }
        }
        return 0;
    }

    static bool resident(void *address, size_t length)
    {
        std::vector<unsigned char> pages(length / page);
        EXPECT_EQ(mincore(address, length, pages.data()), 0);
        return std::all_of(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; });
    }
};

int uct_md::errors;

TEST_P(uct_md, 211_mem_query_and_detect_know_host_memory)
{
    EXPECT_TRUE(a().md_attr.cap.detect_mem_types & UCS_BIT(UCS_MEMORY_TYPE_HOST));
    std::vector<char> memory(10000);
    ucs_memory_type_t type = UCS_MEMORY_TYPE_LAST;
    EXPECT_EQ(uct_md_detect_memory_type(a().md, memory.data(), memory.size(), &type), UCS_OK);
    EXPECT_EQ(type, UCS_MEMORY_TYPE_HOST);
    uct_md_mem_attr_t attr{};
    attr.field_mask = UCT_MD_MEM_ATTR_FIELD_MEM_TYPE | UCT_MD_MEM_ATTR_FIELD_SYS_DEV |
                      UCT_MD_MEM_ATTR_FIELD_BASE_ADDRESS | UCT_MD_MEM_ATTR_FIELD_ALLOC_LENGTH |
                      UCT_MD_MEM_ATTR_FIELD_DMABUF_FD | UCT_MD_MEM_ATTR_FIELD_DMABUF_OFFSET;
    attr.mem_type = UCS_MEMORY_TYPE_LAST;
    EXPECT_EQ(uct_md_mem_query(a().md, memory.data(), memory.size(), &attr), UCS_OK);
    EXPECT_EQ(attr.mem_type, UCS_MEMORY_TYPE_HOST);
    EXPECT_EQ(attr.sys_dev, UCS_SYS_DEVICE_ID_UNKNOWN);
    EXPECT_EQ(attr.base_address, memory.data());
    EXPECT_EQ(attr.alloc_length, memory.size());
    EXPECT_EQ(attr.dmabuf_fd, UCT_DMABUF_FD_INVALID);
    // Members that are not asked for stay.
    attr.field_mask = 0;
    attr.alloc_length = 7;
    EXPECT_EQ(uct_md_mem_query(a().md, memory.data(), memory.size(), &attr), UCS_OK);
    EXPECT_EQ(attr.alloc_length, 7u);
}

TEST_P(uct_md, 211_mem_query_of_memory_that_is_not_there)
{
    void *gone = mmap(nullptr, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(gone, MAP_FAILED);
    munmap(gone, 2 * page);
    uct_md_mem_attr_t attr{};
    ucs_memory_type_t type = UCS_MEMORY_TYPE_LAST;
    EXPECT_EQ(uct_md_mem_query(a().md, gone, page, &attr), UCS_ERR_INVALID_ADDR);
    EXPECT_EQ(uct_md_detect_memory_type(a().md, gone, page, &type), UCS_ERR_INVALID_ADDR);
    EXPECT_EQ(type, UCS_MEMORY_TYPE_LAST);
    EXPECT_EQ(errors, 0);
    EXPECT_EQ(uct_md_mem_query(a().md, nullptr, page, &attr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(uct_md_mem_query(a().md, &type, 0, &attr), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(uct_md_detect_memory_type(a().md, nullptr, 1, &type), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(errors, 3);
}

TEST_P(uct_md, 211_advice_maps_the_pages)
{
    EXPECT_TRUE(a().md_attr.cap.flags & UCT_MD_FLAG_ADVISE);
    constexpr size_t length = 64 * page;
    void *memory =
        mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    uct_mem_h memh = nullptr;
    ASSERT_EQ(uct_md_mem_reg(a().md, memory, length,
                             UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_NONBLOCK, &memh),
              UCS_OK);
    EXPECT_EQ(uct_md_mem_advise(a().md, memh, memory, length, UCT_MADV_NORMAL), UCS_OK);
    EXPECT_EQ(uct_md_mem_advise(a().md, memh, memory, length, UCT_MADV_WILLNEED), UCS_OK);
    EXPECT_TRUE(resident(memory, length));
    char *past = static_cast<char *>(memory) + length;
    EXPECT_EQ(uct_md_mem_advise(a().md, memh, past - 1, 2, UCT_MADV_WILLNEED),
              UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(uct_md_mem_advise(a().md, memh, memory, SIZE_MAX, UCT_MADV_WILLNEED),
              UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(uct_md_mem_advise(a().md, nullptr, memory, length, UCT_MADV_WILLNEED),
              UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(errors, 3);
    EXPECT_EQ(uct_md_mem_dereg(a().md, memh), UCS_OK);
    munmap(memory, length);
}

TEST_P(uct_md, 212_allocated_pages_are_there_unless_they_may_come_later)
{
    constexpr size_t length = 256 * page;
    for (uct_alloc_method_t method : {UCT_ALLOC_METHOD_MD, UCT_ALLOC_METHOD_MMAP}) {
        if (method == UCT_ALLOC_METHOD_MD && !(a().md_attr.cap.flags & UCT_MD_FLAG_ALLOC)) {
            continue;
        }
        for (bool later : {false, true}) {
            uct_mem_alloc_params_t params{};
            params.field_mask = UCT_MEM_ALLOC_PARAM_FIELD_FLAGS | UCT_MEM_ALLOC_PARAM_FIELD_MDS;
            params.flags = UCT_MD_MEM_ACCESS_ALL | (later ? UCT_MD_MEM_FLAG_NONBLOCK : 0);
            params.mds = {&a().md, 1};
            uct_allocated_memory_t memory;
            ASSERT_EQ(uct_mem_alloc(length, &method, 1, &params, &memory), UCS_OK);
            EXPECT_EQ(memory.method, method);
            EXPECT_EQ(resident(memory.address, length), !later) << uct_alloc_method_names[method];
            EXPECT_EQ(uct_mem_free(&memory), UCS_OK);
        }
    }
}

TEST_P(uct_md, 211_locked_memory_stays_until_its_last_registration_ends)
{
    if (sanitized) {
        GTEST_SKIP() << "the sanitizers make mlock(2) do nothing";
    }
    if (a().md_attr.cap.flags & UCT_MD_FLAG_NEED_MEMH) {
        GTEST_SKIP() << "the device pins";
    }
    constexpr size_t length = 8 * page;
    void *memory =
        mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    size_t before = locked_kb();
    unsigned flags = UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_LOCK;
    uct_mem_h whole = nullptr;
    uct_mem_h half = nullptr;
    ASSERT_EQ(uct_md_mem_reg(a().md, memory, length, flags, &whole), UCS_OK);
    EXPECT_EQ(locked_kb(), before + length / 1024);
    ASSERT_EQ(uct_md_mem_reg(a().md, memory, length / 2, flags, &half), UCS_OK);
    EXPECT_EQ(uct_md_mem_dereg(a().md, whole), UCS_OK);
    EXPECT_EQ(locked_kb(), before + length / 2048);
    EXPECT_EQ(uct_md_mem_dereg(a().md, half), UCS_OK);
    EXPECT_EQ(locked_kb(), before);
    munmap(memory, length);
}

TEST_P(uct_md, 211_hidden_errors_are_not_logged)
{
    if (sanitized) {
        GTEST_SKIP() << "the sanitizers make mlock(2) do nothing";
    }
    void *gone = mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(gone, MAP_FAILED);
    munmap(gone, page);
    uct_mem_h memh = nullptr;
    unsigned flags = UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_LOCK;
    EXPECT_NE(uct_md_mem_reg(a().md, gone, page, flags | UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh),
              UCS_OK);
    EXPECT_EQ(errors, 0);
    EXPECT_NE(uct_md_mem_reg(a().md, gone, page, flags, &memh), UCS_OK);
    EXPECT_EQ(errors, 1);
    EXPECT_EQ(memh, nullptr);
}

// Reads SEG_SIZE, REG_NONBLOCK or PRIV_DATA_LEN through the call for its kind of object.
TEST_P(uct_md, configuration_comes_from_prefixed_variables_and_a_file)
{
    std::string name = GetParam();
    std::transform(name.begin(), name.end(), name.begin(), ::toupper);
    std::string variable = name + "_SEG_SIZE";
    auto seg_size = [&](const char *prefix, const char *file) {
        uct_iface_config_t *config = nullptr;
        EXPECT_EQ(uct_md_iface_config_read(a().md, GetParam(), prefix, file, &config), UCS_OK);
        char text[64] = "";
        EXPECT_EQ(uct_config_get(config, "SEG_SIZE", text, sizeof(text)), UCS_OK);
        uct_config_release(config);
        return std::string(text);
    };
    char path[] = "/tmp/uct_md_test.XXXXXX";
    int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    close(fd);
    std::ofstream(path) << "UCX_" << variable << "=1000\n";
    EXPECT_EQ(seg_size(nullptr, path), "1000");
    setenv(("UCX_" + variable).c_str(), "2000", 1);
    EXPECT_EQ(seg_size(nullptr, path), "2000");
    setenv(("UCT_" + variable).c_str(), "3000", 1);
    EXPECT_EQ(seg_size(nullptr, nullptr), "3000");
    setenv(("APP_UCX_" + variable).c_str(), "4000", 1);
    EXPECT_EQ(seg_size("APP", nullptr), "4000");
    setenv(("UCT_APP_" + variable).c_str(), "5000", 1);
    EXPECT_EQ(seg_size("APP", path), "5000");
    EXPECT_EQ(seg_size("OTHER", path), "3000");
    setenv(("UCT_" + variable).c_str(), "much", 1);
    uct_iface_config_t *none = nullptr;
    EXPECT_EQ(uct_md_iface_config_read(a().md, GetParam(), nullptr, nullptr, &none),
              UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(none, nullptr);
    for (const char *prefix : {"UCX_", "UCT_", "APP_UCX_", "UCT_APP_"}) {
        unsetenv((prefix + variable).c_str());
    }
    unlink(path);
    seg_size(nullptr, path); // gone: ignored
    std::string md_variable = "UCT_" + name + "_REG_NONBLOCK";
    setenv(md_variable.c_str(), "y", 1);
    uct_md_config_t *md_config = nullptr;
    ASSERT_EQ(uct_md_config_read(a().component, nullptr, nullptr, &md_config), UCS_OK);
    char text[64] = "";
    EXPECT_EQ(uct_config_get(md_config, "REG_NONBLOCK", text, sizeof(text)), UCS_OK);
    EXPECT_STREQ(text, "y");
    uct_config_release(md_config);
    unsetenv(md_variable.c_str());
}

TEST_P(uct_md, sockaddr_accessibility)
{
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ucs_sock_addr_t any{reinterpret_cast<sockaddr *>(&address), sizeof(address)};
    bool has = (a().md_attr.cap.flags & UCT_MD_FLAG_SOCKADDR) != 0;
    EXPECT_EQ(uct_md_is_sockaddr_accessible(a().md, &any, UCT_SOCKADDR_ACC_LOCAL), has);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool loopback = has && std::string(a().resource.dev_name) == "lo";
    EXPECT_EQ(uct_md_is_sockaddr_accessible(a().md, &any, UCT_SOCKADDR_ACC_LOCAL), loopback);
    EXPECT_EQ(uct_md_is_sockaddr_accessible(a().md, &any, UCT_SOCKADDR_ACC_REMOTE), loopback);
    EXPECT_EQ(errors, 0);
    any.addrlen = 2;
    EXPECT_EQ(uct_md_is_sockaddr_accessible(a().md, &any, UCT_SOCKADDR_ACC_REMOTE), 0);
    EXPECT_EQ(uct_md_is_sockaddr_accessible(a().md, nullptr, UCT_SOCKADDR_ACC_LOCAL), 0);
    EXPECT_EQ(errors, 2);
}

TEST_P(uct_md, attributes_hold_together)
{
    const uct_iface_attr_t &attr = a().attr;
    EXPECT_GT(attr.bandwidth.dedicated + attr.bandwidth.shared, 0);
    EXPECT_GT(attr.overhead, 0);
    EXPECT_GE(attr.latency.c, 0);
    EXPECT_GT(attr.max_num_eps, 0u);
    EXPECT_EQ(attr.dev_num_paths, 1u);
    EXPECT_GT(attr.iface_addr_len, 0u);
    EXPECT_GT(attr.ep_addr_len, 0u);
    EXPECT_TRUE(a().has(UCT_IFACE_FLAG_CB_SYNC | UCT_IFACE_FLAG_PENDING));
    EXPECT_FALSE(a().has(UCT_IFACE_FLAG_CONNECT_TO_SOCKADDR));
    EXPECT_EQ(a().has(UCT_IFACE_FLAG_INTER_NODE), a().resource.dev_type == UCT_DEVICE_TYPE_NET);
    EXPECT_GE(attr.cap.am.max_short, 8u);
    EXPECT_LE(attr.cap.am.max_hdr, attr.cap.am.max_zcopy);
    EXPECT_FALSE(ucs_cpu_set_is_empty(&a().md_attr.local_cpus));
    EXPECT_STREQ(a().md_attr.component_name, GetParam());
    EXPECT_GT(a().md_attr.rkey_packed_size, 0u);
}

UCT_INSTANTIATE(uct_md);

} // namespace
} // namespace uct_conformance
