// SPDX-License-Identifier: BSD-3-Clause
// ucs_event_set_*: an epoll descriptor under a portable name.
#include "ucs/check.h"
#include "ucs/error.h"
#include "ucs/event_bits.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <unistd.h>

struct ucs_sys_event_set {
    int fd;
    bool owned;
};

namespace {

constexpr unsigned max_wait_events = 100;

ucs_status_t control(ucs_sys_event_set_t *set, int op, int fd, ucs_event_set_types_t events,
                     void *data)
{
    epoll_event event = {.events = ucs::to_epoll(events), .data = {.ptr = data}};
    if (epoll_ctl(set->fd, op, fd, &event) != 0) {
        ucs_error("event set %p: epoll_ctl(fd %d): %s", static_cast<void *>(set), fd,
                  strerror(errno));
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

} // namespace

extern "C" {

const unsigned ucs_sys_event_set_max_wait_events = max_wait_events;

ucs_status_t ucs_event_set_create_from_fd(ucs_sys_event_set_t **event_set_p, int event_fd)
{
    UCS_CHECK_ARG(event_set_p, "ucs_event_set_create_from_fd: event_set_p must not be NULL");
    return ucs::guard([&] { *event_set_p = new ucs_sys_event_set{event_fd, false}; });
}

ucs_status_t ucs_event_set_create(ucs_sys_event_set_t **event_set_p)
{
    UCS_CHECK_ARG(event_set_p, "ucs_event_set_create: event_set_p must not be NULL");
    return ucs::guard([&] {
        int fd = epoll_create1(EPOLL_CLOEXEC);
        if (fd < 0) {
            throw ucs::error(UCS_ERR_IO_ERROR, "cannot create an event set: %s", strerror(errno));
        }
        *event_set_p = new ucs_sys_event_set{fd, true};
    });
}

ucs_status_t ucs_event_set_add(ucs_sys_event_set_t *event_set, int fd, ucs_event_set_types_t events,
                               void *callback_data)
{
    return control(event_set, EPOLL_CTL_ADD, fd, events, callback_data);
}

ucs_status_t ucs_event_set_mod(ucs_sys_event_set_t *event_set, int fd, ucs_event_set_types_t events,
                               void *callback_data)
{
    return control(event_set, EPOLL_CTL_MOD, fd, events, callback_data);
}

ucs_status_t ucs_event_set_del(ucs_sys_event_set_t *event_set, int fd)
{
    return control(event_set, EPOLL_CTL_DEL, fd, 0, nullptr);
}

ucs_status_t ucs_event_set_wait(ucs_sys_event_set_t *event_set, unsigned *num_events,
                                int timeout_ms, ucs_event_set_handler_t event_set_handler,
                                void *arg)
{
    UCS_CHECK_ARG(num_events && *num_events > 0, "ucs_event_set_wait: num_events must be above 0");
    epoll_event events[max_wait_events];
    unsigned room = std::min(*num_events, max_wait_events);
    *num_events = 0;
    int ready = epoll_wait(event_set->fd, events, static_cast<int>(room), timeout_ms);
    if (ready < 0) {
        if (errno == EINTR) {
            return UCS_INPROGRESS;
        }
        ucs_error("event set %p: epoll_wait: %s", static_cast<void *>(event_set), strerror(errno));
        return UCS_ERR_IO_ERROR;
    }
    for (int i = 0; i < ready; ++i) {
        event_set_handler(events[i].data.ptr, ucs::from_epoll(events[i].events), arg);
    }
    *num_events = static_cast<unsigned>(ready);
    return UCS_OK;
}

void ucs_event_set_cleanup(ucs_sys_event_set_t *event_set)
{
    if (event_set->owned) {
        close(event_set->fd);
    }
    delete event_set;
}

ucs_status_t ucs_event_set_fd_get(ucs_sys_event_set_t *event_set, int *event_fd_p)
{
    UCS_CHECK_ARG(event_fd_p, "ucs_event_set_fd_get: event_fd_p must not be NULL");
    *event_fd_p = event_set->fd;
    return UCS_OK;
}
}
