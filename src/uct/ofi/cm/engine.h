// SPDX-License-Identifier: BSD-3-Clause
// What one connection manager runs on: an event queue of the core provider, a completion queue for
// each device, and the turn in which both are read and the user's callbacks are made.
//
// Threads. One mutex guards the engine, its connections and listeners, and every libfabric call on
// their objects. The user's callbacks are made in turns, by one thread at a time (driver.h says
// whose), and without the mutex: a callback may call anything of the connection manager, on any
// object. Destroying an object waits until a running callback of that object has returned, unless
// that callback destroys it.
#pragma once

#include "ucs/async.h"
#include "ucs/list.h"
#include "uct/ofi/cm/device.h"
#include "uct/ofi/cm/driver.h"
#include "uct/ofi/core/eq.h"
#include "uct/ofi/fabric/fid.h"
#include "uct/ofi/fabric/info.h"

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace uct::ofi {

class cm_conn;
class cm_listener;

// What a peer may do while a connection is being made.
struct cm_limits {
    size_t private_data; // bytes
    uint64_t peer_ns;    // until its next message; UINT64_MAX: as long as it likes
};

class cm_engine : public std::enable_shared_from_this<cm_engine> {
  public:
    static std::shared_ptr<cm_engine> open(const core &c, worker *poller, const cm_limits &limits);
    cm_engine(const cm_engine &) = delete;
    cm_engine &operator=(const cm_engine &) = delete;
    ~cm_engine();

    // The connection manager is closed: with this call all activity ends, unless endpoints of other
    // connection managers still have their connections here. Without the mutex.
    void stop();

    // The helper thread's turn: until there is nothing left to do.
    void progress();
    // The worker's: what there is. Returns whether there was something.
    unsigned poll();

    const core &provider() const { return core_; }
    size_t max_priv() const { return limits_.private_data; }
    uint64_t peer_ns() const { return limits_.peer_ns; }
    uint32_t incarnation() const;
    fid_fabric *fabric() const { return fabric_.get(); }
    fid_eq *eq() const { return eq_.get(); }

    std::mutex &mutex() { return mutex_; }
    cm_driver &driver() { return driver_; }
    using lock = std::unique_lock<std::mutex>;

    // ---- From here on the caller holds the mutex.

    // An info to open endpoints with that lead to or from an address of the family on the device;
    // an empty name is any device. Throws ucs::error(NO_DEVICE).
    info_ptr make_info(const std::string &device, int family) const;
    cm_device &device_of(const fi_info *info); // opened on first use

    // A connection is known here from construction to destruction.
    void add(cm_conn *conn);
    void remove(cm_conn *conn);
    bool knows(const cm_conn *conn) const;
    void bind(const fid *endpoint, cm_conn *conn);
    void unbind(const fid *endpoint) { endpoints_.erase(endpoint); }

    // conn->deliver() will be called on the helper thread.
    void schedule(cm_conn *conn);
    // conn has no owner any more: clean() deletes it.
    void retire(cm_conn *conn);
    // Deletes what was retired, except the connection whose callback runs. Each call into the
    // engine from outside calls it last; handlers of events do not.
    void clean();
    // No listener's any more; closed together with the event queue. It was added.
    void keep(fid_ptr<fid_pep> pep) noexcept;
    // Handles the events that are there, so that none is left that names a listener.
    void drain_events();
    void add(fid_pep *pep, cm_listener *listener);
    void remove(fid_pep *pep) { listeners_.erase(&pep->fid); }
    // Whether a request of pep can be refused through it.
    bool usable(const fid_pep *pep) const { return pep && listeners_.contains(&pep->fid); }
    // Deadlines, at which conn->on_deadline() is called. A connection has one at a time. The peer's
    // next message is to come within peer_ns().
    void expect_message(cm_conn *conn);
    void let_linger(cm_conn *conn); // for the peer to take the last message
    static void end_deadline(cm_conn *conn);
    // From now on, connections that ask for nothing within peer_ns() end as well, where the core
    // keeps them for ever.
    void watch_for_silence();
    // Until the mutex is released, deadlines need no memory. Throws.
    void prepare_deadline()
    {
        if (peer_ns() != UINT64_MAX) {
            arm_deadlines();
        }
    }

    // Makes a callback for conn and owner without the mutex. False: conn is gone.
    template <class F>
    bool call_out(lock &held, cm_conn *conn, const void *owner, F &&callback)
    {
        begin_callback(conn, owner);
        held.unlock();
        callback();
        held.lock();
        return end_callback();
    }
    // Returns when no callback of owner runs; at once in that callback.
    void wait_for_callback(lock &held, const void *owner);

    bool poll_cqs();
    // Whether the descriptors of all queues tell when there is something.
    bool may_sleep();

  private:
    cm_engine(const core &c, const cm_limits &limits);
    void start(worker *poller);
    static void on_tick(void *arg, uint32_t events);
    static void on_silence_tick(void *arg, uint32_t events);
    void arm_deadlines();

    bool take_turn(lock &held);
    bool deliver_due(lock &held);
    bool poll_events();
    bool poll_eq();
    void handle_event(uint32_t event, fi_eq_cm_entry *entry, size_t data_length);
    void handle_request(fi_eq_cm_entry *entry, size_t data_length);
    void handle_error();
    void drain(cm_device &device);
    bool poll_cq(cm_device &device);
    bool handle_cq_errors(cm_device &device);
    void complete(cm_op *op, size_t length, int error);
    void begin_callback(cm_conn *conn, const void *owner);
    bool end_callback();
    cm_conn *find(const fid *endpoint);

    const core &core_;
    const cm_limits limits_;
    fid_ptr<fid_fabric> fabric_;
    fid_ptr<fid_eq> eq_;
    std::vector<fid_ptr<fid_pep>> kept_;
    std::vector<std::unique_ptr<cm_device>> devices_;
    std::vector<fid *> queues_; // all of them
    std::vector<char> event_buffer_;

    std::mutex mutex_;
    std::condition_variable callback_done_;
    std::thread::id turn_thread_; // whose turn it is
    cm_conn *current_conn_ = nullptr;
    const void *current_owner_ = nullptr;
    bool current_retired_ = false;

    std::unordered_map<const fid *, cm_conn *> endpoints_;
    std::unordered_map<const fid *, cm_listener *> listeners_;
    std::vector<cm_conn *> retired_; // has room for all
    size_t conn_count_ = 0;
    size_t completed_ = 0; // operations of connections that are not closed
    unsigned events_a_turn_ = 1;
    bool events_wait_ = false; // for the next turn: this one has found completions
    struct lists;
    std::unique_ptr<lists> lists_;

    cm_driver driver_;
    ucs::async_watch tick_;
    ucs::async_watch silence_tick_; // while there are listeners
    handshake_watch handshakes_;
};

} // namespace uct::ofi
