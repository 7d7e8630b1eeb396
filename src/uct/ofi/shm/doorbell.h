// SPDX-License-Identifier: BSD-3-Clause
// How a process that sleeps learns that a peer wrote to its shared memory, which has no descriptor
// to wait on. The sleeper sets a word in a page that its peers map; a sender looks at the word
// after each message, clears it if it is set, and then writes one byte to a pipe that the sleeper
// watches. While none sleeps, there is no system call per message.
//
// Lost wake-ups. The sleeper sets the word, and then looks for messages; the sender writes its
// message, and then looks at the word. Each needs its store to be seen before its load. The sleeper
// has the time: its membarrier() makes every thread of every registered process execute a fence, so
// that senders need none. If the sender's load came before that fence and found nothing, its
// message was stored before it too, and the sleeper's look, which comes after, finds it. Where the
// kernel has no such call, on either side, the sender executes a fence itself.
//
// Page and pipe have no names: peers open them through /proc/<pid>/fd, and they go with the
// process. The page is known by its nonce, and tells which pipe belongs to it.
#pragma once

#include "uct/ofi/core/address.h"
#include "uct/ofi/core/sleeper.h"
#include "uct/ofi/shm/entries.h"

#include <atomic>
#include <cstdint>

namespace uct::ofi {

// What stands in the page, which is more than one.
struct bell_page {
    std::atomic<uint32_t> word; // not 0: the owner sleeps
    uint32_t reserved;
    uint64_t pipe;     // its inode
    entry_table peers; // of the core's endpoint
};

class doorbell {
  public:
    doorbell(); // throws ucs::error
    doorbell(const doorbell &) = delete;
    doorbell &operator=(const doorbell &) = delete;
    ~doorbell();

    bell_address address() const;
    int fd() const { return read_fd_; } // readable after a ring
    entry_table &peers() const { return page_->peers; }

    // Forgets earlier rings and sets the word; what is sent after arm() has returned rings.
    void arm();
    void disarm();
    void ring_self(); // from any thread

  private:
    void close_all();

    uint64_t nonce_;
    int page_fd_ = -1;
    int read_fd_ = -1;
    int write_fd_ = -1;
    bell_page *page_ = nullptr;
};

class remote_bell final : public sleeper {
  public:
    explicit remote_bell(const bell_address &address); // throws ucs::error
    ~remote_bell() override;

    bool is_set() const { return word_->load(std::memory_order_relaxed) != 0; }
    void wake() override;

  private:
    bell_page *page_ = nullptr;
    int pipe_fd_ = -1;
};

// A peer's table, which stays mapped while its bell is not.
class remote_entries {
  public:
    explicit remote_entries(const bell_address &address); // throws ucs::error
    remote_entries(const remote_entries &) = delete;
    remote_entries &operator=(const remote_entries &) = delete;
    ~remote_entries();

    entry_table &table() const { return page_->peers; }

  private:
    bell_page *page_;
};

} // namespace uct::ofi
