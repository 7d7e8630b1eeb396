// SPDX-License-Identifier: BSD-3-Clause
//
// Rendezvous: see rndv.h for the exchange.
#include "ucp/rndv/rndv.h"

#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/mem.h"
#include "ucp/proto/pieces.h"
#include "ucp/proto/proto.h"
#include "ucp/proto/protocols.h"
#include "ucp/rndv/rails.h"
#include "ucp/rndv/settle.h"
#include "ucs/log.h"

#include <algorithm>
#include <cstring>

namespace ucp {

namespace {

using wire::rts_hdr;

// ---- sender

size_t pack_rts(void *dest, void *arg)
{
    auto *req = static_cast<rndv_send_request *>(arg);
    ucp_ep *ep = req->ep;
    char *p = static_cast<char *>(dest);
    rts_hdr hdr = {};
    hdr.size = req->dt.length();
    hdr.ep = ep->remote_id;
    hdr.req = req->id;
    if (req->memory.zmemh) {
        const lane &l = ep->lanes[ep->rma_lane_index()];
        hdr.rkey_len = static_cast<uint32_t>(
            rails_pack_keys(req, l.md_index, req->memory.zmemh, p + sizeof(hdr)));
        if (hdr.rkey_len != 0) {
            hdr.address = reinterpret_cast<uintptr_t>(req->dt.contig_ptr());
        }
    }
    size_t length = sizeof(hdr) + hdr.rkey_len;
    length += req->announce(req, &hdr, p + length);
    memcpy(p, &hdr, sizeof(hdr));
    return length;
}

size_t pack_data(void *dest, void *arg)
{
    auto *req = static_cast<rndv_send_request *>(arg);
    wire::data_hdr hdr = {req->ep->remote_id, req->receiver, req->dt.offset()};
    memcpy(dest, &hdr, sizeof(hdr));
    size_t room =
        std::min(req->ep->limits().max_bcopy - sizeof(hdr), req->wanted - req->dt.offset());
    return sizeof(hdr) + req->dt.pack(static_cast<char *>(dest) + sizeof(hdr), room);
}

// A piece of what the receiver asked for was sent; req->wanted is where it wants to stop.
ucs_status_t data_sent(rndv_send_request *req) noexcept
{
    if (req->dt.offset() < req->wanted) {
        return UCS_INPROGRESS;
    }
    comp_end(req);
    return UCS_OK;
}

ucs_status_t data_copy_progress(rndv_send_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    req->pend_lane = ep->am_lane_index;
    size_t before = req->dt.offset();
    if (before < req->wanted) {
        ssize_t n = uct_ep_am_bcopy(ep->am_ep, AM_ID_RNDV_DATA, pack_data, req, 0);
        if (UCS_UNLIKELY(n < 0)) {
            req->dt.rewind(before);
            return static_cast<ucs_status_t>(n);
        }
        if (req->dt.offset() == before) { // a generic type that packs less than it promised
            req->wanted = before;
            if (req->comp.status == UCS_OK) {
                req->comp.status = UCS_ERR_IO_ERROR;
            }
        }
    }
    return data_sent(req);
}

ucs_status_t data_zcopy_progress(rndv_send_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    req->pend_lane = ep->am_lane_index;
    size_t before = req->dt.offset();
    if (UCS_UNLIKELY(before >= req->wanted)) {
        return data_sent(req);
    }
    wire::data_hdr hdr = {ep->remote_id, req->receiver, before};
    uct_iov_t iov;
    size_t count = 1;
    size_t room = std::min(ep->limits().max_zcopy - sizeof(hdr), req->wanted - before);
    size_t n = req->dt.to_iov(&iov, &count, room, req->memory.zmemh);
    ++req->comp.count;
    ucs_status_t status =
        uct_ep_am_zcopy(ep->am_ep, AM_ID_RNDV_DATA, &hdr, sizeof(hdr), &iov, count, 0, &req->comp);
    if (status != UCS_INPROGRESS) {
        --req->comp.count;
    }
    if (UCS_UNLIKELY(status != UCS_OK && status != UCS_INPROGRESS)) {
        return status;
    }
    req->dt.advance(n);
    return data_sent(req);
}

bool data_copy_start(rndv_send_request *req) noexcept
{
    comp_begin(req, comp_done);
    return true;
}

bool data_zcopy_start(rndv_send_request *req) noexcept
{
    return start_zcopy(req, req->ep->am_lane().md_index);
}

constexpr protocol data_copy = {"fragments copy-in copy-out", false, typed<data_copy_start>,
                                typed<data_copy_progress>, comp_abort};
constexpr protocol data_zcopy = {"fragments zero-copy copy-out", false, typed<data_zcopy_start>,
                                 typed<data_zcopy_progress>, comp_abort};

ucs_status_t data_start_progress(rndv_send_request *req) noexcept
{
    return start_protocol(req, req->ep->config->rndv_data,
                          req->dt.is_contig() ? MEMORY_PLAIN : MEMORY_SCATTERED);
}

} // namespace

void rndv_offer(rndv_send_request *req) noexcept
{
    const ucp_ep *ep = req->ep;
    uct_mem_h memh = nullptr;
    if (req->dt.is_contig() && req->dt.length() != 0 &&
        request_reg_remote(req, ep->lanes[ep->rma_lane_index()].md_index, req->dt.contig_ptr(),
                           req->dt.length(), &memh) == UCS_OK) {
        req->memory.zmemh = memh;
        rails_register(req);
    }
}

ucs_status_t rndv_rts_progress(rndv_send_request *req) noexcept
{
    return answered_piece(req, PHASE_RTS, AM_ID_RNDV_RTS, pack_rts, UCT_SEND_FLAG_BATCH);
}

void rndv_rts_abort(rndv_send_request *req, ucs_status_t status) noexcept
{
    if (req->phase == PHASE_RTS) {
        // The caller may write to the memory now, and the peer is not to read that.
        withdraw_memh(req);
        req->worker->proto->announced.keep(req);
    }
    complete(req, status);
}

// ---- receiver

void remote_read::release_key() noexcept
{
    if (cmpt) {
        uct_rkey_release(cmpt, &bundle);
        cmpt = nullptr;
    }
}

namespace {

void answer(ucp_ep *ep, uint64_t sreq, ucs_status_t status) noexcept
{
    send_control(ep, AM_ID_RNDV_ATS, wire::answer_hdr{ep->remote_id, sreq, status});
}

void ask_fragments(rndv_recv_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    uint64_t id = request_wire_id(req);
    if (UCS_UNLIKELY(id == 0)) {
        answer(ep, req->sender, UCS_ERR_NO_MEMORY);
        complete(req, UCS_ERR_NO_MEMORY);
        return;
    }
    wire::rtr_hdr rtr = {ep->remote_id, req->sender, id, req->read.size};
    req->phase = PHASE_RNDV_RECV;
    req->remaining = req->read.size;
    req->comp.status = UCS_OK;
    req->abort = abort_simple;
    ep->add_outstanding(req);
    send_control(ep, AM_ID_RNDV_RTR, rtr);
}

void get_done(uct_completion_t *comp)
{
    auto *req = static_cast<rndv_recv_request *>(ucp_request::from_comp(comp));
    req->read.release_key();
    ucs_status_t status = comp_status(req);
    if (req->flags & REQ_ABORTED || req->ep->check_usable() != UCS_OK) {
        complete(req, status == UCS_OK ? req->ep->check_usable() : status);
        return;
    }
    if (UCS_UNLIKELY(status == UCS_OK && settling::concerns(req))) {
        if (req->worker->settling->add(req)) {
            return;
        }
        status = UCS_ERR_NO_MEMORY;
    }
    if (UCS_UNLIKELY(status != UCS_OK)) {
        // Reading failed though the peer lives (no permission, for one): let it send.
        ucs_debug("ep %p: rendezvous get of %zu bytes: %s, asking for fragments", (void *)req->ep,
                  req->read.size, ucs_status_string(status));
        request_unlist(req);
        ask_fragments(req);
        return;
    }
    rndv_get_finish(req);
}

} // namespace

void rndv_get_finish(rndv_recv_request *req) noexcept
{
    answer(req->ep, req->sender, UCS_OK);
    complete(req, UCS_OK);
}

ucs_status_t rndv_post_read(data_request *req, remote_read *read) noexcept
{
    const lane &l = req->ep->lanes[read->lane];
    req->pend_lane = read->lane;
    size_t offset = read->posted;
    size_t n = std::min(read->size - offset, l.attr().cap.get.max_zcopy);
    uct_iov_t iov = {};
    iov.buffer = req->dt.contig_ptr() + offset;
    iov.length = n;
    iov.memh = req->memory.zmemh;
    iov.count = 1;
    ++req->comp.count;
    ucs_status_t status =
        uct_ep_get_zcopy(l.ep, &iov, 1, read->remote_addr + offset, read->bundle.rkey, &req->comp);
    if (status != UCS_INPROGRESS) {
        --req->comp.count;
    }
    if (UCS_UNLIKELY(status != UCS_OK && status != UCS_INPROGRESS)) {
        if (status == UCS_ERR_NO_RESOURCE) {
            return status;
        }
        // get_done() decides what the failure means.
        if (req->comp.status == UCS_OK) {
            req->comp.status = status;
        }
        comp_end(req);
        return UCS_OK;
    }
    read->posted += n;
    if (read->posted < read->size) {
        return UCS_INPROGRESS;
    }
    comp_end(req);
    return UCS_OK;
}

namespace {

ucs_status_t get_progress(rndv_recv_request *req) noexcept
{
    return rndv_post_read(req, &req->read);
}

bool start_get(rndv_recv_request *req, const rts_hdr *rts) noexcept
{
    ucp_ep *ep = req->ep;
    if (rts->address == 0 || rts->rkey_len == 0 || !req->dt.is_contig()) {
        return false;
    }
    if (UCS_UNLIKELY(ep->rail_count > 1) && rails_get(req, rts, get_done)) {
        return true;
    }
    const void *key;
    uint8_t index = rkey_lane(ep, rts + 1, rts->rkey_len, UCT_IFACE_FLAG_GET_ZCOPY, &key);
    if (index == NO_LANE) {
        return false;
    }
    const lane &l = ep->lanes[index];
    if (rts->size < l.attr().cap.get.min_zcopy || l.attr().cap.get.max_zcopy == 0) {
        return false;
    }
    uct_mem_h memh = nullptr;
    if (request_reg(req, l.md_index, req->dt.contig_ptr(), rts->size, &memh) != UCS_OK) {
        return false;
    }
    uct_component_h cmpt = ep->worker->context->mds[l.md_index].cmpt;
    remote_read &read = req->read;
    if (uct_rkey_unpack(cmpt, key, &read.bundle) != UCS_OK) {
        return false;
    }
    read.cmpt = cmpt;
    req->memory.zmemh = memh;
    read.lane = index;
    read.remote_addr = rts->address;
    read.posted = 0;
    req->phase = PHASE_RNDV_GET;
    req->progress = typed<get_progress>;
    req->abort = comp_abort;
    comp_begin(req, get_done);
    send_internal(req);
    return true;
}

} // namespace

const message_protocols rndv_messages = {
    .short_ = nullptr,
    .copy = nullptr,
    .fragments = &data_copy,
    .zcopy = &data_zcopy,
    .read = nullptr,
    .send = nullptr,
    .copy_header = sizeof(wire::data_hdr),
    .zcopy_header = sizeof(wire::data_hdr),
};

void rndv_refuse(ucp_worker *worker, const rts_hdr *rts, ucs_status_t status) noexcept
{
    ucp_ep *ep = find_usable_ep(worker, rts->ep);
    if (ep) {
        answer(ep, rts->req, status);
    } else {
        drop_stale(worker, "rendezvous");
    }
}

void rndv_recv(rndv_recv_request *req, const rts_hdr *rts) noexcept
{
    ucp_ep *ep = find_usable_ep(req->worker, rts->ep);
    if (!ep) {
        drop_stale(req->worker, "rendezvous");
        complete(req, UCS_ERR_CONNECTION_RESET);
        return;
    }
    req->ep = ep;
    req->sender = rts->req;
    req->read.size = rts->size;
    if (rts->size > req->dt.length()) {
        answer(ep, rts->req, UCS_OK);
        complete(req, UCS_ERR_MESSAGE_TRUNCATED);
    } else if (rts->size == 0) {
        answer(ep, rts->req, UCS_OK);
        complete(req, UCS_OK);
    } else if (!start_get(req, rts)) {
        ask_fragments(req);
    }
}

ucs_status_t rndv_rts_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    const auto *rts = static_cast<const rts_hdr *>(data);
    alignas(rts_hdr) char copy[512];
    if (length < sizeof(*rts) || rts->rkey_len > length - sizeof(*rts) ||
        rts->header_len > length - sizeof(*rts) - rts->rkey_len) {
        return drop_damaged(worker, "rts", length);
    }
    if (UCS_UNLIKELY(reinterpret_cast<uintptr_t>(data) % alignof(rts_hdr)) &&
        length <= sizeof(copy)) {
        memcpy(copy, data, length);
        rts = reinterpret_cast<const rts_hdr *>(copy);
    }
    if (UCS_UNLIKELY(rts->size > wire::max_message)) {
        rndv_refuse(worker, rts, UCS_ERR_EXCEEDS_LIMIT);
        return drop_damaged(worker, "rts", length);
    }
    if (rts->kind == wire::RTS_TAG && worker->context->has_feature(UCP_FEATURE_TAG)) {
        return tag_rts(worker, rts, length);
    }
    if (rts->kind == wire::RTS_AM && worker->context->has_feature(UCP_FEATURE_AM)) {
        return am_rts(worker, rts, length);
    }
    return drop_damaged(worker, "rts", length);
}

ucs_status_t rndv_rtr_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::rtr_hdr rtr;
    if (length < sizeof(rtr)) {
        return drop_damaged(worker, "rtr", length);
    }
    memcpy(&rtr, data, sizeof(rtr));
    auto *req = find_asked<rndv_send_request>(worker, rtr.ep, rtr.sreq, PHASE_RTS);
    if (!req) {
        worker->proto->announced.answered(rtr.sreq);
        drop_stale(worker, "rtr");
        return UCS_OK;
    }
    if (rtr.size > req->dt.length()) {
        return drop_damaged(worker, "rtr", length);
    }
    request_unlist(req);
    req->phase = PHASE_RNDV_SEND;
    req->receiver = rtr.rreq;
    req->wanted = rtr.size;
    req->dt.rewind(0);
    release_memh(req);
    req->progress = typed<data_start_progress>;
    req->abort = abort_simple;
    send_internal(req);
    return UCS_OK;
}

ucs_status_t rndv_data_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::data_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, "rndv data", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    auto *req = find_asked<rndv_recv_request>(worker, hdr.ep, hdr.req, PHASE_RNDV_RECV);
    if (!req) {
        drop_stale(worker, "rndv data");
        return UCS_OK;
    }
    size_t n = length - sizeof(hdr);
    if (n > req->remaining) {
        return drop_damaged(worker, "rndv data", length);
    }
    if (req->comp.status == UCS_OK) {
        req->comp.status =
            req->dt.unpack(hdr.offset, static_cast<const char *>(data) + sizeof(hdr), n);
    }
    req->remaining -= n;
    if (req->remaining == 0) {
        complete(req, req->comp.status);
    }
    return UCS_OK;
}

ucs_status_t rndv_ats_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::answer_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, "ats", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    ucp_request *req = find_asked(worker, hdr.ep, hdr.req, PHASE_RTS);
    if (!req) {
        worker->proto->announced.answered(hdr.req);
        drop_stale(worker, "ats");
        return UCS_OK;
    }
    if (hdr.status > 0 || hdr.status <= UCS_ERR_LAST) {
        return drop_damaged(worker, "ats", length);
    }
    complete(req, static_cast<ucs_status_t>(hdr.status));
    return UCS_OK;
}

} // namespace ucp
