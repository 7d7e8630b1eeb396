// SPDX-License-Identifier: BSD-3-Clause
//
// The connection of an endpoint: its handshake, its state, its one end.
#include "prov/ucxlike/connect/msg.h"

#include "prov/ucxlike/connect/pep.h"
#include "prov/ucxlike/data/rma.h"
#include "prov/ucxlike/data/rx.h"
#include "prov/ucxlike/queue/eq.h"

#include "ucp/connect/greeting.h"

#include <utility>

namespace ucxlike {

msg_conn::msg_conn(engine *e) : conn(e)
{
    rx_id = eng->ids.add(this);
    writes = 1; // until connected
    handle.fclass = FI_CLASS_CONNREQ;
    handle.context = this;
}

msg_conn::~msg_conn()
{
    drop_deferred(this);
    eng->ids.erase(rx_id);
}

// ---- handshake ----

namespace {

// What goes with a request or an answer: words of ours, then the user's data.
using letter = uint8_t[wire::max_header + limit::cm_data];

std::string_view seal(letter &l, wire::builder &words, uint16_t kind, const void *param,
                      size_t length)
{
    size_t front = words.finish(0, kind);
    if (length) {
        memcpy(l + front, param, length);
    }
    return {reinterpret_cast<const char *>(l), front + length};
}

bool before_connection(msg_conn::state s)
{
    return s < msg_conn::state::connected;
}

} // namespace

// A first message is looked at before we are told that the peer is connected.
void msg_conn::enter(state next)
{
    writes += before_connection(next);
    writes -= before_connection(now);
    now = next;
}

int msg_conn::connect(const address &to, const address *from, const void *param, size_t length)
{
    peer_name = to;
    address none;
    none.in4.sin_family = AF_INET;
    letter l;
    wire::builder b(l);
    b.say_hello(wire::make_hello(from ? *from : none, 0, rx_id));
    pending = eng->connect(to, from, this, nullptr, seal(l, b, wire::connect, param, length));
    enter(state::connecting);
    return 0;
}

int msg_conn::accept(const void *param, size_t length)
{
    if (now != state::requested) {
        return -FI_EOPBADSTATE;
    }
    letter l;
    wire::builder b(l);
    b.tag(rx_id);
    pending = eng->accept(request, this, nullptr, seal(l, b, wire::accept, param, length));
    request = nullptr;
    if (pending) {
        enter(state::accepting);
    } else {
        end(FI_ECONNABORTED, {});
    }
    return 0;
}

// The client's endpoint gets the answer and ends the connection.
void msg_conn::reject(const void *param, size_t length)
{
    if (request) {
        letter l;
        wire::builder b(l);
        auto words = seal(l, b, wire::reject, param, length);
        if (guard([&] {
                pending = eng->accept(request, this, nullptr, words);
                return 0;
            })) {
            ucp::refuse_request(eng->worker, request);
        }
        request = nullptr;
    }
    enter(state::dead);
    close_link(false);
}

void msg_conn::answered(std::string_view words)
{
    if (now == state::accepting) {
        established({});
    }
    if (now != state::connecting) {
        return;
    }
    wire::message m;
    std::string_view data;
    bool known = wire::parse(words.data(), words.size(), m, &data);
    if (known && m.kind == wire::accept && wire::is_id(m.tag)) {
        pending_id = m.tag;
        established(data);
    } else if (known && m.kind == wire::reject) {
        end(FI_ECONNREFUSED, data);
    } else {
        end(FI_ECONNREFUSED, {}); // what listens there is no passive endpoint
    }
}

// What comes from the peer says that it is connected.
void msg_conn::heard_of_peer()
{
    if (now == state::accepting) {
        established({});
    } else if (now == state::connecting) {
        ucp::hear_answer(pending->ep);
    }
}

// Before the handshake no peer can have this connection's id, and there may be no queue yet.
conn::admission msg_conn::admit()
{
    if (now == state::idle || now == state::requested) {
        return admission::never;
    }
    heard_of_peer();
    return writes ? admission::later : admission::now;
}

void msg_conn::control(const wire::message &m, const void *, size_t, link *)
{
    if (m.kind != wire::shutdown) {
        return;
    }
    heard_of_peer();
    if (now == state::connected) {
        end(0, {});
    }
}

void msg_conn::established(std::string_view data)
{
    eq::event &e = connected_event.front();
    if (int error = guard([&] {
            e.bytes = data;
            return 0;
        })) {
        end(-error, {});
        return;
    }
    enter(state::connected);
    tx = pending;
    tx_id = pending_id;
    if (!owner || !owner->events) {
        return;
    }
    e.type = FI_CONNECTED;
    e.fid = &owner->fid;
    e.cm = true;
    owner->events->write(std::move(connected_event));
}

// Read when it is asked for: it costs a system call. Known from then on.
address msg_conn::own_name()
{
    if (!tx || name_known) {
        return local_name;
    }
    ucp_ep_attr_t attr = {};
    attr.field_mask = UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR;
    if (ucp_ep_query(tx->ep, &attr) == UCS_OK) {
        address a = address::from(&attr.local_sockaddr, sizeof(attr.local_sockaddr));
        if (!a.empty()) {
            local_name = a;
        }
        name_known = true;
    }
    return local_name;
}

// ---- the end ----

void msg_conn::close_link(bool force)
{
    link *l = pending;
    pending = nullptr;
    tx = nullptr;
    if (l && !l->failed && !l->closing) {
        eng->close(l, force);
    } else if (l) {
        l->owner = nullptr;
    }
}

// Leads to the last event: everything posted is completed first. Operations may end inside of the
// calls here; the connection counts as one more operation until nothing is left to do.
void msg_conn::end(int error, std::string_view data)
{
    last_error = error;
    (void)guard([&] { // without them when there is no memory: the error says enough
        last_event.front().bytes = data;
        return 0;
    });
    enter(state::closing);
    ++outstanding;
    if (owner) {
        owner->flush_outstanding(this, error ? error : FI_ECANCELED);
        if (owner->rx && !static_cast<msg_endpoint *>(owner)->has_shared_rx()) {
            owner->rx->flush(FI_ECANCELED);
        }
    }
    close_link(outstanding > 1);
    settle();
}

void msg_conn::settle()
{
    if (--outstanding == 0) {
        drained();
    }
}

void msg_conn::write_last_event()
{
    now = state::dead;
    if (!owner || !owner->events) {
        return;
    }
    eq::event &e = last_event.front();
    e.fid = &owner->fid;
    if (last_error) {
        e.error = last_error;
        e.prov_errno = last_error;
        e.context = owner->fid.context;
    } else {
        e.type = FI_SHUTDOWN;
        e.cm = true;
    }
    owner->events->write(std::move(last_event));
}

// The one place where the end is decided: nothing of the connection is under way.
void msg_conn::drained()
{
    if (detached) {
        delete this;
    } else if (now == state::closing) {
        write_last_event();
    }
}

void msg_conn::link_failed(link *l)
{
    if (l != pending) {
        return;
    }
    ucs_status_t why = l->status;
    pending = nullptr;
    tx = nullptr;
    switch (now) {
    case state::connecting:
        end(why == UCS_ERR_CONNECTION_RESET ? FI_ECONNREFUSED : errno_of(why), {});
        break;
    case state::accepting:
        end(FI_ECONNABORTED, {});
        break;
    case state::connected:
        end(0, {});
        break;
    case state::idle:
    case state::requested:
    case state::closing:
    case state::dead:
        break;
    }
}

// A link that is closed in order tells the peer by that, but not before the program's next progress
// while something of the link's own is in flight, and there may be no such progress. Then it says
// it first, as one that is cut does. Without memory for that the cut itself tells.
void msg_conn::say_goodbye()
{
    bool up = pending && (now == state::connected || now == state::accepting);
    if (up && (outstanding > 0 || (now == state::connected && !ucp::closes_at_once(pending->ep)))) {
        if (tx_op *op = eng->try_begin_own()) {
            size_t length = wire::builder(op->header).finish(pending_id, wire::shutdown);
            eng->send_own(pending, op, length, nullptr, 0);
        }
    }
}

void msg_conn::shutdown()
{
    if (pending && (now == state::connected || now == state::accepting)) {
        say_goodbye();
        end(0, {});
    } else if (now == state::connecting) {
        end(FI_ECANCELED, {});
    }
}

// A connection that was never used ends with its socket: closing it costs no message. fi_shutdown
// tells the peer of the end at once.
bool msg_conn::leave()
{
    if (now != state::connected || outstanding > 0 || !pending || !eng->leave(pending)) {
        return false;
    }
    pending = nullptr;
    tx = nullptr;
    return true;
}

void msg_conn::release()
{
    if (!leave()) {
        say_goodbye();
    }
    if (listener) {
        listener->forget(this);
    }
    listener = nullptr;
    owner = nullptr;
    if (request) {
        reject(nullptr, 0);
    }
    enter(state::dead);
    detached = true;
    ++outstanding;
    close_link(outstanding > 1);
    settle();
}

} // namespace ucxlike
