// SPDX-License-Identifier: BSD-3-Clause
#include "ucp/rma/native.h"

#include "ucp/endpoint/ep_control.h"
#include "ucp/mem/rail_memory.h"

#include <new>

namespace ucp {

namespace {

void unordered_done(uct_completion_t *comp)
{
    ucp_request *req = ucp_request::from_comp(comp);
    ucp_ep *ep = req->flags & REQ_ABORTED ? nullptr : req->ep; // counted, and it may be gone
    complete(req, comp_status(req));
    if (ep) {
        ep->unordered_done();
    }
}

void unordered_abort(ucp_request *req, ucs_status_t status) noexcept
{
    ucp_ep *ep = req->ep;
    comp_abort(req, status);
    ep->unordered_done();
}

const lane &lane_of(const rma_request *req, unsigned rail) noexcept
{
    return req->ep->lanes[req->rkey->rail(rail).lane];
}

// Of the bytes that are left, for the current lane.
void take_share(rma_request *req) noexcept
{
    const ucp_rkey *rkey = req->rkey;
    double left_bandwidth = 0;
    for (unsigned i = req->rail; i <= rkey->more_count; ++i) {
        left_bandwidth += lane_of(req, i).bandwidth();
    }
    size_t offset = req->dt.offset();
    req->share_end =
        req->rail == rkey->more_count
            ? req->dt.length()
            : offset + rail_share(req->dt.length() - offset,
                                  lane_of(req, req->rail).bandwidth() / left_bandwidth);
}

// The buffer for the rails behind the first one.
bool register_rails(rma_request *req) noexcept
{
    auto *memory = new (std::nothrow) rail_memory{};
    if (!memory) {
        return false;
    }
    memory->context = req->worker->context;
    for (unsigned i = 1; i <= req->rkey->more_count; ++i) {
        if (!rail_memory_add(req, memory, lane_of(req, i).md_index, UCT_MD_MEM_ACCESS_RMA)) {
            rail_memory_release(memory);
            return false;
        }
    }
    req->memory.rails = memory;
    return true;
}

} // namespace

char *slow_direct_address(ucp_rkey *rkey, uint64_t address, size_t length,
                          ucs::stats::flow what) noexcept
{
    if (!rkey->resolved) {
        rkey_resolve(rkey);
    }
    char *mapped = mapped_address(rkey, address, length);
    ucs::stats::lane **lanes = rkey->ep->control->counted();
    ucs::stats::lane *counted = lanes ? lanes[rkey->direct_lane] : nullptr;
    if (mapped) {
        const ep_config &config = *rkey->ep->config;
        const proto_table &table = what == ucs::stats::memory_put   ? config.map_put
                                   : what == ucs::stats::memory_get ? config.map_get
                                                                    : config.map_atomic;
        ++table.select(length).used;
    }
    if (mapped && counted) {
        counted->flows[what].count(length);
    }
    return mapped;
}

bool start_native(rma_request *req, bool reads) noexcept
{
    const ucp_rkey *rkey = req->rkey;
    bool striped =
        rkey->more_count != 0 && req->dt.length() >= (rkey->more_count + 1) * RAIL_PIECE_MIN;
    bool unordered = reads || striped;
    if (!start_zcopy(req, lane_of(req, 0).md_index, unordered ? unordered_done : comp_done)) {
        return false;
    }
    req->rail = 0;
    req->share_end = req->dt.length();
    if (UCS_UNLIKELY(striped) && register_rails(req)) {
        take_share(req);
    }
    if (unordered) {
        req->abort = unordered_abort;
        ++req->ep->unordered;
        req->ep->note_unfenced();
    }
    return true;
}

void next_share(rma_request *req) noexcept
{
    ++req->rail;
    req->memory.zmemh = req->memory.rails->reg[req->rail - 1].memh;
    take_share(req);
}

} // namespace ucp
