// SPDX-License-Identifier: BSD-3-Clause
//
// Endpoints made from worker addresses, over every set of transports: wire-up, queries, flush,
// close.
#include "fabtests-ext/common/ucp_entity.h"

#include <algorithm>
#include <array>
#include <cctype>

using namespace ucp_test;

namespace {

class ucp_wireup : public testing::TestWithParam<const char *> {
  protected:
    ucp_wireup()
        : a(with_tls(GetParam())), b_(self() ? nullptr : new entity(with_tls(GetParam()))),
          b(b_ ? *b_ : a)
    {
    }
    static options with_tls(const char *tls)
    {
        options o;
        o.tls = tls;
        return o;
    }
    bool self() const { return strcmp(GetParam(), "self") == 0; }

    void expect_closed(ucp_ep_h ep) { EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep))); }

    entity a;
    std::unique_ptr<entity> b_;
    entity &b;
};

TEST_P(ucp_wireup, b170_one_sided)
{
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    for (size_t length : {0, 1, 8, 1000, 50000, 1148576}) {
        ping(a, ep, b, length);
    }
    expect_closed(ep);
}

TEST_P(ucp_wireup, b171_two_sided_both_ways)
{
    ucp_ep_h to_b, to_a;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &to_b));
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &to_a));
    ping(a, to_b, b, 1000);
    ping(b, to_a, a, 1000);
    expect_closed(to_b);
    expect_closed(to_a);
}

TEST_P(ucp_wireup, b171_second_side_comes_later)
{
    ucp_ep_h to_b, to_a;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &to_b));
    ping(a, to_b, b, 100);
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &to_a));
    ping(b, to_a, a, 100);
    expect_closed(to_a);
    expect_closed(to_b);
}

TEST_P(ucp_wireup, b172_loopback)
{
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, a.address(), &ep));
    ping(a, ep, a, 100000);
    expect_closed(ep);
}

TEST_P(ucp_wireup, b172_no_loopback_pairs_two)
{
    ucp_ep_h one, two;
    ASSERT_EQ(UCS_OK, create_ep(a, a.address(), &one, nullptr, UCP_EP_PARAMS_FLAGS_NO_LOOPBACK));
    ASSERT_EQ(UCS_OK, create_ep(a, a.address(), &two, nullptr, UCP_EP_PARAMS_FLAGS_NO_LOOPBACK));
    ping(a, one, a);
    ping(a, two, a);
    expect_closed(one);
    expect_closed(two);
}

TEST_P(ucp_wireup, b173_many_endpoints_of_one_pair)
{
    std::array<ucp_ep_h, 20> to_b, to_a;
    for (auto &ep : to_b) {
        ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    }
    for (auto &ep : to_a) {
        ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &ep));
    }
    for (size_t i = 0; i < to_b.size(); ++i) {
        ping(a, to_b[i], b, 500 + i);
        ping(b, to_a[i], a, 900 + i);
    }
    for (size_t i = 0; i < to_b.size(); ++i) {
        expect_closed(to_b[i]);
        expect_closed(to_a[i]);
    }
}

TEST_P(ucp_wireup, b173_destroyed_without_traffic)
{
    options o = with_tls(GetParam());
    std::vector<std::unique_ptr<entity>> peers;
    for (unsigned i = 0; i < (self() ? 0 : 4); ++i) {
        peers.push_back(std::make_unique<entity>(o));
        ucp_ep_h ep;
        ASSERT_EQ(UCS_OK, create_ep(a, peers.back()->address(), &ep));
    }
}

TEST_P(ucp_wireup, b174_connect_send_close_again_and_again)
{
    for (unsigned i = 0; i < 50; ++i) {
        ucp_ep_h to_b, to_a;
        ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &to_b));
        ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &to_a));
        ping(a, to_b, b, 16);
        ucs_status_ptr_t c1 = close_nb(to_b), c2 = close_nb(to_a);
        ASSERT_EQ(UCS_OK, wait({&a, &b}, c1));
        ASSERT_EQ(UCS_OK, wait({&a, &b}, c2));
    }
}

TEST_P(ucp_wireup, b175_close_of_an_unused_endpoint)
{
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    EXPECT_EQ(UCS_OK, wait({&a}, close_nb(ep))); // the peer does nothing at all
}

TEST_P(ucp_wireup, b177_reconnect)
{
    for (unsigned i = 0; i < 3; ++i) {
        ucp_ep_h ep;
        ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
        ping(a, ep, b, 3000);
        expect_closed(ep);
    }
}

TEST_P(ucp_wireup, b176_receiver_that_does_nothing_for_a_while)
{
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    const std::vector<char> out(3000, 'x');
    std::vector<ucs_status_ptr_t> sends;
    for (unsigned i = 0; i < 50; ++i) {
        sends.push_back(send_nb(ep, out.data(), out.size(), i));
    }
    run_for({&a}, 0.05);
    std::vector<char> in(3000);
    for (unsigned i = 0; i < 50; ++i) {
        std::fill(in.begin(), in.end(), '\0');
        ASSERT_EQ(UCS_OK, wait({&a, &b}, recv_nb(b, in.data(), in.size(), i)));
        EXPECT_EQ(out, in);
    }
    for (ucs_status_ptr_t s : sends) {
        EXPECT_EQ(UCS_OK, wait({&a, &b}, s));
    }
    expect_closed(ep);
}

TEST_P(ucp_wireup, b178_b180_flush_close_loses_nothing)
{
    constexpr unsigned count = 1000;
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    std::vector<char> out(1000, 'x');
    std::vector<ucs_status_ptr_t> sends;
    for (unsigned i = 0; i < count; ++i) {
        sends.push_back(send_nb(ep, out.data(), out.size(), i));
    }
    ucs_status_ptr_t close = close_nb(ep);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close));
    for (ucs_status_ptr_t s : sends) {
        EXPECT_EQ(UCS_OK, wait({&a, &b}, s));
    }
    std::vector<char> in(1000);
    for (unsigned i = 0; i < count; ++i) {
        ASSERT_EQ(UCS_OK, wait({&a, &b}, recv_nb(b, in.data(), in.size(), i)));
    }
}

TEST_P(ucp_wireup, b179_the_other_side_replies_after_the_first_closed)
{
    ucp_ep_h to_b, to_a;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &to_b));
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &to_a));
    ping(a, to_b, b);
    ping(b, to_a, a);
    expect_closed(to_b);
    run_for({&a, &b}, 0.02);
    ping(b, to_a, a, 8);
    ping(b, to_a, a, 300000);
    expect_closed(to_a);
}

TEST_P(ucp_wireup, b181_close_calls_back)
{
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    ping(a, ep, b);
    int called = 0;
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = [](void *, ucs_status_t, void *arg) { ++*static_cast<int *>(arg); };
    param.user_data = &called;
    ucs_status_ptr_t ptr = ucp_ep_close_nbx(ep, &param);
    bool pending = UCS_PTR_IS_PTR(ptr);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, ptr));
    EXPECT_EQ(pending ? 1 : 0, called);
}

TEST_P(ucp_wireup, b185_address_may_be_freed_after_the_call)
{
    ucp_ep_h ep;
    {
        std::vector<char> address = b.address();
        ASSERT_EQ(UCS_OK, create_ep(a, address, &ep));
        std::fill(address.begin(), address.end(), 0x55);
    }
    ping(a, ep, b);
    expect_closed(ep);
}

#if UCP_API_VERSION >= UCP_VERSION(1, 14)
TEST_P(ucp_wireup, b163_query)
{
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    ucp_transport_entry_t entries[4] = {};
    ucp_ep_attr_t attr = {};
    attr.field_mask = UCP_EP_ATTR_FIELD_NAME | UCP_EP_ATTR_FIELD_TRANSPORTS;
    attr.transports.entries = entries;
    attr.transports.num_entries = 4;
    attr.transports.entry_size = sizeof(entries[0]);
    ASSERT_EQ(UCS_OK, ucp_ep_query(ep, &attr));
    EXPECT_LT(strnlen(attr.name, UCP_ENTITY_NAME_MAX), size_t(UCP_ENTITY_NAME_MAX));
    ASSERT_GE(attr.transports.num_entries, 1u);
    EXPECT_STRNE("", entries[0].transport_name);
    EXPECT_STRNE("", entries[0].device_name);
    attr.field_mask = UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR;
    EXPECT_EQ(UCS_ERR_NOT_CONNECTED, ucp_ep_query(ep, &attr));
    expect_closed(ep);
}
#endif

TEST_P(ucp_wireup, flush_completes)
{
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, flush_nb(ep)));
    ping(a, ep, b);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, flush_nb(ep)));
    ucp_request_param_t param = {};
    EXPECT_EQ(UCS_OK, wait({&a, &b}, ucp_worker_flush_nbx(a.worker, &param)));
    EXPECT_EQ(UCS_OK, ucp_worker_fence(a.worker));
    expect_closed(ep);
}

TEST_P(ucp_wireup, b186_wrong_arguments)
{
    ucp_ep_params_t params = {};
    ucp_ep_h ep;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_ep_create(a.worker, &params, &ep));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_ep_create(nullptr, &params, &ep));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_ep_create(a.worker, nullptr, &ep));
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_ep_create(a.worker, &params, &ep));
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_ep_create(a.worker, &params, &ep));
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_ep_create(a.worker, &params, &ep));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, UCS_PTR_STATUS(ucp_ep_close_nbx(nullptr, nullptr)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, UCS_PTR_STATUS(ucp_ep_flush_nbx(nullptr, nullptr)));
}

TEST_P(ucp_wireup, b195_force_close_needs_error_handling)
{
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, UCS_PTR_STATUS(close_nb(ep, true)));
    ping(a, ep, b); // still open
    ucs_status_ptr_t close = close_nb(ep);
    EXPECT_EQ(UCS_ERR_NOT_CONNECTED, UCS_PTR_STATUS(close_nb(ep)));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close));
}

TEST_P(ucp_wireup, b183_error_handling_works_with_every_transport)
{
    errors at_a, at_b;
    ucp_ep_h to_b, to_a;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &to_b, &at_a));
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &to_a, &at_b));
    ping(a, to_b, b);
    ping(b, to_a, a);
    ucs_status_ptr_t c1 = close_nb(to_b, true), c2 = close_nb(to_a, true);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, c1));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, c2));
    run_for({&a, &b}, 0.02);
    EXPECT_EQ(0, at_a.count + at_b.count);
}

TEST(ucp_reach, b186_address_that_no_transport_reaches)
{
    options only_self, only_tcp;
    only_self.tls = "self";
    only_tcp.tls = "tcp";
    entity a(only_self), b(only_tcp);
    ucp_ep_h ep;
    EXPECT_EQ(UCS_ERR_UNREACHABLE, create_ep(a, b.address(), &ep));
    EXPECT_EQ(UCS_ERR_UNREACHABLE, create_ep(b, a.address(), &ep));
}

class ucp_reach_from_tcp : public testing::TestWithParam<const char *> {};

TEST_P(ucp_reach_from_tcp, b182_sides_with_different_settings)
{
    options few, many;
    few.tls = "tcp";
    many.tls = GetParam();
    many.config = {{"RNDV_THRESH", "1000"}, {"ZCOPY_THRESH", "500"}};
    entity a(few), b(many);
    ucp_ep_h to_b, to_a;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &to_b));
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &to_a));
    for (size_t length : {8, 700, 5000, 300000}) {
        ping(a, to_b, b, length);
        ping(b, to_a, a, length);
    }
    ucs_status_ptr_t x = close_nb(to_b), y = close_nb(to_a);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, x));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, y));
}

INSTANTIATE_TEST_SUITE_P(to, ucp_reach_from_tcp, testing::Values("self,sm,tcp", "self,ofi_shm,tcp"),
                         transports_name);

TEST(ucp_reach, b161_network_address_is_enough)
{
    entity a({}), b({});
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(true), &ep));
    ping(a, ep, b, 40000);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
}

TEST(ucp_reach, proto_info_prints_the_lanes)
{
    for (bool on : {false, true}) {
        options o;
        o.tls = "self";
        o.config = {{"PROTO_INFO", on ? "y" : "n"}};
        entity e(o);
        ucp_ep_h ep;
        testing::internal::CaptureStdout();
        ucs_status_t status = create_ep(e, e.address(), &ep);
        std::string text = testing::internal::GetCapturedStdout();
        ASSERT_EQ(UCS_OK, status);
        EXPECT_EQ(on, text.find("self/memory") != std::string::npos) << text;
        EXPECT_EQ(on, text.find("rendezvous zero-copy read") != std::string::npos) << text;
        EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep)));
    }
}

UCP_TEST_OVER(ucp_wireup, "self", "sm", "ofi_shm", "tcp", "ofi_shm,tcp", "all");

// Processes whose segments differ send each other what the other one has room for.
class ucp_segments : public testing::TestWithParam<const char *> {
  protected:
    ucp_segments() : small_(with_segments("2k")), large_(with_segments("16k")) {}

    static std::unique_ptr<entity> with_segments(const char *size)
    {
        options o;
        o.tls = GetParam();
        std::string first = o.tls.substr(0, o.tls.find(','));
        std::transform(first.begin(), first.end(), first.begin(), toupper);
        std::string own = "UCX_" + first + "_SEG_SIZE";
        const char *variables[] = {own.c_str(), "UCX_SHM_SEG_SIZE", "UCX_VERBS_SEG_SIZE"};
        for (const char *name : variables) {
            setenv(name, size, 1);
        }
        auto e = std::make_unique<entity>(o);
        for (const char *name : variables) {
            unsetenv(name);
        }
        return e;
    }

    void SetUp() override
    {
        ASSERT_EQ(UCS_OK, create_ep(*small_, large_->address(), &to_large_));
        ASSERT_EQ(UCS_OK, create_ep(*large_, small_->address(), &to_small_));
    }
    void TearDown() override
    {
        ucs_status_ptr_t one = close_nb(to_large_), other = close_nb(to_small_);
        EXPECT_EQ(UCS_OK, wait({small_.get(), large_.get()}, one));
        EXPECT_EQ(UCS_OK, wait({small_.get(), large_.get()}, other));
    }

    // Posted back to back, as what is gathered is.
    void burst(entity &from, ucp_ep_h ep, entity &to)
    {
        constexpr size_t count = 200, length = 500;
        std::vector<std::vector<char>> out, in(count, std::vector<char>(length));
        std::vector<ucs_status_ptr_t> requests;
        for (size_t i = 0; i < count; ++i) {
            requests.push_back(recv_nb(to, in[i].data(), length, i));
            out.emplace_back(length, static_cast<char>(i + 1));
        }
        for (size_t i = 0; i < count; ++i) {
            requests.push_back(send_nb(ep, out[i].data(), length, i));
        }
        for (ucs_status_ptr_t r : requests) {
            ASSERT_EQ(UCS_OK, wait({&from, &to}, r));
        }
        EXPECT_EQ(out, in);
    }

    std::unique_ptr<entity> small_, large_;
    ucp_ep_h to_large_ = nullptr, to_small_ = nullptr;
};

TEST_P(ucp_segments, of_different_size)
{
    for (size_t length : {1, 1900, 2040, 2100, 8000, 17000, 60000, 500000}) {
        ping(*large_, to_small_, *small_, length);
        ping(*small_, to_large_, *large_, length);
    }
    burst(*large_, to_small_, *small_);
    burst(*small_, to_large_, *large_);
}

struct header_seen {
    std::vector<char> bytes;
    int count = 0;

    static ucs_status_t handler(void *arg, const void *header, size_t length, void *, size_t,
                                const ucp_am_recv_param_t *)
    {
        auto *seen = static_cast<header_seen *>(arg);
        const char *first = static_cast<const char *>(header);
        seen->bytes.assign(first, first + length);
        ++seen->count;
        return UCS_OK; // data of a rendezvous is not wanted
    }
};

size_t max_am_header(const entity &e)
{
    ucp_worker_attr_t attr = {};
    attr.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
    EXPECT_EQ(UCS_OK, ucp_worker_query(e.worker, &attr));
    return attr.max_am_header;
}

TEST_P(ucp_segments, b054_headers_fit_the_smaller_one)
{
    size_t most = max_am_header(*small_);
    ASSERT_GE(most, 1000u);
    ASSERT_LT(most, 2048u);
    ASSERT_LT(most, max_am_header(*large_));
    header_seen seen;
    ASSERT_EQ(UCS_OK, set_am_handler(small_->worker, 0, header_seen::handler, &seen));
    std::vector<char> header(max_am_header(*large_)), data(100000);
    for (size_t i = 0; i < header.size(); ++i) {
        header[i] = static_cast<char>(i * 7);
    }
    int count = 0;
    for (uint32_t flags : {uint32_t(UCP_AM_SEND_FLAG_EAGER), uint32_t(UCP_AM_SEND_FLAG_RNDV)}) {
        for (size_t n : {size_t{0}, data.size()}) {
            ucp_request_param_t param = {};
            param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
            param.flags = flags;
            auto send = [&](size_t length) {
                return wait(
                    {small_.get(), large_.get()},
                    ucp_am_send_nbx(to_small_, 0, header.data(), length, data.data(), n, &param));
            };
            EXPECT_EQ(UCS_ERR_INVALID_PARAM, send(header.size()));
            EXPECT_EQ(UCS_OK, send(most));
            ++count;
            ASSERT_TRUE(
                run_until({small_.get(), large_.get()}, [&] { return seen.count == count; }));
            EXPECT_EQ(seen.bytes, std::vector<char>(header.begin(), header.begin() + most));
        }
    }
}

UCP_TEST_OVER(ucp_segments, "sm", "ofi_shm", "tcp");

} // namespace
