// SPDX-License-Identifier: BSD-3-Clause
//
// Contexts, workers and worker addresses. The numbers in the names are those of the list of
// behaviours that UCX programs rely on.
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/common/printed.h"
#include "fabtests-ext/common/ucp_region.h"

#include <cfenv>
#include <cstdio>
#include <random>
#include <sys/syscall.h>
#include <unistd.h>

using namespace ucp_test;

namespace {

TEST(ucp_context, b155_needs_no_more_than_features)
{
    ucp_params_t params;
    memset(&params, 0xa5, sizeof(params));
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    ucp_context_h context = nullptr;
    ASSERT_EQ(UCS_OK, ucp_init(&params, nullptr, &context));
    ucp_worker_params_t worker_params;
    memset(&worker_params, 0xa5, sizeof(worker_params));
    worker_params.field_mask = 0;
    ucp_worker_h worker = nullptr;
    ASSERT_EQ(UCS_OK, ucp_worker_create(context, &worker_params, &worker));
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

TEST(ucp_context, b156_accepts_any_api_version)
{
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    ucp_context_h context = nullptr;
    ASSERT_EQ(UCS_OK, ucp_init_version(99, 99, &params, nullptr, &context));
    ucp_cleanup(context);
}

TEST(ucp_context, b157_version_string_starts_with_the_numbers)
{
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    char text[64];
    snprintf(text, sizeof(text), "%u.%u.%u", major, minor, release);
    EXPECT_EQ(0, strncmp(text, ucp_get_version_string(), strlen(text)));
}

TEST(ucp_context, b158_library_is_thread_safe)
{
    ucp_lib_attr_t attr = {};
    attr.field_mask = UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL;
    ASSERT_EQ(UCS_OK, ucp_lib_query(&attr));
    EXPECT_EQ(UCS_THREAD_MODE_MULTI, attr.max_thread_level);
}

TEST(ucp_context, b164_query_writes_what_is_asked_for)
{
    entity e({});
    ucp_context_attr_t attr;
    memset(&attr, 0xa5, sizeof(attr));
    attr.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE | UCP_ATTR_FIELD_THREAD_MODE |
                      UCP_ATTR_FIELD_MEMORY_TYPES | UCP_ATTR_FIELD_NAME;
    ASSERT_EQ(UCS_OK, ucp_context_query(e.context, &attr));
    EXPECT_GT(attr.request_size, 0u);
    EXPECT_TRUE(attr.memory_types & UCS_BIT(UCS_MEMORY_TYPE_HOST));
    // In these UCXX reads "CUDA works".
    EXPECT_FALSE(attr.memory_types &
                 (UCS_BIT(UCS_MEMORY_TYPE_CUDA) | UCS_BIT(UCS_MEMORY_TYPE_ROCM)));
    EXPECT_LT(strnlen(attr.name, UCP_ENTITY_NAME_MAX), size_t(UCP_ENTITY_NAME_MAX));
}

TEST(ucp_context, b166_print_info_has_the_resource_lines_that_programs_parse)
{
    entity e({});
    std::string text = printed([&](FILE *f) { ucp_context_print_info(e.context, f); });
    bool found = false;
    for (size_t at = 0; at < text.size();) {
        size_t end = text.find('\n', at);
        std::string line = text.substr(at, end - at);
        char tl[64], device[64];
        found =
            found || sscanf(line.c_str(),
                            "# resource %*d : md %*d dev %*d flags -- %63[^/ \n\r]/%63[^/ \n\r]",
                            tl, device) == 2;
        EXPECT_LT(line.size(), 128u);
        at = end + 1;
    }
    EXPECT_TRUE(found) << text;
    EXPECT_FALSE(printed([&](FILE *f) { ucp_worker_print_info(e.worker, f); }).empty());
}

TEST(ucp_context, b167_creation_raises_no_floating_point_exception)
{
    feclearexcept(FE_ALL_EXCEPT);
    {
        entity e({});
    }
    EXPECT_EQ(0, fetestexcept(FE_DIVBYZERO | FE_INVALID));
}

TEST(ucp_context, config_print_gives_nothing_but_assignments)
{
    ucp_config_t *config;
    ASSERT_EQ(UCS_OK, ucp_config_read("MPI", nullptr, &config));
    std::string text =
        printed([&](FILE *f) { ucp_config_print(config, f, nullptr, UCS_CONFIG_PRINT_CONFIG); });
    ASSERT_FALSE(text.empty());
    for (size_t at = 0; at < text.size();) {
        size_t end = text.find('\n', at);
        std::string line = text.substr(at, end - at);
        EXPECT_NE(std::string::npos, line.find("UCX_")) << line;
        EXPECT_NE(std::string::npos, line.find('=')) << line;
        at = end + 1;
    }
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_config_modify(config, "RNDV_THRESH", "much"));
    EXPECT_EQ(UCS_OK, ucp_config_modify(config, "RNDV_THRESH", "8k"));
    EXPECT_EQ(UCS_OK, ucp_config_modify(config, "SOME_TRANSPORTS_NAME", "1"));
    ucp_config_release(config);
}

TEST(ucp_context, config_reads_a_file)
{
    char path[] = "ucp_config.XXXXXX";
    int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    std::string text = "# of a test\nUCX_RNDV_THRESH=12345\n";
    ASSERT_EQ(static_cast<ssize_t>(text.size()), write(fd, text.data(), text.size()));
    close(fd);

    ucp_config_t *config = nullptr;
    ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, path, &config));
    std::string values =
        printed([&](FILE *f) { ucp_config_print(config, f, nullptr, UCS_CONFIG_PRINT_CONFIG); });
    EXPECT_NE(std::string::npos, values.find("UCX_RNDV_THRESH=12345\n")) << values;

    ucp_config_release(config);
    unlink(path);

    ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, "there/is/no/such.conf", &config));
    ucp_config_release(config);
}

TEST(ucp_context, unknown_transport_alone_is_no_device)
{
    ucp_config_t *config;
    ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config));
    ASSERT_EQ(UCS_OK, ucp_config_modify(config, "TLS", "nosuch"));
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    ucp_context_h context = nullptr;
    EXPECT_EQ(UCS_ERR_NO_DEVICE, ucp_init(&params, config, &context));
    ucp_config_release(config);
}

TEST(ucp_worker, b159_thread_mode_echoes)
{
    for (auto mode : {UCS_THREAD_MODE_SINGLE, UCS_THREAD_MODE_SERIALIZED, UCS_THREAD_MODE_MULTI}) {
        options o;
        o.thread_mode = mode;
        entity e(o);
        ucp_worker_attr_t attr = {};
        attr.field_mask = UCP_WORKER_ATTR_FIELD_THREAD_MODE | UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER |
                          UCP_WORKER_ATTR_FIELD_NAME | UCP_WORKER_ATTR_FIELD_MAX_INFO_STRING;
        ASSERT_EQ(UCS_OK, ucp_worker_query(e.worker, &attr));
        EXPECT_EQ(mode, attr.thread_mode);
        EXPECT_GE(attr.max_am_header, 64u);
        EXPECT_GT(attr.max_debug_string, 0u);
    }
}

TEST(ucp_worker, b160_address_query_gives_the_same_id_as_the_address)
{
    entity a({}), b({});
    auto uid = [](std::vector<char> address) {
        ucp_worker_address_attr_t attr = {};
        attr.field_mask = UCP_WORKER_ADDRESS_ATTR_FIELD_UID;
        EXPECT_EQ(UCS_OK, ucp_worker_address_query(
                              reinterpret_cast<ucp_address_t *>(address.data()), &attr));
        return attr.worker_uid;
    };
    EXPECT_EQ(uid(a.address()), uid(a.address(true)));
    EXPECT_NE(uid(a.address()), uid(b.address()));
}

TEST(ucp_worker, b161_network_address_is_shorter)
{
    entity e({});
    EXPECT_LT(e.address(true).size(), e.address().size());
    EXPECT_LE(e.address().size(), 300u);
}

TEST(ucp_worker, cpu_mask_is_taken_and_leaves_the_thread_as_it_was)
{
    entity e({});
    ucp_worker_params_t params = {};
    params.field_mask = UCP_WORKER_PARAM_FIELD_CPU_MASK;
    unsigned long before = 0, after = 0;
    int mode_before = -1, mode_after = -1;
    bool known =
        syscall(SYS_get_mempolicy, &mode_before, &before, 8 * sizeof(before), nullptr, 0) == 0;
    for (unsigned cpu : {0u, 1u, 1023u}) { // the last one hardly exists
        UCS_CPU_ZERO(&params.cpu_mask);
        UCS_CPU_SET(cpu, &params.cpu_mask);
        ucp_worker_h worker = nullptr;
        ASSERT_EQ(UCS_OK, ucp_worker_create(e.context, &params, &worker));
        ucp_worker_destroy(worker);
    }
    if (known) {
        ASSERT_EQ(0,
                  syscall(SYS_get_mempolicy, &mode_after, &after, 8 * sizeof(after), nullptr, 0));
        EXPECT_EQ(mode_before, mode_after);
        EXPECT_EQ(before, after);
    }
}

TEST(ucp_worker, b168_wrong_arguments_are_refused)
{
    entity e({});
    ucp_worker_params_t params = {};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = static_cast<ucs_thread_mode_t>(77);
    ucp_worker_h worker = nullptr;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_worker_create(e.context, &params, &worker));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_worker_create(nullptr, &params, &worker));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_worker_create(e.context, nullptr, &worker));
    params.thread_mode = UCS_THREAD_MODE_SINGLE;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_worker_create(e.context, &params, nullptr));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_worker_query(e.worker, nullptr));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_init(nullptr, nullptr, &e.context));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_config_read(nullptr, nullptr, nullptr));
}

TEST(ucp_worker, damaged_addresses_are_refused)
{
    entity e({});
    const std::vector<char> good = e.address();
    std::mt19937 random(42);
    unsigned refused = 0, tried = 0;
    for (unsigned i = 0; i < 100000; ++i) {
        std::vector<char> bad = good;
        unsigned changes = 1 + random() % 4;
        for (unsigned c = 0; c < changes; ++c) {
            bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
        }
        if (bad == good) {
            continue;
        }
        ++tried;
        ucp_worker_address_attr_t attr = {};
        attr.field_mask = UCP_WORKER_ADDRESS_ATTR_FIELD_UID;
        refused += ucp_worker_address_query(reinterpret_cast<ucp_address_t *>(bad.data()), &attr) ==
                   UCS_ERR_INVALID_ADDR;
    }
    EXPECT_EQ(tried, refused);
    for (unsigned i = 0; i < 200; ++i) {
        std::vector<char> bad = good;
        bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
        ucp_ep_h ep = nullptr;
        ASSERT_EQ(UCS_ERR_INVALID_ADDR, create_ep(e, bad, &ep));
    }
    std::vector<char> zeros(16, 0);
    ucp_ep_h ep = nullptr;
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, create_ep(e, zeros, &ep));
}

// The peer does not answer before the worker goes.
TEST(ucp_worker, flushes_end_with_it)
{
    options o;
    o.tls = "tcp";
    o.features = UCP_FEATURE_RMA;
    entity a(o), b(o);
    ucp_ep_h ep = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    std::vector<char> memory(8);
    std::vector<ucs_status_t> ends;
    {
        region r(b, ep, memory.data(), memory.size());
        ucp_request_param_t p = {};
        ASSERT_EQ(UCS_OK, wait({&a, &b}, flush_nb(ep)));
        ASSERT_EQ(UCS_OK, wait({&a, &b}, ucp_put_nbx(ep, "12345678", 8, r.at(), r.rkey, &p)));
        p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        p.cb.send = [](void *, ucs_status_t status, void *arg) {
            static_cast<std::vector<ucs_status_t> *>(arg)->push_back(status);
        };
        p.user_data = &ends;
        void *flush = ucp_worker_flush_nbx(a.worker, &p);
        ASSERT_TRUE(UCS_PTR_IS_PTR(flush));
        ucp_request_release(flush);
    }
    ucp_worker_destroy(a.worker);
    a.worker = nullptr;
    EXPECT_EQ(std::vector<ucs_status_t>{UCS_ERR_CANCELED}, ends);
}

[[noreturn]] void use_every_transport()
{
    auto before = open_files();
    for (const char *tls : {"self", "sm", "tcp"}) {
        options o;
        o.tls = tls;
        o.features |= UCP_FEATURE_WAKEUP;
        entity a(o);
        ucp_ep_h ep = nullptr;
        EXPECT_EQ(UCS_OK, create_ep(a, a.address(), &ep));
        ping(a, ep, a);
        if (std::string(tls) == "tcp") {
            server listening(a);
        }
    }
    _exit(open_files() == before && !testing::Test::HasFailure() ? 0 : 1);
}

// In a process of its own: what has been used once may stay.
TEST(ucp_context, the_last_one_leaves_no_descriptor)
{
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    EXPECT_EXIT(use_every_transport(), testing::ExitedWithCode(0), "");
}

} // namespace
