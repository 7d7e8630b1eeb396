// SPDX-License-Identifier: BSD-3-Clause
// The life of a peer: found, watched, dead, forgotten.
#include "uct/ofi/fabric/error.h"
#include "uct/ofi/rdm/local_interfaces.h"
#include "uct/ofi/rdm/rdm_iface.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

namespace uct::ofi {

namespace {

// Off-node a number alone says nothing: other hosts have it, too.
bool claims_this_process(const rdm_address &about, bool on_node)
{
    return static_cast<pid_t>(about.bell.pid) == getpid() &&
           (on_node || about.birth == ucs::process_birth(getpid()));
}

} // namespace

peer::~peer()
{
    {
        local_interfaces &all = local_interfaces::get();
        std::lock_guard guard(all.mutex);
        if (auto *local = all.find(id)) {
            std::erase(local->watchers, this);
        }
    }
    rest();
}

void peer::rest()
{
    near.reset();
    refused_since = unanswered_since = 0;
}

void rdm_iface::tell_local_peers()
{
    auto core = std::make_shared<core_endpoint>();
    core->fabric = domain.fabric;
    core->domain = domain.domain;
    core->cq = std::move(cq_);
    core->av = std::move(av_);
    core->ep = std::move(ep_);
    local_interfaces &all = local_interfaces::get();
    std::lock_guard guard(all.mutex);
    for (peer *p : all.by_id[id_].watchers) {
        if (node_) {
            p->kept = core;
        }
        p->home->process_died(*p);
    }
    all.by_id.erase(id_);
}

void rdm_iface::for_each_ep(const std::function<void(ep &)> &call)
{
    for (auto &[id, p] : peers_) {
        for (ep *e : p->eps) {
            call(*e);
        }
    }
}

void rdm_iface::check_peers()
{
    uint64_t now = ucs::monotonic_ns();
    for (auto &[id, p] : peers_) {
        if (p->failed || p->eps.empty()) {
            continue;
        }
        if (p->eps.front()->ping()) {
            p->unanswered_since = 0;
        } else if (!connects_itself()) {
            continue;
        } else if (p->unanswered_since == 0) {
            p->unanswered_since = now;
        } else if (now - p->unanswered_since > timeout_ns_) {
            declare_dead(*p, UCS_ERR_UNREACHABLE);
        }
    }
}

peer &rdm_iface::find_peer(const rdm_address &about, const char *name)
{
    auto found = peers_.find(about.id);
    if (found != peers_.end()) {
        return *found->second;
    }
    found = resting_.find(about.id);
    if (found != resting_.end()) {
        return wake(*found->second);
    }
    bury_closed();
    auto p = std::make_unique<peer>();
    p->home = this;
    p->id = about.id;
    p->about = about;
    p->name.assign(name, about.name_length());
    if (node_ && !node_->has(about, p->name)) {
        throw ucs::error(UCS_ERR_UNREACHABLE,
                         "uct_ep_create: the peer's process has no such file in /dev/shm");
    }
    if (!node_ && !take_left(*p)) {
        insert_address(*p);
    }
    peer &found_peer = *(peers_[about.id] = std::move(p));
    try {
        look_after(found_peer);
    } catch (...) {
        if (node_) { // the core does not know it
            peers_.erase(about.id);
            throw;
        }
        found_peer.dead.store(true, std::memory_order_relaxed);
        found_peer.refs = 1;
        forget(found_peer);
        throw;
    }
    return found_peer;
}

void rdm_iface::insert_address(peer &p)
{
    int inserted = fi_av_insert(av_.get(), p.name.data(), 1, &p.address, 0, nullptr);
    if (inserted != 1) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "fi_av_insert on %s: %s",
                         domain.provider.transport.c_str(),
                         inserted < 0 ? fi_strerror(-inserted) : "no room for another peer");
    }
    if (limit.prefix) {
        p.order = std::make_unique<send_order>(id_, ++epochs_);
    }
}

peer &rdm_iface::wake(peer &p)
{
    if (p.dead.load(std::memory_order_acquire)) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "uct_ep_create: the interface is closed");
    }
    p.near->begin();
    return *peers_.insert(resting_.extract(p.id)).position->second;
}

void rdm_iface::look_after(peer &p)
{
    bool local = watch_local(p);
    if (!local && claims_this_process(p.about, node_ != nullptr)) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "uct_ep_create: this process has no such interface");
    }
    if (node_) {
        std::function<void()> died;
        if (!local) {
            died = [&p] { p.home->process_died(p); };
        }
        p.near = node_->meet(p.about, p.name, std::move(died));
        p.address = p.near->address();
    }
}

// False: the interface is not of this process. Its own table tells, not the address.
bool rdm_iface::watch_local(peer &p)
{
    local_interfaces &all = local_interfaces::get();
    std::lock_guard guard(all.mutex);
    auto *local = all.find(p.id);
    if (local) {
        local->watchers.push_back(&p);
    }
    return local != nullptr;
}

// From any thread.
void rdm_iface::process_died(peer &p)
{
    p.dead.store(true, std::memory_order_release);
    someone_died_.store(true, std::memory_order_release);
    if (node_) {
        node_->ring();
    }
}

// shm does not bear that a peer is removed which it still has something of: a message that the peer
// has not finished with, or one from it, makes it look into the peer's region, which is unmapped
// then. So an on-node peer without endpoints rests, and is still watched, for it may die with one
// of the locks held.
void rdm_iface::forget(peer &p)
{
    if (--p.refs > 0) {
        return;
    }
    if (node_) {
        put_to_rest(p);
        return;
    }
    if (idle_polls_ && !closing_) {
        idle_polls_->begin();
        post_all_receives(); // to take what comes while the program polls no more
    }
    remove_addresses(p);
    remove_left();
    if (p.order && !p.order->idle()) {
        bool lost = p.failed || p.dead.load(std::memory_order_relaxed);
        left_peers_.push_back({p.id, std::move(p.order), p.address, lost});
    }
    peers_.erase(p.id);
}

void rdm_iface::remove_addresses(peer &p)
{
    if (!p.order || p.order->idle()) {
        fi_av_remove(av_.get(), &p.address, 1, 0);
    }
    for (peer::carrier &c : p.carriers) {
        fi_av_remove(av_.get(), &c.address, 1, 0);
    }
    p.carriers.clear();
}

// A peer has one, or a few where it opened the device more than once; a key can name any.
bool rdm_iface::find_carrier(ep &from, const std::string &name, fi_addr_t *to_p)
{
    std::vector<peer::carrier> &known = from.remote->carriers;
    for (const peer::carrier &c : known) {
        if (c.name == name) {
            *to_p = c.address;
            return true;
        }
    }
    if (known.size() == peer::most_carriers || name.size() != name_.size()) {
        ucs_error("a key of %s names another endpoint than those of its peer",
                  domain.provider.transport.c_str());
        return false;
    }
    if (fi_av_insert(av_.get(), name.data(), 1, to_p, 0, nullptr) != 1) {
        ucs_error("fi_av_insert on %s of an endpoint that carries regions: no room",
                  domain.provider.transport.c_str());
        return false;
    }
    known.push_back({name, *to_p});
    return true;
}

void rdm_iface::put_to_rest(peer &p)
{
    if (p.near) {
        p.near->rest();
    }
    resting_.insert(peers_.extract(p.id));
    if (p.dead.load(std::memory_order_acquire)) {
        bury(p);
    }
}

// The peer is dead: what it has left in shared memory goes.
void rdm_iface::clear_away(peer &p)
{
    p.failed = true;
    if (order_) {
        order_->sender_died(p.id);
    }
    if (node_) {
        node_->clear_away(p.name);
    }
}

void rdm_iface::bury(peer &p)
{
    clear_away(p);
    p.rest();
    p.buried = ++buried_;
    remove_dead();
}

// The longest gone go, unless the core was left with a message to them that never ends.
void rdm_iface::remove_dead()
{
    std::vector<peer *> gone;
    for (auto &[id, p] : resting_) {
        if (p->failed && !p->stuck && !(p->unfinished && has_outstanding())) {
            gone.push_back(p.get());
        }
    }
    std::sort(gone.begin(), gone.end(),
              [](const peer *a, const peer *b) { return a->buried < b->buried; });
    for (size_t kept = node_->gone_kept(), i = 0; i + kept < gone.size(); ++i) {
        node_->forget(gone[i]->name);
        resting_.erase(gone[i]->id);
    }
}

// No event tells that a living process has closed an interface, but its file is gone then.
void rdm_iface::bury_closed()
{
    if (!node_ || resting_.size() <= std::min(node::usually_kept, node_->gone_kept())) {
        return;
    }
    for (auto &[id, p] : resting_) {
        if (!p->failed && !node_->is_open(p->name)) {
            p->dead.store(true, std::memory_order_relaxed);
        }
    }
    bury_resting();
}

// The resting ones that died.
void rdm_iface::bury_resting()
{
    std::vector<peer *> dead;
    for (auto &[id, p] : resting_) {
        if (p->dead.load(std::memory_order_acquire) && !p->failed) {
            dead.push_back(p.get());
        }
    }
    for (peer *p : dead) {
        bury(*p);
    }
}

// What a dead peer sent before is delivered first; then each endpoint to it fails once.
UCS_NOINLINE unsigned rdm_iface::bury_dead()
{
    if (poll_cq() > 0) {
        return 1; // come back when the queue is empty
    }
    someone_died_.store(false, std::memory_order_relaxed);
    ucs::list<ep, &ep::sibling> victims;
    for (auto &[id, p] : peers_) {
        if (p->dead.load(std::memory_order_acquire) && !p->failed) {
            clear_away(*p);
            victims.splice_back(p->eps);
        }
    }
    bury_resting();
    unsigned count = 0;
    while (ep *victim = victims.pop_front()) {
        fail(victim, victim->remote->cause);
        ++count;
    }
    return count;
}

// What such a peer has sent comes first.
UCS_NOINLINE unsigned rdm_iface::hear_news()
{
    if (poll_cq() > 0) {
        return 1;
    }
    node_->hear();
    bury_closed();
    remove_dead();
    return 0;
}

void rdm_iface::declare_dead(peer &p, ucs_status_t cause)
{
    if (!p.failed && !p.dead.load(std::memory_order_relaxed)) {
        p.cause = cause;
        p.dead.store(true, std::memory_order_release);
        someone_died_.store(true, std::memory_order_release);
    }
}

void rdm_iface::not_reached(peer &p)
{
    if (!connects_itself()) {
        return;
    }
    uint64_t now = ucs::monotonic_ns();
    bool begins = p.refused_since == 0 || now - p.refused_last > timeout_ns_ / 4;
    p.refused_last = now;
    if (begins) {
        p.refused_since = now;
    } else if (now - p.refused_since > timeout_ns_) {
        declare_dead(p, UCS_ERR_UNREACHABLE);
    }
}

void rdm_iface::left_with_core(peer &p, bool failed)
{
    (failed ? p.stuck : p.unfinished) = true;
}

} // namespace uct::ofi
