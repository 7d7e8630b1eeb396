// SPDX-License-Identifier: BSD-3-Clause
//
// Put: a store, the lane's put operations, or a message that the target copies out.
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

ucs_status_t check_rma(const rma_args &a, const ucp_request_param_t *param) noexcept
{
    UCS_CHECK_ARG(a.ep, "%s: ep must not be NULL", a.call);
    ucs_status_t status = check_operation(a.call, a.ep->worker->context, UCP_FEATURE_RMA, param,
                                          a.buffer, a.count, a.dt);
    if (UCS_UNLIKELY(status != UCS_OK)) {
        return status;
    }
    if (a.count == 0) {
        return UCS_OK;
    }
    UCS_CHECK_ARG(a.buffer, "%s: buffer must not be NULL", a.call);
    UCS_CHECK_ARG(a.rkey, "%s: rkey must not be NULL", a.call);
    uint64_t cls = a.dt & UCP_DATATYPE_CLASS_MASK;
    if (cls != UCP_DATATYPE_CONTIG && cls != UCP_DATATYPE_IOV) {
        return UCS_ERR_UNSUPPORTED;
    }
    return UCS_OK;
}

namespace {

size_t pack_put(void *dest, void *arg)
{
    auto *req = static_cast<rma_request *>(arg);
    wire::put_hdr hdr = {req->rkey->memh_id, req->address + req->dt.offset(), req->ep->remote_id};
    memcpy(dest, &hdr, sizeof(hdr));
    size_t room = req->ep->limits().max_bcopy - sizeof(hdr);
    return sizeof(hdr) + req->dt.pack(static_cast<char *>(dest) + sizeof(hdr), room);
}

ucs_status_t software_progress(rma_request *req) noexcept
{
    return bcopy_piece(req, AM_ID_RMA_PUT, pack_put);
}

bool software_start(rma_request *req) noexcept
{
    req->ep->rma_sent();
    return true;
}

ucs_status_t software_zcopy_progress(rma_request *req) noexcept
{
    wire::put_hdr hdr = {req->rkey->memh_id, req->address + req->dt.offset(), req->ep->remote_id};
    return zcopy_message(req, AM_ID_RMA_PUT, &hdr, sizeof(hdr));
}

ucs_status_t native_progress(rma_request *req) noexcept
{
    const rkey_rail &rail = req->rkey->rail(req->rail);
    return native_piece(req, rail, req->ep->lanes[rail.lane].attr().cap.put.max_zcopy,
                        uct_ep_put_zcopy);
}

bool software_zcopy_start(rma_request *req) noexcept
{
    return start_zcopy(req, req->ep->am_lane().md_index) && software_start(req);
}

bool native_start(rma_request *req) noexcept
{
    return start_native(req, false);
}

ucs_status_t short_progress(rma_request *req) noexcept
{
    const rkey_rail &first = req->rkey->first;
    req->pend_lane = first.lane;
    ucs_status_t status =
        uct_ep_put_short(req->ep->lanes[first.lane].ep, req->dt.contig_ptr(),
                         static_cast<unsigned>(req->dt.length()), req->address, first.bundle.rkey);
    if (status == UCS_OK) {
        complete(req, UCS_OK);
    }
    return status;
}

constexpr protocol software_copy = {"software emulation copy-in", false, typed<software_start>,
                                    typed<software_progress>, abort_simple};
constexpr protocol software_fragments = {"multi-frag software emulation copy-in", false,
                                         typed<software_start>, typed<software_progress>,
                                         abort_simple};
constexpr protocol software_zcopy = {"software emulation zero-copy", false,
                                     typed<software_zcopy_start>, typed<software_zcopy_progress>,
                                     comp_abort};

struct put_pack {
    wire::put_hdr hdr;
    const void *data;
    size_t length;
};

size_t pack_small(void *dest, void *arg)
{
    auto *p = static_cast<put_pack *>(arg);
    memcpy(dest, &p->hdr, sizeof(p->hdr));
    ucs::copy(static_cast<char *>(dest) + sizeof(p->hdr), p->data, p->length);
    return sizeof(p->hdr) + p->length;
}

// Without a request; NO_RESOURCE when that does not go.
ucs_status_t put_at_once(const rma_args &a, size_t length) noexcept
{
    ucp_ep *ep = a.ep;
    const proto_range *of_lane = lane_range(ep, ep->config->lane_put, a.rkey, length, RIGHT_WRITE);
    const proto_range &range = of_lane ? *of_lane : ep->config->put[MEMORY_PLAIN].select(length);
    if (range.proto == &put_short) {
        ucs_status_t status =
            uct_ep_put_short(ep->lanes[a.rkey->first.lane].ep, a.buffer,
                             static_cast<unsigned>(length), a.address, a.rkey->first.bundle.rkey);
        range.used += status == UCS_OK;
        return status;
    }
    if (range.proto != &software_copy) {
        return UCS_ERR_NO_RESOURCE;
    }
    put_pack pack = {{a.rkey->memh_id, a.address, ep->remote_id}, a.buffer, length};
    ssize_t n = uct_ep_am_bcopy(ep->am_ep, AM_ID_RMA_PUT, pack_small, &pack, 0);
    if (n < 0) {
        return static_cast<ucs_status_t>(n);
    }
    ++range.used;
    ep->rma_sent();
    return UCS_OK;
}

struct put_operation : rma_operation {
    static constexpr ucs::stats::flow counted = ucs::stats::memory_put;

    static void at_mapped(const rma_args &a, char *to, size_t length) noexcept
    {
        ucs::copy(to, a.buffer, length);
        std::atomic_thread_fence(std::memory_order_release);
    }
    static ucs_status_t at_once(const rma_args &a, size_t length) noexcept
    {
        return put_at_once(a, length);
    }
    static ucs_status_t make(const rma_args &a, const ucp_request_param_t *param,
                             rma_request **req_p) noexcept
    {
        return make_rma_request(a, data_way::from_buffer, param, req_p);
    }
    static ucs_status_t at_mapped(rma_request *req, char *to) noexcept
    {
        req->dt.pack(to, req->dt.length());
        return UCS_OK;
    }
    static ucs_status_t start(rma_request *req) noexcept
    {
        const ep_config &config = *req->ep->config;
        return start_by(req, config.lane_put, RIGHT_WRITE, config.put);
    }
};

} // namespace

const protocol put_short = {"short", true, nullptr, typed<short_progress>, abort_simple};
const protocol put_zcopy = {"zero-copy", true, typed<native_start>, typed<native_progress>,
                            comp_abort};
const protocol put_store = {"memory copy", true, nullptr, nullptr, nullptr};
const message_protocols put_messages = {
    .short_ = nullptr,
    .copy = &software_copy,
    .fragments = &software_fragments,
    .zcopy = &software_zcopy,
    .read = nullptr,
    .send = nullptr,
    .copy_header = sizeof(wire::put_hdr),
    .zcopy_header = sizeof(wire::put_hdr),
};

ucs_status_ptr_t put(const rma_args &a, const ucp_request_param_t *param) noexcept
{
    return rma_post<put_operation>(a, param);
}

ucs_status_t rma_wait(ucp_worker *worker, ucs_status_ptr_t ptr) noexcept
{
    if (!UCS_PTR_IS_PTR(ptr)) {
        return UCS_PTR_STATUS(ptr);
    }
    ucs_status_t status;
    while ((status = ucp_request_check_status(ptr)) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
    }
    ucp_request_free(ptr);
    return status;
}

// ---- target

ucs_status_t rma_put_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::put_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, "put", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    size_t n = length - sizeof(hdr);
    bool good = access_mapped(worker, hdr.memh, hdr.address, n, RIGHT_WRITE, [&](char *to) {
        ucs::copy(to, static_cast<char *>(data) + sizeof(hdr), n);
    });
    if (!good) {
        if (peer_fault(worker)) {
            ucs_error("worker %p: a put of %zu bytes to 0x%llx is outside the mapping it names, "
                      "or denied",
                      (void *)worker, n, (unsigned long long)hdr.address);
        }
        drop_stale(worker, "put");
    }
    return UCS_OK;
}

// ---- confirmation of everything emulated so far

namespace {

struct ack_request : ucp_request {
    using ucp_request::ucp_request;

    uint64_t seq; // what the target has to confirm
};

ucs_status_t ack_progress(ack_request *req) noexcept
{
    req->pend_lane = req->ep->am_lane_index;
    ucs_status_t status = rma_post_ack_request(req->ep, req->seq);
    if (status == UCS_OK) {
        complete(req, UCS_OK);
    }
    return status;
}

} // namespace

ucs_status_t rma_post_ack_request(ucp_ep *ep, uint64_t seq) noexcept
{
    if (ep->limits().max_short < sizeof(seq)) {
        return UCS_ERR_UNSUPPORTED;
    }
    return uct_ep_am_short(ep->am_ep, AM_ID_RMA_FLUSH, ep->remote_id, &seq, sizeof(seq));
}

void rma_request_ack(ucp_ep *ep) noexcept
{
    if (ep->rma_posted == ep->rma_acked || ep->check_usable() != UCS_OK) {
        return;
    }
    auto *req = request_get_internal<ack_request>(ep->worker);
    if (!req) {
        return ep->set_failed(UCS_ERR_NO_MEMORY);
    }
    req->ep = ep;
    req->seq = ep->rma_posted;
    req->progress = typed<ack_progress>;
    req->abort = abort_simple;
    send_internal(req);
}

ucs_status_t rma_flush_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::flush_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, "rma flush", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    ucp_ep *ep = find_usable_ep(worker, hdr.ep);
    if (!ep) {
        drop_stale(worker, "rma flush");
    } else {
        send_control(ep, AM_ID_RMA_ACK, wire::flush_hdr{ep->remote_id, hdr.seq});
    }
    return UCS_OK;
}

ucs_status_t rma_ack_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::flush_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, "rma ack", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    ucp_ep *ep = find_usable_ep(worker, hdr.ep);
    if (!ep) {
        drop_stale(worker, "rma ack");
    } else if (hdr.seq > ep->rma_acked && hdr.seq <= ep->rma_posted) {
        ep->rma_acked = hdr.seq - 1;
        ep->rma_done();
    }
    return UCS_OK;
}

} // namespace ucp

extern "C" {

UCS_EXPORT ucs_status_ptr_t ucp_put_nbx(ucp_ep_h ep, const void *buffer, size_t count,
                                        uint64_t remote_addr, ucp_rkey_h rkey,
                                        const ucp_request_param_t *param)
{
    UCS_CHECK_ARG_PTR(param, "ucp_put_nbx: param must not be NULL");
    ucp_datatype_t dt = ucp::datatype_of(param);
    const ucp::rma_args args = {"ucp_put_nbx", ep,  const_cast<void *>(buffer), count, dt,
                                remote_addr,   rkey};
    if (UCS_UNLIKELY(ucp::is_sgl(dt, param))) {
        return ucp::sgl(ucp::put, args, param);
    }
    return ucp::put(args, param);
}

UCS_EXPORT ucs_status_ptr_t ucp_put_nb(ucp_ep_h ep, const void *buffer, size_t length,
                                       uint64_t remote_addr, ucp_rkey_h rkey,
                                       ucp_send_callback_t cb)
{
    ucp_request_param_t param = ucp::nb_param(cb);
    return ucp::put({"ucp_put_nb", ep, const_cast<void *>(buffer), length, ucp_dt_make_contig(1),
                     remote_addr, rkey},
                    &param);
}

UCS_EXPORT ucs_status_t ucp_put_nbi(ucp_ep_h ep, const void *buffer, size_t length,
                                    uint64_t remote_addr, ucp_rkey_h rkey)
{
    ucs_status_ptr_t ptr = ucp::put({"ucp_put_nbi", ep, const_cast<void *>(buffer), length,
                                     ucp_dt_make_contig(1), remote_addr, rkey},
                                    nullptr);
    return ptr == &ucp::nbi_tag ? UCS_INPROGRESS : UCS_PTR_STATUS(ptr);
}

UCS_EXPORT ucs_status_t ucp_put(ucp_ep_h ep, const void *buffer, size_t length,
                                uint64_t remote_addr, ucp_rkey_h rkey)
{
    ucp_request_param_t param;
    param.op_attr_mask = 0;
    ucs_status_ptr_t ptr = ucp::put({"ucp_put", ep, const_cast<void *>(buffer), length,
                                     ucp_dt_make_contig(1), remote_addr, rkey},
                                    &param);
    return ep ? ucp::rma_wait(ep->worker, ptr) : UCS_PTR_STATUS(ptr);
}

} // extern "C"
