// SPDX-License-Identifier: BSD-3-Clause
// The attendant's thread: see attendant.h.
#include "uct/ofi/tcp/attendant.h"

#include "ucs/error.h"
#include "ucs/sys.h"
#include "uct/ofi/msg/msg_iface.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace uct::ofi {

namespace {

constexpr uint64_t tick_ns = 100'000;
constexpr uint64_t slow_tick_ns = 400'000; // while the program calls in, and so sends them itself
constexpr uint64_t rest_ns = 1'000'000;
constexpr uint64_t longest_rest_ns = 8'000'000;
constexpr uint64_t seldom_ns = 100'000; // a program that polls less often than this is away
constexpr unsigned quiet_limit = 20;    // ticks without a new batch
constexpr unsigned visit_limit = 256; // the queue may stay readable for what only the program reads

// The program's handlers run on its own threads.
class signals_blocked {
  public:
    signals_blocked()
    {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_;
};

} // namespace

attendant::attendant(msg_iface &home, const companion &polled)
    : home_(home), polled_(polled), tick_(tick_ns), polls_seen_at_(ucs::monotonic_ns())
{
    wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd_ < 0) {
        throw ucs::error(UCS_ERR_IO_ERROR, "eventfd: %s", strerror(errno));
    }
    signals_blocked guard;
    try {
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error &e) {
        close(wake_fd_);
        throw ucs::error(UCS_ERR_NO_RESOURCE, "no thread to attend an interface: %s", e.what());
    } catch (...) {
        close(wake_fd_);
        throw;
    }
}

attendant::~attendant()
{
    stopping_.store(true, std::memory_order_relaxed);
    wake();
    thread_.join();
    close(wake_fd_);
}

void attendant::wake()
{
    uint64_t one = 1;
    // A full counter is readable already.
    [[maybe_unused]] ssize_t n = write(wake_fd_, &one, sizeof(one));
}

void attendant::watch(int cq_fd)
{
    cq_fd_.store(cq_fd, std::memory_order_relaxed);
    wake();
}

void attendant::run()
{
    while (!stopping_.load(std::memory_order_relaxed)) {
        bool readable = sleep();
        if (ticking_.load(std::memory_order_relaxed)) {
            look_at_batches();
        }
        look_at_queue(readable);
    }
}

// Until there is something to look at; true if it is the queue.
bool attendant::sleep()
{
    int cq_fd = cq_fd_.load(std::memory_order_relaxed);
    pollfd fds[2] = {{wake_fd_, POLLIN, 0}, {cq_fd, POLLIN, 0}};
    bool watching = cq_fd >= 0 && !resting_;
    uint64_t most = UINT64_MAX;
    if (resting_) {
        uint64_t now = ucs::monotonic_ns();
        most = rest_ends_ > now ? rest_ends_ - now : 0;
    }
    if (ticking_.load(std::memory_order_relaxed)) {
        most = std::min(most, tick_);
    }
    timespec limit{0, static_cast<long>(most)};
    int n = ppoll(fds, watching ? 2 : 1, most == UINT64_MAX ? nullptr : &limit, nullptr);
    if (n > 0 && fds[0].revents) {
        uint64_t count;
        [[maybe_unused]] ssize_t got = read(wake_fd_, &count, sizeof(count));
    }
    return n > 0 && watching && fds[1].revents;
}

void attendant::look_at_batches()
{
    uint64_t polls = polled_.polls();
    uint64_t now = batches_.load(std::memory_order_relaxed);
    bool busy = polls != polls_at_tick_ || now != batches_seen_ || home_.lock().occupied();
    tick_ = busy ? std::min(2 * tick_, slow_tick_ns) : tick_ns;
    polls_at_tick_ = polls;
    if (now != batches_seen_) {
        batches_seen_ = now;
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

void attendant::look_at_queue(bool readable)
{
    if (resting_) {
        wake_from_rest();
        return;
    }
    if (!readable) {
        visits_ = 0;
        return;
    }
    if (attended() || ++visits_ > visit_limit || !home_.lock().try_visit()) {
        rest(rest_ns); // met inside, the program is moving data, which takes long
        return;
    }
    bool left_over = home_.serve_reads(); // only the program reads it
    home_.lock().end_visit();
    if (left_over) {
        rest(rest_ns);
    }
}

void attendant::rest(uint64_t ns)
{
    resting_ = true;
    rest_ = ns;
    rest_ends_ = ucs::monotonic_ns() + ns;
}

// For as long again as the program has been attending, or so.
void attendant::wake_from_rest()
{
    if (ucs::monotonic_ns() < rest_ends_) {
        return; // it is for the batches that it is awake
    }
    visits_ = 0;
    resting_ = false;
    if (attended()) {
        rest(std::min(2 * rest_, longest_rest_ns));
    }
}

// The program polls often, or is at it: to move a long message takes it longer than that.
bool attendant::attended()
{
    uint64_t now = ucs::monotonic_ns();
    uint64_t polls = polled_.polls();
    bool often = (polls - polls_seen_) * seldom_ns > now - polls_seen_at_ + seldom_ns;
    polls_seen_ = polls;
    polls_seen_at_ = now;
    return often || home_.lock().occupied();
}

} // namespace uct::ofi
