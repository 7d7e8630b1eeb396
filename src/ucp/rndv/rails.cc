// SPDX-License-Identifier: BSD-3-Clause
//
// Registering for, and reading over, several rails. Each piece is a request of its own, so that a
// lane without room delays only what waits behind it in the endpoint's queue.
#include "ucp/rndv/rails.h"

#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/mem.h"
#include "ucp/proto/proto.h"
#include "ucp/rndv/rndv.h"

#include <algorithm>
#include <memory>
#include <new>

namespace ucp {

void rails_register(rndv_send_request *req) noexcept
{
    const ucp_ep *ep = req->ep;
    if (ep->rail_count < 2 || req->dt.length() < 2 * RAIL_PIECE_MIN || req->memory.rails) {
        return;
    }
    auto *memory = new (std::nothrow) rail_memory{};
    if (!memory) {
        return;
    }
    memory->context = req->worker->context;
    uint32_t have = 1u << ep->lanes[ep->rails[0]].md_index;
    for (unsigned i = 1; i < ep->rail_count; ++i) {
        uint8_t md_index = ep->lanes[ep->rails[i]].md_index;
        if (!(have & (1u << md_index)) &&
            rail_memory_add(req, memory, md_index, UCT_MD_MEM_ACCESS_REMOTE_GET)) {
            have |= 1u << md_index;
        }
    }
    req->memory.rails = memory;
}

size_t rails_pack_keys(rndv_send_request *req, uint8_t md_index, uct_mem_h memh,
                       void *dest) noexcept
{
    uct_mem_h by_md[MAX_MDS] = {};
    uint16_t map = static_cast<uint16_t>(1u << md_index);
    by_md[md_index] = memh;
    if (const rail_memory *more = req->memory.rails) {
        for (unsigned i = 0; i < more->count; ++i) {
            map |= static_cast<uint16_t>(1u << more->md[i]);
            by_md[more->md[i]] = more->reg[i].memh;
        }
    }
    return pack_rkeys(req->worker->context, map, by_md, dest, RTS_RKEY_MAX);
}

namespace {

struct rail_choice {
    uint8_t lane;
    const void *key;
    double bandwidth;
};

unsigned usable_rails(const ucp_ep *ep, const wire::rts_hdr *rts, rail_choice *out)
{
    unsigned count = 0;
    for (unsigned i = 0; i < ep->rail_count; ++i) {
        const lane &l = ep->lanes[ep->rails[i]];
        const void *key = rkey_part(ep, l, rts + 1, rts->rkey_len);
        if (key && (l.attr().cap.flags & UCT_IFACE_FLAG_GET_ZCOPY) &&
            l.attr().cap.get.min_zcopy <= RAIL_PIECE_MIN && l.attr().cap.get.max_zcopy > 0) {
            out[count++] = {ep->rails[i], key, l.bandwidth()};
        }
    }
    return static_cast<unsigned>(std::min<uint64_t>(count, rts->size / RAIL_PIECE_MIN));
}

// What one rail reads of the whole.
struct piece_request : data_request {
    using data_request::data_request;

    remote_read read;
};

ucs_status_t piece_progress(piece_request *piece) noexcept
{
    return rndv_post_read(piece, &piece->read);
}

void piece_done(void *, ucs_status_t status, void *user_data)
{
    auto *whole = static_cast<rndv_recv_request *>(user_data);
    uct_completion_update_status(&whole->comp, status);
    if (--whole->comp.count == 0) {
        whole->comp.func(&whole->comp);
    }
}

void piece_read(uct_completion_t *comp)
{
    auto *piece = static_cast<piece_request *>(ucp_request::from_comp(comp));
    piece->read.release_key();
    complete(piece, comp->status);
}

// A piece that is ready to be sent, or nullptr.
piece_request *make_piece(rndv_recv_request *whole, const wire::rts_hdr *rts,
                          const rail_choice &rail, size_t offset, size_t length) noexcept
{
    auto *piece = request_get_internal<piece_request>(whole->worker);
    if (!piece) {
        return nullptr;
    }
    const lane &l = whole->ep->lanes[rail.lane];
    uct_component_h cmpt = whole->worker->context->mds[l.md_index].cmpt;
    uct_mem_h memh = nullptr;
    piece->ep = whole->ep;
    piece->user_memh = whole->user_memh;
    piece->dt.start_contig(whole->dt.contig_ptr() + offset, length);
    if (request_reg(piece, l.md_index, piece->dt.contig_ptr(), length, &memh) != UCS_OK ||
        uct_rkey_unpack(cmpt, rail.key, &piece->read.bundle) != UCS_OK) {
        complete(piece, UCS_ERR_CANCELED);
        return nullptr;
    }
    piece->read.cmpt = cmpt;
    piece->memory.zmemh = memh;
    piece->read.lane = rail.lane;
    piece->read.remote_addr = rts->address + offset;
    piece->read.posted = 0;
    piece->read.size = length;
    piece->flags |= REQ_CALLBACK;
    piece->cb.send = piece_done;
    piece->user_data = whole;
    piece->progress = typed<piece_progress>;
    piece->abort = comp_abort;
    comp_begin(piece, piece_read);
    return piece;
}

// Undo of make_piece() for a piece that was never sent.
void drop_piece(piece_request *piece) noexcept
{
    piece->read.release_key();
    piece->flags &= ~REQ_CALLBACK;
    complete(piece, UCS_ERR_CANCELED);
}

} // namespace

bool rails_get(rndv_recv_request *req, const wire::rts_hdr *rts,
               uct_completion_callback_t done) noexcept
{
    rail_choice rails[MAX_RAILS];
    unsigned count = usable_rails(req->ep, rts, rails);
    if (count < 2) {
        return false;
    }
    double left_bandwidth = 0;
    for (unsigned i = 0; i < count; ++i) {
        left_bandwidth += rails[i].bandwidth;
    }
    piece_request *pieces[MAX_RAILS];
    size_t offset = 0;
    for (unsigned i = 0; i < count; ++i) {
        size_t left = rts->size - offset;
        size_t length =
            i + 1 == count ? left : rail_share(left, rails[i].bandwidth / left_bandwidth);
        left_bandwidth -= rails[i].bandwidth;
        pieces[i] = make_piece(req, rts, rails[i], offset, length);
        if (!pieces[i]) {
            while (i > 0) {
                drop_piece(pieces[--i]);
            }
            return false;
        }
        offset += length;
    }
    req->read.lane = rails[0].lane;
    req->phase = PHASE_RNDV_GET;
    req->abort = comp_abort;
    comp_begin(req, done);
    req->comp.count += static_cast<int>(count);
    for (unsigned i = 0; i < count; ++i) {
        send_internal(pieces[i]);
    }
    comp_end(req);
    return true;
}

} // namespace ucp
