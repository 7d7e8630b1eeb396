// SPDX-License-Identifier: BSD-3-Clause
//
// Sleeping and waking.
#include "ucp/wakeup.h"

#include "ucp/worker.h"
#include "ucs/error.h"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace ucp {

namespace {

void watch(int epoll_fd, int fd, void *data)
{
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.ptr = data;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST) {
        throw ucs::error(UCS_ERR_IO_ERROR, "worker wake-up: descriptor %d cannot be watched: %s",
                         fd, strerror(errno));
    }
}

} // namespace

wakeup::wakeup(ucp_worker *w, int external, void *user_data) : worker(w), external_fd(external)
{
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    try {
        if (epoll_fd < 0 || event_fd < 0) {
            throw ucs::error(UCS_ERR_IO_ERROR, "worker wake-up: no descriptor: %s",
                             strerror(errno));
        }
        watch(epoll_fd, event_fd, nullptr);
        for (const auto &iface : worker->ifaces) {
            if (iface->event_fd >= 0) {
                watch(epoll_fd, iface->event_fd, nullptr);
            }
        }
        if (external_fd >= 0) {
            watch(external_fd, epoll_fd, user_data);
        }
    } catch (...) {
        close(epoll_fd);
        close(event_fd);
        throw;
    }
}

wakeup::~wakeup()
{
    if (external_fd >= 0) {
        epoll_ctl(external_fd, EPOLL_CTL_DEL, epoll_fd, nullptr);
    }
    close(epoll_fd);
    close(event_fd);
}

ucs_status_t wakeup::arm() noexcept
{
    // A writer sets has_events before it writes the eventfd. So either the flag is seen here, or
    // the eventfd is readable after we drained it, and the sleeper wakes.
    uint64_t value;
    if (read(event_fd, &value, sizeof(value)) == sizeof(value)) {
        return UCS_ERR_BUSY;
    }
    if (worker->has_events.load(std::memory_order_acquire)) {
        return UCS_ERR_BUSY;
    }
    for (const auto &iface : worker->ifaces) {
        if (iface->event_fd < 0) {
            continue;
        }
        ucs_status_t status = uct_iface_event_arm(iface->uct, UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}

void wakeup::signal() noexcept
{
    uint64_t one = 1;
    ssize_t written;
    do {
        written = write(event_fd, &one, sizeof(one));
    } while (written < 0 && errno == EINTR);
}

void wakeup::wait() noexcept
{
    pollfd fd = {epoll_fd, POLLIN, 0};
    while (poll(&fd, 1, -1) < 0 && errno == EINTR) {
    }
}

} // namespace ucp
