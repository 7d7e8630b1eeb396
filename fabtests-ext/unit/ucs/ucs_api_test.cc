// SPDX-License-Identifier: BSD-3-Clause
// The ucs_* calls that the public headers declare for programs written against UCX.
#include <gtest/gtest.h>

#include <ucs/async/async_fwd.h>
#include <ucs/config/types.h>
#include <ucs/datastruct/callbackq.h>
#include <ucs/datastruct/linear_func.h>
#include <ucs/memory/numa.h>
#include <ucs/sys/event_set.h>
#include <ucs/sys/topo/base/topo.h>
#include <ucs/type/thread_mode.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

struct counter {
    static unsigned count(void *arg)
    {
        ++static_cast<counter *>(arg)->calls;
        return 1;
    }
    int calls = 0;
};

class callbackq : public ::testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(UCS_OK, ucs_callbackq_init(&queue_)); }
    void TearDown() override { ucs_callbackq_cleanup(&queue_); }
    ucs_callbackq_t queue_;
};

TEST_F(callbackq, runs_what_was_added_until_it_is_removed)
{
    counter a, b;
    int id = ucs_callbackq_add(&queue_, counter::count, &a);
    ucs_callbackq_add_safe(&queue_, counter::count, &b);
    EXPECT_EQ(2u, ucs_callbackq_dispatch(&queue_));
    EXPECT_EQ(&a, ucs_callbackq_remove(&queue_, id));
    EXPECT_EQ(1u, ucs_callbackq_dispatch(&queue_));
    EXPECT_EQ(1, a.calls);
    EXPECT_EQ(2, b.calls);
}

TEST_F(callbackq, has_one_inline_element_followed_by_zeros)
{
    // What callers compiled with elements of 24 bytes and of 16 bytes both read correctly.
    EXPECT_NE(nullptr, queue_.fast_elems[0].cb);
    EXPECT_EQ(nullptr, queue_.fast_elems[1].cb);
    EXPECT_EQ(nullptr, queue_.fast_elems[1].arg);
}

TEST_F(callbackq, a_callback_may_remove_itself)
{
    struct self_removing {
        ucs_callbackq_t *queue;
        int id;
        int calls;
    } self = {&queue_, 0, 0};
    self.id = ucs_callbackq_add(
        &queue_,
        [](void *arg) {
            auto *s = static_cast<self_removing *>(arg);
            ++s->calls;
            ucs_callbackq_remove(s->queue, s->id);
            return 1u;
        },
        &self);
    EXPECT_EQ(1u, ucs_callbackq_dispatch(&queue_));
    EXPECT_EQ(0u, ucs_callbackq_dispatch(&queue_));
    EXPECT_EQ(1, self.calls);
}

TEST_F(callbackq, oneshot_runs_once_and_in_order_unless_removed)
{
    static std::vector<int> order;
    order.clear();
    static const int one = 1, two = 2, three = 3;
    auto note = [](void *arg) {
        order.push_back(*static_cast<const int *>(arg));
        return 1u;
    };
    for (const int *n : {&one, &two, &three}) {
        ucs_callbackq_add_oneshot(&queue_, this, note, const_cast<int *>(n));
    }
    ucs_callbackq_remove_oneshot(
        &queue_, this, [](const ucs_callbackq_elem_t *e, void *arg) { return int(e->arg == arg); },
        const_cast<int *>(&two));
    EXPECT_EQ(2u, ucs_callbackq_dispatch(&queue_));
    EXPECT_EQ(0u, ucs_callbackq_dispatch(&queue_));
    EXPECT_EQ((std::vector<int>{1, 3}), order);
}

TEST(event_set, tells_which_descriptor_is_readable)
{
    ucs_sys_event_set_t *set;
    ASSERT_EQ(UCS_OK, ucs_event_set_create(&set));
    int fds[2];
    ASSERT_EQ(0, pipe(fds));
    ASSERT_EQ(UCS_OK, ucs_event_set_add(set, fds[0], UCS_EVENT_SET_EVREAD, &fds[0]));

    struct seen {
        void *data;
        unsigned events;
    } got = {nullptr, 0};
    auto handler = [](void *data, ucs_event_set_types_t events, void *arg) {
        *static_cast<seen *>(arg) = {data, events};
    };
    unsigned count = ucs_sys_event_set_max_wait_events;
    EXPECT_EQ(UCS_OK, ucs_event_set_wait(set, &count, 0, handler, &got));
    EXPECT_EQ(0u, count);

    ASSERT_EQ(1, write(fds[1], "x", 1));
    count = 4;
    EXPECT_EQ(UCS_OK, ucs_event_set_wait(set, &count, 1000, handler, &got));
    EXPECT_EQ(1u, count);
    EXPECT_EQ(&fds[0], got.data);
    EXPECT_EQ(UCS_EVENT_SET_EVREAD, got.events);

    EXPECT_EQ(UCS_OK, ucs_event_set_del(set, fds[0]));
    EXPECT_EQ(UCS_ERR_IO_ERROR, ucs_event_set_del(set, fds[0]));
    ucs_event_set_cleanup(set);
    close(fds[0]);
    close(fds[1]);
}

template <class Done>
bool within_seconds(int seconds, Done &&done)
{
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (!done() && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return done();
}

TEST(async, timer_fires_until_removed)
{
    std::atomic<int> fired = 0;
    auto cb = [](int, ucs_event_set_types_t, void *arg) {
        ++*static_cast<std::atomic<int> *>(arg);
    };
    int id;
    ASSERT_EQ(UCS_OK, ucs_async_add_timer(UCS_ASYNC_MODE_THREAD_SPINLOCK, 1000000, cb, &fired,
                                          nullptr, &id));
    EXPECT_TRUE(within_seconds(60, [&] { return fired >= 2; }));
    EXPECT_EQ(UCS_OK, ucs_async_remove_handler(id, 1));
    int last = fired;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(last, fired);
    EXPECT_EQ(UCS_ERR_NO_ELEM, ucs_async_remove_handler(id, 1));
}

TEST(async, handler_may_remove_itself)
{
    int fds[2];
    ASSERT_EQ(0, pipe(fds));
    std::atomic<int> fired = 0;
    auto cb = [](int id, ucs_event_set_types_t events, void *arg) {
        EXPECT_EQ(UCS_EVENT_SET_EVREAD, events);
        EXPECT_EQ(UCS_OK, ucs_async_remove_handler(id, 0));
        ++*static_cast<std::atomic<int> *>(arg);
    };
    ASSERT_EQ(UCS_OK, ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_MUTEX, fds[0],
                                                  UCS_EVENT_SET_EVREAD, cb, &fired, nullptr));
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS,
              ucs_async_set_event_handler(UCS_ASYNC_MODE_THREAD_MUTEX, fds[0], UCS_EVENT_SET_EVREAD,
                                          cb, &fired, nullptr));
    ASSERT_EQ(1, write(fds[1], "x", 1));
    EXPECT_TRUE(within_seconds(60, [&] { return fired == 1; }));
    close(fds[0]);
    close(fds[1]);
}

TEST(async, modes_without_a_thread_are_unsupported)
{
    int id;
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              ucs_async_add_timer(
                  UCS_ASYNC_MODE_SIGNAL, 1, [](int, ucs_event_set_types_t, void *) {}, nullptr,
                  nullptr, &id));
}

TEST(numa, has_a_node_and_processors)
{
    EXPECT_GE(ucs_numa_num_configured_nodes(), 1u);
    EXPECT_GE(ucs_numa_num_configured_cpus(), 1u);
    EXPECT_EQ(UCS_NUMA_NODE_UNDEFINED, ucs_numa_node_of_cpu(1 << 20));
    EXPECT_EQ(UCS_NUMA_NODE_UNDEFINED, ucs_numa_node_of_device("/nonexistent"));
    EXPECT_GT(ucs_numa_distance(0, 0), 0);
}

TEST(topo, refuses_what_is_no_pci_address)
{
    ucs_sys_device_t device = 7;
    for (const char *name : {"", "eth0", "00:20.0", "0000:00:00.8", "0000:00:00.0 x"}) {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucs_topo_find_device_by_bdf_name(name, &device)) << name;
    }
    EXPECT_EQ(UCS_ERR_NO_ELEM, ucs_topo_find_device_by_bdf_name("ffff:ff:1f.7", &device));
    EXPECT_EQ(7, device);
}

TEST(topo, unknown_device_has_no_name_and_no_address)
{
    ucs_sys_bus_id_t id;
    EXPECT_EQ(nullptr, ucs_topo_sys_device_get_name(UCS_SYS_DEVICE_ID_UNKNOWN));
    EXPECT_EQ(UCS_ERR_NO_ELEM, ucs_topo_get_device_bus_id(UCS_SYS_DEVICE_ID_UNKNOWN, &id));
    ucs_sys_dev_distance_t distance;
    ucs_topo_get_memory_distance(UCS_SYS_DEVICE_ID_UNKNOWN, &distance);
    EXPECT_EQ(0, ucs_topo_distance_cmp(&distance, &ucs_topo_default_distance));
    EXPECT_LT(ucs_topo_distance_cmp(&ucs_topo_default_distance, &ucs_topo_max_distance), 0);
}

TEST(linear_func, lines_cross_where_they_should)
{
    double x;
    EXPECT_EQ(UCS_OK, ucs_linear_func_intersect(ucs_linear_func_make(10, 1),
                                                ucs_linear_func_make(0, 2), &x));
    EXPECT_DOUBLE_EQ(10, x);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucs_linear_func_intersect(ucs_linear_func_make(1, 1),
                                                               ucs_linear_func_make(2, 1), &x));
}

TEST(names, end_with_null)
{
    EXPECT_EQ(nullptr, ucs_thread_mode_names[UCS_THREAD_MODE_LAST]);
    EXPECT_EQ(nullptr, ucs_async_mode_names[UCS_ASYNC_MODE_LAST]);
    EXPECT_STREQ("multi", ucs_thread_mode_names[UCS_THREAD_MODE_MULTI]);
}

} // namespace
