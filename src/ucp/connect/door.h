// SPDX-License-Identifier: BSD-3-Clause
//
// With UCX_LATE_NETWORKS a worker opens its networks late. Until then it has a door: a socket that
// listens. The worker's address names the door and a number. An endpoint that shared memory does
// not connect calls the door and shows the number. The worker opens its networks, and answers with
// the address that it has then:
//
//    0       4         5      8        16             0       4         5      6        8
//   +-------+---------+------+--------+              +-------+---------+------+--------+---------+
//   | magic | version | zero | number |  a call      | magic | version | zero | length | address |
//   +-------+---------+------+--------+              +-------+---------+------+--------+---------+
//
// The helper thread watches the sockets and leaves an event for the worker. All else happens in the
// worker's progress.
#pragma once

#include "ucp/connect/address.h"
#include "ucp/core/worker.h"
#include "ucs/async.h"
#include "ucs/owned_fd.h"
#include "ucs/wire/protocol.h"

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

namespace ucp {

constexpr ucs::protocol door_protocol = {0x72646f78, // "xodr"
                                         1, "the protocol of late networks"};

struct door_call {
    uint32_t magic;
    uint8_t version;
    uint8_t zero[3];
    uint64_t number;
};
static_assert(sizeof(door_call) == 16);

struct door_answer {
    uint32_t magic;
    uint8_t version;
    uint8_t zero;
    uint16_t length; // of the address; 0: none, the call has another version
};
static_assert(sizeof(door_answer) == 8);

// Tells the worker of its sockets: once, until it has looked.
class knocker {
  public:
    knocker(ucp_worker *worker, event::kind what) : worker_(worker), what_(what), room_(worker, 1)
    {
    }
    static void knock(void *self, uint32_t) noexcept; // on the helper thread
    void looked() noexcept { waiting_ = false; }

  private:
    ucp_worker *const worker_;
    const event::kind what_;
    event_promise room_;
    std::atomic<bool> waiting_ = false;
};

// A socket that does not block, and its watch: one knock after each await(), and after it is made.
class watched_socket {
  public:
    // `events` are epoll's. Throws ucs::error when it cannot be watched.
    watched_socket(ucs::owned_fd fd, uint32_t events, knocker &tell);

    void await(uint32_t events);
    int fd() const noexcept { return fd_.get(); }

  private:
    ucs::owned_fd fd_; // closed after its watch has ended
    ucs::async_watch watch_;
};

class door {
  public:
    // Throws ucs::error when there is no socket, or no address of this host.
    explicit door(ucp_worker *worker);
    ~door();

    // What stands in the worker's address.
    const door_sign &sign() const noexcept { return sign_; }
    // In progress: takes callers and answers them.
    void serve() noexcept;

  private:
    struct caller;

    bool take_callers() noexcept;
    void answer(const door_call &said, int fd) noexcept;
    bool has_finished(caller &c) noexcept;

    ucp_worker *const worker_;
    door_sign sign_;
    knocker knocker_;
    std::unique_ptr<watched_socket> listening_;
    std::list<caller> callers_; // that have not said all yet, the oldest first
    ucs::async_watch timer_;    // looks again: for the oldest caller, or for a descriptor
};

// The calls of a worker's endpoints at the doors of their peers.
class door_calls {
  public:
    explicit door_calls(ucp_worker *worker);
    ~door_calls();

    // on_door_answer() tells the endpoint how the call has ended, in progress. Throws bad_alloc, or
    // ucs::error when there is no descriptor.
    void add(uint64_t ep_id, const door_sign &sign);
    // In progress.
    void run() noexcept;

  private:
    struct call;

    bool has_finished(call &c) noexcept;

    ucp_worker *const worker_;
    knocker knocker_;
    std::list<call> calls_;
};

// What the door of an endpoint's peer gave, and whether that is this host; or why it gave nothing.
void on_door_answer(ucp_ep *ep, ucs_status_t status, const std::vector<uint8_t> &address,
                    bool from_here) noexcept;

} // namespace ucp
