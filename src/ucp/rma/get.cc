// SPDX-License-Identifier: BSD-3-Clause
//
// Get: a load, the lane's get operations, or a question that the target answers with fragments.
#include "ucp/core/nb.h"
#include "ucp/proto/protocols.h"
#include "ucp/rma/dispatch.h"
#include "ucp/rma/native.h"
#include "ucp/rma/sgl.h"
#include "ucs/copy.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace ucp {

namespace {

constexpr uint64_t GET_FAILED = UINT64_MAX; // data_hdr.offset of a refusal

size_t pack_get(void *dest, void *arg)
{
    auto *req = static_cast<rma_request *>(arg);
    wire::get_hdr hdr = {req->rkey->memh_id, req->address, req->dt.length(), req->ep->remote_id,
                         req->id};
    memcpy(dest, &hdr, sizeof(hdr));
    return sizeof(hdr);
}

ucs_status_t software_progress(rma_request *req) noexcept
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

ucs_status_t native_progress(rma_request *req) noexcept
{
    const rkey_rail &rail = req->rkey->rail(req->rail);
    return native_piece(req, rail, req->ep->lanes[rail.lane].attr().cap.get.max_zcopy,
                        uct_ep_get_zcopy);
}

bool native_start(rma_request *req) noexcept
{
    return start_native(req, true);
}

constexpr protocol software = {"software emulation", false, nullptr, typed<software_progress>,
                               abort_simple};

struct get_operation : rma_operation {
    static constexpr ucs::stats::flow counted = ucs::stats::memory_get;

    static void at_mapped(const rma_args &a, const char *from, size_t length) noexcept
    {
        std::atomic_thread_fence(std::memory_order_acquire);
        ucs::copy(a.buffer, from, length);
    }
    static ucs_status_t at_once(const rma_args &, size_t) noexcept
    {
        return UCS_ERR_NO_RESOURCE; // the bytes come later
    }
    static ucs_status_t make(const rma_args &a, const ucp_request_param_t *param,
                             rma_request **req_p) noexcept
    {
        return make_rma_request(a, data_way::into_buffer, param, req_p);
    }
    static ucs_status_t at_mapped(rma_request *req, const char *from) noexcept
    {
        return req->dt.unpack(0, from, req->dt.length());
    }
    static ucs_status_t start(rma_request *req) noexcept
    {
        const ep_config &config = *req->ep->config;
        return start_by(req, config.lane_get, RIGHT_READ, config.get);
    }
};

} // namespace

const protocol get_zcopy = {"zero-copy", true, typed<native_start>, typed<native_progress>,
                            comp_abort};
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
    return rma_post<get_operation>(a, param);
}

// ---- target

namespace {

// The target's answer to a get.
struct reply_request : ucp_request {
    using ucp_request::ucp_request;

    uint64_t memh;
    uint64_t address;
    uint64_t length;
    uint64_t initiator; // its request
    uint64_t sent;      // bytes
};

struct reply_pack {
    const reply_request *req;
    size_t length; // of the data, which the lane has room for
    bool good;
};

// The mapping may go while fragments wait for the lane: it is looked up for each of them.
size_t pack_reply(void *dest, void *arg)
{
    auto *p = static_cast<reply_pack *>(arg);
    const reply_request &r = *p->req;
    wire::data_hdr hdr = {r.ep->remote_id, r.initiator, r.sent};
    p->good = access_mapped(r.worker, r.memh, r.address + r.sent, p->length, RIGHT_READ,
                            [&](const char *from) {
                                ucs::copy(static_cast<char *>(dest) + sizeof(hdr), from, p->length);
                            });
    if (!p->good) {
        hdr.offset = GET_FAILED;
        p->length = 0;
    }
    memcpy(dest, &hdr, sizeof(hdr));
    return sizeof(hdr) + p->length;
}

ucs_status_t reply_progress(reply_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    req->pend_lane = ep->am_lane_index;
    size_t n =
        std::min<size_t>(req->length - req->sent, ep->limits().max_bcopy - sizeof(wire::data_hdr));
    reply_pack pack = {req, n, false};
    ssize_t sent = uct_ep_am_bcopy(ep->am_ep, AM_ID_RMA_GET_REPLY, pack_reply, &pack, 0);
    if (sent < 0) {
        return static_cast<ucs_status_t>(sent);
    }
    req->sent += n;
    if (pack.good && req->sent < req->length) {
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
    auto *req = request_get_internal<reply_request>(worker);
    if (!req) {
        ep->set_failed(UCS_ERR_NO_MEMORY);
        return UCS_OK;
    }
    req->ep = ep;
    req->memh = hdr.memh;
    req->address = hdr.address;
    req->length = hdr.length;
    req->initiator = hdr.req;
    req->sent = 0;
    req->progress = typed<reply_progress>;
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
    auto *req = find_asked<rma_request>(worker, hdr.ep, hdr.req, PHASE_RMA_GET);
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
