// SPDX-License-Identifier: BSD-3-Clause
//
// See fake_uct.h.
#include "fabtests-ext/common/fake_uct.h"

#include <algorithm>
#include <cstring>

namespace fake_uct {

endpoint::endpoint(uct_ep_h real) : real_(real)
{
    iface_.ops = real->iface->ops;
    iface_.ops.ep_am_short = am_short;
    iface_.ops.ep_am_bcopy = am_bcopy;
    iface_.ops.ep_am_zcopy = am_zcopy;
    iface_.ops.ep_get_zcopy = get_zcopy;
    iface_.ops.ep_put_zcopy = put_zcopy;
    iface_.ops.ep_put_short = put_short;
    iface_.ops.ep_pending_add = pending_add;
    iface_.ops.ep_pending_purge = pending_purge;
    iface_.ops.ep_flush = flush;
    iface_.ops.ep_fence = fence;
    iface_.ops.ep_check = check;
    iface_.ops.ep_destroy = destroy;
    iface = &iface_;
}

ucs_status_t endpoint::admit()
{
    if (failure_ != UCS_OK) {
        return failure_;
    }
    if (budget_ == 0 || !pending_.empty()) {
        return UCS_ERR_NO_RESOURCE;
    }
    if (budget_ > 0) {
        --budget_;
    }
    ++sends_;
    return UCS_OK;
}

void endpoint::release()
{
    budget_ = -1;
    std::deque<uct_pending_req_t *> waiting;
    waiting.swap(pending_);
    for (uct_pending_req_t *req : waiting) {
        run(req);
    }
}

// What the lane behind has no room for either waits there, for its progress to run it.
void endpoint::run(uct_pending_req_t *req)
{
    while (req->func(req) != UCS_OK) {
        if (pending_add(this, req, 0) == UCS_OK) {
            return;
        }
    }
}

void endpoint::complete(size_t index, ucs_status_t status)
{
    uct_completion_t *comp = held_.at(index);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(index));
    if (status != UCS_OK && comp->status == UCS_OK) {
        comp->status = status;
    }
    if (--comp->count == 0) {
        comp->func(comp);
    }
}

ucs_status_t endpoint::zcopy_result(ucs_status_t status, uct_completion_t *comp)
{
    if (status != UCS_OK || !hold_) {
        return status;
    }
    held_.push_back(comp);
    return UCS_INPROGRESS;
}

ucs_status_t endpoint::am_short(uct_ep_h ep, uint8_t id, uint64_t header, const void *payload,
                                unsigned length)
{
    ucs_status_t status = of(ep)->admit();
    if (status != UCS_OK) {
        return status;
    }
    status = uct_ep_am_short(of(ep)->real_, id, header, payload, length);
    of(ep)->shorts_ += status == UCS_OK;
    return status;
}

ssize_t endpoint::am_bcopy(uct_ep_h ep, uint8_t id, uct_pack_callback_t pack, void *arg,
                           unsigned flags)
{
    ucs_status_t status = of(ep)->admit();
    if (status != UCS_OK) {
        return status;
    }
    ssize_t n = uct_ep_am_bcopy(of(ep)->real_, id, pack, arg, flags);
    of(ep)->copies_ += n >= 0;
    return n;
}

namespace {

struct gather {
    const void *header;
    unsigned header_length;
    const uct_iov_t *iov;
    size_t count;
};

size_t pack_gather(void *dest, void *arg)
{
    auto *g = static_cast<gather *>(arg);
    char *at = static_cast<char *>(dest);
    memcpy(at, g->header, g->header_length);
    at += g->header_length;
    for (size_t i = 0; i < g->count; ++i) {
        memcpy(at, g->iov[i].buffer, g->iov[i].length);
        at += g->iov[i].length;
    }
    return static_cast<size_t>(at - static_cast<char *>(dest));
}

} // namespace

ucs_status_t endpoint::am_zcopy(uct_ep_h ep, uint8_t id, const void *header, unsigned header_length,
                                const uct_iov_t *iov, size_t count, unsigned,
                                uct_completion_t *comp)
{
    ucs_status_t status = of(ep)->admit();
    if (status != UCS_OK) {
        return status;
    }
    gather g = {header, header_length, iov, count};
    ssize_t n = uct_ep_am_bcopy(of(ep)->real_, id, pack_gather, &g, 0);
    of(ep)->zcopies_ += n >= 0;
    return of(ep)->zcopy_result(n >= 0 ? UCS_OK : static_cast<ucs_status_t>(n), comp);
}

ucs_status_t endpoint::get_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t count, uint64_t address,
                                 uct_rkey_t rkey, uct_completion_t *comp)
{
    ++of(ep)->gets_;
    if (of(ep)->get_failure_ != UCS_OK) {
        if (!of(ep)->hold_) {
            return of(ep)->get_failure_;
        }
        of(ep)->held_.push_back(comp); // fails later
        return UCS_INPROGRESS;
    }
    return uct_ep_get_zcopy(of(ep)->real_, iov, count, address, rkey, comp);
}

ucs_status_t endpoint::put_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t count, uint64_t address,
                                 uct_rkey_t rkey, uct_completion_t *comp)
{
    return uct_ep_put_zcopy(of(ep)->real_, iov, count, address, rkey, comp);
}

ucs_status_t endpoint::put_short(uct_ep_h ep, const void *data, unsigned length, uint64_t address,
                                 uct_rkey_t rkey)
{
    return uct_ep_put_short(of(ep)->real_, data, length, address, rkey);
}

ucs_status_t endpoint::pending_add(uct_ep_h ep, uct_pending_req_t *req, unsigned flags)
{
    if (of(ep)->budget_ != 0) {
        return uct_ep_pending_add(of(ep)->real_, req, flags);
    }
    of(ep)->pending_.push_back(req);
    return UCS_OK;
}

void endpoint::pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb, void *arg)
{
    std::deque<uct_pending_req_t *> waiting;
    waiting.swap(of(ep)->pending_);
    for (uct_pending_req_t *req : waiting) {
        if (cb) {
            cb(req, arg);
        }
    }
    uct_ep_pending_purge(of(ep)->real_, cb, arg);
}

ucs_status_t endpoint::flush(uct_ep_h ep, unsigned flags, uct_completion_t *comp)
{
    return uct_ep_flush(of(ep)->real_, flags, comp);
}

ucs_status_t endpoint::fence(uct_ep_h ep, unsigned flags)
{
    return uct_ep_fence(of(ep)->real_, flags);
}

ucs_status_t endpoint::check(uct_ep_h, unsigned, uct_completion_t *)
{
    return UCS_OK;
}

void endpoint::destroy(uct_ep_h ep)
{
    // Late completions still come: this object lives as long as the test.
    if (of(ep)->real_) {
        uct_ep_destroy(of(ep)->real_);
    }
    of(ep)->real_ = nullptr;
}

} // namespace fake_uct
