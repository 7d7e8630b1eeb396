// SPDX-License-Identifier: BSD-3-Clause
// Looks after an interface over tcp while the program that owns it does something else. The core
// answers reads of exposed memory only when somebody polls it, and a batch (batch.h) that was begun
// must leave although nothing follows. It runs no handler and no callback: what arrives for the
// program waits in the completion queue.
//
// It sleeps until the queue's descriptor shows traffic. While the program polls often itself that
// would only disturb it, so the attendant looks again after rest_ns, and later and later, up to
// longest_rest_ns, while that goes on. While batches come it looks every tick_ns, less often if the
// program calls in, and sends the one that is the same as before.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace uct::ofi {

class companion;
class msg_iface;

class attendant {
  public:
    // polled: counts the program's polls. Throws ucs::error.
    attendant(msg_iface &home, const companion &polled);
    attendant(const attendant &) = delete;
    attendant &operator=(const attendant &) = delete;
    ~attendant();

    // The owner of the interface's lock calls these.
    void batch_begun()
    {
        batches_.store(batches_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        if (!ticking_.load(std::memory_order_relaxed)) {
            ticking_.store(true, std::memory_order_relaxed);
            wake();
        }
    }
    void watch(int cq_fd); // memory is exposed

  private:
    void run();
    bool sleep();
    void look_at_batches();
    void look_at_queue(bool readable);
    void rest(uint64_t ns);
    void wake_from_rest();
    bool attended();
    void wake();

    msg_iface &home_;
    const companion &polled_;
    int wake_fd_ = -1;
    std::atomic<int> cq_fd_ = -1;
    std::atomic<bool> stopping_ = false;
    std::atomic<bool> ticking_ = false;
    std::atomic<uint64_t> batches_ = 0; // ever begun

    // The thread's own.
    uint64_t batches_seen_ = 0;
    unsigned quiet_ticks_ = 0;
    uint64_t tick_;
    uint64_t polls_at_tick_ = 0;
    uint64_t polls_seen_ = 0;
    uint64_t polls_seen_at_ = 0;
    bool resting_ = false;
    uint64_t rest_ = 0;
    uint64_t rest_ends_ = 0;
    unsigned visits_ = 0; // without a pause
    std::thread thread_;
};

} // namespace uct::ofi
