// SPDX-License-Identifier: BSD-3-Clause
//
// The callbacks on the helper thread: see auto_progress.h. They wait for no lock.
#include "prov/ucxlike/auto_progress.h"

#include "prov/ucxlike/engine.h"

#include "ucs/sys.h"

#include <algorithm>
#include <mutex>
#include <sys/epoll.h>

namespace ucxlike {

namespace {

constexpr uint64_t first_move_ns = 20'000; // the application's
constexpr uint64_t rest_ns = 1'000'000;
constexpr uint64_t longest_rest_ns = 8'000'000;
constexpr uint64_t first_pause_ns = 1;           // others come first; it doubles
constexpr uint64_t longest_pause_ns = 1'000'000; // while what was begun has not moved
constexpr uint64_t seldom_ns = 1'000'000; // an application that polls less often than this is away
constexpr uint64_t longest_look_ns = 50'000; // others wait for the helper thread

} // namespace

auto_progress::auto_progress(engine &eng)
    : eng_(eng), rest_(rest_ns), pause_(first_pause_ns), attendance_(seldom_ns, eng.polls()),
      timer_(ucs::async_watch::timer(
          0, [](void *arg, uint32_t) { static_cast<auto_progress *>(arg)->look(); }, this)),
      events_(ucs::async_watch::fd(
          eng.efd(), 0, [](void *arg, uint32_t) { static_cast<auto_progress *>(arg)->on_event(); },
          this))
{
    timer_.set_once(first_move_ns);
}

auto_progress::~auto_progress()
{
    events_.stop();
    timer_.stop();
}

void auto_progress::on_event()
{
    uint64_t polls = eng_.polls();
    if (polls == attendance_.polls_seen()) {
        look();
    } else {
        attendance_.is_often(polls, ucs::monotonic_ns()); // the question begins anew
        timer_.set_once(first_move_ns);
    }
}

// Each look ends with the worker armed and its descriptor watched for one event, or with the timer
// started. The application may come in after each round.
void auto_progress::look()
{
    uint64_t begun = ucs::monotonic_ns();
    bool away = !attendance_.is_often(eng_.polls(), begun);
    bool moved = false;
    do {
        std::unique_lock held(eng_.lock, std::try_to_lock);
        if (!held) {
            timer_.set_once(rest_ns); // the application is inside
            return;
        }
        moved = (away && eng_.advance() > 0) || moved;
        rest_ = away ? rest_ns : std::min(2 * rest_, longest_rest_ns);
        if (eng_.arm_for_helper()) {
            pause_ = first_pause_ns;
            events_.set_events(EPOLLIN | EPOLLONESHOT);
            return;
        }
    } while (away && ucs::monotonic_ns() - begun < longest_look_ns);
    pause_ = moved ? first_pause_ns : std::min(2 * pause_, longest_pause_ns);
    timer_.set_once(away ? pause_ : rest_);
}

} // namespace ucxlike
