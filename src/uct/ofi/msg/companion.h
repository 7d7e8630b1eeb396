// SPDX-License-Identifier: BSD-3-Clause
// What one kind of connected core needs and others do not, such as a thread that moves it on while
// the program computes. An interface is given at most one when it is opened, and calls it with its
// lock held.
#pragma once

#include "ucs/list.h"
#include "uct/ofi/core/gathering.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace uct::ofi {

class connection;
class ep;

class companion {
  public:
    companion() = default;
    companion(const companion &) = delete;
    companion &operator=(const companion &) = delete;
    virtual ~companion() = default;

    // The program polls: each progress.
    void polled()
    {
        polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    uint64_t polls() const { return polls_.load(std::memory_order_relaxed); }

    virtual void connected(connection &c) = 0;
    static constexpr size_t crowd = 64; // connections
    // Before a round reads the completion queue of a crowd of connections, nothing being sent.
    // True: it has nothing, and need not be read.
    virtual bool is_quiet(size_t connections) = 0;
    // The queue of a crowd was read, and had so many completions; or the core was moved otherwise.
    virtual void was_read(unsigned completions) = 0;
    virtual void was_moved() = 0;
    // Looks after the peers of connections that are up: asks those that say nothing whether they
    // are there, and returns the connections whose peers have gone without a word.
    virtual std::vector<connection *> check(const std::vector<connection *> &all) = 0;
    // For a new endpoint; nullptr: it gathers nothing. room: bytes of a message of the core that
    // both sides have.
    virtual std::unique_ptr<gathering> gather(ep &e, size_t room) = 0;
    virtual void deliver_gathered(char *data, size_t length) = 0;
    // What endpoints have: before a round of progress and after it, and before a flush.
    void send_gathered()
    {
        while (gathering *g = begun_.front()) {
            g->send();
        }
    }
    // Memory of the domain may be read by peers from now on. Called once.
    virtual void exposed() = 0;
    // The interface closes. Nothing of it is used after this, and no thread runs.
    virtual void stop() = 0;

  protected:
    ucs::list<gathering, &gathering::link> begun_;

  private:
    std::atomic<uint64_t> polls_ = 0;
};

} // namespace uct::ofi
