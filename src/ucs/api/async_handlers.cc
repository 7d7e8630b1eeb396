// SPDX-License-Identifier: BSD-3-Clause
// ucs_async_*: handlers of descriptors and timers for programs that use UCX's event interface, on
// top of the helper thread. Nothing in this library uses them. A context only says which mode was
// asked for; to block it keeps no handler from running.
#include "ucs/async.h"
#include "ucs/check.h"
#include "ucs/error.h"
#include "ucs/event_bits.h"

#include <ucs/async/async_fwd.h>

#include <map>
#include <memory>
#include <mutex>

namespace {

constexpr int first_timer_id = 1 << 24; // above every descriptor

struct handler {
    handler(int id_, ucs_async_event_cb_t cb_, void *arg_) : id(id_), cb(cb_), arg(arg_) {}

    static void fire(void *arg, uint32_t events)
    {
        auto *self = static_cast<handler *>(arg);
        self->cb(self->id, ucs::from_epoll(events), self->arg);
    }

    void watch(int fd, ucs_event_set_types_t events)
    {
        watching.reset();
        watching = ucs::async_watch::fd(fd, ucs::to_epoll(events), fire, this);
    }

    const int id;
    const ucs_async_event_cb_t cb;
    void *const arg;
    ucs::async_watch watching;
};

// Shared by the table and by the thread that is changing or taking out a handler.
using handler_ptr = std::shared_ptr<handler>;

struct table {
    static table &get()
    {
        static table *instance = new table();
        return *instance;
    }

    std::mutex mutex;
    std::map<int, handler_ptr> handlers;
    int next_timer = first_timer_id;
};

bool mode_is_thread(ucs_async_mode_t mode)
{
    return mode == UCS_ASYNC_MODE_THREAD_SPINLOCK || mode == UCS_ASYNC_MODE_THREAD_MUTEX;
}

} // namespace

extern "C" {

ucs_status_t ucs_async_set_event_handler(ucs_async_mode_t mode, int event_fd,
                                         ucs_event_set_types_t events, ucs_async_event_cb_t cb,
                                         void *arg, ucs_async_context_t *)
{
    UCS_CHECK_ARG(cb, "ucs_async_set_event_handler: cb must not be NULL");
    if (!mode_is_thread(mode)) {
        return UCS_ERR_UNSUPPORTED;
    }
    return ucs::guard([&]() -> ucs_status_t {
        auto &all = table::get();
        std::lock_guard lock(all.mutex);
        auto [place, is_new] = all.handlers.try_emplace(event_fd);
        if (!is_new) {
            return UCS_ERR_ALREADY_EXISTS;
        }
        try {
            place->second = std::make_shared<handler>(event_fd, cb, arg);
            place->second->watch(event_fd, events);
        } catch (...) {
            all.handlers.erase(place);
            throw;
        }
        return UCS_OK;
    });
}

ucs_status_t ucs_async_add_timer(ucs_async_mode_t mode, ucs_time_t interval,
                                 ucs_async_event_cb_t cb, void *arg, ucs_async_context_t *,
                                 int *timer_id_p)
{
    UCS_CHECK_ARG(cb, "ucs_async_add_timer: cb must not be NULL");
    UCS_CHECK_ARG(timer_id_p, "ucs_async_add_timer: timer_id_p must not be NULL");
    UCS_CHECK_ARG(interval > 0, "ucs_async_add_timer: interval must be above 0");
    if (!mode_is_thread(mode)) {
        return UCS_ERR_UNSUPPORTED;
    }
    return ucs::guard([&] {
        auto &all = table::get();
        std::lock_guard lock(all.mutex);
        auto timer = std::make_shared<handler>(all.next_timer, cb, arg);
        timer->watching = ucs::async_watch::timer(interval, handler::fire, timer.get());
        all.handlers.emplace(timer->id, timer);
        *timer_id_p = all.next_timer++;
    });
}

ucs_status_t ucs_async_remove_handler(int id, int)
{
    return ucs::guard([&]() -> ucs_status_t {
        auto &all = table::get();
        handler_ptr gone;
        {
            std::lock_guard lock(all.mutex);
            auto found = all.handlers.find(id);
            if (found == all.handlers.end()) {
                return UCS_ERR_NO_ELEM;
            }
            gone = std::move(found->second);
            all.handlers.erase(found);
        }
        gone->watching.reset(); // waits for a running callback, unless it is the caller
        return UCS_OK;
    });
}

ucs_status_t ucs_async_modify_handler(int fd, ucs_event_set_types_t events)
{
    return ucs::guard([&]() -> ucs_status_t {
        auto &all = table::get();
        handler_ptr changed;
        {
            std::lock_guard lock(all.mutex);
            auto found = all.handlers.find(fd);
            if (found == all.handlers.end() || fd >= first_timer_id) {
                return UCS_ERR_NO_ELEM;
            }
            changed = found->second;
        }
        changed->watch(fd, events);
        return UCS_OK;
    });
}

// The thread handles events by itself.
void ucs_async_poll(ucs_async_context_t *) {}

void __ucs_async_poll_missed(ucs_async_context_t *) {}
}
