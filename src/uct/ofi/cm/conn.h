// SPDX-License-Identifier: BSD-3-Clause
// One connection of the connection manager, from the first byte to the last: its phase (phase.h)
// and the channel that carries it. All that happens is an event, which step() looks up.
//
// What the user is to be told is noted in due bits and told by deliver() in a turn, each at most
// once: RESOLVE or REQUEST; then CONNECT (client) or NOTIFY (server), whose status may be an error;
// then, only after a good one, DISCONNECT.
#pragma once

#include "ucs/list.h"
#include "ucs/timeline.h"
#include "uct/base/cm.h"
#include "uct/ofi/cm/channel.h"
#include "uct/ofi/cm/engine.h"
#include "uct/ofi/cm/phase.h"

#include <netinet/in.h>
#include <string>
#include <vector>

namespace uct::ofi {

class cm_listener;
class cm_ep;
struct device_address;

// Thrown where an answer to a request comes too late. Nothing to log: it is the client's doing.
struct peer_gone {
    ucs_status_t status;
};

class cm_conn {
  public:
    // A client; what it connects to is set by its endpoint before it is scheduled.
    cm_conn(cm_engine &engine, cm_ep *user, const sockaddr *remote, const sockaddr *local);
    // A server's request that came in at listener, or that another engine gave away (nullptr).
    cm_conn(cm_engine &engine, cm_listener *listener, fid_pep *pep, info_ptr info);
    ~cm_conn();
    cm_conn(const cm_conn &) = delete;
    cm_conn &operator=(const cm_conn &) = delete;

    cm_engine &engine() const { return engine_; }

    // ---- From the engine, with its mutex.
    void deliver(cm_engine::lock &held);
    void on_request(const void *data, size_t length);
    void on_connected(const void *data, size_t length);
    void on_down(int error, const void *data, size_t length);
    void on_sent(cm_op *op, int error);
    void on_received(cm_op *op, size_t length, int error);
    void on_deadline();
    // Of the engine or the core; every phase allows it.
    void fail(ucs_status_t status);
    // The last of it: closed, in no list but the engine's. False when that was done before.
    bool bury();

    // ---- From the client's endpoint, with the mutex.
    void start_resolving();
    ucs_status_t connect(const void *data, size_t length);
    ucs_status_t notify();

    // ---- From the server's endpoint or listener, with the mutex.
    // Hands the request to an endpoint of this engine and answers yes. Throws peer_gone or
    // ucs::error.
    void accept(cm_ep *user, const void *data, size_t length);
    // Answers no and forgets the connection; the caller does not use it again.
    ucs_status_t reject();
    // The request leaves this engine when it was not answered by the core yet: its info, else none.
    bool movable() const { return info_ != nullptr && !channel_.is_open(); }
    info_ptr take_info() { return std::move(info_); }
    const std::string &device_name() const { return device_name_; }
    const sockaddr *remote() const { return reinterpret_cast<const sockaddr *>(&remote_); }
    // pep_stays: requests can still be answered without a connection. Else it is made now.
    void forget_listener(bool pep_stays);
    // By the user or in its name.
    bool answered() const
    {
        return phase_ != cm_phase::over && !cm_phases.find(phase_, cm_event::refuse);
    }
    // The user has the request and will answer it.
    bool offered() const { return phase_ == cm_phase::offered || phase_ == cm_phase::over; }
    bool owned() const { return user_ != nullptr; }

    // ---- From either endpoint, with the mutex.
    ucs_status_t disconnect();
    void detach(); // the endpoint is gone; ends the connection and retires it
    ucs_status_t query(uct_ep_attr_t *attr) const;

    ucs::list_node conn_link; // of the engine
    ucs::list_node due_link;  // of the engine
    ucs::list_node listener_link;
    ucs::list_node deadline_link; // of the engine
    uint64_t deadline = 0;        // monotonic ns; see cm_engine

  private:
    enum due : unsigned {
        due_resolve = 1,
        due_request = 2,
        due_connect = 4,
        due_notify = 8,
        due_disconnect = 16,
    };

    // False: the event is not allowed in this phase, and nothing was done. status: of what the user
    // is to be told.
    [[nodiscard]] bool step(cm_event event, ucs_status_t status = UCS_OK);
    void act(cm_action action, ucs_status_t status);
    [[nodiscard]] bool step(cm_view_event event);
    void give_up(ucs_status_t status);

    void open_channel(fi_info *info);
    void drop_request();
    size_t next_message() const;
    void post_next_receive();
    void on_answer(const void *data, size_t length);
    void on_operation_failed(int error);
    void send_rest();
    size_t first_message(void *out, cm_wire::type type) const;
    void accept_core(cm_wire::type type);
    void resolve();
    void start_connecting();
    void begin_data(const cm_wire::message &m);
    void add_data(const cm_wire::message &m);
    void look_whether_complete();
    void handle(const cm_wire::message &m);
    void notice(unsigned bits);
    void leave_listener();
    void linger();
    bool stay_for_notify();
    void remember_name();
    void expect_message();

    void deliver_resolve(cm_engine::lock &held);
    void pack(cm_engine::lock &held);
    void connect_if_ready();
    void deliver_request(cm_engine::lock &held);
    void deliver_connect(cm_engine::lock &held);
    void deliver_notify(cm_engine::lock &held);
    void deliver_disconnect(cm_engine::lock &held);
    uct_cm_remote_data_t remote_data(device_address *address) const;

    cm_engine &engine_;
    cm_ep *user_ = nullptr;
    cm_listener *listener_ = nullptr;
    fid_pep *pep_ = nullptr; // where the request came in; see cm_engine::usable()
    const bool server_;
    cm_phase phase_;
    cm_view view_ = cm_view::waiting;
    unsigned due_ = 0;
    ucs_status_t status_ = UCS_OK; // why it did not come up

    sockaddr_storage remote_{};
    sockaddr_storage local_{};
    std::string device_name_;

    info_ptr info_; // server: the core's request; its handle is ours until accept or reject
    cm_channel channel_;

    std::vector<char> to_send_;
    std::vector<char> received_;
    size_t received_bytes_ = 0;
};

// The engine holds its connections by their links.
struct cm_engine::lists {
    ucs::list<cm_conn, &cm_conn::conn_link> all;
    ucs::list<cm_conn, &cm_conn::due_link> due;
    using deadlines = ucs::timeline<cm_conn, &cm_conn::deadline_link, &cm_conn::deadline>;
    deadlines expecting;
    deadlines lingering;
};

// What went wrong before the server had answered, from the error of an event.
ucs_status_t connect_status(int error);

void copy_name(char (&out)[UCT_DEVICE_NAME_MAX], const std::string &name);

} // namespace uct::ofi
