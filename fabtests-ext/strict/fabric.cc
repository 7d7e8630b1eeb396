// SPDX-License-Identifier: BSD-3-Clause
// Fabrics, domains and memory regions.
#include "strict/strict.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace strict {

namespace {

struct info_freer {
    void operator()(fi_info *info) const { fi_freeinfo(info); }
};
using info_ptr = std::unique_ptr<fi_info, info_freer>;

int close_fabric(fid_t fid)
{
    delete self<fabric>(fid);
    return 0;
}

int open_eq(fid_fabric *f, fi_eq_attr *attr, fid_eq **eq, void *context)
{
    return fi_eq_open(self<fabric>(f)->inner.get(), attr, eq, context);
}

int trywait(fid_fabric *f, fid_t *fids, int count)
{
    std::vector<fid_t> inner(fids, fids + count);
    for (fid_t &fid : inner) {
        if (fid->fclass != FI_CLASS_CQ) {
            continue;
        }
        auto *queue = self<cq>(fid);
        std::lock_guard guard(queue->mutex);
        auto holds = [](ep *e) {
            std::lock_guard held(e->mutex);
            return !e->held.empty();
        };
        if (!queue->released.empty() ||
            std::any_of(queue->senders.begin(), queue->senders.end(), holds)) {
            return -FI_EAGAIN;
        }
        fid = &queue->inner->fid;
    }
    return fi_trywait(self<fabric>(f)->inner.get(), inner.data(), count);
}

fi_ops fabric_fid_ops = {sizeof(fi_ops), close_fabric, no_op, no_op, no_op, no_op, no_op};
fi_ops_fabric fabric_ops = {
    .size = sizeof(fi_ops_fabric),
    .domain = open_domain,
    .passive_ep = no_op,
    .eq_open = open_eq,
    .wait_open = no_op,
    .trywait = trywait,
    .domain2 = no_op,
};

int close_domain(fid_t fid)
{
    auto *d = self<domain>(fid);
    if (d->eps + d->queues + d->vectors + d->regions > 0) {
        forbid(*d->about, "a domain is closed before its endpoints, queues, vectors and regions");
    }
    delete d;
    return 0;
}

int query_atomic(fid_domain *d, fi_datatype type, fi_op op, fi_atomic_attr *attr, uint64_t flags)
{
    auto *mine = self<domain>(d);
    if (!(mine->about->caps & FI_ATOMIC)) {
        return -FI_EOPNOTSUPP;
    }
    int ret = fi_query_atomic(mine->inner.get(), type, op, attr, flags);
    if (ret == 0) {
        attr->count = 1;
    }
    return ret;
}

fi_ops domain_fid_ops = {sizeof(fi_ops), close_domain, no_op, no_op, no_op, no_op, no_op};
fi_ops_domain domain_ops = {
    .size = sizeof(fi_ops_domain),
    .av_open = open_av,
    .cq_open = open_cq,
    .endpoint = open_ep,
    .scalable_ep = no_op,
    .cntr_open = no_op,
    .poll_open = no_op,
    .stx_ctx = no_op,
    .srx_ctx = no_op,
    .query_atomic = query_atomic,
    .query_collective = no_op,
    .endpoint2 = no_op,
};

int close_mr(fid_t fid)
{
    auto *m = self<mr>(fid);
    {
        std::lock_guard guard(m->home->mutex);
        m->home->descs.erase(m);
    }
    if (m->bound) {
        --m->bound->regions;
    }
    delete m;
    return 0;
}

int bind_mr(fid_t fid, fid_t other, uint64_t)
{
    auto *m = self<mr>(fid);
    const profile &p = *m->home->about;
    if (!(p.mr_mode & FI_MR_ENDPOINT) || other->fclass != FI_CLASS_EP) {
        return -FI_EINVAL;
    }
    if (m->bound) {
        forbid(p, "a region is bound to a second endpoint");
    }
    m->bound = self<ep>(other);
    ++m->bound->regions;
    return 0;
}

int control_mr(fid_t fid, int command, void *)
{
    return command == FI_ENABLE ? self<mr>(fid)->enable() : -FI_ENOSYS;
}

fi_ops mr_fid_ops = {sizeof(fi_ops), close_mr, bind_mr, control_mr, no_op, no_op, no_op};

// A device that registers local memory pins its pages, which have to be there.
bool is_mapped(const void *buffer, size_t length)
{
    std::span<char> all = pages_of(buffer, length);
    return msync(all.data(), all.size(), MS_ASYNC) == 0;
}

int reg(fid_t fid, const void *buffer, size_t length, uint64_t access, uint64_t offset,
        uint64_t key, uint64_t, fid_mr **out, void *context)
{
    auto *home = self<domain>(fid);
    const profile &p = *home->about;
    if ((p.mr_mode & FI_MR_LOCAL) && !is_mapped(buffer, length)) {
        return -FI_EFAULT;
    }
    auto made = std::make_unique<mr>();
    if (!made->where.take(home, &domain::regions, most(p).regions)) {
        return -FI_ENOSPC;
    }
    made->outer.fid = {FI_CLASS_MR, context, &mr_fid_ops};
    made->outer.mem_desc = made.get();
    made->outer.key = FI_KEY_NOTAVAIL;
    made->home = home;
    made->base = static_cast<const char *>(buffer);
    made->length = length;
    made->access = access;
    made->offset = offset;
    made->requested_key = key;
    if (!(p.mr_mode & FI_MR_ENDPOINT)) {
        int ret = made->enable();
        if (ret != 0) {
            return ret;
        }
    }
    {
        std::lock_guard guard(home->mutex);
        home->descs.insert(made.get());
    }
    *out = &made.release()->outer;
    return 0;
}

int regv(fid_t fid, const iovec *iov, size_t count, uint64_t access, uint64_t offset, uint64_t key,
         uint64_t flags, fid_mr **out, void *context)
{
    return count == 1
               ? reg(fid, iov->iov_base, iov->iov_len, access, offset, key, flags, out, context)
               : -FI_EINVAL;
}

int regattr(fid_t fid, const fi_mr_attr *attr, uint64_t flags, fid_mr **out)
{
    return regv(fid, attr->mr_iov, attr->iov_count, attr->access, attr->offset, attr->requested_key,
                flags, out, attr->context);
}

} // namespace

fi_ops_mr mr_ops = {sizeof(fi_ops_mr), reg, regv, regattr};

// A key of the provider's own says which endpoint the region belongs to, as on cxi the endpoint's
// address does.
int mr::enable()
{
    const profile &p = *home->about;
    if (inner) {
        return -FI_EBUSY;
    }
    if (p.mr_mode & FI_MR_ENDPOINT) {
        if (!bound) {
            forbid(p, "a region is enabled that is bound to no endpoint");
        }
        if (!bound->enabled) {
            forbid(p, "a region is enabled before its endpoint");
        }
    }
    uint64_t key = requested_key;
    if (p.mr_mode & FI_MR_PROV_KEY) {
        std::lock_guard guard(home->mutex);
        key = (bound ? static_cast<uint64_t>(bound->port) << 48 : 0) | 0x5a0000000000ull |
              home->next_key++;
    }
    fid_mr *made = nullptr;
    int ret = fi_mr_reg(home->inner.get(), base, length, access, offset, key, 0, &made, nullptr);
    if (ret == 0) {
        inner.reset(made);
        outer.key = key;
        pin();
    }
    return ret;
}

bool place::take(domain *home, size_t domain::*count, size_t most)
{
    std::lock_guard guard(home->mutex);
    if (home->*count >= most) {
        return false;
    }
    ++(home->*count);
    home_ = home;
    count_ = count;
    return true;
}

place::~place()
{
    if (home_) {
        std::lock_guard guard(home_->mutex);
        --(home_->*count_);
    }
}

const mr *domain::find(const void *desc)
{
    std::lock_guard guard(mutex);
    return descs.count(desc) ? static_cast<const mr *>(desc) : nullptr;
}

int open_fabric(fi_fabric_attr *attr, fid_fabric **out, void *context)
{
    for (const profile &p : profiles) {
        if (strcmp(attr->name, p.fabric) != 0) {
            continue;
        }
        info_ptr info(inner_info(p));
        fid_fabric *inner = nullptr;
        int ret = info ? fi_fabric(info->fabric_attr, &inner, nullptr) : -FI_ENODATA;
        if (ret != 0) {
            return ret;
        }
        auto *made = new fabric{};
        made->outer = {{FI_CLASS_FABRIC, context, &fabric_fid_ops}, &fabric_ops, FI_VERSION(1, 17)};
        made->about = &p;
        made->inner.reset(inner);
        *out = &made->outer;
        return 0;
    }
    return -FI_ENODATA;
}

int open_domain(fid_fabric *f, fi_info *wanted, fid_domain **out, void *context)
{
    auto *home = self<fabric>(f);
    const profile &p = *home->about;
    if (p.mr_mode & ~wanted->domain_attr->mr_mode) {
        forbid(p, "a domain is opened without a mode of registration that it needs");
    }
    if (!admits_domain(p, wanted)) {
        return -FI_EINVAL;
    }
    info_ptr info(inner_info(p));
    fid_domain *inner = nullptr;
    if (info) {
        info->domain_attr->mr_mode = p.mr_mode & FI_MR_VIRT_ADDR;
    }
    int ret = info ? fi_domain(home->inner.get(), info.get(), &inner, nullptr) : -FI_ENODATA;
    if (ret != 0) {
        return ret;
    }
    auto *made = new domain(p);
    made->outer = {{FI_CLASS_DOMAIN, context, &domain_fid_ops}, &domain_ops, &mr_ops};
    made->inner.reset(inner);
    *out = &made->outer;
    return 0;
}

} // namespace strict
