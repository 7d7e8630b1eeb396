// SPDX-License-Identifier: BSD-3-Clause
//
// Sleeping on a worker's descriptor.
#include "fabtests-ext/common/ucp_entity.h"

#include <poll.h>
#include <sys/epoll.h>
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

int readable(int fd, int timeout_ms)
{
    pollfd p = {fd, POLLIN, 0};
    return poll(&p, 1, timeout_ms);
}

// Progress until the worker can sleep.
bool arm(entity &e)
{
    for (unsigned i = 0; i < 100000; ++i) {
        ucs_status_t status = ucp_worker_arm(e.worker);
        if (status != UCS_ERR_BUSY) {
            return status == UCS_OK;
        }
        e.progress();
    }
    return false;
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
        ASSERT_TRUE(arm(b));
        EXPECT_EQ(0, readable(fd, 0));
        char in[8];
        ucs_status_ptr_t recv = recv_nb(b, in, 8, 1);
        ASSERT_TRUE(arm(b));
        ucs_status_ptr_t send = send_nb(ep, "1234567", 8, 1);
        EXPECT_EQ(UCS_OK, wait({&a}, flush_nb(ep)));
        ASSERT_EQ(1, readable(fd, 5000));
        EXPECT_EQ(UCS_OK, wait({&a, &b}, recv));
        EXPECT_EQ(UCS_OK, wait({&a, &b}, send));
    }
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
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
    ASSERT_EQ(1, readable(fd, 5000));
    ASSERT_TRUE(run_until({&s}, [&] { return !listening.requests.empty(); }));
    ucp_listener_reject(listening.listener, listening.requests[0]);
    ASSERT_EQ(UCS_OK, ucp_worker_get_efd(c.worker, &fd));
    while (ce.count == 0) {
        ASSERT_TRUE(arm(c)); // progresses, so that the handler may have run in it
        if (ce.count == 0) {
            ASSERT_EQ(1, readable(fd, 5000));
            c.progress();
        }
    }
    EXPECT_EQ(UCS_ERR_REJECTED, ce.status);
    close_nb(client, true);
}

INSTANTIATE_TEST_SUITE_P(transports, ucp_wakeup, testing::Values("shm,self", "tcp,self", "all"),
                         [](const auto &info) {
                             std::string name = info.param;
                             return name.substr(0, name.find(','));
                         });

TEST(ucp_wakeup_one, b149_signal)
{
    entity e(with_wakeup("all"));
    int fd;
    ASSERT_EQ(UCS_OK, ucp_worker_get_efd(e.worker, &fd));
    ASSERT_TRUE(arm(e));
    EXPECT_EQ(0, readable(fd, 0));
    EXPECT_EQ(UCS_OK, ucp_worker_signal(e.worker));
    EXPECT_EQ(UCS_OK, ucp_worker_signal(e.worker));
    EXPECT_EQ(1, readable(fd, 1000));
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
    ASSERT_EQ(1, epoll_wait(epoll_fd, &event, 1, 1000));
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

} // namespace
