// SPDX-License-Identifier: BSD-3-Clause
//
// Sleeping on a worker's descriptor.
#include "fabtests-ext/common/ucp_entity.h"

#include <atomic>
#include <poll.h>
#include <sys/epoll.h>
#include <thread>
#include <unistd.h>

using namespace ucp_test;

namespace {

options with_wakeup(const char *tls)
{
    options o;
    o.tls = tls;
    o.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
    return o;
}

constexpr int patience_ms = static_cast<int>(patience * 1000);

int readable(int fd, int timeout_ms)
{
    pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, timeout_ms);
}

// Progress until the worker can sleep.
bool arm(entity &e)
{
    ucs_status_t status = UCS_ERR_BUSY;
    run_until({&e}, [&] { return (status = ucp_worker_arm(e.worker)) != UCS_ERR_BUSY; });
    return status == UCS_OK;
}

// Until nothing wakes it any more: what belongs to earlier messages may come late.
bool rest(entity &e, int fd)
{
    return run_until({&e}, [&] { return arm(e) && readable(fd, 0) == 0; });
}

class ucp_wakeup : public testing::TestWithParam<const char *> {};

TEST_P(ucp_wakeup, b147_a_message_wakes)
{
    entity a(with_wakeup(GetParam())), b(with_wakeup(GetParam()));
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    ping(a, ep, b);
    int fd;
    ASSERT_EQ(UCS_OK, ucp_worker_get_efd(b.worker, &fd));
    for (unsigned i = 0; i < 20; ++i) {
        ASSERT_TRUE(rest(b, fd));
        char in[8];
        ucs_status_ptr_t recv = recv_nb(b, in, 8, 1);
        ASSERT_TRUE(arm(b));
        ucs_status_ptr_t send = send_nb(ep, "1234567", 8, 1);
        ASSERT_TRUE(run_until({&a}, [&] { return readable(fd, 0) == 1; }));
        EXPECT_EQ(UCS_OK, wait({&a, &b}, recv));
        EXPECT_EQ(UCS_OK, wait({&a, &b}, send));
    }
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
}

// Long messages back and forth between two threads that sleep whenever there is nothing to do; the
// peer's answer may be due to what the library itself does in the background.
TEST_P(ucp_wakeup, b152_both_sides_sleep_between_long_messages)
{
    entity a(with_wakeup(GetParam())), b(with_wakeup(GetParam()));
    ucp_ep_h to_b, to_a;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &to_b));
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &to_a));
    std::atomic<unsigned> finished{0};
    std::atomic<bool> give_up{false};
    auto play = [&](entity &e, ucp_ep_h ep) {
        std::vector<char> out(200000, 'x'), in(200000);
        for (unsigned i = 0; i < 200 && !give_up; ++i) {
            ucs_status_ptr_t all[] = {recv_nb(e, in.data(), in.size(), 1),
                                      send_nb(ep, out.data(), out.size(), 1)};
            for (ucs_status_ptr_t request : all) {
                while (UCS_PTR_IS_PTR(request) && !give_up &&
                       ucp_request_check_status(request) == UCS_INPROGRESS) {
                    if (ucp_worker_progress(e.worker) == 0) {
                        ucp_worker_wait(e.worker);
                    }
                }
                if (UCS_PTR_IS_PTR(request)) {
                    ucp_request_free(request);
                }
            }
        }
        ++finished;
        while (finished < 2 && !give_up) {
            e.progress(); // the last answer may leave only when the core is polled
        }
    };
    std::thread one(play, std::ref(a), to_b), other(play, std::ref(b), to_a);
    for (unsigned ms = 0; ms < patience_ms && finished < 2; ++ms) {
        usleep(1000);
    }
    EXPECT_EQ(2u, finished.load()) << "a side sleeps and is not woken";
    give_up = true;
    ucp_worker_signal(a.worker);
    ucp_worker_signal(b.worker);
    one.join();
    other.join();
    ucs_status_ptr_t x = close_nb(to_b), y = close_nb(to_a);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, x));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, y));
}

// The sender sleeps until its own send has ended; the receiver never does.
TEST_P(ucp_wakeup, b148_the_end_of_a_send_wakes)
{
    entity a(with_wakeup(GetParam())), b(with_wakeup(GetParam()));
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    ping(a, ep, b);
    std::vector<char> out(2000000, 'w'), in(out.size());
    std::atomic<bool> stop{false}, late{false};
    for (bool sync : {false, true}) {
        for (size_t n : {size_t(8), out.size()}) {
            ucs_status_ptr_t receive = recv_nb(b, in.data(), n, 5);
            ucp_request_param_t p = {};
            ucs_status_ptr_t send = sync ? ucp_tag_send_sync_nbx(ep, out.data(), n, 5, &p)
                                         : ucp_tag_send_nbx(ep, out.data(), n, 5, &p);
            ASSERT_FALSE(UCS_PTR_IS_ERR(send));
            stop = false;
            std::thread receiver([&] {
                for (auto end =
                         std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
                     !stop && !late; late = std::chrono::steady_clock::now() > end) {
                    b.progress();
                }
                if (late) {
                    ucp_worker_signal(a.worker);
                }
            });
            while (UCS_PTR_IS_PTR(send) && !late &&
                   ucp_request_check_status(send) == UCS_INPROGRESS) {
                if (ucp_worker_progress(a.worker) == 0) {
                    EXPECT_EQ(UCS_OK, ucp_worker_wait(a.worker));
                }
            }
            stop = true;
            receiver.join();
            ASSERT_FALSE(late) << "was not woken: " << n << " bytes, sync " << sync;
            EXPECT_EQ(UCS_OK, wait({&a, &b}, send));
            EXPECT_EQ(UCS_OK, wait({&a, &b}, receive));
        }
    }
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
}

TEST_P(ucp_wakeup, b165_messages_to_a_sleeper_in_every_thread_mode)
{
    for (auto mode : {UCS_THREAD_MODE_SINGLE, UCS_THREAD_MODE_SERIALIZED, UCS_THREAD_MODE_MULTI}) {
        options o = with_wakeup(GetParam());
        o.thread_mode = mode;
        entity a(o), b(o);
        ucp_ep_h ep;
        ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
        ping(a, ep, b);
        int fd;
        ASSERT_EQ(UCS_OK, ucp_worker_get_efd(b.worker, &fd));
        std::atomic<unsigned> received{0};
        constexpr unsigned count = 100;
        std::thread sleeper([&] {
            for (unsigned i = 0; i < count; ++i) {
                unsigned value = 0;
                ucs_status_ptr_t request = recv_nb(b, &value, sizeof(value), 6);
                while (UCS_PTR_IS_PTR(request) &&
                       ucp_request_check_status(request) == UCS_INPROGRESS) {
                    if (ucp_worker_progress(b.worker) == 0 && ucp_worker_arm(b.worker) == UCS_OK &&
                        readable(fd, patience_ms) != 1) {
                        ADD_FAILURE() << "was not woken for message " << i;
                        return;
                    }
                }
                if (UCS_PTR_IS_PTR(request)) {
                    ucp_request_free(request);
                }
                EXPECT_EQ(i, value);
                ++received;
            }
        });
        for (unsigned i = 0; i < count; ++i) {
            EXPECT_EQ(UCS_OK, wait({&a}, send_nb(ep, &i, sizeof(i), 6)));
        }
        EXPECT_TRUE(run_until({&a}, [&] { return received == count; }));
        sleeper.join();
        EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
    }
}

TEST_P(ucp_wakeup, connection_requests_wake)
{
    entity c(with_wakeup(GetParam())), s(with_wakeup(GetParam()));
    server listening(s);
    int fd;
    ASSERT_EQ(UCS_OK, ucp_worker_get_efd(s.worker, &fd));
    ASSERT_TRUE(arm(s));
    ucp_ep_h client;
    errors ce;
    ASSERT_EQ(UCS_OK, connect(c, listening.port, &client, &ce));
    ASSERT_EQ(1, readable(fd, patience_ms));
    ASSERT_TRUE(run_until({&s}, [&] { return !listening.requests.empty(); }));
    ucp_listener_reject(listening.listener, listening.requests[0]);
    ASSERT_EQ(UCS_OK, ucp_worker_get_efd(c.worker, &fd));
    while (ce.count == 0) {
        ASSERT_TRUE(arm(c)); // progresses, so that the handler may have run in it
        if (ce.count == 0) {
            ASSERT_EQ(1, readable(fd, patience_ms));
            c.progress();
        }
    }
    EXPECT_EQ(UCS_ERR_REJECTED, ce.status);
    close_nb(client, true);
}

UCP_TEST_OVER(ucp_wakeup, "sm,self", "ofi_shm,self", "tcp,self", "all");

TEST(ucp_wakeup_one, b149_signal)
{
    entity e(with_wakeup("all"));
    int fd;
    ASSERT_EQ(UCS_OK, ucp_worker_get_efd(e.worker, &fd));
    ASSERT_TRUE(arm(e));
    EXPECT_EQ(0, readable(fd, 0));
    EXPECT_EQ(UCS_OK, ucp_worker_signal(e.worker));
    EXPECT_EQ(UCS_OK, ucp_worker_signal(e.worker));
    EXPECT_EQ(1, readable(fd, patience_ms));
    EXPECT_EQ(UCS_ERR_BUSY, ucp_worker_arm(e.worker));
    EXPECT_EQ(UCS_OK, ucp_worker_arm(e.worker));
    EXPECT_EQ(0, readable(fd, 0));
    EXPECT_EQ(UCS_OK, ucp_worker_signal(e.worker));
    EXPECT_EQ(UCS_OK, ucp_worker_wait(e.worker)); // does not block
}

TEST(ucp_wakeup_one, b150_external_epoll_set)
{
    int epoll_fd = epoll_create1(0);
    entity e(with_wakeup("all"));
    ucp_worker_params_t params = {};
    params.field_mask = UCP_WORKER_PARAM_FIELD_EVENT_FD | UCP_WORKER_PARAM_FIELD_USER_DATA;
    params.event_fd = epoll_fd;
    params.user_data = &params;
    ucp_worker_h worker;
    ASSERT_EQ(UCS_OK, ucp_worker_create(e.context, &params, &worker));
    int fd;
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, ucp_worker_get_efd(worker, &fd));
    while (ucp_worker_arm(worker) == UCS_ERR_BUSY) {
        ucp_worker_progress(worker);
    }
    EXPECT_EQ(UCS_OK, ucp_worker_signal(worker));
    epoll_event event = {};
    ASSERT_EQ(1, epoll_wait(epoll_fd, &event, 1, patience_ms));
    void *user_data = event.data.ptr; // epoll_event is packed: no reference to it
    EXPECT_EQ(static_cast<void *>(&params), user_data);
    ucp_worker_destroy(worker);
    close(epoll_fd);
}

TEST(ucp_wakeup_one, b151_needs_the_feature)
{
    entity e({});
    int fd;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_worker_get_efd(e.worker, &fd));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_worker_arm(e.worker));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_worker_wait(e.worker));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_worker_signal(e.worker));
}

// The address of 8 bytes that another thread changes while the worker waits for it.
TEST(ucp_wakeup_one, b153_wait_mem_ends_with_a_write)
{
    for (uint64_t features : {UCP_FEATURE_TAG | 0u, UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP | 0u}) {
        options o;
        o.features = features;
        entity e(o);
        std::atomic<uint64_t> word{0};
        std::atomic<bool> waiting{false};
        std::thread writer([&] {
            while (!waiting) {
                std::this_thread::yield();
            }
            word = 1;
        });
        unsigned calls = 0;
        waiting = true;
        do {
            ucp_worker_wait_mem(e.worker, &word);
            ++calls;
        } while (word == 0);
        writer.join();
        EXPECT_GE(calls, 1u);
    }
}

TEST(ucp_wakeup_one, b153_wait_mem_sleeps_without_cause_and_ends_with_an_event)
{
    entity e(with_wakeup("all"));
    alignas(8) uint64_t word = 0;
    ASSERT_TRUE(arm(e));
    // Nothing happens: far fewer calls than returning at once would give.
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
    unsigned calls = 0;
    while (std::chrono::steady_clock::now() < end) {
        ucp_worker_wait_mem(e.worker, &word);
        ++calls;
    }
    EXPECT_LT(calls, 100u);
    EXPECT_EQ(UCS_OK, ucp_worker_signal(e.worker));
    ucp_worker_wait_mem(e.worker, &word); // takes the signal
    EXPECT_EQ(UCS_OK, ucp_worker_arm(e.worker));
}

TEST(ucp_wakeup_one, b153_wait_mem_wakes_for_a_message_that_writes)
{
    options o;
    o.tls = "tcp,self";
    o.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA;
    entity a(o), b(o);
    alignas(8) uint64_t word = 0;
    ucp_mem_map_params_t map = {};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    map.address = &word;
    map.length = sizeof(word);
    ucp_mem_h memh;
    ASSERT_EQ(UCS_OK, ucp_mem_map(b.context, &map, &memh));
    void *packed;
    size_t length;
    ASSERT_EQ(UCS_OK, ucp_rkey_pack(b.context, memh, &packed, &length));
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    ucp_rkey_h rkey;
    ASSERT_EQ(UCS_OK, ucp_ep_rkey_unpack(ep, packed, &rkey));
    ucp_rkey_buffer_release(packed);
    ping(a, ep, b);
    uint64_t seven = 7;
    ucp_request_param_t param = {};
    EXPECT_EQ(UCS_OK,
              wait({&a, &b}, ucp_put_nbx(ep, &seven, sizeof(seven),
                                         reinterpret_cast<uintptr_t>(&word), rkey, &param)));
    ucs_status_ptr_t flush = flush_nb(ep);
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    while (*static_cast<volatile uint64_t *>(&word) != 7 &&
           std::chrono::steady_clock::now() < end) {
        ucp_worker_wait_mem(b.worker, &word);
        b.progress();
        a.progress();
    }
    EXPECT_EQ(7u, word);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, flush));
    ucp_rkey_destroy(rkey);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(b.context, memh));
}

// With UCP_WAKEUP_EDGE an event that was seen does not show again in the user's set.
TEST(ucp_wakeup_one, b154_edge_triggered_set_tells_only_what_is_new)
{
    for (bool edge : {false, true}) {
        int epoll_fd = epoll_create1(0);
        entity e(with_wakeup("all"));
        ucp_worker_params_t params = {};
        params.field_mask = UCP_WORKER_PARAM_FIELD_EVENT_FD | UCP_WORKER_PARAM_FIELD_EVENTS;
        params.event_fd = epoll_fd;
        params.events = UCP_WAKEUP_TX | UCP_WAKEUP_RX | (edge ? UCP_WAKEUP_EDGE : 0);
        ucp_worker_h worker;
        ASSERT_EQ(UCS_OK, ucp_worker_create(e.context, &params, &worker));
        while (ucp_worker_arm(worker) == UCS_ERR_BUSY) {
            ucp_worker_progress(worker);
        }
        epoll_event event = {};
        EXPECT_EQ(0, epoll_wait(epoll_fd, &event, 1, 0));
        EXPECT_EQ(UCS_OK, ucp_worker_signal(worker));
        EXPECT_EQ(1, epoll_wait(epoll_fd, &event, 1, patience_ms));
        void *user_data = event.data.ptr;
        EXPECT_EQ(nullptr, user_data); // not given
        EXPECT_EQ(edge ? 0 : 1, epoll_wait(epoll_fd, &event, 1, 0));
        EXPECT_EQ(UCS_ERR_BUSY, ucp_worker_arm(worker)); // takes the signal
        EXPECT_EQ(UCS_OK, ucp_worker_arm(worker));
        EXPECT_EQ(UCS_OK, ucp_worker_signal(worker));
        EXPECT_EQ(1, epoll_wait(epoll_fd, &event, 1, patience_ms));
        ucp_worker_destroy(worker);
        close(epoll_fd);
    }
}

class ucp_wakeup_events : public testing::TestWithParam<const char *> {};

TEST_P(ucp_wakeup_events, b154_every_events_mask_wakes_for_its_kind)
{
    for (unsigned events : {UCP_WAKEUP_RX | 0u, UCP_WAKEUP_TAG_RECV | 0u,
                            UCP_WAKEUP_TX | UCP_WAKEUP_RX | UCP_WAKEUP_RMA | 0u}) {
        entity a(with_wakeup(GetParam())), b(with_wakeup(GetParam()));
        ucp_worker_params_t params = {};
        params.field_mask = UCP_WORKER_PARAM_FIELD_EVENTS;
        params.events = events;
        ucp_worker_destroy(b.worker);
        b.worker = nullptr;
        ASSERT_EQ(UCS_OK, ucp_worker_create(b.context, &params, &b.worker));
        ucp_ep_h ep;
        ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
        ping(a, ep, b);
        int fd;
        ASSERT_EQ(UCS_OK, ucp_worker_get_efd(b.worker, &fd));
        ASSERT_TRUE(arm(b));
        ucs_status_ptr_t send = send_nb(ep, "1234567", 8, 1);
        EXPECT_EQ(UCS_OK, wait({&a}, flush_nb(ep)));
        EXPECT_EQ(1, readable(fd, patience_ms));
        char in[8];
        EXPECT_EQ(UCS_OK, wait({&a, &b}, recv_nb(b, in, 8, 1)));
        EXPECT_EQ(UCS_OK, wait({&a, &b}, send));
        EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
    }
}

INSTANTIATE_TEST_SUITE_P(over, ucp_wakeup_events, testing::Values("sm,self", "ofi_shm,self"),
                         transports_name);

} // namespace
