// SPDX-License-Identifier: BSD-3-Clause
//
// The peers of an RDM endpoint: their names, and which peer an incoming connection belongs to.
#include "prov/ucxlike/connect/rdm.h"

#include "prov/ucxlike/data/tx.h"

namespace ucxlike {

// ---- peers ----

peer::peer(rdm_endpoint *ep) : conn(ep->eng)
{
    owner = ep;
    rx_id = eng->ids.add(this);
}

void peer::link_failed(link *l)
{
    if (welcomed == l) {
        welcomed = nullptr;
    }
    if (tx != l) {
        return;
    }
    tx = nullptr;
    tx_id = 0;
    if (greeted == l) {
        refused = errno_of(l->status);
    }
    greeted = nullptr;
    owner->flush_outstanding(this, FI_ECONNRESET);
    static_cast<rdm_endpoint *>(owner)->peer_lost(this); // the last of this one, if a rumour
}

void peer::control(const wire::message &m, const void *data, size_t length, link *)
{
    if (!owner) {
        return;
    }
    auto *ep = static_cast<rdm_endpoint *>(owner);
    if (m.kind != wire::welcome) {
        ep->on_membership(this, m, data, length);
        return;
    }
    if (!m.hello || !wire::is_id(m.tag)) {
        return;
    }
    wire::hello h;
    memcpy(&h, m.hello, sizeof(h));
    ep->alias(this, wire::name_of(h));
    incarnation = h.incarnation;
    tx_id = m.tag;
    refused = 0;
    ep->peer_ready();
}

void peer::drained()
{
    if (detached) {
        delete this;
    }
}

// ---- names ----

peer *rdm_endpoint::peer_named(const address &name)
{
    auto it = names_.find(name);
    if (it != names_.end()) {
        return it->second;
    }
    // The peer itself comes last: it has an id from then on.
    peers_.push_back(nullptr);
    try {
        it = names_.emplace(name, nullptr).first;
        peers_.back() = std::make_unique<peer>(this);
    } catch (...) {
        if (it != names_.end()) {
            names_.erase(it);
        }
        peers_.pop_back();
        throw;
    }
    peer *p = it->second = peers_.back().get();
    p->name = name;
    p->addr = reported(name);
    return p;
}

// A peer answers to the name under which we reached it and to the one it calls itself, unless the
// latter is the application's name of another peer.
void rdm_endpoint::alias(peer *p, const address &name)
{
    if (name == p->name) {
        return;
    }
    p->called = name;
    if (index_.find(name) == index_.end()) {
        names_.emplace(name, p);
    }
}

// The application means the peer that it reaches by this name.
void rdm_endpoint::unalias(const address &name)
{
    auto it = names_.find(name);
    if (it != names_.end() && it->second->name != name) {
        names_.erase(it);
    }
}

// ---- connections that come in ----

// Whose a hello is. A link speaks for one peer in one of its lives: what it said first holds.
peer *rdm_endpoint::claimed(link *l, const wire::hello &h)
{
    address name = wire::name_of(h);
    auto *known = static_cast<peer *>(l->owner);
    if (!known) {
        return peer_named(name);
    }
    bool named = known->name == name || known->called == name;
    bool same_life = !known->incarnation || known->incarnation == h.incarnation;
    if (named && same_life) {
        return known;
    }
    PROV_INFO(EP_CTRL, "a connection that speaks for another peer than before is not heard\n");
    return nullptr;
}

// The peer has died and come back: what led to its former life leads nowhere.
void rdm_endpoint::revive(peer *p, link *l)
{
    if (p->tx && p->tx != l) {
        link *old = p->tx;
        p->link_failed(old);
        eng->fail(old, UCS_ERR_CONNECTION_RESET);
    }
    eng->ids.erase(p->rx_id);
    p->rx_id = eng->ids.add(p);
    p->welcomed = nullptr;
    p->tx_id = 0;
}

void rdm_endpoint::welcome(peer *p, link *l, uint64_t id)
{
    tx_op *op = eng->begin_own();
    p->welcomed = l;
    wire::builder b(op->header);
    b.tag(p->rx_id);
    b.say_hello(hello_for(p));
    eng->send_own(l, op, b.finish(id, wire::welcome), nullptr, 0);
}

conn *rdm_endpoint::identify(link *l, const wire::message &m)
{
    wire::hello h;
    memcpy(&h, m.hello, sizeof(h));
    peer *p = nullptr;
    int error = guard([&] {
        p = claimed(l, h);
        if (!p) {
            return 0;
        }
        if (p->incarnation && p->incarnation != h.incarnation) {
            revive(p, l);
        }
        p->incarnation = h.incarnation;
        l->owner = p;
        eng->introduced(l);
        if (!p->tx) {
            p->tx = l;
        }
        if (h.id && !p->tx_id) {
            p->tx_id = h.id;
            if (p->tx != l) {
                greet(p); // from now on no message over p->tx carries a hello
            }
            peer_ready();
        }
        if (p->welcomed != l) {
            welcome(p, l, h.id);
        }
        return 0;
    });
    if (error) {
        eng->fail(l, UCS_ERR_NO_MEMORY); // the peer waits for a welcome
        return nullptr;
    }
    return p;
}

} // namespace ucxlike
