// SPDX-License-Identifier: BSD-3-Clause
//
// A connection of the connection manager. Each client-server endpoint is made with one of its own;
// but what it is kept for afterwards, to learn of the end of the peer, one connection does for all
// endpoints between the same two workers. So the second client endpoint to a worker asks to share
// the first one's, and when the server agrees both sides give the second one's up: an endpoint that
// idles has neither a descriptor nor a transport's buffers of its own. A client that knows such a
// connection to the address it connects to asks in its request:
//
//   client                                       server
//     request (name of the connection)      -->    looks it up
//                                           <--  answer (agreed)
//     NOTIFY; ends its own                  -->    gives its own up
//
// Else, after the connection stands, over the lane:
//
//     SHARE (name of the connection)        -->    looks it up, gives its own up
//                                           <--  SHARED
//     ends its own
//
// What the server has given up it keeps until the client ends it.
//
// Once it is shared, clients ask for further endpoints over its lane: lane_connect.h.
//
// An endpoint that shares is not missed by its peer when it goes. If its close notice was not sent
// on its own lane, the connection's lane sends it.
//
// Where the lanes tell of the end of the peer themselves, a client may name the endpoint's own
// connection: then nothing is left of that but its lane, and the endpoints go on to share this.
#pragma once

#include "ucp/connect/wireup.h"
#include "ucp/core/worker.h"

#include <list>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <unordered_map>
#include <vector>

namespace ucp {

struct cm_connections;

class cm_connection {
  public:
    cm_connection(ucp_worker *worker, cm_connections &all, uint64_t ep_id);
    ~cm_connection(); // the peer is told by its disconnect callback
    cm_connection(const cm_connection &) = delete;
    cm_connection &operator=(const cm_connection &) = delete;

    // Before it is shared: a lane for the notices of endpoints that are gone.
    ucs_status_t open_lane(const unpacked_address &peer);
    bool shared() const noexcept { return lane_; }
    // Given up for the lanes; not inside a transport's callback.
    void close_uct() noexcept;
    // The peer learns that an endpoint was closed, now or once the lane has room.
    void send_notice(const wireup_hdr &notice) noexcept;
    // The same for any message, in the same order. UCS_ERR_NO_MEMORY, or the lane is lost.
    ucs_status_t send(wireup_message &&message) noexcept;
    size_t unsent() const noexcept { return unsent_.size(); }
    // The longest one, bytes.
    size_t room() const noexcept { return room_; }
    // What the peer was not told it learns from the end of the connection or of the lane.
    void on_lane_failed() noexcept;
    // Between which it was connected; nullptr: it is not known any more.
    const cm_addresses *addresses() noexcept;
    // Without users: sends what the lane still holds of its notices, where nothing else stands for
    // them. True: some are on their way, and it is retired when they have left.
    bool flush_notices() noexcept;
    // It has ended: no answer to them is waited for.
    void forget_requests() noexcept;
    // Another endpoint may share it.
    bool usable() const noexcept { return established && !disconnected && !lane_failed_; }

    ucp_worker *const worker;
    const uint64_t id;      // of the endpoint that it was made for
    uint64_t peer_id = 0;   // of that endpoint's peer: what the peer calls the connection
    uint64_t peer_uuid = 0; // of the peer's worker
    std::string asked_at;   // client: the address that it was asked for at, as text
    uct_ep_h uct = nullptr;
    unsigned users = 1;    // endpoints that have it, or have asked to share it, and requests
    unsigned requests = 0; // server: asked for over its lane, while it stands
    ucs::list<cm_control, &cm_control::cm_node> members;      // that have it
    ucs::list<cm_control, &cm_control::joining_node> joining; // that have asked
    bool established = false;
    uint64_t listener = 0; // server: through which it came; 0: another worker's
    bool local_was_named = false;
    bool takes_clients = true; // client: nothing has shown so far that it had better call
    bool disconnected = false;
    bool given_up = false;             // by its endpoint; the client will end it
    bool lanes_suffice = false;        // those of each endpoint that has it tell of the peer's end
    bool uct_given_up = false;         // for them; the client ends it
    bool for_once = false;             // it is there for one notice
    std::vector<uint8_t> private_data; // until it is sent

  private:
    ucs_status_t send_unsent() noexcept;
    void lose_unsent() noexcept;
    ucs_status_t await_room() noexcept;
    static ucs_status_t on_room(uct_pending_req_t *req);
    static void on_flushed(uct_completion_t *completion);

    struct hook {
        uct_pending_req_t req; // first: the transport gives this address back
        cm_connection *self;
    } hook_ = {};
    struct flush {
        uct_completion_t completion; // the same
        cm_connection *self;         // nullptr: it ends without
    } flush_ = {};
    // That it stands, that it has ended, and that its creation failed or it was given up.
    event_promise promise_;
    cm_connections &all_;
    bool armed_ = false;
    bool flushing_ = false;
    bool lane_failed_ = false;
    uct_ep_h lane_ = nullptr;
    size_t room_ = 0;
    std::list<wireup_message> unsent_;
    std::unique_ptr<cm_addresses> addresses_;
};

// The connections of a worker.
struct cm_connections {
    std::unordered_map<uct_ep_h, cm_connection *> by_lane;
    std::unordered_map<uint64_t, std::unique_ptr<cm_connection>> by_id;
    std::unordered_map<uint64_t, cm_connection *> to_peer;       // what clients share, by worker
    std::unordered_map<std::string, cm_connection *> to_address; // the same, by address
    std::vector<std::unique_ptr<cm_connection>> ended;           // for the next round
    std::list<client_call> withdrawn; // asked over a lane; the endpoint does not wait any more
    size_t for_once = 0;              // of by_id and `ended`

    cm_connection *open(ucp_worker *worker, uint64_t ep_id);
    void release(cm_connection *connection) noexcept; // of one user
    void release_request(uint64_t connection) noexcept;
    void share_no_more(const cm_connection *connection) noexcept;
    // A connection without users, or one that has told all its last notices, is destroyed in the
    // next round.
    void retire(cm_connection *connection) noexcept;
    void on_lane_failed(uct_ep_h lane) noexcept
    {
        if (auto found = by_lane.find(lane); found != by_lane.end()) {
            found->second->on_lane_failed();
        }
    }
};

// The endpoint's connection from now on, or the one that it asks to share; nullptr: none. Returns
// the one before, of which the endpoint still counts as a user.
cm_connection *set_connection(ucp_ep *ep, cm_connection *connection) noexcept;
cm_connection *set_joining(ucp_ep *ep, cm_connection *connection) noexcept;

// In the handshake. A client asks to share what it has to that address; nullptr: nothing.
cm_connection *to_share_at(cm_connections &all, const std::string &address) noexcept;
// The endpoint joins the connection until it has it or leaves.
void join(ucp_ep *ep, cm_connection *connection) noexcept;
// What a client named, if the server agrees; nullptr: it does not. The endpoint has its lanes.
cm_connection *agreed(ucp_ep *ep, uint64_t name, const unpacked_address &client);
// While the connection that knows them is still the endpoint's own.
ucs_status_t keep_addresses(ucp_ep *ep);
// The endpoint has what it joined. Returns its own, which is given up.
cm_connection *begin_to_share(ucp_ep *ep) noexcept;
// The server has agreed: what the client needs before it says so. Throws bad_alloc.
ucs_status_t prepare_to_share(ucp_ep *ep, const unpacked_address &peer);
// The client has joined what it may share, or may not.
void settle_sharing(ucp_ep *ep, bool may) noexcept;

// A client endpoint stands: share a connection, or have its own shared from now on.
void share_connection(ucp_ep *ep, const unpacked_address &peer);
// The messages. They come over the lane, which may be faster than the connection.
void on_share(ucp_ep *ep, share_request asked);
void on_shared(ucp_ep *ep);

// Asks for no more than it has to: a client knows its peer's address before its own.
enum class which_addresses { remote, both };
ucs_status_t query_addresses(const ucp_ep *ep, cm_addresses *out,
                             which_addresses which = which_addresses::both) noexcept;

void on_connection_ended(ucp_worker *worker, uint64_t id) noexcept;

} // namespace ucp
