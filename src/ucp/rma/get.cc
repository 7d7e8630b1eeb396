// SPDX-License-Identifier: BSD-3-Clause
//
// Get: a load, the lane's get operations, or a question that the target answers with fragments.
#include "ucp/core/nb.h"
#include "ucp/proto/protocols.h"
#include "ucp/rma/native.h"
#include "ucp/rma/sgl.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace ucp {

namespace {

constexpr uint64_t GET_FAILED = UINT64_MAX; // data_hdr.offset of a refusal

size_t pack_get(void *dest, void *arg)
{
    auto *req = static_cast<ucp_request *>(arg);
    wire::get_hdr hdr = {req->rma.rkey->memh_id, req->rma.address, req->dt.length(),
                         req->ep->remote_id, req->id};
    memcpy(dest, &hdr, sizeof(hdr));
    return sizeof(hdr);
}

ucs_status_t software_progress(ucp_request *req) noexcept
{
    if (UCS_UNLIKELY(request_wire_id(req) == 0)) {
        return UCS_ERR_NO_MEMORY;
    }
    ucp_ep *ep = req->ep;
    req->pend_lane = ep->am_lane_index;
    req->remaining = req->dt.length();
    req->comp.status = UCS_OK;
    // The answer may come inside the call (loopback): the request must be ready for it.
    req->phase = PHASE_RMA_GET;
    ep->add_outstanding(req);
    ssize_t n = uct_ep_am_bcopy(ep->am_ep, AM_ID_RMA_GET, pack_get, req, 0);
    if (UCS_LIKELY(n >= 0)) {
        ep->rma_sent(); // the answer comes before the confirmation that a flush asks for
        return UCS_OK;
    }
    request_unlist(req);
    req->phase = PHASE_NONE;
    return static_cast<ucs_status_t>(n);
}

ucs_status_t native_progress(ucp_request *req) noexcept
{
    const rkey_rail &rail = req->rma.rkey->rail(req->rma.rail);
    return native_piece(req, rail, req->ep->lanes[rail.lane].attr().cap.get.max_zcopy,
                        uct_ep_get_zcopy);
}

bool native_start(ucp_request *req) noexcept
{
    return start_native(req, true);
}

constexpr protocol software = {"software emulation", false, nullptr, software_progress,
                               abort_simple};

ucs_status_t start_progress(ucp_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    ucp_rkey *rkey = req->rma.rkey;
    size_t length = req->dt.length();
    if (char *from = direct_address(rkey, req->rma.address, length, ucs::stats::memory_get)) {
        complete(req, req->dt.unpack(0, from, length));
        return UCS_OK;
    }
    const proto_range *range = req->dt.is_contig()
                                   ? lane_range(ep, ep->config->lane_get, rkey, length, RIGHT_READ)
                                   : nullptr;
    if (range && try_protocol(req, *range)) {
        return req->progress(req);
    }
    return start_protocol(req, ep->config->get);
}

} // namespace

const protocol get_zcopy = {"zero-copy", true, native_start, native_progress, comp_abort};
const protocol get_load = {"memory copy", true, nullptr, nullptr, nullptr};
const message_protocols get_messages = {
    .short_ = nullptr,
    .copy = nullptr,
    .fragments = &software,
    .zcopy = nullptr,
    .read = nullptr,
    .send = nullptr,
    .copy_header = 0,
    .zcopy_header = 0,
};

ucs_status_ptr_t get(const rma_args &a, const ucp_request_param_t *param) noexcept
{
    ucs_status_t status = check_rma(a, param);
    if (UCS_UNLIKELY(status != UCS_OK)) {
        return UCS_STATUS_PTR(status);
    }
    ucp_ep *ep = a.ep;
    ucs::opt_guard guard(ep->worker->lock);
    size_t length = a.count ? dt_length(a.dt, a.buffer, a.count) : 0;
    bool contig = (a.dt & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG;
    bool done = length == 0;
    if (!done && contig && ep->check_usable() == UCS_OK) {
        if (const char *from = direct_address(a.rkey, a.address, length, ucs::stats::memory_get)) {
            std::atomic_thread_fence(std::memory_order_acquire);
            memcpy(a.buffer, from, length);
            done = true;
        }
    }
    if (done) {
        return param ? post_return_imm(ep->worker, req_kind::send, UCS_OK, param) : nullptr;
    }
    ucp_request *req;
    status = rma_request(a, data_way::into_buffer, param, &req);
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    req->progress = start_progress;
    req->abort = abort_simple;
    return rma_start(req, param);
}

// ---- target

namespace {

struct reply_pack {
    ucp_request *req;
    size_t length; // of the data, which the lane has room for
    bool good;
};

// The mapping may go while fragments wait for the lane: it is looked up for each of them.
size_t pack_reply(void *dest, void *arg)
{
    auto *p = static_cast<reply_pack *>(arg);
    const ucp_request::get_reply_part &r = p->req->get_reply;
    wire::data_hdr hdr = {p->req->ep->remote_id, r.initiator, r.sent};
    p->good = access_mapped(p->req->worker, r.memh, r.address + r.sent, p->length, RIGHT_READ,
                            [&](const char *from) {
                                memcpy(static_cast<char *>(dest) + sizeof(hdr), from, p->length);
                            });
    if (!p->good) {
        hdr.offset = GET_FAILED;
        p->length = 0;
    }
    memcpy(dest, &hdr, sizeof(hdr));
    return sizeof(hdr) + p->length;
}

ucs_status_t reply_progress(ucp_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    req->pend_lane = ep->am_lane_index;
    ucp_request::get_reply_part &r = req->get_reply;
    size_t n = std::min<size_t>(r.length - r.sent, ep->limits().max_bcopy - sizeof(wire::data_hdr));
    reply_pack pack = {req, n, false};
    ssize_t sent = uct_ep_am_bcopy(ep->am_ep, AM_ID_RMA_GET_REPLY, pack_reply, &pack, 0);
    if (sent < 0) {
        return static_cast<ucs_status_t>(sent);
    }
    r.sent += n;
    if (pack.good && r.sent < r.length) {
        return UCS_INPROGRESS;
    }
    complete(req, UCS_OK);
    return UCS_OK;
}

} // namespace

ucs_status_t rma_get_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::get_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, "get", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    ucp_ep *ep = find_usable_ep(worker, hdr.ep);
    if (!ep) {
        drop_stale(worker, "get");
        return UCS_OK;
    }
    if (!is_mapped(worker, hdr.memh, hdr.address, hdr.length, RIGHT_READ)) {
        if (peer_fault(worker)) {
            ucs_error("worker %p: a get of %llu bytes at 0x%llx is outside the mapping it names, "
                      "or denied",
                      (void *)worker, (unsigned long long)hdr.length,
                      (unsigned long long)hdr.address);
        }
        hdr.length = 1; // one piece, refused
        hdr.memh = 0;
    }
    ucp_request *req = request_get_internal(worker);
    if (!req) {
        ep->set_failed(UCS_ERR_NO_MEMORY);
        return UCS_OK;
    }
    req->ep = ep;
    req->get_reply = {hdr.memh, hdr.address, hdr.length, hdr.req, 0};
    req->progress = reply_progress;
    req->abort = abort_simple;
    send_internal(req);
    return UCS_OK;
}

ucs_status_t rma_get_reply_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::data_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, "get reply", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    ucp_request *req = find_asked(worker, hdr.ep, hdr.req, PHASE_RMA_GET);
    if (!req) {
        drop_stale(worker, "get reply");
        return UCS_OK;
    }
    if (hdr.offset == GET_FAILED) {
        complete(req, UCS_ERR_INVALID_ADDR);
        return UCS_OK;
    }
    size_t n = length - sizeof(hdr);
    if (n > req->remaining) {
        return drop_damaged(worker, "get reply", length);
    }
    if (req->comp.status == UCS_OK) {
        req->comp.status = req->dt.unpack(hdr.offset, static_cast<char *>(data) + sizeof(hdr), n);
    }
    req->remaining -= n;
    if (req->remaining == 0) {
        complete(req, req->comp.status);
    }
    return UCS_OK;
}

} // namespace ucp

extern "C" {

UCS_EXPORT ucs_status_ptr_t ucp_get_nbx(ucp_ep_h ep, void *buffer, size_t count,
                                        uint64_t remote_addr, ucp_rkey_h rkey,
                                        const ucp_request_param_t *param)
{
    UCS_CHECK_ARG_PTR(param, "ucp_get_nbx: param must not be NULL");
    ucp_datatype_t dt = ucp::datatype_of(param);
    const ucp::rma_args args = {"ucp_get_nbx", ep, buffer, count, dt, remote_addr, rkey};
    if (UCS_UNLIKELY(ucp::is_sgl(dt, param))) {
        return ucp::sgl(ucp::get, args, param);
    }
    return ucp::get(args, param);
}

UCS_EXPORT ucs_status_ptr_t ucp_get_nb(ucp_ep_h ep, void *buffer, size_t length,
                                       uint64_t remote_addr, ucp_rkey_h rkey,
                                       ucp_send_callback_t cb)
{
    ucp_request_param_t param = ucp::nb_param(cb);
    return ucp::get({"ucp_get_nb", ep, buffer, length, ucp_dt_make_contig(1), remote_addr, rkey},
                    &param);
}

UCS_EXPORT ucs_status_t ucp_get_nbi(ucp_ep_h ep, void *buffer, size_t length, uint64_t remote_addr,
                                    ucp_rkey_h rkey)
{
    ucs_status_ptr_t ptr = ucp::get(
        {"ucp_get_nbi", ep, buffer, length, ucp_dt_make_contig(1), remote_addr, rkey}, nullptr);
    return ptr == &ucp::nbi_tag ? UCS_INPROGRESS : UCS_PTR_STATUS(ptr);
}

UCS_EXPORT ucs_status_t ucp_get(ucp_ep_h ep, void *buffer, size_t length, uint64_t remote_addr,
                                ucp_rkey_h rkey)
{
    ucp_request_param_t param;
    param.op_attr_mask = 0;
    ucs_status_ptr_t ptr =
        ucp::get({"ucp_get", ep, buffer, length, ucp_dt_make_contig(1), remote_addr, rkey}, &param);
    return ep ? ucp::rma_wait(ep->worker, ptr) : UCS_PTR_STATUS(ptr);
}

} // extern "C"
