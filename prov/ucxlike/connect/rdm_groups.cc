// SPDX-License-Identifier: BSD-3-Clause
//
// The multicast groups of an RDM endpoint, and what members ask each other about them.
#include "prov/ucxlike/connect/mc.h"
#include "prov/ucxlike/connect/rdm.h"
#include "prov/ucxlike/data/rma.h"
#include "prov/ucxlike/data/rx.h"

#include "ucs/sys.h"

#include <algorithm>

namespace ucxlike {

uint32_t rdm_endpoint::add_group(group *g, uint64_t *wire_id)
{
    ucs::opt_guard guard(eng->lock);
    do {
        *wire_id = ucs::random_u64() >> (64 - wire::id_bits);
    } while (!wire::is_id(*wire_id));
    groups_.reserve(groups_.size() + 1);
    eng->readers.reserve(eng->readers.size() + 1);
    auto id = static_cast<uint32_t>(group_ids_.add(g));
    if (groups_.empty()) {
        eng->readers.push_back(this);
    }
    groups_.push_back(g);
    return id;
}

void rdm_endpoint::remove_group(group *g)
{
    ucs::opt_guard guard(eng->lock);
    group_ids_.erase(g->id());
    std::erase(groups_, g);
    if (groups_.empty()) {
        std::erase(eng->readers, static_cast<engine::reader *>(this));
    }
}

bool rdm_endpoint::reach(peer *p)
{
    return guard([&] {
               if (!p->tx) {
                   call(p);
               }
               if (!p->tx_id) {
                   not_yet(p);
               }
               return 0;
           }) == 0;
}

void rdm_endpoint::peer_ready()
{
    for (group *g : groups_) {
        g->peer_ready();
    }
}

void rdm_endpoint::peer_lost(peer *p)
{
    for (group *g : groups_) {
        g->drop(p);
    }
    forget_rumour(p);
}

// Any process can say that there is a peer of this name.
peer *rdm_endpoint::rumoured_peer(const address &name)
{
    bool is_new = !names_.contains(name);
    peer *p = peer_named(name);
    p->rumoured |= is_new;
    return p;
}

// One that has never been heard from. A notice that names it again makes it anew.
void rdm_endpoint::forget_rumour(peer *p)
{
    if (!p->rumoured || p->incarnation || p->tx || p->outstanding || index_.contains(p->name)) {
        return;
    }
    drop_deferred(p);
    rx->purge(p);
    eng->ids.erase(p->rx_id);
    names_.erase(p->name);
    std::erase_if(peers_, [p](const std::unique_ptr<peer> &known) { return known.get() == p; });
}

void rdm_endpoint::ask_membership(peer *p, const address &group)
{
    wire::membership m = wire::make_hello(group, 0, 0);
    eng->send_control(p->tx, p->tx_id, wire::asks_membership, &m, sizeof(m));
}

void rdm_endpoint::on_membership(peer *p, const wire::message &m, const void *data, size_t length)
{
    wire::membership asked;
    if (!wire::parse(data, length, asked)) {
        return;
    }
    if (m.kind == wire::tells_membership) {
        for (group *g : groups_) {
            g->answered(p, asked);
        }
    } else if (m.kind == wire::asks_membership && p->tx && p->tx_id) {
        asked.id = 0;
        for (const group *g : groups_) {
            if (g->receives() && g->is_at(asked)) {
                asked.id = g->wire_id();
            }
        }
        eng->send_control(p->tx, p->tx_id, wire::tells_membership, &asked, sizeof(asked));
    }
}

void rdm_endpoint::collect()
{
    guard([&] {
        for (group *g : groups_) {
            g->collect();
        }
        return 0;
    });
}

bool rdm_endpoint::in_group(uint64_t id) const
{
    return std::any_of(groups_.begin(), groups_.end(),
                       [id](const group *g) { return g->receives() && g->wire_id() == id; });
}

group *rdm_endpoint::group_at(fi_addr_t addr)
{
    return addr & group::address_bit ? group_ids_.find(static_cast<uint32_t>(addr)) : nullptr;
}

} // namespace ucxlike
