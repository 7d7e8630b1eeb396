// SPDX-License-Identifier: BSD-3-Clause
//
// FI_PROGRESS_AUTO: the helper thread (ucs/async.h) progresses an engine for an application that
// does not. It sleeps until the worker's descriptor shows that something came, and at once looks
// after it if the application has not called since the last time, for as long as the worker polls
// before it sleeps (ucp/core/linger.h). An application that polls is faster: it has the first move,
// and while it polls often the helper looks after rest_ns, and later and later, up to
// longest_rest_ns. A worker that cannot be armed is looked at by a timer. While nothing happens the
// engine does not wake the thread.
#pragma once

#include "ucs/async.h"
#include "ucs/attendance.h"

#include <cstdint>

namespace ucxlike {

class engine;

class auto_progress {
  public:
    explicit auto_progress(engine &eng); // throws ucs::error
    auto_progress(const auto_progress &) = delete;
    auto_progress &operator=(const auto_progress &) = delete;
    ~auto_progress();

    // The application has taken what the worker was armed for, so that the descriptor need not tell
    // of the next. Called with the engine's lock held.
    void look_later() { timer_.set_once(rest_); }

  private:
    void on_event();
    void look();

    engine &eng_;
    uint64_t rest_;              // under the engine's lock
    uint64_t pause_;             // the helper thread's own
    ucs::attendance attendance_; // of the application; the helper thread's own

    // Their callbacks use the members before them, and each other.
    ucs::async_watch timer_;
    ucs::async_watch events_;
};

} // namespace ucxlike
