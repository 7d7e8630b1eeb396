// SPDX-License-Identifier: BSD-3-Clause
//
// Sleeping and waking.
#include "ucp/worker/wakeup.h"

#include "ucp/core/context.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucs/error.h"
#include "ucs/lock.h"
#include "ucs/sys.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace ucp {

namespace {

void watch(int epoll_fd, int fd, void *data, bool edge)
{
    epoll_event event = {};
    event.events = edge ? EPOLLIN | EPOLLET : EPOLLIN;
    event.data.ptr = data;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST) {
        throw ucs::error(UCS_ERR_IO_ERROR, "worker wake-up: descriptor %d cannot be watched: %s",
                         fd, strerror(errno));
    }
}

// The aligned word around an address of any alignment: it never leaves the page, but may leave the
// object that the caller means.
__attribute__((noinline, no_sanitize("address", "thread"))) uint64_t word_at(const void *address)
{
    auto word = reinterpret_cast<uintptr_t>(address) & ~uintptr_t(7);
    return __atomic_load_n(reinterpret_cast<const uint64_t *>(word), __ATOMIC_ACQUIRE);
}

} // namespace

unsigned uct_events_of(unsigned events) noexcept
{
    unsigned found = 0;
    if (events & (UCP_WAKEUP_TAG_RECV | UCP_WAKEUP_RX)) {
        found |= UCT_EVENT_RECV;
    }
    // A receive by rendezvous ends with an operation of our own.
    if (events & (UCP_WAKEUP_RMA | UCP_WAKEUP_AMO | UCP_WAKEUP_TAG_SEND | UCP_WAKEUP_TAG_RECV |
                  UCP_WAKEUP_TX)) {
        found |= UCT_EVENT_SEND_COMP;
    }
    return found;
}

wakeup::wakeup(ucp_worker *w, int external, void *user_data, unsigned events, bool edge)
    : worker(w), uct_events(events), external_fd(external), edge_(edge)
{
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    try {
        if (epoll_fd < 0 || event_fd < 0) {
            throw ucs::error(UCS_ERR_IO_ERROR, "worker wake-up: no descriptor: %s",
                             strerror(errno));
        }
        watch(epoll_fd, event_fd, nullptr, edge);
        watch_ifaces();
        if (external_fd >= 0) {
            watch(external_fd, epoll_fd, user_data, edge);
        }
    } catch (...) {
        close_all();
        throw;
    }
}

void wakeup::watch_ifaces()
{
    for (; watched_ < worker->ifaces.size(); ++watched_) {
        const auto &iface = worker->ifaces[watched_];
        if (uct_iface_event_fd_get(iface->uct, &iface->event_fd) == UCS_OK) {
            watch(epoll_fd, iface->event_fd, nullptr, edge_);
        } else {
            iface->event_fd = -1;
            unwatched_ = true;
        }
    }
    if (unwatched_ && timer_fd_ < 0) {
        open_timer();
    }
}

wakeup::~wakeup()
{
    if (external_fd >= 0) {
        epoll_ctl(external_fd, EPOLL_CTL_DEL, epoll_fd, nullptr);
    }
    close_all();
}

void wakeup::close_all() noexcept
{
    for (int fd : {epoll_fd, event_fd, timer_fd_}) {
        if (fd >= 0) {
            close(fd);
        }
    }
}

void wakeup::open_timer()
{
    double seconds = worker->context->config.wakeup_interval;
    if (!(seconds > 0) || !std::isfinite(seconds)) {
        return;
    }
    seconds = std::min(seconds, 1e9);
    auto whole = static_cast<time_t>(seconds);
    auto ns = static_cast<long>((seconds - static_cast<double>(whole)) * 1e9);
    interval_ = {whole, whole == 0 && ns == 0 ? 1 : ns};
    timer_fd_ = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (timer_fd_ < 0) {
        throw ucs::error(UCS_ERR_IO_ERROR, "worker wake-up: no timer: %s", strerror(errno));
    }
    watch(epoll_fd, timer_fd_, nullptr, edge_);
}

// A core without descriptor moves what is in flight only when it is polled.
bool wakeup::needs_polling() const noexcept
{
    return unwatched_ && (timer_fd_ < 0 || worker->has_requests());
}

// Takes back what an earlier one has left in the descriptor.
void wakeup::start_timer() noexcept
{
    itimerspec once = {{0, 0}, interval_};
    timerfd_settime(timer_fd_, 0, &once, nullptr);
}

ucs_status_t wakeup::arm() noexcept
{
    // A writer sets has_events, then signaled_, then writes the eventfd if signaled_ was not set.
    // So either has_events is seen here, or the writer finds signaled_ cleared and writes after we
    // have drained. A writer that finds it set before we clear it comes before the check of
    // has_events, or, having nothing but the signal, before our return of BUSY.
    uint64_t value;
    bool drained = read(event_fd, &value, sizeof(value)) == sizeof(value);
    bool signaled = signaled_.exchange(false);
    if (drained || signaled) {
        return UCS_ERR_BUSY;
    }
    if (needs_polling() || worker->has_events.load(std::memory_order_acquire)) {
        return UCS_ERR_BUSY;
    }
    if (worker->linger.keeps_polling()) {
        return UCS_ERR_BUSY;
    }
    for (const auto &iface : worker->ifaces) {
        if (iface->event_fd < 0) {
            continue;
        }
        ucs_status_t status = uct_iface_event_arm(iface->uct, uct_events);
        if (status != UCS_OK) {
            return status;
        }
    }
    if (timer_fd_ >= 0) {
        start_timer();
    }
    return UCS_OK;
}

void wakeup::signal() noexcept
{
    if (signaled_.exchange(true)) {
        return; // no thread has slept since the last one
    }
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

void wakeup::wait_memory(const void *address) noexcept
{
    constexpr unsigned spins = 2000;
    constexpr uint64_t longest_ns = 100'000'000;
    constexpr int look_again_ms = 1; // nothing tells that a peer stored into mapped memory
    uint64_t before = word_at(address);
    for (unsigned i = 0; i < spins; ++i) {
        if (word_at(address) != before) {
            return;
        }
    }
    uint64_t end = ucs::monotonic_ns() + longest_ns;
    while (word_at(address) == before && ucs::monotonic_ns() < end) {
        {
            ucs::opt_guard guard(worker->lock);
            if (arm() != UCS_OK) {
                return;
            }
        }
        pollfd fd = {epoll_fd, POLLIN, 0};
        if (poll(&fd, 1, look_again_ms) != 0) {
            return;
        }
    }
}

} // namespace ucp
