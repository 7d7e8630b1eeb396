// SPDX-License-Identifier: BSD-3-Clause
// Progresses an interface over tcp while the program that owns it does something else. The core
// answers reads of exposed memory only when it is polled, and a batch (batch.h) that was begun
// must leave although nothing follows. It runs no handler and no callback: what arrives for the
// program waits in the completion queue.
//
// It is a watch of the queue's descriptor and a timer, both of the helper thread (ucs/async.h), and
// visits the interface only when the program is not inside. While the program polls often itself
// that would only disturb it, so the watch rests for rest_ns, and longer and longer, up to
// longest_rest_ns, while that goes on. While batches come the timer looks every tick_ns, less often
// if the program calls in, and sends the batch that is the same as before. With neither traffic nor
// batches nothing wakes the thread.
#pragma once

#include "ucs/async.h"
#include "ucs/attendance.h"

#include <atomic>
#include <cstdint>

namespace uct::ofi {

class companion;
class msg_iface;

class background_progress {
  public:
    // polled: counts the program's polls. Throws ucs::error.
    background_progress(msg_iface &home, const companion &polled);
    background_progress(const background_progress &) = delete;
    background_progress &operator=(const background_progress &) = delete;
    ~background_progress();

    // The owner of the interface's lock calls these.
    void batch_begun()
    {
        batches_.store(batches_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        if (!ticking_.load(std::memory_order_relaxed)) {
            start_ticks();
        }
    }
    void watch(int cq_fd); // memory is exposed. Throws ucs::error.

  private:
    void start_ticks();
    void on_timer();
    void on_traffic();
    void look_at_batches(uint64_t now);
    void rest(uint64_t now, uint64_t ns);
    void end_rest(uint64_t now);
    bool attended(uint64_t now);
    void start_timer(uint64_t now);

    msg_iface &home_;
    const companion &polled_;
    std::atomic<bool> ticking_ = false;
    std::atomic<uint64_t> batches_ = 0; // ever begun

    // The helper thread's own.
    uint64_t batches_seen_ = 0;
    unsigned quiet_ticks_ = 0;
    uint64_t tick_;
    uint64_t tick_due_ = 0;
    uint64_t polls_at_tick_ = 0;
    ucs::attendance attendance_; // of the program
    bool resting_ = false;
    uint64_t rest_ = 0;
    uint64_t rest_ends_ = 0;
    unsigned visits_ = 0; // since the last rest

    // Their callbacks use the members before them, and each other.
    ucs::async_watch timer_;
    ucs::async_watch queue_; // once memory is exposed
};

} // namespace uct::ofi
