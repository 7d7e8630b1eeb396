// SPDX-License-Identifier: BSD-3-Clause
// What a device does by itself. `sockets` sends, takes and acknowledges when it is polled, but the
// hardware of a fabric, or a thread of its provider, does so without its user. A thread of the
// domain does it here for each queue that was not read since it last looked.
#include "strict/strict.h"

#include <chrono>

namespace strict {

device::device(const profile &p) : does_(p.does), pause_(setting("FI_STRICT_PAUSE", 5)) {}

device::~device()
{
    {
        std::lock_guard guard(mutex);
        over_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void device::add(cq *queue)
{
    std::lock_guard guard(mutex);
    queues_.insert(queue);
    if (does_ != by_itself::nothing && pause_ > 0 && !thread_.joinable()) {
        thread_ = std::thread([this] { run(); });
    }
}

void device::remove(cq *queue)
{
    std::lock_guard guard(mutex);
    queues_.erase(queue);
}

void device::run()
{
    std::unique_lock guard(mutex);
    while (!changed_.wait_for(guard, std::chrono::milliseconds(pause_), [this] { return over_; })) {
        for (cq *queue : queues_) {
            if (!queue->was_read.exchange(false) &&
                (does_ == by_itself::everything || queue->sends())) {
                queue->move();
            }
        }
    }
}

} // namespace strict
