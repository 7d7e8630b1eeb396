// SPDX-License-Identifier: BSD-3-Clause
//
// A connection-oriented endpoint and its connection. The handshake is UCP's, whose request and
// answer carry our words, so that the user's data may be 1 KiB on every fabric:
//
//   client                              server
//   fi_connect   -- request: connect -->  FI_CONNREQ
//                                         fi_accept
//   FI_CONNECTED <-- answer: accept --
//                -- UCP's notice -->      FI_CONNECTED
//
// A message, or the end of the connection, may overtake the notice; FI_CONNECTED comes before it.
// A request is rejected by an answer that says so.
//
// An endpoint gets at most one FI_CONNECTED and exactly one last event: FI_SHUTDOWN when it was
// connected, an error entry when it was not. Before the last event can be read, everything posted
// has completed; after fi_close nothing of the endpoint is read.
#pragma once

#include "prov/ucxlike/endpoint.h"
#include "prov/ucxlike/queue/eq.h"

namespace ucxlike {

class msg_endpoint;
class pep;

struct msg_conn final : conn {
    enum class state {
        idle,       // not connected yet
        connecting, // client: waits for accept or reject
        requested,  // server: FI_CONNREQ was written
        accepting,  // server: the client has not confirmed the answer yet
        connected,
        closing, // the last event waits for operations to end
        dead,    // the last event was written, or is not to be
    };

    state now = state::idle;
    pep *listener = nullptr;              // of a connection that has no endpoint yet
    struct fid handle = {};               // FI_CLASS_CONNREQ, in fi_info::handle
    ucp_conn_request_h request = nullptr; // until it is answered
    address peer_name;
    address local_name;
    bool name_known = false; // local_name is the connection's own
    link *pending = nullptr; // the link before messages may be sent on it
    uint64_t pending_id = 0;
    bool detached = false; // no endpoint any more: goes when it is drained
    int last_error = 0;    // of the last event; 0: FI_SHUTDOWN
    eq::slot connected_event = eq::make_slot();
    eq::slot last_event = eq::make_slot();

    explicit msg_conn(engine *e);
    ~msg_conn() override;

    static msg_conn *of_handle(fid_t handle) { return static_cast<msg_conn *>(handle->context); }

    int connect(const address &to, const address *from, const void *param, size_t length);
    int accept(const void *param, size_t length);
    void reject(const void *param, size_t length);
    void shutdown();
    address own_name();
    // The owner goes away; so does this, now or when its last operation has ended.
    void release();

    void link_failed(link *l) override;
    void control(const wire::message &m, const void *data, size_t length, link *reply) override;
    void drained() override;
    void answered(std::string_view words) override;
    admission admit() override;

  private:
    void enter(state next);
    void heard_of_peer();
    void established(std::string_view data);
    void end(int error, std::string_view data);
    void settle();
    void write_last_event();
    void close_link(bool force);
    void say_goodbye();
    bool leave();
};

class msg_endpoint final : public endpoint {
  public:
    msg_endpoint(domain *dom, const fi_info &info, void *context);
    ~msg_endpoint();
    bool has_shared_rx() const { return shared_rx_; }

  private:
    conn *route_slow(fi_addr_t dest, int *error) override;
    int check_bound() override;
    int enable() override;
    void detach() override;
    bool has_injected();

    static msg_endpoint *from(fid_ep *f)
    {
        return static_cast<msg_endpoint *>(static_cast<endpoint *>(f));
    }
    static int setname(fid_t f, void *addr, size_t length);
    static int getname(fid_t f, void *addr, size_t *length);
    static int getpeer(fid_ep *f, void *addr, size_t *length);
    static int connect(fid_ep *f, const void *addr, const void *param, size_t length);
    static int accept(fid_ep *f, const void *param, size_t length);
    static int shutdown(fid_ep *f, uint64_t flags);
    static fi_ops_cm cm_ops_;

    msg_conn *conn_;
    address name_;
    address dest_;
};

} // namespace ucxlike
