// SPDX-License-Identifier: BSD-3-Clause
// Endpoints: what every operation is checked for, and messages that overtake each other.
#include "strict/strict.h"

#include <algorithm>
#include <cstring>

namespace strict {

namespace {

using kind = request::kind;

bool sends(kind what)
{
    return what == kind::send || what == kind::tagged_send;
}

void forget_requests(cq *queue, ep *closed)
{
    if (!queue) {
        return;
    }
    std::lock_guard guard(queue->mutex);
    queue->senders.erase(closed);
    for (request *r : queue->requests) {
        if (r->owner == closed) {
            r->owner = nullptr;
            r->caller = nullptr;
        }
    }
}

int close_ep(fid_t fid)
{
    auto *e = self<ep>(fid);
    if (e->regions > 0) {
        forbid(e->about(), "an endpoint is closed before the regions that are bound to it");
    }
    std::lock_guard guard(e->home->mover.mutex);
    e->closing = true;
    e->release(true);
    for (cq *queue : {e->tx, e->rx}) {
        forget_requests(queue, e);
        if (queue) {
            --queue->eps;
        }
    }
    if (e->names) {
        --e->names->eps;
    }
    delete e;
    return 0;
}

int bind_ep(fid_t fid, fid_t other, uint64_t flags)
{
    auto *e = self<ep>(fid);
    if (other->fclass == FI_CLASS_AV) {
        e->names = self<av>(other);
        ++e->names->eps;
        return fi_ep_bind(e->inner.get(), &e->names->inner->fid, flags);
    }
    if (other->fclass == FI_CLASS_CQ) {
        auto *queue = self<cq>(other);
        if (flags & FI_TRANSMIT) {
            e->tx = queue;
            ++queue->eps;
            e->tx_selective = flags & FI_SELECTIVE_COMPLETION;
            std::scoped_lock guard(e->home->mover.mutex, queue->mutex);
            queue->senders.insert(e);
        }
        if (flags & FI_RECV) {
            e->rx = queue;
            ++queue->eps;
            e->rx_selective = flags & FI_SELECTIVE_COMPLETION;
        }
        return fi_ep_bind(e->inner.get(), &queue->inner->fid, flags & ~FI_SELECTIVE_COMPLETION);
    }
    return other->fclass == FI_CLASS_EQ ? fi_ep_bind(e->inner.get(), other, flags) : -FI_ENOSYS;
}

int getname(fid_t fid, void *address, size_t *length)
{
    auto *e = self<ep>(fid);
    const profile &p = e->about();
    sockaddr_in own{};
    size_t room = sizeof(own);
    int ret = fi_getname(&e->inner->fid, &own, &room);
    if (ret != 0) {
        return ret;
    }
    bool fits = *length >= p.addr_length;
    *length = p.addr_length;
    if (fits) {
        write_address(p, own, address);
    }
    return fits ? 0 : -FI_ETOOSMALL;
}

int control_ep(fid_t fid, int command, void *)
{
    auto *e = self<ep>(fid);
    if (command != FI_ENABLE) {
        return -FI_ENOSYS;
    }
    int ret = fi_enable(e->inner.get());
    if (ret == 0) {
        sockaddr_in own{};
        size_t room = sizeof(own);
        ret = fi_getname(&e->inner->fid, &own, &room);
        e->port = ntohs(own.sin_port);
        e->enabled = ret == 0;
        widen(e->port);
    }
    return ret;
}

ssize_t cancel(fid_t fid, void *context)
{
    auto *e = self<ep>(fid);
    if (!e->rx) {
        return -FI_ENOENT;
    }
    request *found = nullptr;
    {
        std::lock_guard guard(e->rx->mutex);
        for (request *r : e->rx->requests) {
            if (r->owner == e && r->context == context && receives(r->what)) {
                found = r;
            }
        }
    }
    return found ? fi_cancel(&e->inner->fid, found) : -FI_ENOENT;
}

int setopt(fid_t fid, int level, int name, const void *value, size_t length)
{
    auto *e = self<ep>(fid);
    if (name != FI_OPT_MIN_MULTI_RECV || !(e->about().caps & FI_MULTI_RECV)) {
        return -FI_ENOPROTOOPT;
    }
    return fi_setopt(&e->inner->fid, level, name, value, length);
}

fi_ops ep_fid_ops = {sizeof(fi_ops), close_ep, bind_ep, control_ep, no_op, no_op, no_op};
fi_ops_ep ep_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = cancel,
    .getopt = [](fid_t, int, int, void *, size_t *) -> int { return -FI_ENOPROTOOPT; },
    .setopt = setopt,
    .tx_ctx = no_op,
    .rx_ctx = no_op,
    .rx_size_left = no_op,
    .tx_size_left = no_op,
};
fi_ops_cm cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = no_op,
    .getname = getname,
    .getpeer = no_op,
    .connect = no_op,
    .listen = no_op,
    .accept = no_op,
    .reject = no_op,
    .shutdown = no_op,
    .join = no_op,
};

size_t total(const iovec *iov, size_t count)
{
    size_t length = 0;
    for (size_t i = 0; i < count; ++i) {
        length += iov[i].iov_len;
    }
    return length;
}

// A copy of the pieces in one.
void gather(request *r)
{
    for (size_t i = 0; i < r->count; ++i) {
        auto *from = static_cast<const char *>(r->pieces[i].iov_base);
        r->copy.insert(r->copy.end(), from, from + r->pieces[i].iov_len);
    }
    r->count = std::min<size_t>(r->count, 1);
    r->pieces[0] = {r->copy.data(), r->copy.size()};
    r->caller = nullptr;
    r->flags &= ~FI_INJECT;
}

} // namespace

bool receives(kind what)
{
    return what == kind::receive || what == kind::tagged_receive;
}

uint64_t ep::draw()
{
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random;
}

void ep::check_desc(const void *base, size_t length, const void *desc) const
{
    const profile &p = about();
    if (!(p.mr_mode & FI_MR_LOCAL) || length == 0) {
        return;
    }
    if (!desc) {
        forbid(p, "%zu bytes of memory without descriptor", length);
    }
    const mr *region = home->find(desc);
    if (!region) {
        forbid(p, "a descriptor of no region");
    }
    if (!region->inner) {
        forbid(p, "a region is used before it is enabled");
    }
    auto *from = static_cast<const char *>(base);
    if (from < region->base || from + length > region->base + region->length) {
        forbid(p, "%zu bytes of memory outside of their region", length);
    }
    region->check_pins();
}

void ep::check_size(const request &r, size_t length) const
{
    const profile &p = about();
    size_t inject = r.what == kind::write ? p.inject_rma : p.inject;
    if ((r.flags & FI_INJECT) && length > inject) {
        forbid(p, "%zu bytes are injected where %zu are allowed", length, inject);
    }
    if (!receives(r.what) && length > longest) {
        forbid(p, "an operation of %zu bytes where %zu are allowed", length, longest);
    }
    bool carries = sends(r.what) || r.what == kind::write;
    if (carries && (r.flags & FI_REMOTE_CQ_DATA) && p.cq_data_size < 8 &&
        r.data >> (8 * p.cq_data_size)) {
        forbid(p, "completion data of more than %zu bytes", p.cq_data_size);
    }
}

void ep::check_target(const request &r, const av::entry &to) const
{
    const profile &p = about();
    if (sends(r.what) || receives(r.what)) {
        return;
    }
    if (r.where.key == FI_KEY_NOTAVAIL) {
        forbid(p, "the key FI_KEY_NOTAVAIL");
    }
    uint64_t both = FI_MR_ENDPOINT | FI_MR_PROV_KEY;
    if ((static_cast<uint64_t>(p.mr_mode) & both) == both && r.where.key >> 48 != to.port) {
        forbid(p, "the key of a region that is bound to another endpoint");
    }
    if (p.mr_mode & FI_MR_ENDPOINT) { // others have the same keys in several domains
        check_pins_of(r.where.key, r.where.addr);
    }
}

bool ep::is_damaged(const request &r, size_t length) const
{
    return damages > 0 && length >= damages && (sends(r.what) || r.what == kind::write);
}

bool ep::is_refused(const request &r)
{
    std::lock_guard guard(mutex);
    if (refusals > 0 && !receives(r.what)) {
        --refusals;
        return true;
    }
    return refuses_one_of > 0 && draw() % refuses_one_of == 0;
}

ssize_t ep::submit(std::unique_ptr<request> r, const iovec *iov, void *const *descs, size_t count,
                   fi_addr_t to)
{
    const profile &p = about();
    if (!enabled) {
        forbid(p, "an operation on an endpoint that is not enabled");
    }
    if (count > p.iov_limit) {
        forbid(p, "%zu pieces where %zu are allowed", count, p.iov_limit);
    }
    if ((r->flags & FI_MULTI_RECV) && !(p.caps & FI_MULTI_RECV)) {
        forbid(p, "a receive buffer is to be shared by messages");
    }
    size_t length = total(iov, count);
    check_size(*r, length);
    bool injected = r->flags & FI_INJECT;
    for (size_t i = 0; i < count && !injected; ++i) {
        check_desc(iov[i].iov_base, iov[i].iov_len, descs ? descs[i] : nullptr);
    }
    r->to = FI_ADDR_UNSPEC;
    if (!receives(r->what)) {
        av::entry target = names->find(to);
        check_target(*r, target);
        r->to = target.inner;
        r->port = target.port;
    }
    if (is_refused(*r)) {
        return -FI_EAGAIN;
    }
    bool selective = receives(r->what) ? rx_selective : tx_selective;
    r->reported = r->reported && (!selective || (r->flags & FI_COMPLETION));
    r->owner = this;
    r->count = count;
    std::copy_n(iov, count, r->pieces);
    bool damaged = is_damaged(*r, length);
    if (injected || damaged) {
        gather(r.get());
    }
    if (damaged) {
        r->copy.back() ^= 1;
    }
    r->keep_iovecs(p);
    return start(r.release());
}

ssize_t ep::start(request *r)
{
    cq *queue = receives(r->what) ? rx : tx;
    {
        std::lock_guard guard(queue->mutex);
        queue->requests.insert(r);
    }
    if (sends(r->what) && !ordered && !(r->flags & FI_FENCE)) {
        bool full;
        {
            std::lock_guard guard(mutex);
            held.push_back(r);
            full = held.size() > window;
        }
        if (full) {
            release(false);
        }
        return 0;
    }
    if (r->flags & FI_FENCE) {
        release(true);
    }
    ssize_t ret = post(r);
    if (ret != 0) {
        void *context;
        queue->finish(r, &context);
    }
    return ret;
}

// What the inner core takes has a connection: the first time, that is new.
ssize_t ep::post(request *r)
{
    bool receiving = receives(r->what);
    uint16_t target = r->port; // it may be over when the post returns
    ssize_t ret = 0;
    {
        std::lock_guard guard(home->inner_moves);
        ret = r->post(inner.get());
    }
    if (ret == 0 && !receiving) {
        std::lock_guard guard(wide_mutex_);
        if (wide_.insert(target).second) {
            widen(target);
        }
    }
    return ret;
}

// False: the inner core has no room.
bool ep::release_one(size_t index)
{
    request *r = held[index];
    ssize_t ret = post(r);
    if (ret == -FI_EAGAIN) {
        return false;
    }
    for (size_t i = 0; i < index; ++i) {
        ++held[i]->overtaken;
    }
    held.erase(held.begin() + static_cast<ptrdiff_t>(index));
    if (ret != 0 && !closing) { // its peer is gone
        tx->fail(r, static_cast<int>(-ret));
    }
    return true;
}

void ep::release(bool all)
{
    std::lock_guard guard(mutex);
    if (all) {
        while (!held.empty() && release_one(draw() % held.size())) {
        }
        return;
    }
    // Now and then none, so that there is something to overtake for a program that sends and polls
    // in turn.
    if (held.empty() || (held.size() <= window && draw() % 3 != 0)) {
        return;
    }
    release_one(held.front()->overtaken >= window ? 0 : draw() % held.size());
}

int open_ep(fid_domain *d, fi_info *wanted, fid_ep **out, void *context)
{
    auto *home = self<domain>(d);
    const profile &p = *home->about;
    if (!admits_ep(p, wanted)) {
        return -FI_EINVAL;
    }
    auto made = std::make_unique<ep>();
    if (!made->where.take(home, &domain::eps, most(p).eps)) {
        return -FI_ENOSPC;
    }
    fi_info *info = inner_info(p);
    fid_ep *inner = nullptr;
    int ret = info ? fi_endpoint(home->inner.get(), info, &inner, nullptr) : -FI_ENODATA;
    fi_freeinfo(info);
    if (ret != 0) {
        return ret;
    }
    made->outer.fid = {FI_CLASS_EP, context, &ep_fid_ops};
    made->outer.ops = &ep_ops;
    made->outer.cm = &cm_ops;
    made->outer.msg = &message_ops;
    made->outer.rma = &rma_ops;
    made->outer.tagged = &tagged_ops;
    made->outer.atomic = &atomic_ops;
    made->home = home;
    made->inner.reset(inner);
    made->ordered = wanted->tx_attr->msg_order & wanted->rx_attr->msg_order & FI_ORDER_SAS;
    made->tx_flags = wanted->tx_attr->op_flags;
    made->rx_flags = wanted->rx_attr->op_flags;
    static uint64_t opened = 0;
    made->random = (setting("FI_STRICT_SEED", 1) + ++opened) * 0x9e3779b97f4a7c15ull;
    made->refuses_one_of = setting("FI_STRICT_EAGAIN", p.refuses_one_of);
    made->refusals = setting("FI_STRICT_REFUSALS", 0);
    made->damages = setting("FI_STRICT_DAMAGE", 0);
    made->window = setting("FI_STRICT_WINDOW", 8);
    made->longest = longest(p);
    *out = &made.release()->outer;
    return 0;
}

} // namespace strict
