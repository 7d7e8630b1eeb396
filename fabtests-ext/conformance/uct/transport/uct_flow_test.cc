// SPDX-License-Identifier: BSD-3-Clause
// Pending requests, flush, progress callbacks, and the end of endpoints.
#include "fabtests-ext/conformance/common/uct_entity.h"
#include "uct/ofi/core/ep.h"

#include <cstdio>
#include <unistd.h>

namespace uct_conformance {
namespace {

class uct_flow : public uct_test {
  protected:
    // Sends until there is no room; returns how many went.
    size_t fill(uct_ep_h ep, uint64_t *next)
    {
        size_t sent = 0;
        while (posting([&] { return uct_ep_am_short(ep, 1, *next, nullptr, 0); }) == UCS_OK) {
            ++*next;
            if (++sent > 1000000) {
                break;
            }
        }
        return sent;
    }

    // As a check does. That of tcp asks nothing of a peer that it heard of in the last second.
    static void ask(uct_ep_h ep)
    {
        if (std::string(GetParam()) == "tcp") {
            static_cast<uct::ofi::ep &>(*ep).ping();
        } else {
            EXPECT_EQ(uct_ep_check(ep, 0, nullptr), UCS_OK);
        }
    }

    void expect_order(const std::vector<message> &received)
    {
        for (size_t i = 0; i < received.size(); ++i) {
            uint64_t header;
            memcpy(&header, received[i].data.data(), 8);
            ASSERT_EQ(header, i);
        }
    }
};

// Memory of this process, bytes.
size_t resident()
{
    size_t total = 0;
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file && fscanf(file, "%zu %zu", &total, &pages) != 2) {
        pages = 0;
    }
    if (file) {
        fclose(file);
    }
    return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

struct waiting {
    uct_pending_req_t request;
    uct_ep_h ep;
    uint64_t header;
    int calls = 0;
    bool done = false;

    static ucs_status_t run(uct_pending_req_t *self)
    {
        auto *w = reinterpret_cast<waiting *>(self);
        EXPECT_FALSE(in_call) << "pending request outside progress";
        ++w->calls;
        ucs_status_t status = uct_ep_am_short(w->ep, 1, w->header, nullptr, 0);
        w->done = status == UCS_OK;
        return status;
    }
};

// What a peer does not take does not pile up without an end, whether the sender progresses after
// each message or after many.
TEST_P(uct_flow, a_peer_that_makes_no_progress_pushes_back)
{
    if (alone()) {
        GTEST_SKIP() << "its progress is the receiver's";
    }
    constexpr uint64_t most = 3000000;
    uint64_t next = 0;
    for (unsigned between : {1u, 256u}) {
        uct_ep_h ep = a().connect(b());
        ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, next, nullptr, 0); }), UCS_OK);
        ++next;
        ASSERT_TRUE(until([&] { return b().received.size() == next; }));
        size_t before = resident();
        uint64_t end = next + most;
        for (unsigned refused = 0, calls = 0; refused < 1000 && next < end;) {
            ucs_status_t status = posting([&] { return uct_ep_am_short(ep, 1, next, nullptr, 0); });
            ASSERT_TRUE(status == UCS_OK || status == UCS_ERR_NO_RESOURCE);
            next += status == UCS_OK;
            refused = status == UCS_OK ? 0 : refused + 1;
            if (++calls % between == 0 || refused > 0) {
                uct_worker_progress(a().worker);
            }
        }
        EXPECT_LT(next, end);
        if (!sanitized) {
            EXPECT_LT(resident(), before + (64ul << 20));
        }
        ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, next, nullptr, 0); }), UCS_OK);
        ++next;
        ASSERT_TRUE(until([&] { return b().received.size() == next; }));
        expect_order(b().received);
    }
}

TEST_P(uct_flow, descriptors_that_the_user_keeps_do_not_stop_the_sender)
{
    uct_ep_h ep = a().connect(b());
    b().keep = true;
    constexpr uint64_t count = 2000;
    for (uint64_t i = 0; i < count; ++i) {
        ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, i, nullptr, 0); }), UCS_OK) << i;
        progress();
    }
    ASSERT_TRUE(until([&] { return b().received.size() == count; }));
    expect_order(b().received);
}

TEST_P(uct_flow, 205_pending_waits_its_turn)
{
    uct_ep_h ep = a().connect(b());
    uint64_t next = 0;
    fill(ep, &next);
    std::vector<std::unique_ptr<waiting>> queue;
    for (int i = 0; i < 20; ++i) {
        auto w = std::make_unique<waiting>();
        w->request.func = waiting::run;
        w->ep = ep;
        w->header = next++;
        ucs_status_t status = posting([&] { return uct_ep_pending_add(ep, &w->request, 0); });
        ASSERT_EQ(status, UCS_OK);
        // None gets past it.
        EXPECT_EQ(posting([&] { return uct_ep_am_short(ep, 1, 99999999, nullptr, 0); }),
                  UCS_ERR_NO_RESOURCE);
        queue.push_back(std::move(w));
    }
    ASSERT_TRUE(until([&] { return queue.back()->done; }));
    ASSERT_TRUE(until([&] { return b().received.size() == next; })) << b().received.size();
    expect_order(b().received);
}

// However many endpoints wait for room, a call of progress tries few of them, and none is
// forgotten.
TEST_P(uct_flow, a_round_of_progress_tries_few_of_the_endpoints_that_wait)
{
    if (alone()) {
        GTEST_SKIP() << "its progress is the receiver's";
    }
    constexpr size_t most_tries = 16;
    std::vector<waiting> all(2 * most_tries);
    uint64_t next = 0;
    for (waiting &w : all) {
        w.request.func = waiting::run;
        w.ep = a().connect(b());
        w.done = true;
        ASSERT_EQ(post([&] { return uct_ep_am_short(w.ep, 1, next, nullptr, 0); }), UCS_OK);
        ++next;
    }
    ASSERT_TRUE(until([&] { return b().received.size() == next; }));

    // Only the sender makes progress, until no endpoint finds room any more.
    for (unsigned quiet = 0; quiet < 1000; ++quiet) {
        size_t calls = 0;
        for (waiting &w : all) {
            if (w.done) {
                quiet = 0;
                fill(w.ep, &next);
                w.header = next++;
                w.done = false;
                ASSERT_EQ(uct_ep_pending_add(w.ep, &w.request, 0), UCS_OK);
            }
            w.calls = 0;
        }
        uct_worker_progress(a().worker);
        bool found_room = false;
        for (const waiting &w : all) {
            found_room |= w.done;
            calls += static_cast<size_t>(w.calls);
        }
        EXPECT_TRUE(found_room || calls <= most_tries) << calls;
    }
    ASSERT_TRUE(until([&] {
        return std::all_of(all.begin(), all.end(), [](const waiting &w) { return w.done; });
    }));
    EXPECT_TRUE(until([&] { return b().received.size() == next; })) << b().received.size();
}

// A request that calls for progress, which runs those of other endpoints, loses none of them.
TEST_P(uct_flow, a_pending_request_may_call_for_progress)
{
    struct nesting : waiting {
        uct_worker_h worker = nullptr;
        bool inside = false;

        static ucs_status_t run(uct_pending_req_t *self)
        {
            auto *n = static_cast<nesting *>(reinterpret_cast<waiting *>(self));
            if (!n->inside) {
                n->inside = true;
                uct_worker_progress(n->worker);
                n->inside = false;
            }
            return waiting::run(self);
        }
    };
    std::vector<nesting> all(8);
    uint64_t next = 0;
    for (nesting &n : all) {
        n.request.func = nesting::run;
        n.worker = a().worker;
        n.ep = a().connect(b());
        ASSERT_EQ(post([&] { return uct_ep_am_short(n.ep, 1, next, nullptr, 0); }), UCS_OK);
        ++next;
    }
    ASSERT_TRUE(until([&] { return b().received.size() == next; }));
    for (nesting &n : all) {
        fill(n.ep, &next);
        n.header = next++;
        ASSERT_EQ(uct_ep_pending_add(n.ep, &n.request, 0), UCS_OK);
    }
    ASSERT_TRUE(until([&] {
        return std::all_of(all.begin(), all.end(), [](const nesting &n) { return n.done; });
    }));
    EXPECT_TRUE(until([&] { return b().received.size() == next; })) << b().received.size();
}

TEST_P(uct_flow, a_flood_into_few_receive_buffers_arrives_in_order)
{
    if (alone() || std::string(GetParam()) == "sm") {
        GTEST_SKIP() << "no receive buffers";
    }
    open({.rx_queue_len = "16"});
    uct_ep_h ep = a().connect(b());
    uint64_t next = 0;
    for (int round = 0; round < 3; ++round) {
        fill(ep, &next);
        ASSERT_TRUE(until([&] { return b().received.size() == next; })) << b().received.size();
    }
    expect_order(b().received);
}

TEST_P(uct_flow, 205_pending_add_is_busy_when_there_is_room)
{
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return !b().received.empty(); }));
    waiting w{};
    w.request.func = waiting::run;
    w.ep = ep;
    EXPECT_EQ(uct_ep_pending_add(ep, &w.request, 0), UCS_ERR_BUSY);
}

TEST_P(uct_flow, 207_purge_hands_each_request_back_once)
{
    uct_ep_h ep = a().connect(b());
    uint64_t next = 0;
    fill(ep, &next);
    waiting w[5] = {};
    for (waiting &one : w) {
        one.request.func = waiting::run;
        one.ep = ep;
        ASSERT_EQ(uct_ep_pending_add(ep, &one.request, 0), UCS_OK);
    }
    std::vector<uct_pending_req_t *> purged;
    uct_ep_pending_purge(
        ep,
        [](uct_pending_req_t *self, void *arg) {
            static_cast<std::vector<uct_pending_req_t *> *>(arg)->push_back(self);
        },
        &purged);
    ASSERT_EQ(purged.size(), 5u);
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(purged[i], &w[i].request);
        EXPECT_EQ(w[i].calls, 0);
    }
    uct_ep_pending_purge(ep, nullptr, nullptr);
    EXPECT_TRUE(until([&] { return b().received.size() == next; }));
}

TEST_P(uct_flow, 208_flush_ends_after_what_was_posted)
{
    uct_ep_h ep = a().connect(b());
    size_t length = std::min<size_t>(a().attr.cap.am.max_bcopy, 5000);
    for (int i = 0; i < 50; ++i) {
        packed p{pattern(length, 1)};
        ASSERT_EQ(post([&] { return uct_ep_am_bcopy(ep, 1, pack, &p, 0); }),
                  static_cast<ssize_t>(length));
    }
    guard g;
    ucs_status_t status = post([&] { return uct_ep_flush(ep, 0, &g.completion); });
    ASSERT_TRUE(status == UCS_OK || status == UCS_INPROGRESS) << ucs_status_string(status);
    EXPECT_TRUE(until([&] { return status == UCS_OK || g.calls == 1; }));
    EXPECT_EQ(g.calls, status == UCS_INPROGRESS);
    EXPECT_TRUE(until([&] { return uct_iface_flush(a().iface, 0, nullptr) == UCS_OK; }));
    EXPECT_TRUE(until([&] { return b().received.size() == 50; }));
}

// The program leaves without another progress when a flush ends at once: so it does for one that
// has nothing but the question of a check on its way.
TEST_P(uct_flow, 208_flush_does_not_wait_for_a_check)
{
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return !b().received.empty(); }));
    ASSERT_TRUE(until([&] { return uct_ep_flush(ep, 0, nullptr) == UCS_OK; }));
    ask(ep);
    EXPECT_EQ(uct_ep_flush(ep, 0, nullptr), UCS_OK);
    ask(ep);

    size_t length = std::min<size_t>(a().attr.cap.am.max_bcopy, 5000);
    packed p{pattern(length, 1)};
    ASSERT_EQ(post([&] { return uct_ep_am_bcopy(ep, 1, pack, &p, 0); }),
              static_cast<ssize_t>(length));
    guard g[2];
    ucs_status_t status[2];
    for (int i = 0; i < 2; ++i) {
        ask(ep);
        status[i] = post([&] { return uct_ep_flush(ep, 0, &g[i].completion); });
    }
    for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(until([&] { return status[i] == UCS_OK || g[i].calls == 1; }));
    }
    EXPECT_TRUE(until([&] { return b().received.size() == 2; }));
}

TEST_P(uct_flow, 208_flush_cancel_ends_everything)
{
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    EXPECT_EQ(uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, nullptr), UCS_OK);
    EXPECT_LT(uct_ep_am_short(ep, 1, 0, nullptr, 0), 0);
    EXPECT_TRUE(a().errors.empty());
}

TEST_P(uct_flow, 214_endpoint_may_go_with_operations_in_flight)
{
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    std::vector<std::unique_ptr<guard>> guards;
    std::string data = pattern(std::min<size_t>(a().attr.cap.am.max_zcopy, 8000), 1);
    uct_mem_h memh = UCT_MEM_HANDLE_NULL;
    ASSERT_EQ(uct_md_mem_reg(a().md, data.data(), data.size(), UCT_MD_MEM_ACCESS_ALL, &memh),
              UCS_OK);
    uct_iov_t iov{data.data(), data.size(), memh, 0, 1};
    for (int i = 0; i < 20; ++i) {
        auto g = std::make_unique<guard>();
        ucs_status_t status =
            posting([&] { return uct_ep_am_zcopy(ep, 1, nullptr, 0, &iov, 1, 0, &g->completion); });
        if (status == UCS_INPROGRESS) {
            guards.push_back(std::move(g));
        }
    }
    a().destroy(ep);
    // The user may free them now.
    for (auto &g : guards) {
        EXPECT_EQ(g->calls, 1);
        EXPECT_TRUE(g->completion.status == UCS_OK || g->completion.status == UCS_ERR_CANCELED);
        g.reset();
    }
    EXPECT_TRUE(until([&] { return b().received.size() > guards.size(); }));
    EXPECT_EQ(uct_md_mem_dereg(a().md, memh), UCS_OK);
}

TEST_P(uct_flow, 214_many_endpoints_to_one_peer)
{
    std::vector<uct_ep_h> eps;
    for (int i = 0; i < 20; ++i) {
        eps.push_back(a().connect(b()));
    }
    for (uct_ep_h ep : eps) {
        ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 1, nullptr, 0); }), UCS_OK);
    }
    EXPECT_TRUE(until([&] { return b().received.size() == eps.size(); }));
    for (uct_ep_h ep : eps) {
        a().destroy(ep);
    }
    uct_ep_h again = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(again, 1, 1, nullptr, 0); }), UCS_OK);
    EXPECT_TRUE(until([&] { return b().received.size() == eps.size() + 1; }));
}

TEST_P(uct_flow, 213_progress_callbacks)
{
    struct counter {
        unsigned calls = 0;
        static unsigned run(void *arg)
        {
            ++static_cast<counter *>(arg)->calls;
            return 1;
        }
    } each, once;
    uct_worker_cb_id_t id = UCS_CALLBACKQ_ID_NULL;
    uct_worker_progress_register_safe(a().worker, counter::run, &each, 0, &id);
    EXPECT_NE(id, UCS_CALLBACKQ_ID_NULL);
    uct_worker_cb_id_t once_id = UCS_CALLBACKQ_ID_NULL;
    uct_worker_progress_register_safe(a().worker, counter::run, &once, 2 /* oneshot */, &once_id);
    for (int i = 0; i < 5; ++i) {
        uct_worker_progress(a().worker);
    }
    EXPECT_EQ(each.calls, 5u);
    EXPECT_EQ(once.calls, 1u);
    uct_worker_progress_unregister_safe(a().worker, &id);
    uct_worker_progress_unregister_safe(a().worker, &once_id);
    EXPECT_EQ(id, UCS_CALLBACKQ_ID_NULL);
    uct_worker_progress(a().worker);
    EXPECT_EQ(each.calls, 5u);
}

TEST_P(uct_flow, 213_progress_can_be_switched)
{
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return b().received.size() == 1; }));
    uct_iface_progress_disable(b().iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    for (int i = 0; i < 100; ++i) {
        progress();
    }
    EXPECT_EQ(b().received.size(), 1u);
    EXPECT_TRUE(until([&] {
        uct_iface_progress(b().iface);
        return b().received.size() == 2;
    }));
    uct_iface_progress_enable(b().iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
}

TEST_P(uct_flow, 216_peer_that_closes_fails_each_endpoint_once)
{
    if (alone()) {
        GTEST_SKIP() << "there is no peer";
    }
    uct_ep_h ep = a().connect(b());
    a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return !b().received.empty(); }));
    b_.reset();
    ASSERT_TRUE(until([&] { return a().errors.size() == 2; }));
    EXPECT_NE(a().errors[0].first, a().errors[1].first);
    EXPECT_LT(uct_ep_am_short(ep, 1, 0, nullptr, 0), 0);
    EXPECT_NE(uct_ep_am_short(ep, 1, 0, nullptr, 0), UCS_ERR_NO_RESOURCE);
    EXPECT_LT(uct_ep_check(ep, 0, nullptr), 0);
    for (int i = 0; i < 1000; ++i) {
        progress();
    }
    EXPECT_EQ(a().errors.size(), 2u);
    // A new peer is a new beginning.
    b_ = std::make_unique<entity>(GetParam(), entity::options{});
    uct_ep_h fresh = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(fresh, 1, 0, nullptr, 0); }), UCS_OK);
    EXPECT_TRUE(until([&] { return !b().received.empty(); }));
}

TEST_P(uct_flow, 216_endpoint_may_go_in_its_error_handler)
{
    if (alone()) {
        GTEST_SKIP() << "there is no peer";
    }
    a().destroy_in_handler = true;
    for (int i = 0; i < 3; ++i) {
        a().connect(b());
    }
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    b_.reset();
    ASSERT_TRUE(until([&] { return a().errors.size() == 4; }));
    EXPECT_TRUE(a().eps.empty());
}

TEST_P(uct_flow, 216_nobody_there)
{
    if (alone() || !a().has(UCT_IFACE_FLAG_INTER_NODE)) {
        GTEST_SKIP() << "not a network";
    }
    auto gone = std::make_unique<entity>(GetParam(), entity::options{});
    std::vector<char> device = gone->device_address;
    std::vector<char> address = gone->iface_address;
    gone.reset();
    b().device_address = device;
    b().iface_address = address;
    ucs_status_t status;
    uct_ep_h ep = a().try_connect(b(), &status);
    if (!ep) {
        EXPECT_EQ(status, UCS_ERR_UNREACHABLE);
        return;
    }
    a().eps.push_back(ep);
    // A connectionless core finds out by sending.
    ASSERT_TRUE(until([&] {
        if (a().errors.empty()) {
            EXPECT_NE(posting([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
        }
        return a().errors.size() == 1;
    }));
    EXPECT_EQ(a().errors[0].second, UCS_ERR_UNREACHABLE);
    EXPECT_EQ(uct_ep_am_short(ep, 1, 0, nullptr, 0), UCS_ERR_UNREACHABLE);
}

TEST_P(uct_flow, 215_reachability_and_bad_addresses)
{
    auto *device = reinterpret_cast<const uct_device_addr_t *>(b().device_address.data());
    auto *address = reinterpret_cast<const uct_iface_addr_t *>(b().iface_address.data());
    EXPECT_TRUE(uct_iface_is_reachable(a().iface, device, address));
    std::vector<char> damaged = b().iface_address;
    for (char &c : damaged) {
        c = static_cast<char>(~c);
    }
    EXPECT_FALSE(uct_iface_is_reachable(
        a().iface, device, reinterpret_cast<const uct_iface_addr_t *>(damaged.data())));
    std::swap(b().iface_address, damaged);
    ucs_status_t status;
    EXPECT_EQ(a().try_connect(b(), &status), nullptr);
    EXPECT_TRUE(status == UCS_ERR_INVALID_ADDR || status == UCS_ERR_UNREACHABLE);
    std::swap(b().iface_address, damaged);
}

TEST_P(uct_flow, crossing_connections_become_one)
{
    if (alone()) {
        GTEST_SKIP() << "there is nobody to cross with";
    }
    for (int round = 0; round < 30; ++round) {
        open({});
        uct_ep_h there = a().connect(b());
        uct_ep_h back = b().connect(a());
        ASSERT_EQ(post([&] { return uct_ep_am_short(there, 1, 1, nullptr, 0); }), UCS_OK);
        ASSERT_EQ(post([&] { return uct_ep_am_short(back, 1, 2, nullptr, 0); }), UCS_OK);
        ASSERT_TRUE(until([&] { return a().received.size() == 1 && b().received.size() == 1; }))
            << "round " << round;
        EXPECT_TRUE(a().errors.empty());
        EXPECT_TRUE(b().errors.empty());
    }
}

TEST_P(uct_flow, an_interface_reaches_itself)
{
    uct_ep_h ep = a().connect(a());
    for (uint64_t i = 0; i < 100; ++i) {
        ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, i, nullptr, 0); }), UCS_OK);
    }
    EXPECT_TRUE(until([&] { return a().received.size() == 100; })) << a().received.size();
    expect_order(a().received);
}

UCT_INSTANTIATE(uct_flow);

} // namespace
} // namespace uct_conformance
