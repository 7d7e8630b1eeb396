// SPDX-License-Identifier: BSD-3-Clause
// Memory of accelerators, by stand-ins for their drivers' libraries. Memory of a device is mapped
// so that any load or store ends the test: it is recognized and refused. Managed memory is the
// host's.
#include "fabtests-ext/common/ucp_entity.h"
#include "fabtests-ext/conformance/common/refused.h"

#include "ucs/device_memory.h"

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <cinttypes>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace ucp_test;

constexpr size_t page = 4096;
enum kind { device = 1, managed, pinned }; // as in device_driver.c

std::string folder()
{
    const char *build = getenv("top_builddir");
    return std::string(build ? build : ".") + "/fabtests-ext/common";
}

struct driver {
    void (*add)(void *, size_t, int) = nullptr;
    int *questions = nullptr;

    // Loads it as a program would, and starts it by a call without arguments or with a zero.
    driver(const char *file, const char *start)
    {
        void *library = dlopen((folder() + "/" + file).c_str(), RTLD_NOW | RTLD_LOCAL);
        EXPECT_NE(nullptr, library) << dlerror();
        if (library) {
            add = reinterpret_cast<decltype(add)>(dlsym(library, "stand_in_add"));
            questions = static_cast<int *>(dlsym(library, "stand_in_questions"));
            reinterpret_cast<int (*)(unsigned)>(dlsym(library, start))(0);
        }
    }
    char *memory(kind k) const
    {
        int protection = k == device ? PROT_NONE : PROT_READ | PROT_WRITE;
        void *p = mmap(nullptr, page, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        add(p, page, k);
        return static_cast<char *>(p);
    }
};

const driver &cuda()
{
    static const driver loaded("libcuda.so.1", "cuInit");
    return loaded;
}
const driver &rocm()
{
    static const driver loaded("libhsa-runtime64.so.1", "hsa_init");
    return loaded;
}

options with_everything()
{
    options o;
    o.tls = "self";
    o.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA |
                 UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
    return o;
}

class ucp_device_memory : public testing::Test {
  protected:
    void SetUp() override
    {
        // Loaded after the context, found by the worker's creation.
        entity early(with_everything());
        device_ = cuda().memory(device);
        managed_ = cuda().memory(managed);
        e_ = std::make_unique<entity>(with_everything());
        ASSERT_TRUE(ucs::device_memory::possible());
        ASSERT_EQ(UCS_OK, create_ep(*e_, e_->address(), &ep_));
        ucp_mem_map_params_t params = {};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = target_;
        params.length = sizeof(target_);
        ASSERT_EQ(UCS_OK, ucp_mem_map(e_->context, &params, &memh_));
        void *packed;
        size_t length;
        ASSERT_EQ(UCS_OK, ucp_rkey_pack(e_->context, memh_, &packed, &length));
        ASSERT_EQ(UCS_OK, ucp_ep_rkey_unpack(ep_, packed, &rkey_));
        ucp_rkey_buffer_release(packed);
        refused::keep_errors();
    }
    void TearDown() override
    {
        refused::let_errors_go();
        ucp_rkey_destroy(rkey_);
        EXPECT_EQ(UCS_OK, ucp_mem_unmap(e_->context, memh_));
        EXPECT_EQ(UCS_OK, wait({e_.get()}, close_nb(ep_)));
        e_.reset();
    }

    uint64_t remote() const { return reinterpret_cast<uint64_t>(target_); }

    // UNSUPPORTED, with one line that names the call and the address.
    static void expect_refused(ucs_status_ptr_t got, const std::string &call, const void *address)
    {
        EXPECT_EQ(UCS_ERR_UNSUPPORTED, UCS_PTR_STATUS(got)) << call;
        ASSERT_EQ(1u, refused::errors.size()) << call;
        char text[32];
        snprintf(text, sizeof(text), "%p", address);
        EXPECT_EQ(0u, refused::errors[0].find(call + ": ")) << refused::errors[0];
        EXPECT_NE(std::string::npos, refused::errors[0].find(text)) << refused::errors[0];
        EXPECT_NE(std::string::npos, refused::errors[0].find(" device, which is not supported"))
            << refused::errors[0];
        refused::errors.clear();
    }

    static ucs_status_t map(ucp_context_h context, void *address, ucp_mem_h *memh,
                            ucs_memory_type_t type = UCS_MEMORY_TYPE_UNKNOWN, unsigned flags = 0)
    {
        ucp_mem_map_params_t params = {};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                            UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
        params.address = address;
        params.length = 64;
        params.memory_type = type;
        params.flags = flags;
        return ucp_mem_map(context, &params, memh);
    }

    std::unique_ptr<entity> e_;
    ucp_ep_h ep_ = nullptr;
    ucp_mem_h memh_ = nullptr;
    ucp_rkey_h rkey_ = nullptr;
    char *device_ = nullptr, *managed_ = nullptr;
    alignas(8) char target_[64] = {};
};

void sent(void *, ucs_status_t) {}
void received(void *, ucs_status_t, ucp_tag_recv_info_t *) {}
void streamed(void *, ucs_status_t, size_t) {}

// First: the others load drivers.
TEST(ucp_device_memory_start, drivers_are_loaded_where_a_device_exists_and_else_never)
{
    if (ucs::device_memory::possible() || access("/dev/nvidiactl", F_OK) == 0) {
        GTEST_SKIP() << "a driver is loaded";
    }
    testing::GTEST_FLAG(death_test_style) =
        "threadsafe"; // a program of its own, before there are threads
    std::string before = getenv("LD_LIBRARY_PATH") ? getenv("LD_LIBRARY_PATH") : "";
    setenv("LD_LIBRARY_PATH", (folder() + ":" + before).c_str(), 1);
    EXPECT_EXIT(
        {
            ucs::device_memory::load_drivers("/nonexistent");
            bool early = ucs::device_memory::possible();
            ucs::device_memory::load_drivers("/dev/null");
            _exit(early ? 1 : ucs::device_memory::possible() ? 0 : 2);
        },
        testing::ExitedWithCode(0), "");
    if (before.empty()) {
        unsetenv("LD_LIBRARY_PATH");
    } else {
        setenv("LD_LIBRARY_PATH", before.c_str(), 1);
    }
    entity e(with_everything());
    EXPECT_FALSE(ucs::device_memory::possible());
}

TEST_F(ucp_device_memory, messages_from_and_to_a_device_are_refused)
{
    ucp_request_param_t p = {};
    size_t length;
    expect_refused(ucp_tag_send_nbx(ep_, device_, 8, 1, &p), "ucp_tag_send_nbx", device_);
    expect_refused(ucp_tag_send_sync_nbx(ep_, device_ + 5, 8, 1, &p), "ucp_tag_send_sync_nbx",
                   device_ + 5);
    expect_refused(ucp_tag_send_nb(ep_, device_, page, ucp_dt_make_contig(1), 1, sent),
                   "ucp_tag_send_nb", device_);
    expect_refused(ucp_tag_recv_nbx(e_->worker, device_, 8, 1, 1, &p), "ucp_tag_recv_nbx", device_);
    expect_refused(ucp_tag_recv_nb(e_->worker, device_, 8, ucp_dt_make_contig(1), 1, 1, received),
                   "ucp_tag_recv_nb", device_);
    expect_refused(ucp_am_send_nbx(ep_, 0, nullptr, 0, device_, 8, &p), "ucp_am_send_nbx", device_);
    char none[64];
    expect_refused(ucp_am_recv_data_nbx(e_->worker, none, device_, 8, &p), "ucp_am_recv_data_nbx",
                   device_);
    expect_refused(ucp_stream_send_nbx(ep_, device_, 8, &p), "ucp_stream_send_nbx", device_);
    expect_refused(ucp_stream_recv_nbx(ep_, device_, 8, &length, &p), "ucp_stream_recv_nbx",
                   device_);
    expect_refused(ucp_stream_recv_nb(ep_, device_, 8, ucp_dt_make_contig(1), streamed, &length, 0),
                   "ucp_stream_recv_nb", device_);

    char host[8] = {};
    ucp_dt_iov_t iov[] = {{host, sizeof(host)}, {device_, 0}, {device_ + 8, 8}};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    p.datatype = ucp_dt_make_iov();
    expect_refused(ucp_tag_send_nbx(ep_, iov, 3, 1, &p), "ucp_tag_send_nbx", device_ + 8);
}

TEST_F(ucp_device_memory, remote_memory_operations_from_and_to_a_device_are_refused)
{
    ucp_request_param_t p = {};
    auto nbi = [](ucs_status_t status) { return UCS_STATUS_PTR(status); };
    expect_refused(ucp_put_nbx(ep_, device_, 8, remote(), rkey_, &p), "ucp_put_nbx", device_);
    expect_refused(ucp_get_nbx(ep_, device_, 8, remote(), rkey_, &p), "ucp_get_nbx", device_);
    expect_refused(ucp_put_nb(ep_, device_, 8, remote(), rkey_, sent), "ucp_put_nb", device_);
    expect_refused(ucp_get_nb(ep_, device_, 8, remote(), rkey_, sent), "ucp_get_nb", device_);
    expect_refused(nbi(ucp_put_nbi(ep_, device_, 8, remote(), rkey_)), "ucp_put_nbi", device_);
    expect_refused(nbi(ucp_get_nbi(ep_, device_, 8, remote(), rkey_)), "ucp_get_nbi", device_);
    expect_refused(nbi(ucp_put(ep_, device_, 8, remote(), rkey_)), "ucp_put", device_);
    expect_refused(nbi(ucp_get(ep_, device_, 8, remote(), rkey_)), "ucp_get", device_);

    uint64_t operand = 1;
    p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    p.datatype = ucp_dt_make_contig(8);
    expect_refused(ucp_atomic_op_nbx(ep_, UCP_ATOMIC_OP_ADD, device_, 1, remote(), rkey_, &p),
                   "ucp_atomic_op_nbx", device_);
    p.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    p.reply_buffer = device_;
    for (auto op : {UCP_ATOMIC_OP_ADD, UCP_ATOMIC_OP_CSWAP}) {
        expect_refused(ucp_atomic_op_nbx(ep_, op, &operand, 1, remote(), rkey_, &p),
                       "ucp_atomic_op_nbx", device_);
    }
    for (auto op : {UCP_ATOMIC_FETCH_OP_FADD, UCP_ATOMIC_FETCH_OP_CSWAP}) {
        expect_refused(ucp_atomic_fetch_nb(ep_, op, 1, device_, 8, remote(), rkey_, sent),
                       "ucp_atomic_fetch_nb", device_);
    }
    for (char byte : target_) {
        EXPECT_EQ(0, byte);
    }
}

TEST_F(ucp_device_memory, blocks_of_a_list_are_refused)
{
    void *buffers[] = {device_};
    size_t lengths[] = {8};
    uint64_t addresses[] = {remote()};
    ucp_dt_local_sgl_t local = {};
    local.field_mask = UCP_DT_LOCAL_SGL_FIELD_BUFFERS | UCP_DT_LOCAL_SGL_FIELD_LENGTHS;
    local.buffers = buffers;
    local.lengths = lengths;
    ucp_dt_remote_sgl_t far = {};
    far.field_mask = UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS | UCP_DT_REMOTE_SGL_FIELD_LENGTHS |
                     UCP_DT_REMOTE_SGL_FIELD_RKEYS;
    far.remote_addrs = addresses;
    far.lengths = lengths;
    far.rkeys = &rkey_;
    ucp_request_param_t p = {};
    p.op_attr_mask =
        UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REMOTE_DATATYPE | UCP_OP_ATTR_FIELD_REMOTE;
    p.datatype = p.remote_datatype = ucp_dt_make_sgl();
    p.remote = &far;
    ucs_status_t status = wait(
        {e_.get()}, ucp_put_nbx(ep_, &local, 1, UCP_REMOTE_ADDR_INVALID, UCP_RKEY_INVALID, &p));
    expect_refused(UCS_STATUS_PTR(status), "ucp_put_nbx", device_);
}

TEST_F(ucp_device_memory, is_not_registered)
{
    ucp_mem_h memh = nullptr;
    expect_refused(UCS_STATUS_PTR(map(e_->context, device_, &memh)), "ucp_mem_map", device_);
    EXPECT_EQ(nullptr, memh);
    for (unsigned flags : {0u, unsigned(UCP_MEM_MAP_ALLOCATE)}) {
        void *address = flags ? nullptr : target_;
        EXPECT_EQ(UCS_ERR_UNSUPPORTED,
                  map(e_->context, address, &memh, UCS_MEMORY_TYPE_CUDA, flags));
        ASSERT_EQ(1u, refused::errors.size());
        EXPECT_NE(std::string::npos, refused::errors[0].find("memory_type 1, memory of a CUDA"));
        refused::errors.clear();
    }
}

TEST_F(ucp_device_memory, managed_memory_is_served_as_the_hosts)
{
    ucp_request_param_t p = {};
    strcpy(managed_, "managed");
    char *there = cuda().memory(managed);
    ucs_status_ptr_t receive = ucp_tag_recv_nbx(e_->worker, there, 8, 1, 1, &p);
    EXPECT_EQ(UCS_OK, wait({e_.get()}, ucp_tag_send_nbx(ep_, managed_, 8, 1, &p)));
    EXPECT_EQ(UCS_OK, wait({e_.get()}, receive));
    EXPECT_STREQ("managed", there);
    p.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    p.memory_type = UCS_MEMORY_TYPE_CUDA_MANAGED;
    EXPECT_EQ(UCS_OK, wait({e_.get()}, ucp_put_nbx(ep_, managed_, 8, remote(), rkey_, &p)));
    ucs_status_ptr_t flush = ucp_ep_flush_nb(ep_, 0, sent);
    EXPECT_EQ(UCS_OK, wait({e_.get()}, flush));
    EXPECT_STREQ("managed", target_);

    ucp_mem_h memh = nullptr;
    ASSERT_EQ(UCS_OK, map(e_->context, managed_, &memh));
    ucp_mem_attr_t attr = {};
    attr.field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE;
    EXPECT_EQ(UCS_OK, ucp_mem_query(memh, &attr));
    EXPECT_EQ(UCS_MEMORY_TYPE_CUDA_MANAGED, attr.mem_type);
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(e_->context, memh));
    ucp_context_attr_t context = {};
    context.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    EXPECT_EQ(UCS_OK, ucp_context_query(e_->context, &context));
    EXPECT_EQ(uint64_t(UCS_BIT(UCS_MEMORY_TYPE_HOST) | UCS_BIT(UCS_MEMORY_TYPE_CUDA_MANAGED)),
              context.memory_types);
    EXPECT_EQ(0u, refused::errors.size());
}

TEST_F(ucp_device_memory, the_driver_is_asked_only_when_nothing_is_known)
{
    char host[8] = {};
    auto questions_of = [&](const ucp_request_param_t &p, const void *buffer, size_t length) {
        int before = *cuda().questions;
        EXPECT_EQ(UCS_OK, wait({e_.get()}, ucp_put_nbx(ep_, buffer, length, remote(), rkey_, &p)));
        return *cuda().questions - before;
    };
    ucp_request_param_t p = {};
    EXPECT_EQ(1, questions_of(p, host, sizeof(host)));
    EXPECT_EQ(0, questions_of(p, device_, 0));
    p.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    p.memory_type = UCS_MEMORY_TYPE_HOST;
    EXPECT_EQ(0, questions_of(p, host, sizeof(host)));
    p.memory_type = UCS_MEMORY_TYPE_UNKNOWN;
    EXPECT_EQ(1, questions_of(p, host, sizeof(host)));
    p.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
    p.memh = memh_;
    EXPECT_EQ(0, questions_of(p, target_, sizeof(host)));
}

uct_md_h open_self()
{
    uct_component_h *components;
    unsigned count;
    EXPECT_EQ(UCS_OK, uct_query_components(&components, &count));
    uct_component_attr_t component = {};
    component.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
    unsigned self = 0;
    while (self < count && uct_component_query(components[self], &component) == UCS_OK &&
           strcmp(component.name, "self") != 0) {
        ++self;
    }
    uct_md_config_t *config;
    EXPECT_EQ(UCS_OK, uct_md_config_read(components[self], nullptr, nullptr, &config));
    uct_md_h md = nullptr;
    EXPECT_EQ(UCS_OK, uct_md_open(components[self], "self", config, &md));
    uct_config_release(config);
    uct_release_component_list(components);
    return md;
}

// Memory domains tell the kind, the allocation that holds an address, and register none of a
// device.
TEST_F(ucp_device_memory, domains_recognize_it)
{
    const driver &amd = rocm();
    ucs::device_memory::look();
    char *rocm_device = amd.memory(device);
    char *rocm_host = amd.memory(pinned);
    uct_md_h md = open_self();
    ASSERT_NE(nullptr, md);
    uct_md_attr_t of_md;
    ASSERT_EQ(UCS_OK, uct_md_query(md, &of_md));
    EXPECT_EQ(uint64_t(UCS_BIT(UCS_MEMORY_TYPE_HOST) | UCS_BIT(UCS_MEMORY_TYPE_CUDA) |
                       UCS_BIT(UCS_MEMORY_TYPE_CUDA_MANAGED) | UCS_BIT(UCS_MEMORY_TYPE_ROCM)),
              of_md.cap.detect_mem_types);
    EXPECT_EQ(uint64_t(UCS_BIT(UCS_MEMORY_TYPE_HOST)), of_md.cap.access_mem_types);
    struct {
        char *address;
        ucs_memory_type_t type;
    } cases[] = {{device_, UCS_MEMORY_TYPE_CUDA},
                 {managed_, UCS_MEMORY_TYPE_CUDA_MANAGED},
                 {cuda().memory(pinned), UCS_MEMORY_TYPE_HOST},
                 {target_, UCS_MEMORY_TYPE_HOST},
                 {rocm_device, UCS_MEMORY_TYPE_ROCM},
                 {rocm_host, UCS_MEMORY_TYPE_HOST}};
    for (const auto &c : cases) {
        ucs_memory_type_t type = UCS_MEMORY_TYPE_UNKNOWN;
        EXPECT_EQ(UCS_OK, uct_md_detect_memory_type(md, c.address + 8, 8, &type));
        EXPECT_EQ(c.type, type);
        uct_mem_h memh = UCT_MEM_HANDLE_NULL;
        ucs_status_t status = uct_md_mem_reg(md, c.address, 8, UCT_MD_MEM_ACCESS_ALL, &memh);
        if (c.type == UCS_MEMORY_TYPE_CUDA || c.type == UCS_MEMORY_TYPE_ROCM) {
            expect_refused(UCS_STATUS_PTR(status), "uct_md_mem_reg", c.address);
            uct_md_mem_attr_t attr = {};
            attr.field_mask =
                UCT_MD_MEM_ATTR_FIELD_BASE_ADDRESS | UCT_MD_MEM_ATTR_FIELD_ALLOC_LENGTH;
            EXPECT_EQ(UCS_OK, uct_md_mem_query(md, c.address + 8, 8, &attr));
            EXPECT_EQ(c.address, attr.base_address);
            EXPECT_EQ(page, attr.alloc_length);
        } else {
            ASSERT_EQ(UCS_OK, status);
            EXPECT_EQ(UCS_OK, uct_md_mem_dereg(md, memh));
        }
    }
    ucp_request_param_t p = {};
    expect_refused(ucp_tag_send_nbx(ep_, rocm_device, 8, 1, &p), "ucp_tag_send_nbx", rocm_device);
    uct_md_close(md);
}

// Each driver of Level Zero is asked in a context of its own.
TEST_F(ucp_device_memory, of_level_zero_is_recognized)
{
    driver ze("libze_loader.so.1", "zeInit");
    char *ze_device = ze.memory(device), *ze_shared = ze.memory(managed);
    ucs::device_memory::look();
    ucs::device_memory::allocation found = ucs::device_memory::find(ze_device + 8);
    EXPECT_EQ(UCS_MEMORY_TYPE_ZE_DEVICE, found.type);
    EXPECT_EQ(ze_device, found.base);
    EXPECT_EQ(page, found.length);
    EXPECT_EQ(UCS_MEMORY_TYPE_ZE_MANAGED, ucs::device_memory::find(ze_shared).type);
    EXPECT_EQ(UCS_MEMORY_TYPE_HOST, ucs::device_memory::find(ze.memory(pinned)).type);
    EXPECT_EQ(UCS_MEMORY_TYPE_HOST, ucs::device_memory::find(target_).type);
    ucp_context_attr_t context = {};
    context.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    EXPECT_EQ(UCS_OK, ucp_context_query(e_->context, &context));
    EXPECT_TRUE(context.memory_types & UCS_BIT(UCS_MEMORY_TYPE_ZE_MANAGED));
    EXPECT_FALSE(context.memory_types & UCS_BIT(UCS_MEMORY_TYPE_ZE_DEVICE));

    ucp_request_param_t p = {};
    ucp_mem_h memh = nullptr;
    expect_refused(ucp_tag_send_nbx(ep_, ze_device, 8, 1, &p), "ucp_tag_send_nbx", ze_device);
    expect_refused(UCS_STATUS_PTR(map(e_->context, ze_device, &memh)), "ucp_mem_map", ze_device);
    p.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    p.memory_type = UCS_MEMORY_TYPE_ZE_DEVICE;
    ucs_status_ptr_t put = ucp_put_nbx(ep_, target_, 8, remote(), rkey_, &p);
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, UCS_PTR_STATUS(put));
    ASSERT_EQ(1u, refused::errors.size());
    EXPECT_NE(std::string::npos, refused::errors[0].find("memory_type 7, memory of a Level Zero"));
    refused::errors.clear();
    int before = *ze.questions;
    strcpy(ze_shared, "shared");
    p.memory_type = UCS_MEMORY_TYPE_ZE_MANAGED;
    EXPECT_EQ(UCS_OK, wait({e_.get()}, ucp_put_nbx(ep_, ze_shared, 8, remote(), rkey_, &p)));
    ucs_status_ptr_t flush = ucp_ep_flush_nb(ep_, 0, sent);
    EXPECT_EQ(UCS_OK, wait({e_.get()}, flush));
    EXPECT_STREQ("shared", target_);
    EXPECT_EQ(before, *ze.questions);
}

} // namespace
