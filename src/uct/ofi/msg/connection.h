// SPDX-License-Identifier: BSD-3-Clause
// A connection between two interfaces over connected core endpoints. There is one for each pair,
// whichever side began it, and all endpoints between the two share it. It lasts as long as both
// interfaces do.
//
// The connecting side names itself and its target:
//   0     4       5      6         8  16      24
//   magic version reason transport id target  attempt
// The same bytes answer an accepted or refused request. Reason stands at its place in all versions,
// as magic and version do (ucs/wire/protocol.h): a reader of another version than its own refuses,
// and logs both. reason: why a request was refused. attempt: how many connections the sender has
// begun, this one included when it begins it.
//
// When both sides begin at once, the connection begun by the interface with the lower id stays. The
// side with the lower id refuses the other's request as crossed; the side with the higher id gives
// its own up, when it accepts the other's or is refused, and waits for the other's.
//
// The attempt tells a request that crossed from one that came later: a side that has lost the
// connection begins another one, maybe before the first has come up, or gone, for its peer. A
// request with a higher attempt than the peer had when it answered replaces the connection; one
// with a lower attempt was given up for it.
#pragma once

#include "ucs/timeline.h"
#include "ucs/wire/protocol.h"
#include "uct/ofi/core/ep.h"
#include "uct/ofi/msg/endpoint_index.h"

#include <sys/socket.h>

namespace uct::ofi {

struct hello {
    uint32_t magic;
    uint8_t version;
    uint8_t reason;
    uint16_t transport;
    uint64_t id;
    uint64_t target;
    uint64_t attempt;
};
static_assert(sizeof(hello) == 32);

constexpr ucs::protocol hello_protocol = {0x6b6c7875, 3, "the hello of connections"};

enum class refusal : uint8_t { none, crossed, not_me, malformed, other_version };

class connection {
  public:
    enum class state {
        connecting, // ours, on its way
        waiting,    // ours was refused as crossed: theirs must come
        accepting,  // theirs, accepted
        connected
    };

    explicit connection(uint64_t peer_id) : id(peer_id) {}
    connection(const connection &) = delete;
    connection &operator=(const connection &) = delete;
    ~connection();

    const uint64_t id; // of the interface on the other side
    state now = state::connecting;
    bool ours = false;            // this side began it
    uint64_t deadline = 0;        // while not connected
    uint64_t retry_at = 0;        // while waiting: then it is begun once more
    uint64_t peer_attempt = 0;    // of the peer when it began or answered it
    uint64_t crossed_attempt = 0; // of the peer's last request that was refused as crossed
    sockaddr_storage remote = {}; // where the peer listens, when it is ours
    int socket = 0;               // the core's descriptor, once it was looked for
    endpoint_index<connection>::entry endpoint;
    ucs::list<ep, &ep::sibling> eps;
    ucs_status_t broken = UCS_OK; // what it is to end with
    ucs::list_node broken_link;   // until then
    ucs::list_node pending_link;  // while not connected
    ucs::list_node retry_link;    // while waiting
};

using pending_connections =
    ucs::timeline<connection, &connection::pending_link, &connection::deadline>;
using broken_connections = ucs::list<connection, &connection::broken_link>;
using waiting_connections =
    ucs::timeline<connection, &connection::retry_link, &connection::retry_at>;

inline connection::~connection()
{
    pending_connections::remove(this);
    waiting_connections::remove(this);
    if (broken_link.linked()) {
        broken_link.unlink();
    }
}

} // namespace uct::ofi
