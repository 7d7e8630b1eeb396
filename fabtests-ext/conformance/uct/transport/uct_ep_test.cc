// SPDX-License-Identifier: BSD-3-Clause
// Endpoints that are connected to each other, flushes of the interface, the tracer, and events that
// are called instead of waited for.
#include "fabtests-ext/conformance/common/uct_remote.h"

#include "ucs/log.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace uct_conformance {
namespace {

class uct_ep : public uct_test {
  protected:
    static uct_ep_h unconnected(entity &e)
    {
        uct_ep_params_t params{};
        params.field_mask = UCT_EP_PARAM_FIELD_IFACE;
        params.iface = e.iface;
        uct_ep_h ep = nullptr;
        EXPECT_EQ(uct_ep_create(&params, &ep), UCS_OK);
        e.eps.push_back(ep);
        return ep;
    }

    static std::vector<char> address_of(uct_ep_h ep, const entity &e)
    {
        std::vector<char> address(e.attr.ep_addr_len);
        EXPECT_EQ(uct_ep_get_address(ep, reinterpret_cast<uct_ep_addr_t *>(address.data())),
                  UCS_OK);
        return address;
    }

    static ucs_status_t connect(uct_ep_h ep, const entity &to, const std::vector<char> &address)
    {
        return uct_ep_connect_to_ep(
            ep, reinterpret_cast<const uct_device_addr_t *>(to.device_address.data()),
            reinterpret_cast<const uct_ep_addr_t *>(address.data()));
    }

    void quietly(const std::function<void()> &what)
    {
        ucs::log::set_sink([](ucs::log::level, const char *, int, const char *) {});
        what();
        ucs::log::set_sink(nullptr);
    }
};

TEST_P(uct_ep, 215_two_endpoints_are_connected_to_each_other)
{
    ASSERT_TRUE(a().has(UCT_IFACE_FLAG_CONNECT_TO_EP));
    uct_ep_h there = unconnected(a());
    uct_ep_h back = unconnected(b());
    // Nothing goes before.
    EXPECT_EQ(posting([&] { return uct_ep_am_short(there, 1, 0, nullptr, 0); }),
              UCS_ERR_NO_RESOURCE);
    EXPECT_EQ(uct_ep_flush(there, UCT_FLUSH_FLAG_LOCAL, nullptr), UCS_OK);
    ASSERT_EQ(connect(there, b(), address_of(back, b())), UCS_OK);
    ASSERT_EQ(connect(back, a(), address_of(there, a())), UCS_OK);
    ASSERT_EQ(post([&] { return uct_ep_am_short(there, 1, 11, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return b().received.size() == 1; }));
    ASSERT_EQ(post([&] { return uct_ep_am_short(back, 2, 22, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return !a().received.empty() && a().received.back().id == 2; }));
}

TEST_P(uct_ep, 215_wrong_endpoint_addresses_are_refused)
{
    uct_ep_h ep = unconnected(a());
    std::vector<char> good = address_of(unconnected(b()), b());
    quietly([&] {
        std::vector<char> bad(good.size(), 'x');
        ucs_status_t status = connect(ep, b(), bad);
        EXPECT_TRUE(status == UCS_ERR_INVALID_ADDR || status == UCS_ERR_UNREACHABLE)
            << ucs_status_string(status);
        EXPECT_EQ(uct_ep_get_address(ep, nullptr), UCS_ERR_INVALID_PARAM);
        EXPECT_EQ(uct_ep_connect_to_ep(ep, nullptr, nullptr), UCS_ERR_INVALID_PARAM);
        ASSERT_EQ(connect(ep, b(), good), UCS_OK);
        EXPECT_EQ(connect(ep, b(), good), UCS_ERR_ALREADY_EXISTS);
    });
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    EXPECT_TRUE(until([&] { return b().received.size() == 1; }));
}

TEST_P(uct_ep, 206_pending_requests_run_in_progress_of_the_worker_alone)
{
    struct waiting {
        uct_pending_req_t request;
        std::thread::id thread;
        int calls;
    } w{};
    w.request.func = [](uct_pending_req_t *self) {
        auto *own = reinterpret_cast<waiting *>(self);
        own->thread = std::this_thread::get_id();
        ++own->calls;
        return UCS_OK;
    };
    uct_ep_h ep = a().connect(b());
    for (int i = 0; i < 1000000; ++i) {
        if (uct_ep_am_short(ep, 1, 0, nullptr, 0) != UCS_OK) {
            break;
        }
    }
    ASSERT_EQ(uct_ep_pending_add(ep, &w.request, UCT_CB_FLAG_ASYNC), UCS_OK);
    if (!alone()) {
        for (int i = 0; i < 1000; ++i) {
            uct_worker_progress(b().worker);
        }
        EXPECT_EQ(w.calls, 0) << "not in progress of its worker";
    }
    EXPECT_TRUE(until([&] { return w.calls == 1; }));
    EXPECT_EQ(w.thread, std::this_thread::get_id());
}

TEST_P(uct_ep, unconnected_endpoint_may_go)
{
    a().destroy(unconnected(a()));
}

TEST_P(uct_ep, path_beyond_the_device_is_refused)
{
    uct_ep_params_t params{};
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_PATH_INDEX;
    params.iface = a().iface;
    params.path_index = a().attr.dev_num_paths;
    uct_ep_h ep = nullptr;
    quietly([&] { EXPECT_EQ(uct_ep_create(&params, &ep), UCS_ERR_INVALID_PARAM); });
    EXPECT_EQ(ep, nullptr);
}

TEST_P(uct_ep, 208_flush_with_flags_it_has_not)
{
    EXPECT_EQ(uct_iface_flush(a().iface, UCT_FLUSH_FLAG_CANCEL, nullptr), UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(uct_iface_flush(a().iface, UCT_FLUSH_FLAG_REMOTE, nullptr), UCS_OK);
    EXPECT_EQ(uct_iface_fence(a().iface, 0), UCS_OK);
}

TEST_P(uct_ep, tracer_describes_what_is_sent_and_received)
{
    static std::vector<std::string> lines;
    lines.clear();
    auto tracer = [](void *arg, uct_am_trace_type_t type, uint8_t id, const void *data,
                     size_t length, char *buffer, size_t max) {
        EXPECT_EQ(arg, &lines);
        snprintf(buffer, max, "[%s%d:%zu:%s]", type == UCT_AM_TRACE_TYPE_SEND ? "S" : "R", id,
                 length, std::string(static_cast<const char *>(data) + length - 2, 2).c_str());
        lines.push_back(buffer);
    };
    int before = ucs::log::current_level;
    ucs::log::set_sink([](ucs::log::level, const char *, int, const char *) {});
    ucs::log::set_level(ucs::log::level::trace_data);
    EXPECT_EQ(uct_iface_set_am_tracer(a().iface, tracer, &lines), UCS_OK);
    EXPECT_EQ(uct_iface_set_am_tracer(b().iface, tracer, &lines), UCS_OK);
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, "ab", 2); }), UCS_OK);
    packed p{"bcopy cd"};
    ASSERT_EQ(post([&] { return uct_ep_am_bcopy(ep, 2, pack, &p, 0); }), 8);
    char piece[] = "ef";
    uct_iov_t iov{piece, 2, UCT_MEM_HANDLE_NULL, 0, 1};
    ASSERT_EQ(post([&] { return uct_ep_am_short_iov(ep, 3, &iov, 1); }), UCS_OK);
    EXPECT_TRUE(until([&] { return b().received.size() == 3; }));
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "[S1:10:ab]"), 1);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "[R1:10:ab]"), 1);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "[S2:8:cd]"), 1);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "[R2:8:cd]"), 1);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "[S3:2:ef]"), 1);
    EXPECT_EQ(std::count(lines.begin(), lines.end(), "[R3:2:ef]"), 1);
    EXPECT_EQ(uct_iface_set_am_tracer(a().iface, nullptr, nullptr), UCS_OK);
    EXPECT_EQ(uct_iface_set_am_tracer(b().iface, nullptr, nullptr), UCS_OK);
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, "gh", 2); }), UCS_OK);
    EXPECT_TRUE(until([&] { return b().received.size() == 4; }));
    EXPECT_EQ(lines.size(), 6u);
    ucs::log::set_level(static_cast<ucs::log::level>(before));
    ucs::log::set_sink(nullptr);
}

TEST_P(uct_ep, 210_event_is_called_where_a_callback_was_given)
{
    if (!(b().attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_ASYNC_CB)) {
        GTEST_SKIP() << "no event callback";
    }
    static std::atomic<int> calls;
    calls = 0;
    entity::options with_callback;
    with_callback.on_event = [](void *arg, unsigned flags) {
        EXPECT_EQ(arg, &calls);
        EXPECT_TRUE(flags & UCT_EVENT_RECV);
        ++calls;
    };
    with_callback.on_event_arg = &calls;
    open(with_callback);
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return b().received.size() == 1; }));
    ASSERT_TRUE(
        until([&] { return uct_iface_event_arm(b().iface, UCT_EVENT_RECV) != UCS_ERR_BUSY; }));
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    auto end = std::chrono::steady_clock::now() + patience;
    while (calls == 0 && std::chrono::steady_clock::now() < end) {
        uct_worker_progress(a().worker); // the receiver sleeps
    }
    EXPECT_EQ(calls, 1);
    EXPECT_TRUE(until([&] { return b().received.size() == 2; }));
}

UCT_INSTANTIATE(uct_ep);

class uct_iface_flush_test : public uct_remote {};

TEST_P(uct_iface_flush_test, 209_operations_given_up_complete_once)
{
    for (bool destroy : {false, true}) {
        uct_ep_h victim = a().connect(b());
        guard g[8];
        int posted = 0;
        for (guard &one : g) {
            uct_iov_t iov{local.data(), local.size(), local_memh, 0, 1};
            ucs_status_t status = posting([&] {
                return uct_ep_get_zcopy(victim, &iov, 1, address, key.rkey, &one.completion);
            });
            if (status != UCS_INPROGRESS) {
                one.calls = -1; // done, or no room: not counted
                continue;
            }
            ++posted;
        }
        if (destroy) {
            a().destroy(victim);
        } else {
            EXPECT_EQ(uct_ep_flush(victim, UCT_FLUSH_FLAG_CANCEL, nullptr), UCS_OK);
        }
        auto called = [&] {
            return std::count_if(std::begin(g), std::end(g),
                                 [](const guard &one) { return one.calls == 1; });
        };
        EXPECT_EQ(called(), posted); // both call back for what they give up
        EXPECT_TRUE(until([&] { return uct_iface_flush(a().iface, 0, nullptr) == UCS_OK; }));
        EXPECT_EQ(called(), posted);
    }
}

TEST_P(uct_iface_flush_test, 208_completes_after_what_was_posted_on_all_endpoints)
{
    uct_ep_h other = a().connect(b());
    guard puts[20];
    int posted = 0;
    for (int i = 0; i < 20; ++i) {
        uct_iov_t iov{local.data() + i * 1000, 1000, local_memh, 0, 1};
        ucs_status_t status = post([&] {
            return uct_ep_put_zcopy(i % 2 ? ep : other, &iov, 1, address + i * 1000, key.rkey,
                                    &puts[i].completion);
        });
        ASSERT_TRUE(status == UCS_OK || status == UCS_INPROGRESS) << ucs_status_string(status);
        posted += status == UCS_INPROGRESS;
    }
    guard g;
    ucs_status_t status =
        post([&] { return uct_iface_flush(a().iface, UCT_FLUSH_FLAG_LOCAL, &g.completion); });
    if (status == UCS_OK) {
        EXPECT_EQ(posted, 0);
    } else {
        ASSERT_EQ(status, UCS_INPROGRESS);
        ASSERT_TRUE(until([&] { return g.calls == 1; }));
    }
    int done = 0;
    for (guard &p : puts) {
        done += p.calls;
    }
    EXPECT_EQ(done, posted);
    EXPECT_EQ(target.substr(0, 20000), local.substr(0, 20000));
    EXPECT_EQ(uct_iface_flush(a().iface, UCT_FLUSH_FLAG_LOCAL, nullptr), UCS_OK);
}

UCT_INSTANTIATE(uct_iface_flush_test);

} // namespace
} // namespace uct_conformance
