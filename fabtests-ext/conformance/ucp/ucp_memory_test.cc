// SPDX-License-Identifier: BSD-3-Clause
//
// Lists of buffers on both sides of a put or get, and memory handles that another process of the
// node imports.
#include "fabtests-ext/common/sanitized.h"
#include "fabtests-ext/common/ucp_pair.h"

#include <fstream>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace ucp_test;

// ---- lists on both sides

class ucp_sgl : public pair {
  protected:
    static constexpr size_t count = 3;
    static constexpr size_t remote_size = 300000;

    ucp_sgl() { opts.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA; }

    void SetUp() override
    {
        pair::SetUp();
        remote = std::vector<char>(remote_size, 0);
        for (size_t i = 0; i < 2; ++i) {
            ucp_mem_map_params_t map = {};
            map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
            map.address = remote.data() + i * (remote_size / 2);
            map.length = remote_size / 2;
            ASSERT_EQ(UCS_OK, ucp_mem_map(b().context, &map, &memh[i]));
            void *packed;
            size_t length;
            ASSERT_EQ(UCS_OK, ucp_rkey_pack(b().context, memh[i], &packed, &length));
            ASSERT_EQ(UCS_OK, ucp_ep_rkey_unpack(ab, packed, &keys[i]));
            ucp_rkey_buffer_release(packed);
        }
        // The second element lies in the other registration.
        rkeys = {keys[0], keys[1], keys[0]};
        addresses = {at(100), at(remote_size / 2 + 10), at(100000)};
    }

    void TearDown() override
    {
        for (size_t i = 0; i < 2; ++i) {
            ucp_rkey_destroy(keys[i]);
            EXPECT_EQ(UCS_OK, ucp_mem_unmap(b().context, memh[i]));
        }
        pair::TearDown();
    }

    uint64_t at(size_t offset) const { return reinterpret_cast<uint64_t>(remote.data()) + offset; }

    // The parameters of a call with the lists below.
    ucp_request_param_t param()
    {
        local_list.field_mask = UCP_DT_LOCAL_SGL_FIELD_BUFFERS | UCP_DT_LOCAL_SGL_FIELD_LENGTHS;
        local_list.buffers = buffers.data();
        local_list.lengths = lengths.data();
        remote_list.field_mask = UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS |
                                 UCP_DT_REMOTE_SGL_FIELD_LENGTHS | UCP_DT_REMOTE_SGL_FIELD_RKEYS;
        remote_list.remote_addrs = addresses.data();
        remote_list.lengths = remote_lengths.data();
        remote_list.rkeys = rkeys.data();
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REMOTE_DATATYPE |
                         UCP_OP_ATTR_FIELD_REMOTE | UCP_OP_ATTR_FIELD_REMOTE_COUNT;
        p.datatype = ucp_dt_make_sgl();
        p.remote_datatype = ucp_dt_make_sgl();
        p.remote = &remote_list;
        p.remote_count = count;
        return p;
    }

    ucs_status_ptr_t put(const ucp_request_param_t &p, size_t n = count)
    {
        return ucp_put_nbx(ab, &local_list, n, UCP_REMOTE_ADDR_INVALID, UCP_RKEY_INVALID, &p);
    }
    ucs_status_ptr_t get(const ucp_request_param_t &p, size_t n = count)
    {
        return ucp_get_nbx(ab, &local_list, n, UCP_REMOTE_ADDR_INVALID, UCP_RKEY_INVALID, &p);
    }

    ucs_status_t flush()
    {
        ucp_request_param_t p = {};
        return finish(ucp_ep_flush_nbx(ab, &p));
    }

    std::vector<char> remote;
    ucp_mem_h memh[2] = {};
    ucp_rkey_h keys[2] = {};
    std::vector<std::vector<char>> data = {pattern(5, 1), pattern(70000, 2), pattern(4096, 3)};
    std::vector<void *> buffers = {data[0].data(), data[1].data(), data[2].data()};
    std::vector<size_t> lengths = {5, 70000, 4096};
    std::vector<size_t> remote_lengths = lengths;
    std::vector<uint64_t> addresses;
    std::vector<ucp_rkey_h> rkeys;
    ucp_dt_local_sgl_t local_list = {};
    ucp_dt_remote_sgl_t remote_list = {};
};

TEST_P(ucp_sgl, b113_put_and_get_move_every_element)
{
    ucp_request_param_t p = param();
    ASSERT_EQ(UCS_OK, finish(put(p)));
    ASSERT_EQ(UCS_OK, flush());
    for (size_t i = 0; i < count; ++i) {
        const char *there = reinterpret_cast<const char *>(addresses[i]);
        EXPECT_EQ(data[i], std::vector<char>(there, there + lengths[i])) << i;
    }
    EXPECT_EQ(0, remote[99]);
    EXPECT_EQ(0, remote[105]);
    for (std::vector<char> &d : data) {
        std::fill(d.begin(), d.end(), 0);
    }
    ASSERT_EQ(UCS_OK, finish(get(p)));
    EXPECT_EQ(pattern(5, 1), data[0]);
    EXPECT_EQ(pattern(70000, 2), data[1]);
    EXPECT_EQ(pattern(4096, 3), data[2]);
}

TEST_P(ucp_sgl, b113_blocks_with_strides_are_gathered)
{
    ucp_request_param_t p = param();
    std::vector<size_t> counts = {1, 10, 3};
    std::vector<size_t> strides = {5, 7000, 1000};
    lengths = {5, 100, 1000};
    remote_lengths = {5, 1000, 3000};
    local_list.field_mask |= UCP_DT_LOCAL_SGL_FIELD_COUNTS | UCP_DT_LOCAL_SGL_FIELD_STRIDES;
    local_list.counts = counts.data();
    local_list.strides = strides.data();
    ASSERT_EQ(UCS_OK, finish(put(p)));
    ASSERT_EQ(UCS_OK, flush());
    for (size_t k = 0; k < 10; ++k) {
        EXPECT_EQ(0, memcmp(reinterpret_cast<char *>(addresses[1]) + 100 * k,
                            data[1].data() + 7000 * k, 100))
            << k;
    }
    EXPECT_EQ(0, memcmp(reinterpret_cast<char *>(addresses[2]), data[2].data(), 3000));
}

TEST_P(ucp_sgl, b113_callback_runs_once_after_all_elements)
{
    ucp_request_param_t p = param();
    int calls = 0;
    p.op_attr_mask |= UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    p.cb.send = [](void *, ucs_status_t status, void *user_data) {
        EXPECT_EQ(UCS_OK, status);
        ++*static_cast<int *>(user_data);
    };
    p.user_data = &calls;
    ucs_status_ptr_t ptr = get(p);
    EXPECT_EQ(0, calls);
    bool later = UCS_PTR_IS_PTR(ptr);
    ASSERT_EQ(UCS_OK, finish(ptr));
    EXPECT_EQ(later ? 1 : 0, calls);
}

TEST_P(ucp_sgl, b113_lists_of_nothing_are_done_at_once)
{
    ucp_request_param_t p = param();
    p.remote_count = 0;
    EXPECT_EQ(UCS_OK, UCS_PTR_STATUS(put(p, 0)));
    EXPECT_EQ(UCS_OK, UCS_PTR_STATUS(get(p, 0)));
}

TEST_P(ucp_sgl, b113_lists_that_do_not_match_are_refused)
{
    auto refused = [&](const ucp_request_param_t &p) {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, UCS_PTR_STATUS(put(p)));
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, UCS_PTR_STATUS(get(p)));
    };
    ucp_request_param_t p = param();
    p.remote_count = count - 1;
    refused(p);
    p = param();
    p.op_attr_mask &= ~unsigned(UCP_OP_ATTR_FIELD_REMOTE_DATATYPE); // a list on one side
    refused(p);
    p = param();
    p.datatype = ucp_dt_make_contig(1);
    refused(p);
    p = param();
    p.remote = nullptr;
    refused(p);
    p = param();
    local_list.field_mask = UCP_DT_LOCAL_SGL_FIELD_BUFFERS;
    refused(p);
    p = param();
    remote_list.field_mask &= ~uint64_t(UCP_DT_REMOTE_SGL_FIELD_RKEYS);
    refused(p);
    p = param();
    remote_lengths[1] = 69999;
    refused(p);
    remote_lengths[1] = 70000;
    rkeys[2] = nullptr;
    refused(p);
    rkeys[2] = keys[0];
    buffers[0] = nullptr;
    refused(p);
    buffers[0] = data[0].data();
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              UCS_PTR_STATUS(ucp_put_nbx(ab, &local_list, count, at(0), UCP_RKEY_INVALID, &p)));
    EXPECT_EQ(
        UCS_ERR_INVALID_PARAM,
        UCS_PTR_STATUS(ucp_put_nbx(ab, &local_list, count, UCP_REMOTE_ADDR_INVALID, keys[0], &p)));
    ucp_mem_h handles[count] = {memh[0], memh[0], memh[0]}; // none holds the buffers
    local_list.field_mask |= UCP_DT_LOCAL_SGL_FIELD_MEMHS;
    local_list.memhs = handles;
    refused(p);
    handles[0] = nullptr;
    refused(p);
}

// ---- locked pages and limits of access

// Bytes of this process that the kernel may not take away.
size_t bytes_of(const char *kind)
{
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(kind)) {
            return std::stoul(line.substr(strlen(kind))) * 1024;
        }
    }
    return 0;
}

size_t locked_bytes()
{
    return bytes_of("VmLck:");
}

// By a device, whose core may keep them so for the next registration.
size_t pinned_bytes()
{
    return bytes_of("VmPin:");
}

TEST_P(ucp_sgl, pages_are_locked_as_long_as_they_are_mapped)
{
    if (sanitized) {
        GTEST_SKIP() << "sanitizers take mlock away";
    }
    constexpr size_t n = 32 * 4096;
    std::vector<char> memory(n + 4096);
    ucp_mem_map_params_t map = {};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                     UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    map.address = memory.data();
    map.length = n;
    map.flags = UCP_MEM_MAP_LOCK;
    size_t before = locked_bytes(), pinned = pinned_bytes();
    ucp_mem_h locked = nullptr;
    ASSERT_EQ(UCS_OK, ucp_mem_map(a().context, &map, &locked));
    EXPECT_GE(locked_bytes() + pinned_bytes(), before + pinned + n);
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(a().context, locked));
    EXPECT_EQ(before, locked_bytes());
}

TEST_P(ucp_sgl, memory_that_is_only_read_is_mapped_so)
{
    const std::vector<char> source = pattern(100000, 8);
    void *page =
        mmap(nullptr, source.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, page);
    memcpy(page, source.data(), source.size());
    ASSERT_EQ(0, mprotect(page, source.size(), PROT_READ));
    ucp_mem_map_params_t map = {};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                     UCP_MEM_MAP_PARAM_FIELD_PROT;
    map.address = page;
    map.length = source.size();
    map.prot = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_REMOTE_READ;
    ucp_mem_h readable = nullptr;
    ASSERT_EQ(UCS_OK, ucp_mem_map(b().context, &map, &readable));
    void *packed;
    size_t length;
    ucp_rkey_h rkey;
    ASSERT_EQ(UCS_OK, ucp_rkey_pack(b().context, readable, &packed, &length));
    ASSERT_EQ(UCS_OK, ucp_ep_rkey_unpack(ab, packed, &rkey));
    ucp_rkey_buffer_release(packed);
    std::vector<char> seen(source.size());
    ucp_request_param_t none = {};
    EXPECT_EQ(UCS_OK, finish(ucp_get_nbx(ab, seen.data(), seen.size(),
                                         reinterpret_cast<uint64_t>(page), rkey, &none)));
    EXPECT_EQ(source, seen);
    ucp_rkey_destroy(rkey);
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(b().context, readable));
    munmap(page, source.size());
}

UCP_TEST_OVER_ALL(ucp_sgl);

// ---- exported handles

class ucp_export : public testing::Test {
  protected:
    // Memory that the library allocated.
    ucp_mem_h allocate(entity &e, size_t length, char **address)
    {
        ucp_mem_map_params_t map = {};
        map.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
        map.length = length;
        map.flags = UCP_MEM_MAP_ALLOCATE;
        ucp_mem_h memh = nullptr;
        EXPECT_EQ(UCS_OK, ucp_mem_map(e.context, &map, &memh));
        *address = address_of(memh);
        return memh;
    }

    static char *address_of(ucp_mem_h memh)
    {
        ucp_mem_attr_t attr = {};
        attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
        EXPECT_EQ(UCS_OK, ucp_mem_query(memh, &attr));
        return static_cast<char *>(attr.address);
    }

    static ucs_status_t pack(ucp_mem_h memh, std::string *out)
    {
        ucp_memh_pack_params_t params = {};
        params.field_mask = UCP_MEMH_PACK_PARAM_FIELD_FLAGS;
        params.flags = UCP_MEMH_PACK_FLAG_EXPORT;
        void *buffer = nullptr;
        size_t length = 0;
        ucs_status_t status = ucp_memh_pack(memh, &params, &buffer, &length);
        if (status == UCS_OK) {
            out->assign(static_cast<char *>(buffer), length);
            ucp_memh_buffer_release_params_t release = {};
            ucp_memh_buffer_release(buffer, &release);
        }
        return status;
    }

    static ucs_status_t import(entity &e, const std::string &exported, ucp_mem_h *memh)
    {
        ucp_mem_map_params_t map = {};
        map.field_mask = UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER;
        map.exported_memh_buffer = exported.data();
        return ucp_mem_map(e.context, &map, memh);
    }

    options opts = [] {
        options o;
        o.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_EXPORTED_MEMH;
        return o;
    }();
};

TEST_F(ucp_export, memory_without_length_has_no_address)
{
    entity a(opts);
    char byte = 0;
    ucp_mem_map_params_t map = {};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    map.address = &byte;
    ucp_mem_h memh = nullptr;
    ASSERT_EQ(UCS_OK, ucp_mem_map(a.context, &map, &memh));
    ucp_mem_attr_t attr = {};
    attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
    attr.address = &byte;
    attr.length = 1;
    EXPECT_EQ(UCS_OK, ucp_mem_query(memh, &attr));
    EXPECT_EQ(nullptr, attr.address);
    EXPECT_EQ(0u, attr.length);
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(a.context, memh));
}

TEST_F(ucp_export, b129_importer_shares_the_memory_and_outlives_the_exporter)
{
    entity a(opts), b(opts);
    constexpr size_t length = 200000;
    char *data;
    ucp_mem_h memh = allocate(a, length, &data);
    fill_pattern(data, length, 4);
    std::string exported;
    ASSERT_EQ(UCS_OK, pack(memh, &exported));
    ucp_mem_h imported = nullptr;
    ASSERT_EQ(UCS_OK, import(b, exported, &imported));
    ucp_mem_attr_t attr = {};
    attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
    ASSERT_EQ(UCS_OK, ucp_mem_query(imported, &attr));
    EXPECT_EQ(length, attr.length);
    char *seen = static_cast<char *>(attr.address);
    EXPECT_NE(data, seen);
    EXPECT_EQ(0, memcmp(data, seen, length));
    seen[1000] = 99;
    EXPECT_EQ(99, data[1000]);
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(a.context, memh));
    EXPECT_EQ(99, seen[1000]);

    // It is a registration like any other: of a send, and of remote access.
    ucp_ep_h ba = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &ba));
    std::vector<char> in(length);
    ucs_status_ptr_t receiving = recv_nb(a, in.data(), length, 1);
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
    p.memh = imported;
    EXPECT_EQ(UCS_OK, wait({&a, &b}, ucp_tag_send_nbx(ba, seen, length, 1, &p)));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, receiving));
    EXPECT_EQ(0, memcmp(in.data(), seen, length));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ba)));
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(b.context, imported));
}

TEST_F(ucp_export, b129_another_process_imports)
{
    int to_child[2];
    ASSERT_EQ(0, pipe(to_child));
    pid_t child = fork(); // before this process has a context
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        char buffer[1024];
        ssize_t n = read(to_child[0], buffer, sizeof(buffer));
        entity e(opts);
        ucp_mem_h memh = nullptr;
        if (n <= 0 || import(e, {buffer, static_cast<size_t>(n)}, &memh) != UCS_OK) {
            _exit(1);
        }
        char *data = address_of(memh);
        bool good = std::vector<char>(data, data + 5000) == pattern(5000, 6);
        fill_pattern(data, 5000, 7);
        good = ucp_mem_unmap(e.context, memh) == UCS_OK && good;
        _exit(good && !HasFailure() ? 0 : 2);
    }
    entity e(opts);
    char *data;
    ucp_mem_h memh = allocate(e, 5000, &data);
    fill_pattern(data, 5000, 6);
    std::string exported;
    EXPECT_EQ(UCS_OK, pack(memh, &exported));
    EXPECT_EQ(static_cast<ssize_t>(exported.size()),
              write(to_child[1], exported.data(), exported.size()));
    int status = 0;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    EXPECT_EQ(pattern(5000, 7), std::vector<char>(data, data + 5000));
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(e.context, memh));
    close(to_child[0]);
    close(to_child[1]);
}

TEST_F(ucp_export, b129_memory_that_nobody_else_can_map_is_not_exported)
{
    entity e(opts);
    std::vector<char> own(5000);
    ucp_mem_map_params_t map = {};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    map.address = own.data();
    map.length = own.size();
    ucp_mem_h memh = nullptr;
    ASSERT_EQ(UCS_OK, ucp_mem_map(e.context, &map, &memh));
    std::string exported;
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, pack(memh, &exported));
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(e.context, memh));
}

TEST_F(ucp_export, b129_damaged_or_foreign_buffers_are_refused)
{
    entity a(opts), b(opts);
    char *data;
    ucp_mem_h memh = allocate(a, 5000, &data);
    std::string exported;
    ASSERT_EQ(UCS_OK, pack(memh, &exported));
    ucp_mem_h imported = nullptr;
    for (size_t i = 0; i < exported.size(); ++i) {
        std::string damaged = exported;
        damaged[i] = static_cast<char>(damaged[i] ^ 0x20);
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, import(b, damaged, &imported)) << "byte " << i;
    }
    void *key = nullptr;
    size_t key_length = 0;
    ASSERT_EQ(UCS_OK, ucp_rkey_pack(a.context, memh, &key, &key_length));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, import(b, {static_cast<char *>(key), key_length}, &imported));
    ucp_rkey_buffer_release(key);
    ucp_mem_map_params_t map = {};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    map.exported_memh_buffer = exported.data();
    map.flags = UCP_MEM_MAP_ALLOCATE;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_mem_map(b.context, &map, &imported));
    EXPECT_EQ(nullptr, imported);
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(a.context, memh));
}

// ---- messages out of memory that ucp_mem_map allocated

class ucp_allocated : public pair {
  protected:
    // Allocates, sends all of it but the first and last byte, frees.
    void send_from_new(unsigned seed, size_t size)
    {
        ucp_mem_map_params_t map = {};
        map.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
        map.length = size;
        map.flags = UCP_MEM_MAP_ALLOCATE;
        ucp_mem_h memh = nullptr;
        ASSERT_EQ(UCS_OK, ucp_mem_map(a().context, &map, &memh));
        ucp_mem_attr_t attr = {};
        attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
        ASSERT_EQ(UCS_OK, ucp_mem_query(memh, &attr));
        char *data = static_cast<char *>(attr.address) + 1;
        size_t length = size - 2;
        for (unsigned again = 0; again < 2; ++again) { // the second time its mapping is there
            fill_pattern(data, length, seed + again);
            std::vector<char> in(length);
            ucs_status_ptr_t received = recv_nb(b(), in.data(), length, seed);
            ASSERT_EQ(UCS_OK, finish(send_nb(ab, data, length, seed)));
            ASSERT_EQ(UCS_OK, finish(received));
            EXPECT_EQ(pattern(length, seed + again), in) << "memory " << seed << "," << again;
        }
        EXPECT_EQ(UCS_OK, ucp_mem_unmap(a().context, memh));
    }
};

TEST_P(ucp_allocated, messages_come_out_of_the_memory_of_now)
{
    for (unsigned i = 0; i < 40; ++i) { // more than mappings are kept
        send_from_new(i, 100'000);
    }
    send_from_new(100, 3'000'000);
}

// Begins in allocated memory and ends behind it, or the other way round.
TEST_P(ucp_allocated, a_part_of_the_message_may_lie_elsewhere)
{
    constexpr size_t page = 4096, size = 64 * page;
    void *own = mmap(nullptr, 3 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, own);
    char *middle = static_cast<char *>(own) + size;
    ucp_mem_map_params_t map = {};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                     UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    map.address = middle;
    map.length = size;
    map.flags = UCP_MEM_MAP_ALLOCATE | UCP_MEM_MAP_FIXED;
    ucp_mem_h memh = nullptr;
    ASSERT_EQ(UCS_OK, ucp_mem_map(a().context, &map, &memh));
    fill_pattern(own, 3 * size, 7);
    std::vector<char> all = pattern(3 * size, 7);
    for (size_t from : {size_t(1), size - 100, 2 * size - 100}) {
        std::vector<char> in(size);
        ucs_status_ptr_t received = recv_nb(b(), in.data(), size, from);
        ASSERT_EQ(UCS_OK, finish(send_nb(ab, static_cast<char *>(own) + from, size, from)));
        ASSERT_EQ(UCS_OK, finish(received));
        EXPECT_EQ(0, memcmp(all.data() + from, in.data(), size)) << "from " << from;
    }
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(a().context, memh)); // its pages are no more
    munmap(own, size);
    munmap(middle + size, size);
}

UCP_TEST_OVER_ALL(ucp_allocated);

} // namespace
