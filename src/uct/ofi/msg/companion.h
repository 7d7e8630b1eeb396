// SPDX-License-Identifier: BSD-3-Clause
// What one kind of connected core needs and others do not, such as a thread that moves it on while
// the program computes. An interface is given at most one when it is opened, and calls it with its
// lock held.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace uct::ofi {

class connection;

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
    // Looks after the peers of connections that are up: asks those that say nothing whether they
    // are there, and returns the connections whose peers have gone without a word.
    virtual std::vector<connection *> check(const std::vector<connection *> &all) = 0;
    // An endpoint gathers messages: if nothing else comes, they are to leave soon.
    virtual void batch_begun() = 0;
    // Memory of the domain may be read by peers from now on. Called once.
    virtual void exposed() = 0;
    // The interface closes. Nothing of it is used after this, and no thread runs.
    virtual void stop() = 0;

  private:
    std::atomic<uint64_t> polls_ = 0;
};

} // namespace uct::ofi
