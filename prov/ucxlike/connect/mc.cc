// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/connect/mc.h"

#include "prov/ucxlike/connect/rdm.h"
#include "prov/ucxlike/queue/eq.h"

#include <algorithm>

namespace ucxlike {

static bool is_multicast(const address &a)
{
    if (a.sa.sa_family == AF_INET) {
        return IN_MULTICAST(ntohl(a.in4.sin_addr.s_addr));
    }
    return a.sa.sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&a.in6.sin6_addr);
}

group::group(rdm_endpoint *ep, const address &at, uint8_t roles, void *context)
    : fid_mc(), ep_(ep), at_(at), roles_(roles)
{
    fid.fclass = FI_CLASS_MC;
    fid.context = context;
    fid.ops = &fid_ops_;
    id_ = ep_->add_group(this, &wire_id_);
    fi_addr = address_bit | id_;
    try {
        wire::notice mine = {};
        mine.magic = wire::notice::right_magic;
        mine.kind = wire::notice::here;
        mine.roles = roles;
        mine.sender = ep_->introduce(wire_id_);
        auto h = std::make_unique<herald>(at, ep_->name(), mine, ep_->eng);
        ucs::opt_guard g(ep_->eng->lock);
        herald_ = std::move(h);
    } catch (...) {
        ep_->remove_group(this);
        throw;
    }
}

group::~group()
{
    std::unique_ptr<herald> last;
    {
        ucs::opt_guard g(ep_->eng->lock);
        last = std::move(herald_);
        ep_->events->purge(&fid);
        ep_->remove_group(this);
    }
    // Outside of the engine's lock: a callback on the helper thread is waited for.
}

int group::join(fid_ep *f, const void *addr, uint64_t flags, fid_mc **out, void *context)
{
    auto *ep = static_cast<rdm_endpoint *>(static_cast<endpoint *>(f));
    PROV_CHECK_ARG(EP_CTRL, addr && out, "fi_join: addr and mc must not be NULL\n");
    PROV_CHECK_ARG(EP_CTRL, !(flags & ~(FI_SEND | FI_RECV)),
                   "fi_join: flags 0x%lx are not FI_SEND or FI_RECV\n", flags);
    if (!(ep->caps & FI_MULTICAST)) {
        PROV_WARN(EP_CTRL, "fi_join: the endpoint was opened without FI_MULTICAST\n");
        return -FI_EOPNOTSUPP;
    }
    if (!ep->enabled) {
        return -FI_EOPBADSTATE;
    }
    if (!ep->events) {
        PROV_WARN(EP_CTRL, "fi_join: no event queue is bound\n");
        return -FI_ENOEQ;
    }
    PROV_CHECK_ARG(EP_CTRL, !(flags & ~ep->caps),
                   "fi_join: flags 0x%lx are more than the endpoint can do\n", flags);
    sa_family_t family;
    memcpy(&family, addr, sizeof(family));
    address at =
        address::from(addr, family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    PROV_CHECK_ARG(EP_CTRL, is_multicast(at) && at.port() != 0,
                   "fi_join: addr is not an IP multicast address with a port\n");
    PROV_CHECK_ARG(EP_CTRL, at.sa.sa_family == ep->name().sa.sa_family,
                   "fi_join: addr is of another family than the endpoint's\n");
    if (!flags) {
        flags = ep->caps & (FI_SEND | FI_RECV);
    }
    auto roles = static_cast<uint8_t>((flags & FI_SEND ? wire::notice::sends : 0) |
                                      (flags & FI_RECV ? wire::notice::receives : 0));
    return guard([&] {
        *out = new group(ep, at, roles, context);
        return 0;
    });
}

int group::close(fid_t f)
{
    delete from_base<group, fid_mc>(f);
    return 0;
}

void group::collect()
{
    if (!herald_) {
        return;
    }
    for (const wire::notice &n : herald_->take()) {
        met(n);
    }
    check_joined();
}

group::member *group::find(const peer *p)
{
    auto it = std::find_if(receivers_.begin(), receivers_.end(),
                           [p](const member &m) { return m.receiver == p; });
    return it == receivers_.end() ? nullptr : &*it;
}

bool group::is_at(const wire::membership &m) const
{
    wire::membership mine = wire::make_hello(at_, 0, m.id);
    return mine.family == m.family && mine.port == m.port &&
           memcmp(mine.address, m.address, sizeof(mine.address)) == 0;
}

void group::met(const wire::notice &n)
{
    if (!(roles_ & wire::notice::sends)) {
        return;
    }
    address name = wire::name_of(n.sender);
    for (member &m : receivers_) {
        if (m.receiver->name == name || m.receiver->called == name) {
            met_again(m, n);
            return;
        }
    }
    if (n.kind == wire::notice::leaves || !(n.roles & wire::notice::receives) ||
        !trusts_another()) {
        return;
    }
    peer *p = ep_->rumoured_peer(name);
    if (ep_->reach(p)) {
        receivers_.push_back({p, n.sender.id, standing::sure, true});
        doubt(receivers_.back());
    } else {
        ep_->forget_rumour(p);
    }
}

// Those that exist say it again once a second.
bool group::trusts_another() const
{
    constexpr auto most_unanswered = 64;
    return std::count_if(receivers_.begin(), receivers_.end(),
                         [](const member &m) { return m.receiver->tx_id == 0; }) < most_unanswered;
}

bool group::must_wait() const
{
    return std::any_of(receivers_.begin(), receivers_.end(),
                       [](const member &m) { return m.moved && m.receiver->tx_id != 0; });
}

void group::met_again(member &m, const wire::notice &n)
{
    bool here = n.kind == wire::notice::here && (n.roles & wire::notice::receives);
    bool same = here && n.sender.id == m.id;
    if (!same || m.state != standing::sure) {
        m.moved |= here && !same;
        doubt(m);
    }
}

void group::doubt(member &m)
{
    if (m.state == standing::asked || m.state == standing::asked_twice) {
        m.state = standing::asked_twice;
        return;
    }
    m.state = standing::doubted;
    if (m.receiver->tx && m.receiver->tx_id) {
        m.state = standing::asked;
        ep_->ask_membership(m.receiver, at_);
    }
}

void group::peer_ready()
{
    for (member &m : receivers_) {
        if (m.state == standing::doubted) {
            doubt(m);
        }
    }
    check_joined();
}

void group::answered(const peer *p, const wire::membership &m)
{
    member *known = is_at(m) ? find(p) : nullptr;
    if (!known || (known->state != standing::asked && known->state != standing::asked_twice)) {
        return;
    }
    bool again = known->state == standing::asked_twice;
    known->state = standing::sure;
    if (m.id) {
        known->id = m.id;
    }
    known->moved &= again;
    if (again) {
        doubt(*known);
    } else if (!m.id) {
        drop(known->receiver);
    } else {
        check_joined();
    }
}

void group::drop(peer *p)
{
    std::erase_if(receivers_, [p](const member &m) { return m.receiver == p; });
    check_joined();
}

// The group can be sent to when all known members have answered.
void group::check_joined()
{
    if (joined_ || !herald_ || !herald_->settled()) {
        return;
    }
    bool all = std::all_of(receivers_.begin(), receivers_.end(),
                           [](const member &m) { return m.receiver->tx_id != 0 && !m.moved; });
    if (!all && !herald_->overdue()) {
        return;
    }
    joined_ = true;
    eq::event e;
    e.type = FI_JOIN_COMPLETE;
    e.fid = &fid;
    e.context = fid.context;
    ep_->events->write(std::move(e));
}

constinit fi_ops group::fid_ops_ = only_close(close);

} // namespace ucxlike
