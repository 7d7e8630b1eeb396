// SPDX-License-Identifier: BSD-3-Clause
//
// Client-server connections. A worker opens a connection manager when its first client endpoint or
// listener needs one. Its callbacks come on a thread of their own and only leave events.
//
//   private data of the client                         of the server
//   +----+--------+-----+---+------+-------+           +----+------+-----+------+-------+
//   |ver |err_mode|flags| 0 | address, own |           |ver |status|flags| address, own |
//   |    |        |     |   | length u16   |           |    |      |     | length u16   |
//   +----+--------+-----+---+------+-------+           +----+------+-----+------+-------+
//   | client id u64                        |           | endpoint id u64               |
//   | endpoint id u64                      |           | worker address ...            |
//   | connection to share u64, 0: none     |           | greeting ... (greeting.h)     |
//   | worker address ...                   |
//   | greeting ... (greeting.h)            |           flags: 1, the connection is shared
#pragma once

#include "ucp/connect/cm_connection.h"
#include "ucp/connect/greeting.h"
#include "ucp/core/worker.h"
#include "ucs/list.h"
#include "ucs/wire/protocol.h"

#include <netinet/in.h>
#include <sys/socket.h>

struct ucp_ep;
struct ucp_listener;

// A client that asks. Lives until the user accepts or rejects it.
struct ucp_conn_request {
    ucp_context *context = nullptr;
    ucp_listener *listener = nullptr; // null when it was destroyed; guarded by context->lock
    uct_conn_request_h uct = nullptr;
    sockaddr_storage client = {};
    std::vector<uint8_t> data;
    uint64_t client_id = 0;
    bool delivered = false;
    ucs::list_node unheard; // while its listener rejects what no callback was told of
    uint64_t listener_id = 0;
    const ucp_worker *listens = nullptr; // where the listener is, or was: compared alone
    // Of a client that asks over a lane (lane_connect.h), which has no `uct`.
    uint64_t asked_over = 0;      // the connection of `listens`
    bool asks = false;            // it was not answered yet, and keeps that
    sockaddr_storage server = {}; // our end

    ~ucp_conn_request()
    {
        if (asked_over != 0) {
            --context->asked_over_lanes;
        }
    }
};

namespace ucp {

struct cm {
    explicit cm(ucp_worker *worker);
    ~cm();
    cm(const cm &) = delete;
    cm &operator=(const cm &) = delete;

    uct_cm_h uct = nullptr;
    size_t max_private_data = 0;
    const std::vector<uint8_t> address;     // of the worker, packed: it does not change
    const std::vector<uint8_t> net_address; // the same for networks only
    cm_connections connections;
};

// Opens it if needed; throws UNSUPPORTED when no transport has one.
cm &worker_cm(ucp_worker *worker);

// Within the connection manager's messages, so it has no magic.
constexpr ucs::protocol hello_protocol = {0, 3, "the connection protocol"};

struct client_hello {
    uint8_t err_mode = 0;
    bool has_client_id = false;
    uint64_t client_id = 0;
    uint64_t ep_id = 0;
    uint64_t to_share = 0; // cm_connection.h; 0: none
    const uint8_t *address = nullptr;
    size_t address_length = 0;
    std::span<const uint8_t> greeting;
};
struct server_hello {
    uint64_t ep_id = 0;
    bool shares = false; // what the client named
    const uint8_t *address = nullptr;
    size_t address_length = 0;
    std::span<const uint8_t> greeting;
};
ucs_status_t parse_client_hello(std::span<const uint8_t> data, client_hello *out) noexcept;
ucs_status_t parse_server_hello(std::span<const uint8_t> data, server_hello *out) noexcept;
// With the worker's address, whatever `address` is. Throws UCS_ERR_EXCEEDS_LIMIT.
std::vector<uint8_t> pack_client_hello(const cm &m, const client_hello &says);
std::vector<uint8_t> pack_server_hello(const cm &m, const server_hello &says);
// A client's packed hello that asks to share nothing after all.
void forget_to_share(std::span<uint8_t> client_hello) noexcept;

// What the program is told when the connection stands.
void keep_callback(ucp_ep *ep, const greeting &mine) noexcept;
// The server's answer: the client's endpoint gets its lanes, and what it needs to share.
ucs_status_t take_answer(ucp_ep *ep, std::span<const uint8_t> data, server_hello *server,
                         unpacked_address *peer) noexcept;

// The active side. Failures, even immediate ones, come as events.
void connect_client(ucp_ep *ep, const sockaddr *remote, socklen_t remote_length,
                    const ucs_sock_addr_t *local, bool send_client_id, const greeting &mine);
// At the address itself. Takes the hello; the endpoint has joined what that asks to share. Throws
// bad_alloc.
void call_at(ucp_ep *ep, client_call &call);
// The passive side. Throws before or after the request was consumed; what was not is to be
// rejected.
void accept_client(ucp_ep *ep, ucp_conn_request *request, const client_hello &hello,
                   const greeting &mine);

// The client hears it; the request is the caller's to delete.
void reject_request(ucp_worker *worker, ucp_conn_request *request) noexcept;

void on_conn_request(ucp_worker *worker, event &ev) noexcept;
void on_connected(ucp_ep *ep, const event &ev) noexcept;
void on_notified(ucp_ep *ep, const event &ev) noexcept;
// Server: the client has confirmed, by its notice or by what else it has sent.
void client_confirmed(ucp_ep *ep) noexcept;
// The peer's close notice has come, over a lane that may be faster than the connection, or than
// what that is waited for with. A client that has no answer yet looks again when it has.
void on_peer_closed(ucp_ep *ep) noexcept;
void on_disconnected(ucp_ep *ep) noexcept;
// Both sides are closing and the peer is ahead: it stays until we have disconnected, too.
bool waits_for_us(const ucp_ep *ep) noexcept;

} // namespace ucp
