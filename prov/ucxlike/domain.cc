// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/domain.h"

#include "prov/ucxlike/av.h"
#include "prov/ucxlike/data/rma.h"
#include "prov/ucxlike/data/srx.h"
#include "prov/ucxlike/endpoint.h"
#include "prov/ucxlike/queue/cntr.h"
#include "prov/ucxlike/queue/cq.h"
#include "prov/ucxlike/queue/eq.h"
#include "prov/ucxlike/queue/waitset.h"
#include "prov/ucxlike/retired.h"
#include "ucs/sys.h"

#include <algorithm>

namespace ucxlike {

domain::domain(fabric *f, const fi_info &info, void *context)
    : fid_domain(), fab(f), locked_(true), addr_format_(info.addr_format), av_type_(FI_AV_UNSPEC),
      mr_mode_(0), tx_size_(static_cast<size_t>(param_int("tx_size", 0))), atomic_lock_(true)
{
    fid.fclass = FI_CLASS_DOMAIN;
    fid.context = context;
    fid.ops = &fid_ops_;
    ops = &ops_;
    mr = &mr_ops_;
    if (const fi_domain_attr *a = info.domain_attr) {
        auto_ = a->data_progress == FI_PROGRESS_AUTO || a->control_progress == FI_PROGRESS_AUTO;
        locked_ = a->threading != FI_THREAD_DOMAIN || auto_;
        av_type_ = a->av_type;
        mr_mode_ = a->mr_mode == retired::mr_basic
                       ? FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY
                   : a->mr_mode == retired::mr_scalable ? 0
                                                        : a->mr_mode;
    }
    fab->add_ref();
}

domain::~domain()
{
    fab->drop_ref();
}

int domain::open(fid_fabric *f, fi_info *info, fid_domain **out, void *context)
{
    PROV_CHECK_ARG(DOMAIN, info && out, "fi_domain: info and domain must not be NULL\n");
    return guard([&] {
        auto *fab = from_fid<fabric>(f);
        fab->context(); // fails here rather than at the first endpoint
        *out = new domain(fab, *info, context);
        return 0;
    });
}

int domain::close(fid_t f)
{
    domain *self = from_base<domain, fid_domain>(f);
    if (self->refs_ > 0) {
        PROV_WARN(DOMAIN, "fi_close: the domain has %d open objects\n", self->refs_.load());
        return -FI_EBUSY;
    }
    delete self;
    return 0;
}

// An event queue may be bound for asynchronous registrations; ours finish at once.
int domain::bind(fid_t, fid_t other, uint64_t)
{
    PROV_CHECK_ARG(DOMAIN, other && other->fclass == FI_CLASS_EQ,
                   "fi_domain_bind: fid must be an event queue\n");
    return 0;
}

char *region::at(uint64_t address, uint64_t bytes, uint64_t want) const
{
    uint64_t offset = virtual_addresses ? address - reinterpret_cast<uintptr_t>(base) : address;
    if (offset > length || bytes > length - offset || (access & want) != want) {
        return nullptr;
    }
    return base + offset;
}

mr_access domain::access_mr(uint64_t key)
{
    std::lock_guard g(mr_mutex_);
    auto it = mrs_.find(key);
    if (it == mrs_.end()) {
        return {};
    }
    it->second->users.fetch_add(1, std::memory_order_relaxed);
    return mr_access(it->second);
}

int domain::register_memory(const fi_mr_attr &attr, uint64_t flags, fid_mr **out)
{
    PROV_CHECK_ARG(MR, out, "fi_mr_reg: mr must not be NULL\n");
    PROV_CHECK_ARG(MR, attr.iov_count == 1 && attr.mr_iov,
                   "fi_mr_reg: one buffer can be registered at a time, not %zu\n", attr.iov_count);
    PROV_CHECK_ARG(MR, !(flags & ~FI_RMA_EVENT), "fi_mr_reg: flags 0x%lx are not supported\n",
                   flags);
    PROV_CHECK_ARG(MR, attr.offset == 0, "fi_mr_reg: offset must be 0\n");
    if (attr.iface != FI_HMEM_SYSTEM) {
        return -FI_ENOSYS;
    }
    return guard([&] {
        auto m = std::make_unique<region>();
        m->fid.fclass = FI_CLASS_MR;
        m->fid.context = attr.context;
        m->fid.ops = &mr_fid_ops_;
        m->dom = this;
        m->base = static_cast<char *>(attr.mr_iov->iov_base);
        m->length = attr.mr_iov->iov_len;
        m->access = attr.access;
        m->virtual_addresses = mr_mode_ & FI_MR_VIRT_ADDR;
        m->mem_desc = m.get();
        std::lock_guard g(mr_mutex_);
        if (mr_mode_ & FI_MR_PROV_KEY) {
            // A peer with one key cannot guess another.
            do {
                m->key = ucs::random_u64();
            } while (mrs_.count(m->key) || m->key == FI_KEY_NOTAVAIL);
        } else {
            m->key = attr.requested_key;
            if (mrs_.count(m->key)) {
                PROV_INFO(MR, "fi_mr_reg: key 0x%lx is in use\n", m->key);
                return -FI_ENOKEY;
            }
        }
        mrs_[m->key] = m.get();
        add_ref();
        *out = m.release();
        return 0;
    });
}

// What moves data to or from a region may need progress of any engine that peers reach.
bool domain::await_accesses(region *m)
{
    auto over = [m] { return m->users.load(std::memory_order_acquire) == 0; };
    if (over()) {
        return true;
    }
    uint64_t end = now_ms() + static_cast<uint64_t>(param_int("close_timeout", 500));
    engine *shared = fab->cm_engine_if_open(); // of endpoints that were closed, too
    do {
        std::lock_guard g(engines_mutex_);
        for (engine *e : engines_) {
            e->progress();
        }
        if (shared) {
            shared->progress();
        }
    } while (!over() && now_ms() < end);
    return over();
}

// The key opens nothing any more from the first call on, also if the region is still in use.
int domain::close_mr(fid_t f)
{
    auto *m = from_base<region, fid_mr>(f);
    {
        std::lock_guard g(m->dom->mr_mutex_);
        auto it = m->dom->mrs_.find(m->key);
        if (it != m->dom->mrs_.end() && it->second == m) {
            m->dom->mrs_.erase(it);
        }
    }
    bool unused = false;
    if (int error = guard([&] {
            unused = m->dom->await_accesses(m);
            return 0;
        })) {
        return error;
    }
    if (!unused) {
        PROV_WARN(MR, "fi_close: data of a peer is still on its way to or from the region\n");
        return -FI_EBUSY;
    }
    for (cntr *c : {m->reads, m->writes}) {
        if (c) {
            m->dom->release_counter(c);
        }
    }
    m->dom->drop_ref();
    delete m;
    return 0;
}

// Regions are not tied to endpoints; a counter counts what peers do to the region.
int domain::bind_mr(fid_t f, fid_t other, uint64_t flags)
{
    auto *m = from_base<region, fid_mr>(f);
    PROV_CHECK_ARG(MR, other, "fi_mr_bind: fid must not be NULL\n");
    if (other->fclass == FI_CLASS_EP) {
        return 0;
    }
    PROV_CHECK_ARG(MR, other->fclass == FI_CLASS_CNTR,
                   "fi_mr_bind: fid is neither an endpoint nor a counter\n");
    PROV_CHECK_ARG(MR,
                   (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE)) &&
                       !(flags & ~(FI_REMOTE_READ | FI_REMOTE_WRITE)),
                   "fi_mr_bind: flags 0x%lx do not fit a counter\n", flags);
    std::unique_lock g(m->dom->mr_mutex_);
    PROV_CHECK_ARG(
        MR, !((flags & FI_REMOTE_READ) && m->reads) && !((flags & FI_REMOTE_WRITE) && m->writes),
        "fi_mr_bind: a counter is bound already\n");
    cntr *c = from_base<cntr, fid_cntr>(other);
    if (flags & FI_REMOTE_READ) {
        m->reads = c;
    }
    if (flags & FI_REMOTE_WRITE) {
        m->writes = c;
    }
    m->dom->counted_ = true;
    g.unlock();
    return guard([&] {
        for (uint64_t bit : {FI_REMOTE_READ, FI_REMOTE_WRITE}) {
            if (flags & bit) {
                m->dom->bind_counter(c);
            }
        }
        return 0;
    });
}

// An exception of act() goes on when undo() has had those before.
template <class List, class Act, class Undo>
static void for_all_or_none(List &list, Act act, Undo undo)
{
    size_t done = 0;
    try {
        for (; done < list.size(); ++done) {
            act(list[done]);
        }
    } catch (...) {
        while (done > 0) {
            undo(list[--done]);
        }
        throw;
    }
}

void domain::bind_counter(cntr *c)
{
    std::lock_guard g(engines_mutex_);
    counters_.push_back(c);
    try {
        for_all_or_none(
            engines_, [c](engine *e) { c->add_engine(e); },
            [c](engine *e) { c->remove_engine(e); });
    } catch (...) {
        counters_.pop_back();
        throw;
    }
    c->attach();
}

void domain::release_counter(cntr *c)
{
    std::lock_guard g(engines_mutex_);
    counters_.erase(std::find(counters_.begin(), counters_.end(), c));
    for (engine *e : engines_) {
        c->remove_engine(e);
    }
    c->detach();
}

void domain::add_engine(engine *e)
{
    std::lock_guard g(engines_mutex_);
    engines_.push_back(e);
    try {
        for_all_or_none(
            counters_, [e](cntr *c) { c->add_engine(e); }, [e](cntr *c) { c->remove_engine(e); });
    } catch (...) {
        engines_.pop_back();
        throw;
    }
}

void domain::remove_engine(engine *e)
{
    std::lock_guard g(engines_mutex_);
    engines_.erase(std::find(engines_.begin(), engines_.end(), e));
    for (cntr *c : counters_) {
        c->remove_engine(e);
    }
}

void domain::count_access(uint64_t key, uint64_t access)
{
    std::lock_guard g(mr_mutex_);
    auto it = mrs_.find(key);
    if (it == mrs_.end()) {
        return;
    }
    if (cntr *c = access == FI_REMOTE_READ ? it->second->reads : it->second->writes) {
        c->count();
    }
}

static int control_mr(fid_t, int command, void *)
{
    return command == FI_ENABLE || command == FI_REFRESH ? 0 : -FI_ENOSYS;
}

static int reg(fid_t f, const void *buf, size_t len, uint64_t access, uint64_t offset, uint64_t key,
               uint64_t flags, fid_mr **out, void *context)
{
    iovec iov = {const_cast<void *>(buf), len};
    fi_mr_attr attr = {};
    attr.mr_iov = &iov;
    attr.iov_count = 1;
    attr.access = access;
    attr.offset = offset;
    attr.requested_key = key;
    attr.context = context;
    return from_base<domain, fid_domain>(f)->register_memory(attr, flags, out);
}

static int regv(fid_t f, const iovec *iov, size_t count, uint64_t access, uint64_t offset,
                uint64_t key, uint64_t flags, fid_mr **out, void *context)
{
    fi_mr_attr attr = {};
    attr.mr_iov = iov;
    attr.iov_count = count;
    attr.access = access;
    attr.offset = offset;
    attr.requested_key = key;
    attr.context = context;
    return from_base<domain, fid_domain>(f)->register_memory(attr, flags, out);
}

static int regattr(fid_t f, const fi_mr_attr *attr, uint64_t flags, fid_mr **out)
{
    PROV_CHECK_ARG(MR, attr, "fi_mr_regattr: attr must not be NULL\n");
    return from_base<domain, fid_domain>(f)->register_memory(*attr, flags, out);
}

fi_ops domain::fid_ops_ = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = no_op,
    .ops_open = no_op,
    .tostr = no_op,
    .ops_set = no_op,
};

fi_ops_domain domain::ops_ = {
    .size = sizeof(fi_ops_domain),
    .av_open = av::open,
    .cq_open = cq::open,
    .endpoint = endpoint::open,
    .scalable_ep = no_op,
    .cntr_open = cntr::open,
    .poll_open = poll_set::open,
    .stx_ctx = no_op,
    .srx_ctx = srx::open,
    .query_atomic = query_atomic,
    .query_collective = no_op,
    .endpoint2 = [](fid_domain *d, fi_info *info, fid_ep **out, uint64_t flags, void *context)
        -> int { return flags ? -FI_ENOSYS : endpoint::open(d, info, out, context); },
};

fi_ops_mr domain::mr_ops_ = {
    .size = sizeof(fi_ops_mr),
    .reg = reg,
    .regv = regv,
    .regattr = regattr,
};

fi_ops domain::mr_fid_ops_ = {
    .size = sizeof(fi_ops),
    .close = close_mr,
    .bind = bind_mr,
    .control = control_mr,
    .ops_open = no_op,
    .tostr = no_op,
    .ops_set = no_op,
};

} // namespace ucxlike
