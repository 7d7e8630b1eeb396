// SPDX-License-Identifier: BSD-3-Clause
// The callbacks on the helper thread: see background_progress.h.
#include "uct/ofi/tcp/background_progress.h"

#include "ucs/sys.h"
#include "uct/ofi/msg/msg_iface.h"

#include <algorithm>
#include <sys/epoll.h>

namespace uct::ofi {

namespace {

constexpr uint64_t tick_ns = 100'000;
constexpr uint64_t slow_tick_ns = 400'000; // while the program calls in, and so sends them itself
constexpr uint64_t rest_ns = 1'000'000;
constexpr uint64_t longest_rest_ns = 8'000'000;
constexpr uint64_t seldom_ns = 100'000; // a program that polls less often than this is away
constexpr unsigned quiet_limit = 20;    // ticks without a new batch
constexpr unsigned visit_limit = 256; // the queue may stay readable for what only the program reads

} // namespace

background_progress::background_progress(msg_iface &home, const companion &polled)
    : home_(home), polled_(polled), tick_(tick_ns), attendance_(seldom_ns, 0),
      timer_(ucs::async_watch::timer(
          0, [](void *arg, uint32_t) { static_cast<background_progress *>(arg)->on_timer(); },
          this))
{
}

background_progress::~background_progress()
{
    queue_.stop();
    timer_.stop();
}

void background_progress::watch(int cq_fd)
{
    queue_ = ucs::async_watch::fd(
        cq_fd, 0,
        [](void *arg, uint32_t) { static_cast<background_progress *>(arg)->on_traffic(); }, this);
    queue_.set_events(EPOLLIN); // its callback uses queue_
}

void background_progress::start_ticks()
{
    ticking_.store(true, std::memory_order_relaxed);
    timer_.set_once(tick_ns);
}

void background_progress::on_timer()
{
    uint64_t now = ucs::monotonic_ns();
    if (ticking_.load(std::memory_order_relaxed) && now >= tick_due_) {
        look_at_batches(now);
    }
    if (resting_ && now >= rest_ends_) {
        end_rest(now);
    }
    start_timer(now);
}

// The owner of the interface may start it meanwhile, and says so in ticking_ before.
void background_progress::start_timer(uint64_t now)
{
    bool ticks = ticking_.load(std::memory_order_relaxed);
    for (;;) {
        uint64_t next = resting_ ? rest_ends_ : UINT64_MAX;
        if (ticks) {
            next = std::min(next, tick_due_);
        }
        if (next == UINT64_MAX) {
            return;
        }
        timer_.set_once(next > now ? next - now : 1);
        if (ticks || !ticking_.load(std::memory_order_relaxed)) {
            return;
        }
        ticks = true; // the timer was the owner's
    }
}

void background_progress::look_at_batches(uint64_t now)
{
    uint64_t polls = polled_.polls();
    uint64_t begun = batches_.load(std::memory_order_relaxed);
    bool busy = polls != polls_at_tick_ || begun != batches_seen_ || home_.lock().occupied();
    tick_ = busy ? std::min(2 * tick_, slow_tick_ns) : tick_ns;
    tick_due_ = now + tick_;
    polls_at_tick_ = polls;
    if (begun != batches_seen_) {
        batches_seen_ = begun;
        quiet_ticks_ = 0;
        return;
    }
    ucs::biased_lock &lock = home_.lock();
    if (!lock.try_visit()) {
        return;
    }
    home_.send_gathered();
    if (++quiet_ticks_ >= quiet_limit) {
        ticking_.store(false, std::memory_order_relaxed); // the owner looks at it under the lock
    }
    lock.end_visit();
}

void background_progress::on_traffic()
{
    if (resting_) {
        return; // it was seen before the watch rested
    }
    uint64_t now = ucs::monotonic_ns();
    if (attended(now) || ++visits_ > visit_limit || !home_.lock().try_visit()) {
        rest(now, rest_ns); // met inside, the program is moving data, which takes long
        start_timer(now);
        return;
    }
    bool left_over = home_.serve_reads(); // only the program reads it
    home_.lock().end_visit();
    if (left_over) {
        rest(now, rest_ns);
        start_timer(now);
    }
}

void background_progress::rest(uint64_t now, uint64_t ns)
{
    if (!resting_) {
        queue_.pause();
    }
    resting_ = true;
    rest_ = ns;
    rest_ends_ = now + ns;
}

// For as long again as the program has been attending, or so.
void background_progress::end_rest(uint64_t now)
{
    visits_ = 0;
    if (attended(now) || !queue_.resume(EPOLLIN)) {
        rest(now, std::min(2 * rest_, longest_rest_ns));
        return;
    }
    resting_ = false;
}

// The program polls often, or is at it: to move a long message takes it longer than that.
bool background_progress::attended(uint64_t now)
{
    bool often = attendance_.is_often(polled_.polls(), now);
    return often || home_.lock().occupied();
}

} // namespace uct::ofi
