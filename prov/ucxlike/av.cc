// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/av.h"

#include "prov/ucxlike/connect/rdm.h"
#include "prov/ucxlike/info.h"
#include "prov/ucxlike/queue/eq.h"

#include <algorithm>
#include <arpa/inet.h>

namespace ucxlike {

std::string address_text(const address &a)
{
    char host[INET6_ADDRSTRLEN] = "";
    if (a.sa.sa_family == AF_INET) {
        inet_ntop(AF_INET, &a.in4.sin_addr, host, sizeof(host));
        return std::string("fi_sockaddr_in://") + host + ":" + std::to_string(a.port());
    }
    if (a.sa.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &a.in6.sin6_addr, host, sizeof(host));
        return std::string("fi_sockaddr_in6://[") + host + "]:" + std::to_string(a.port());
    }
    return "fi_addr_unspec://";
}

av::av(domain *dom, const fi_av_attr &attr, void *context)
    : fid_av(), domain_(dom), flags_(attr.flags)
{
    fid.fclass = FI_CLASS_AV;
    fid.context = context;
    fid.ops = &fid_ops_;
    ops = &ops_;
    entries_.reserve(attr.count);
    domain_->add_ref();
}

av::~av()
{
    if (eq_) {
        eq_->detach();
    }
    domain_->drop_ref();
}

int av::open(fid_domain *d, fi_av_attr *attr, fid_av **out, void *context)
{
    PROV_CHECK_ARG(AV, out, "fi_av_open: av must not be NULL\n");
    PROV_CHECK_ARG(AV, attr, "fi_av_open: attr must not be NULL\n");
    PROV_CHECK_ARG(
        AV, attr->type == FI_AV_UNSPEC || attr->type == FI_AV_MAP || attr->type == FI_AV_TABLE,
        "fi_av_open: attr->type %d is unknown\n", attr->type);
    PROV_CHECK_ARG(AV, attr->rx_ctx_bits == 0, "fi_av_open: attr->rx_ctx_bits must be 0\n");
    if (attr->name) {
        PROV_WARN(AV, "fi_av_open: attr->name: shared address vectors are not supported\n");
        return -FI_ENOSYS;
    }
    if (attr->flags & ~(FI_EVENT | FI_SYMMETRIC | FI_AV_USER_ID)) {
        PROV_WARN(AV, "fi_av_open: attr->flags 0x%lx are not supported\n", attr->flags);
        return -FI_ENOSYS;
    }
    return guard([&] {
        if (attr->type == FI_AV_UNSPEC) {
            attr->type = FI_AV_TABLE;
        }
        *out = new av(from_fid<domain>(d), *attr, context);
        return 0;
    });
}

int av::close(fid_t f)
{
    av *self = from_base<av, fid_av>(f);
    if (!self->endpoints_.empty() || self->users_ > 0) {
        PROV_WARN(AV, "fi_close: the address vector is bound to endpoints\n");
        return -FI_EBUSY;
    }
    delete self;
    return 0;
}

int av::bind(fid_t f, fid_t other, uint64_t)
{
    av *self = from_base<av, fid_av>(f);
    PROV_CHECK_ARG(AV, other && other->fclass == FI_CLASS_EQ,
                   "fi_av_bind: fid must be an event queue\n");
    PROV_CHECK_ARG(AV, self->flags_ & FI_EVENT,
                   "fi_av_bind: the address vector was opened without FI_EVENT\n");
    PROV_CHECK_ARG(AV, !self->eq_, "fi_av_bind: an event queue is bound already\n");
    self->eq_ = from_base<eq, fid_eq>(other);
    self->eq_->attach();
    return 0;
}

void av::attach(rdm_endpoint *ep)
{
    std::lock_guard g(mutex_);
    endpoints_.push_back(ep);
}

void av::detach(rdm_endpoint *ep)
{
    std::lock_guard g(mutex_);
    std::erase(endpoints_, ep);
}

address av::at(fi_addr_t index)
{
    std::lock_guard g(mutex_);
    return index < entries_.size() ? entries_[index] : address();
}

fi_addr_t av::reported(fi_addr_t index)
{
    std::lock_guard g(mutex_);
    return index < reported_.size() ? reported_[index] : FI_ADDR_NOTAVAIL;
}

fi_addr_t av::index_of(const address &a)
{
    std::lock_guard g(mutex_);
    fi_addr_t lowest = FI_ADDR_NOTAVAIL;
    auto [from, to] = index_.equal_range(a);
    for (auto it = from; it != to; ++it) {
        lowest = std::min(lowest, it->second);
    }
    return lowest;
}

// The lowest that is free. There is room to give it back.
uint32_t av::take_index()
{
    if (!free_.empty()) {
        std::pop_heap(free_.begin(), free_.end(), std::greater<>());
        uint32_t index = free_.back();
        free_.pop_back();
        return index;
    }
    size_t index = entries_.size();
    reported_.resize(index + 1);
    if (free_.capacity() <= index) {
        free_.reserve(2 * index + 64);
    }
    entries_.push_back({});
    return static_cast<uint32_t>(index);
}

void av::forget(fi_addr_t index, const address &a) noexcept
{
    auto [from, to] = index_.equal_range(a);
    for (auto it = from; it != to; ++it) {
        if (it->second == index) {
            index_.erase(it);
            break;
        }
    }
    entries_[index] = address();
    free_.push_back(static_cast<uint32_t>(index));
    std::push_heap(free_.begin(), free_.end(), std::greater<>());
    for (rdm_endpoint *ep : endpoints_) {
        ep->address_removed(a, index);
    }
}

int av::insert_one(const address &a, fi_addr_t *out, int *error, uint64_t user_id, bool by_user)
{
    if (a.empty() || a.port() == 0) {
        if (out) {
            *out = FI_ADDR_NOTAVAIL;
        }
        if (error) {
            *error = FI_EINVAL;
        }
        return 0;
    }
    uint32_t index = take_index();
    try {
        entries_[index] = a;
        reported_[index] = by_user ? user_id : index;
        index_.emplace(a, index);
        for (rdm_endpoint *ep : endpoints_) {
            ep->address_inserted(a, index, reported_[index]);
        }
    } catch (...) {
        forget(index, a);
        throw;
    }
    if (out) {
        *out = index;
    }
    if (error) {
        *error = 0;
    }
    return 1;
}

// With FI_EVENT the result is reported through the event queue.
int av::finish(size_t, size_t good, void *context, uint64_t)
{
    if (!(flags_ & FI_EVENT) || !eq_) {
        return static_cast<int>(good);
    }
    eq::event e;
    e.type = FI_AV_COMPLETE;
    e.fid = &fid;
    e.context = context;
    e.data = good;
    eq_->write(std::move(e));
    return 0;
}

int av::insert(fid_av *f, const void *addr, size_t count, fi_addr_t *out, uint64_t flags,
               void *context)
{
    av *self = from_fid<av>(f);
    PROV_CHECK_ARG(AV, addr || !count, "fi_av_insert: addr must not be NULL\n");
    PROV_CHECK_ARG(AV, !(flags & ~(FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID)),
                   "fi_av_insert: flags 0x%lx are not supported\n", flags);
    bool by_user = (flags | self->flags_) & FI_AV_USER_ID;
    PROV_CHECK_ARG(AV, !by_user || out, "fi_av_insert: FI_AV_USER_ID needs ids in fi_addr\n");
    PROV_CHECK_ARG(AV, !(flags & FI_SYNC_ERR) || context,
                   "fi_av_insert: FI_SYNC_ERR needs an array in context\n");
    PROV_CHECK_ARG(AV, !(self->flags_ & FI_EVENT) || self->eq_,
                   "fi_av_insert: no event queue is bound\n");
    return guard([&] {
        std::lock_guard g(self->mutex_);
        int *errors = flags & FI_SYNC_ERR ? static_cast<int *>(context) : nullptr;
        auto *at = static_cast<const char *>(addr);
        size_t good = 0;
        for (size_t i = 0; i < count; ++i) {
            sa_family_t family;
            memcpy(&family, at, sizeof(family));
            bool six = self->domain_->addr_format() == FI_SOCKADDR_IN6 ||
                       (self->domain_->addr_format() != FI_SOCKADDR_IN && family == AF_INET6);
            size_t size = six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
            int error = 0;
            int ok = self->insert_one(address::from(at, size), out ? out + i : nullptr, &error,
                                      by_user ? out[i] : 0, by_user);
            good += static_cast<size_t>(ok);
            if (errors) {
                errors[i] = error;
            }
            if (!ok && self->eq_) {
                eq::event e;
                e.error = error;
                e.fid = &self->fid;
                e.context = context;
                e.data = i;
                self->eq_->write(std::move(e));
            }
            at += size;
        }
        return self->finish(count, good, context, flags);
    });
}

int av::insertsvc(fid_av *f, const char *node, const char *service, fi_addr_t *out, uint64_t flags,
                  void *context)
{
    PROV_CHECK_ARG(AV, node && service, "fi_av_insertsvc: node and service must not be NULL\n");
    return insertsym(f, node, 1, service, 1, out, flags, context);
}

// "node7" and 3 give node7, node8, node9; a dotted address counts its last part up.
static std::string counted(const char *first, size_t i)
{
    std::string s(first);
    size_t digits = s.size();
    while (digits > 0 && isdigit(static_cast<unsigned char>(s[digits - 1]))) {
        --digits;
    }
    if (i == 0 || digits == s.size()) {
        return s;
    }
    std::string number = std::to_string(std::stoul(s.substr(digits)) + i);
    size_t width = s.size() - digits;
    if (number.size() < width) {
        number.insert(0, width - number.size(), '0');
    }
    return s.substr(0, digits) + number;
}

int av::insertsym(fid_av *f, const char *node, size_t nodecnt, const char *service, size_t svccnt,
                  fi_addr_t *out, uint64_t flags, void *context)
{
    av *self = from_fid<av>(f);
    PROV_CHECK_ARG(AV, node && service, "fi_av_insertsym: node and service must not be NULL\n");
    PROV_CHECK_ARG(AV, nodecnt && svccnt, "fi_av_insertsym: nodecnt and svccnt must not be 0\n");
    PROV_CHECK_ARG(AV, !(flags & ~(FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID)),
                   "fi_av_insertsym: flags 0x%lx are not supported\n", flags);
    PROV_CHECK_ARG(AV, !(flags & FI_SYNC_ERR) || context,
                   "fi_av_insertsym: FI_SYNC_ERR needs an array in context\n");
    bool by_user = (flags | self->flags_) & FI_AV_USER_ID;
    PROV_CHECK_ARG(AV, !by_user || out, "fi_av_insertsym: FI_AV_USER_ID needs ids in fi_addr\n");
    PROV_CHECK_ARG(AV, !(self->flags_ & FI_EVENT) || self->eq_,
                   "fi_av_insertsym: no event queue is bound\n");
    return guard([&] {
        std::lock_guard g(self->mutex_);
        int *errors = flags & FI_SYNC_ERR ? static_cast<int *>(context) : nullptr;
        size_t good = 0;
        for (size_t n = 0; n < nodecnt; ++n) {
            for (size_t s = 0; s < svccnt; ++s) {
                size_t i = n * svccnt + s;
                address a;
                int family = self->domain_->addr_format() == FI_SOCKADDR_IN6  ? AF_INET6
                             : self->domain_->addr_format() == FI_SOCKADDR_IN ? AF_INET
                                                                              : AF_UNSPEC;
                int error =
                    resolve(counted(node, n).c_str(), counted(service, s).c_str(), 0, family, &a);
                int ok = 0;
                int bad = FI_EINVAL;
                if (error == 0) {
                    ok = self->insert_one(a, out ? out + i : nullptr, &bad, by_user ? out[i] : 0,
                                          by_user);
                } else if (out) {
                    out[i] = FI_ADDR_NOTAVAIL;
                }
                if (errors) {
                    errors[i] = ok ? 0 : bad;
                }
                if (!ok && self->eq_) {
                    eq::event e;
                    e.error = bad;
                    e.fid = &self->fid;
                    e.context = context;
                    e.data = i;
                    self->eq_->write(std::move(e));
                }
                good += static_cast<size_t>(ok);
            }
        }
        return self->finish(nodecnt * svccnt, good, context, flags);
    });
}

int av::remove(fid_av *f, fi_addr_t *addrs, size_t count, uint64_t flags)
{
    av *self = from_fid<av>(f);
    PROV_CHECK_ARG(AV, addrs || !count, "fi_av_remove: fi_addr must not be NULL\n");
    PROV_CHECK_ARG(AV, flags == 0, "fi_av_remove: flags must be 0\n");
    return guard([&] {
        std::lock_guard g(self->mutex_);
        int result = 0;
        for (size_t i = 0; i < count; ++i) {
            fi_addr_t index = addrs[i];
            if (index >= self->entries_.size() || self->entries_[index].empty()) {
                PROV_WARN(AV, "fi_av_remove: fi_addr[%zu] is not in the address vector\n", i);
                result = -FI_EINVAL;
                continue;
            }
            address a = self->entries_[index];
            self->forget(index, a);
        }
        return result;
    });
}

int av::lookup(fid_av *f, fi_addr_t index, void *addr, size_t *addrlen)
{
    av *self = from_fid<av>(f);
    PROV_CHECK_ARG(AV, addrlen && (addr || !*addrlen),
                   "fi_av_lookup: addr and addrlen must not be NULL\n");
    address a = self->at(index);
    PROV_CHECK_ARG(AV, !a.empty(), "fi_av_lookup: fi_addr is not in the address vector\n");
    return copy_address(a, addr, addrlen, false);
}

const char *av::straddr(fid_av *f, const void *addr, char *buf, size_t *len)
{
    if (!addr || !len) {
        return nullptr;
    }
    av *self = from_fid<av>(f);
    uint32_t format = self->domain_->addr_format();
    sa_family_t family;
    memcpy(&family, addr, sizeof(family));
    bool six = format == FI_SOCKADDR_IN6 || (format == FI_SOCKADDR && family == AF_INET6);
    std::string text =
        address_text(address::from(addr, six ? sizeof(sockaddr_in6) : sizeof(sockaddr_in)));
    if (buf && *len) {
        snprintf(buf, *len, "%s", text.c_str());
    }
    *len = text.size() + 1;
    return buf;
}

fi_ops av::fid_ops_ = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = no_op,
    .ops_open = no_op,
    .tostr = no_op,
    .ops_set = no_op,
};

fi_ops_av av::ops_ = {
    .size = sizeof(fi_ops_av),
    .insert = insert,
    .insertsvc = insertsvc,
    .insertsym = insertsym,
    .remove = remove,
    .lookup = lookup,
    .straddr = straddr,
    .av_set = no_op,
#if FI_MAJOR_VERSION > 1 || FI_MINOR_VERSION >= 20
    .insert_auth_key = no_op,
    .lookup_auth_key = no_op,
    .set_user_id = no_op,
#endif
};

} // namespace ucxlike
