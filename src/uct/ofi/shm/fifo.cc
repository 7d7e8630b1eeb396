// SPDX-License-Identifier: BSD-3-Clause
// Claiming and leaving queues, and larger messages that are not packed in place.
#include "uct/ofi/shm/fifo.h"

#include "ucs/error.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace uct::ofi {

send_fifo::send_fifo(const bell_address &receiver, uint64_t own_id) : own_id_(own_id)
{
    int fd = open_room(receiver, sizeof(fifo_pages));
    void *pages =
        mmap(nullptr, sizeof(fifo_pages), PROT_READ | PROT_WRITE, MAP_SHARED, fd, room_offset());
    int error = errno;
    close(fd);
    if (pages == MAP_FAILED) {
        throw ucs::error(UCS_ERR_NO_MEMORY, "cannot map a peer's queues: %s", strerror(error));
    }
    pages_ = static_cast<fifo_pages *>(pages);
}

send_fifo::~send_fifo()
{
    if (queue_) {
        queue_->left.store(1, std::memory_order_release);
        pages_->departures.fetch_add(1, std::memory_order_release);
    }
    munmap(pages_, sizeof(fifo_pages));
}

send_fifo::outcome send_fifo::send_larger(uint8_t id, const void *head, size_t head_length,
                                          const void *payload, size_t length)
{
    if (head_length + length > fifo_frame_size) {
        return outcome::not_mine;
    }
    char *to;
    outcome room = frame(&to);
    if (room == outcome::done) {
        ucs::copy_small(to, head, head_length);
        ucs::copy_small(to + head_length, payload, length);
        send_frame(id, head_length + length);
    }
    return room;
}

// Where all are taken it is tried again later.
void send_fifo::claim()
{
    posted_ = 0;
    for (uint32_t i = 0; i < fifo_queues; ++i) {
        fifo_queue &queue = pages_->queues[i];
        uint64_t nobody = 0;
        if (queue.claimed_by.load(std::memory_order_relaxed) == 0 &&
            queue.claimed_by.compare_exchange_strong(nobody, own_id_, std::memory_order_acquire)) {
            mark_ =
                fifo_mark{static_cast<uint8_t>(i + 1), static_cast<uint16_t>(queue.owners)}.data();
            uint32_t used = pages_->used.load(std::memory_order_relaxed);
            while (used <= i &&
                   !pages_->used.compare_exchange_weak(used, i + 1, std::memory_order_release)) {
            }
            closed_ = true;
            queue_ = &queue;
            return;
        }
    }
}

bool receive_fifos::has_messages() const
{
    uint32_t used = queues_in_use();
    for (uint32_t i = 0; i < used; ++i) {
        if (has_next(i)) {
            return true;
        }
    }
    return false;
}

void receive_fifos::owner_died(uint64_t id)
{
    uint32_t used = queues_in_use();
    for (uint32_t i = 0; i < used; ++i) {
        fifo_queue &queue = pages_->queues[i];
        if (queue.claimed_by.load(std::memory_order_relaxed) == id &&
            queue.left.exchange(1, std::memory_order_relaxed) == 0) {
            pages_->departures.fetch_add(1, std::memory_order_relaxed);
        }
    }
}

// What was left is read first: queues with something in them wait for the next time.
void receive_fifos::free_left()
{
    uint32_t departures = pages_->departures.load(std::memory_order_acquire);
    bool all = true;
    uint32_t used = queues_in_use();
    for (uint32_t i = 0; i < used; ++i) {
        if (pages_->queues[i].left.load(std::memory_order_acquire) != 0) {
            if (has_next(i)) {
                all = false;
            } else {
                free_queue(i);
            }
        }
    }
    if (all) {
        departed_ = departures;
    }
}

void receive_fifos::free_queue(uint32_t i)
{
    fifo_queue &queue = pages_->queues[i];
    for (fifo_slot &slot : queue.slots) {
        slot.turn.store(0, std::memory_order_relaxed);
    }
    queue.consumed.store(0, std::memory_order_relaxed);
    queue.vacated.store(0, std::memory_order_relaxed);
    queue.passed.store(0, std::memory_order_relaxed);
    queue.left.store(0, std::memory_order_relaxed);
    states_[i] = {.owner = static_cast<uint16_t>(++queue.owners)};
    queue.claimed_by.store(0, std::memory_order_release);
}

} // namespace uct::ofi
