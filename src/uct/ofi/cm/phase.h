// SPDX-License-Identifier: BSD-3-Clause
// The phases of a connection of the connection manager and everything that leads from one to
// another. phase.cc has the tables; conn.cc, client.cc and server.cc carry their actions out.
//
//   client   resolving ─ resolved ─ connecting ─ answering ─ established ─┐
//               └ prepared ─ ready ─┘      └ continuing ┘                 ├─ open ─ left ─ over
//   server   arrived ─ collecting ─ requested ─ offered ─ accepting ──────┘
//                └──────────┴───────────┴──────────┴─ lingering ─ over
//   client   open ─ lingering ─ over, where the core drops with an endpoint what it has not sent
//
// A connection goes from every phase to over when it breaks, and to gone when the program does not
// hold it any more.
//
// The program is told of all this later, in a turn of its own, so what it knows is a state beside
// the phase: cm_view.
#pragma once

#include "uct/ofi/cm/transitions.h"
#include "uct/ofi/cm/wire.h"

#include <cstdint>

namespace uct::ofi {

enum class cm_phase : uint8_t {
    // Client.
    resolving,   // the way to the server is looked for
    prepared,    // the same, and the program has given its private data
    resolved,    // the way is known, the private data is not here
    ready,       // both are here; the program is being told of the way
    connecting,  // the core connects
    continuing,  // the rest of our private data follows the request; the answer is awaited
    answering,   // the answer has begun, more of its private data follows
    established, // the server has accepted; it does not know yet that we know
    // Server.
    arrived,    // the core has a request
    collecting, // the request has begun, more of its private data follows
    requested,  // the request is whole
    offered,    // the program was told of it and has to answer
    accepting,  // the program has accepted; the client's NOTIFY is awaited
    // Both.
    open,      // both sides know
    left,      // the peer has said DISCONNECT
    over,      // broken, refused or given up: no message comes or goes
    lingering, // the last message is on its way: a server's refusal, what a client said before it
               // left
    gone,      // closed; only memory is left
    count
};

enum class cm_event : uint8_t {
    // A message of the peer, in the core's handshake or behind it: cm_wire::type less one.
    connect,
    accept,
    proceed,
    reject,
    reply,
    data,
    notify,
    disconnect,
    // Found here.
    complete, // all of the peer's private data is here
    route,    // client: the way is known
    broken,   // the core ended the connection, or the peer broke the protocol
    late,     // the peer's time is over
    // Of the program, or in its name.
    prepare,  // client: the private data is here
    go,       // client: the program was told of the way and does not object
    give_up,  // client: there is no way, or the program objects
    confirm,  // client: NOTIFY is to be sent
    part,     // client: not held any more, but NOTIFY may still be on its way
    offer,    // server: the program is told of the request
    accepted, // server
    refuse,   // server, through a connection: the core's own refusal ends in retire
    retire,   // the connection is not held any more
    count
};

enum class cm_action : uint8_t {
    none,
    connect,   // fi_connect, with the first part of the private data
    send_rest, // of the private data
    tell_request,
    tell_connect, // with the status of the event
    tell_notify,  // the same
    tell_disconnect,
    drop, // it is not waited for: to be retired
    count
};

// What the program knows of a connection that came up. Named as the program's side of it.
enum class cm_view : uint8_t {
    waiting, // nothing yet
    open,    // it was told that the connection is open
    leaving, // it asked to disconnect
    ended,   // it was told that the connection ended
    parted,  // both
    count
};

enum class cm_view_event : uint8_t { told_open, told_end, leave, count };

using cm_phase_table = transition_table<cm_phase, cm_event, cm_action>;
using cm_view_table = transition_table<cm_view, cm_view_event, cm_action>;

extern const cm_phase_table cm_phases;
extern const cm_view_table cm_views;

constexpr cm_event event_of(cm_wire::type type)
{
    return static_cast<cm_event>(static_cast<uint8_t>(type) - 1);
}
static_assert(event_of(cm_wire::type::connect) == cm_event::connect);
static_assert(event_of(cm_wire::type::disconnect) == cm_event::disconnect);

// A client that has no complete answer.
constexpr bool is_connecting(cm_phase p)
{
    return p <= cm_phase::answering;
}

// Private data of the peer may come.
constexpr bool expects_data(cm_phase p)
{
    return is_connecting(p) || p == cm_phase::arrived || p == cm_phase::collecting;
}

const char *name_of(cm_phase p);
const char *name_of(cm_event e);

} // namespace uct::ofi
