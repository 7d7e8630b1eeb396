// SPDX-License-Identifier: BSD-3-Clause
//
// The peers of an RDM endpoint: their names, and which peer an incoming connection belongs to.
#include "prov/ucxlike/connect/rdm.h"

#include "prov/ucxlike/data/rma.h"
#include "prov/ucxlike/data/tx.h"

#include <algorithm>

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
    if (m.kind == wire::challenge) {
        prove(m.tag);
        return;
    }
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
    tx_id = given_id = m.tag;
    refused = 0;
    ep->peer_ready();
}

// It asks at this endpoint's address for the word, and gets it over the connection to its own.
void peer::prove(uint64_t word)
{
    if (!tx) {
        return;
    }
    tx_op *op = eng->begin_own();
    wire::builder b(op->header);
    b.tag(word);
    eng->send_own(tx, op, b.finish(0, wire::proof), nullptr, 0);
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

// Whether a link's first hello can come from the peer alone. In one life a peer is known by the id
// that it gave to this endpoint alone. The first to name a peer is believed, but if the
// application, or an announcement, has named that peer already, only when it comes from the peer's
// host.
bool rdm_endpoint::shown(const peer *p, const link *l, const wire::hello &h) const
{
    address name = wire::name_of(h);
    if (name == name_) {
        return h.id == p->rx_id;
    }
    if (p->incarnation) {
        return p->incarnation == h.incarnation && p->given_id && p->given_id == h.id;
    }
    return !(index_.contains(name) || p->rumoured) || l->from.same_host(name);
}

claim *rdm_endpoint::claim_of(const link *l) const
{
    for (auto &c : claims_) {
        if (c->tx == l) {
            return c.get();
        }
    }
    return nullptr;
}

std::unique_ptr<claim> rdm_endpoint::take_claim(const claim *c)
{
    auto at = std::find_if(claims_.begin(), claims_.end(),
                           [c](const std::unique_ptr<claim> &known) { return known.get() == c; });
    std::unique_ptr<claim> taken = std::move(*at);
    claims_.erase(at);
    return taken;
}

void rdm_endpoint::proven(claim *c)
{
    std::unique_ptr<claim> held = take_claim(c);
    link *l = held->tx;
    l->owner = nullptr;
    if (guard([&] {
            peer *p = peer_named(wire::name_of(held->said));
            take_link(p, l, held->said);
            pass_deferred(held.get(), p);
            return 0;
        })) {
        eng->fail(l, UCS_ERR_NO_MEMORY); // the peer waits for a welcome
    }
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

// The link is the peer's, in the life that the hello tells of.
void rdm_endpoint::take_link(peer *p, link *l, const wire::hello &h)
{
    if (p->incarnation && p->incarnation != h.incarnation) {
        revive(p, l);
    }
    p->incarnation = h.incarnation;
    l->owner = p;
    eng->introduced(l);
    if (!p->tx) {
        p->tx = l;
    }
    if (h.id) {
        p->given_id = h.id;
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
}

conn *rdm_endpoint::identify(link *l, const wire::message &m)
{
    if (claim *c = claim_of(l)) {
        return c;
    }
    wire::hello h;
    memcpy(&h, m.hello, sizeof(h));
    conn *from = nullptr;
    int error = guard([&] {
        peer *p = claimed(l, h);
        if (!p) {
            return 0;
        }
        if (!l->owner && !shown(p, l, h)) {
            claims_.reserve(claims_.size() + 1);
            claims_.push_back(std::make_unique<claim>(this, l, h));
            from = claims_.back().get();
            return 0;
        }
        take_link(p, l, h);
        from = p;
        return 0;
    });
    if (error) {
        eng->fail(l, UCS_ERR_NO_MEMORY); // the peer waits for a welcome
        return nullptr;
    }
    return from;
}

} // namespace ucxlike
