// SPDX-License-Identifier: BSD-3-Clause
//
// Arrival of user active messages: handlers, data that outlives the callback, and receiving what a
// rendezvous offers.
//
// A descriptor given to the handler is in state `callback` until the handler returned, `held` when
// the user kept it (UCS_INPROGRESS), `taken` when it was received or released while the handler
// still ran.
#include "ucp/am/am.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/memory_type.h"
#include "ucp/proto/pieces.h"
#include "ucp/proto/proto.h"
#include "ucp/rndv/rndv.h"
#include "ucs/check.h"
#include "ucs/copy.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace ucp {

namespace {

struct am_recv_request : rndv_recv_request {
    static constexpr req_kind is = req_kind::am_recv;
    using rndv_recv_request::rndv_recv_request;
};

constexpr uint32_t PRIVATE_FLAGS = ~uint32_t(0) << 15; // not the user's to set

UCS_ALWAYS_INLINE const am_handler *find_handler(ucp_worker *worker, uint16_t id) noexcept
{
    const auto &table = worker->proto->am_handlers;
    if (UCS_LIKELY(id < table.size() && (table[id].cb || table[id].old_cb))) {
        return &table[id];
    }
    if (peer_fault(worker)) {
        ucs_warn("worker %p: dropped an active message, no handler for id %u", (void *)worker, id);
    }
    return nullptr;
}

// The endpoint that a message with the REPLY flag names; not one that the user has closed.
ucp_ep *find_reply_ep(ucp_worker *worker, uint64_t id) noexcept
{
    ucp_ep *ep = find_usable_ep(worker, id);
    return ep && ep->state != ep_state::closing ? ep : nullptr;
}

// Hand data to the user. `desc`, if there is one, owns `data`, and the user may keep it.
UCS_ALWAYS_INLINE ucs_status_t call_handler(const am_handler *h, const void *header,
                                            size_t header_len, void *data, size_t length,
                                            ucp_ep *reply_ep, bool may_keep) noexcept
{
    // Nothing of *h is looked at after the call: the callback may replace it.
    if (UCS_LIKELY(h->cb)) {
        ucp_am_recv_param_t param;
        param.recv_attr = may_keep ? UCP_AM_RECV_ATTR_FLAG_DATA : 0;
        if (reply_ep) {
            param.recv_attr |= UCP_AM_RECV_ATTR_FIELD_REPLY_EP;
        }
        param.reply_ep = reply_ep;
        return h->cb(h->arg, header_len ? header : nullptr, header_len, data, length, &param);
    }
    return h->old_cb(h->arg, data, length, reply_ep, may_keep ? UCP_CB_PARAM_FLAG_DATA : 0);
}

// After a handler that got `desc`: true if the user keeps it.
bool settle(recv_desc *desc, ucs_status_t status) noexcept
{
    if (status == UCS_INPROGRESS && desc->state == recv_desc::use::callback) {
        desc->state = recv_desc::use::held;
        return true;
    }
    return false;
}

// With data that the user may keep.
UCS_NOINLINE ucs_status_t deliver_kept(ucp_worker *worker, const am_handler *h,
                                       const wire::am_hdr &hdr, void *msg, size_t head,
                                       size_t length, const void *header, ucp_ep *reply_ep,
                                       unsigned uct_flags) noexcept
{
    bool keep;
    recv_desc *desc = worker->proto->descs.keep(msg, head, length, uct_flags, &keep);
    if (!desc) {
        ucs_error("worker %p: no memory to keep an active message of %zu bytes: it is lost",
                  (void *)worker, length);
        return UCS_OK;
    }
    desc->what = recv_desc::content::am;
    ucs_status_t status =
        call_handler(h, header, hdr.header_len, desc->data, length, reply_ep, true);
    if (settle(desc, status)) {
        return keep ? UCS_INPROGRESS : UCS_OK;
    }
    if (!keep) {
        worker->proto->descs.put(desc);
    }
    return UCS_OK;
}

// A whole message: data stands `head` bytes into the transport's message.
UCS_ALWAYS_INLINE ucs_status_t deliver(ucp_worker *worker, const wire::am_hdr &hdr, void *msg,
                                       size_t head, size_t length, const void *header,
                                       ucp_ep *reply_ep, unsigned uct_flags) noexcept
{
    const am_handler *h = find_handler(worker, hdr.am_id);
    if (UCS_UNLIKELY(!h)) {
        return UCS_OK;
    }
    bool persistent = h->flags & UCP_AM_FLAG_PERSISTENT_DATA;
    if (UCS_LIKELY(!persistent && !desc_pool::prefers_uct(length, uct_flags))) {
        call_handler(h, header, hdr.header_len, static_cast<char *>(msg) + head, length, reply_ep,
                     false);
        return UCS_OK;
    }
    return deliver_kept(worker, h, hdr, msg, head, length, header, reply_ep, uct_flags);
}

// ---- fragments

void store(partial *part, size_t offset, const void *bytes, size_t length) noexcept
{
    ucs::copy(static_cast<char *>(part->desc->data) + offset, bytes, length);
}

void whole(ucp_worker *worker, partial *in_table) noexcept
{
    partial part = *in_table;
    worker->proto->partials.erase(part.key);
    bool reply = part.am_flags & AM_WIRE_REPLY;
    ucp_ep *ep = reply ? find_reply_ep(worker, part.ep_id) : nullptr;
    const am_handler *h = find_handler(worker, part.am_id);
    if (reply && !ep) {
        drop_stale(worker, "am reply");
        h = nullptr;
    }
    bool kept = false;
    if (h) {
        kept = settle(part.desc, call_handler(h, part.header, part.header_len, part.desc->data,
                                              part.total, ep, true));
    }
    free(part.header);
    if (!kept) {
        worker->proto->descs.put(part.desc);
    }
}

void lost(ucp_worker *worker, partial *part, ucs_status_t) noexcept
{
    free(part->header);
    worker->proto->descs.put(part->desc);
}

constexpr fragmented fragments = {"am first", "am middle", store, whole, lost};

// ---- rendezvous for handlers of the old API, which get whole data only: received into our memory
// first

void old_rndv_done(void *, ucs_status_t status, size_t, void *user_data)
{
    auto *desc = static_cast<recv_desc *>(user_data);
    ucp_worker *worker = desc->worker;
    const am_handler *h = status == UCS_OK ? find_handler(worker, desc->am_id) : nullptr;
    if (!h || !h->old_cb) {
        worker->proto->descs.put(desc);
        return;
    }
    ucp_ep *reply_ep = desc->ep_id ? find_reply_ep(worker, desc->ep_id) : nullptr;
    if (!settle(desc, call_handler(h, nullptr, 0, desc->data, desc->length, reply_ep, true))) {
        worker->proto->descs.put(desc);
    }
}

void old_rndv(ucp_worker *worker, const wire::rts_hdr *rts) noexcept
{
    recv_desc *desc = worker->proto->descs.get(rts->size);
    auto *req = desc ? request_get_internal<am_recv_request>(worker) : nullptr;
    if (!req) {
        if (desc) {
            worker->proto->descs.put(desc);
        }
        return rndv_refuse(worker, rts, UCS_ERR_NO_MEMORY);
    }
    desc->what = recv_desc::content::am;
    desc->ep_id = rts->flags & wire::RTS_FLAG_REPLY ? rts->ep : 0;
    desc->am_id = rts->am_id;
    req->dt.start_contig(desc->data, rts->size);
    req->cb.recv_am = old_rndv_done;
    req->user_data = desc;
    req->flags |= REQ_CALLBACK;
    rndv_recv(req, rts);
}

} // namespace

ucs_status_t am_rts(ucp_worker *worker, const wire::rts_hdr *rts, size_t) noexcept
{
    ucp_ep *ep = rts->flags & wire::RTS_FLAG_REPLY ? find_reply_ep(worker, rts->ep)
                                                   : find_usable_ep(worker, rts->ep);
    if (!ep) {
        drop_stale(worker, "rendezvous");
        return UCS_OK;
    }
    const am_handler *h = find_handler(worker, rts->am_id);
    if (!h) {
        rndv_refuse(worker, rts, UCS_OK);
        return UCS_OK;
    }
    if (!h->cb) {
        old_rndv(worker, rts);
        return UCS_OK;
    }
    recv_desc *desc = worker->proto->descs.get(sizeof(*rts) + rts->rkey_len, false);
    if (!desc) {
        rndv_refuse(worker, rts, UCS_ERR_NO_MEMORY);
        return UCS_OK;
    }
    memcpy(desc->data, rts, sizeof(*rts) + rts->rkey_len);
    desc->what = recv_desc::content::am_rts;
    desc->length = rts->size;
    const char *header = reinterpret_cast<const char *>(rts + 1) + rts->rkey_len;
    ucp_am_recv_param_t param;
    param.recv_attr = UCP_AM_RECV_ATTR_FLAG_RNDV;
    param.reply_ep = nullptr;
    if (rts->flags & wire::RTS_FLAG_REPLY) {
        param.recv_attr |= UCP_AM_RECV_ATTR_FIELD_REPLY_EP;
        param.reply_ep = ep;
    }
    am_handler handler = *h;
    ucs_status_t status = handler.cb(handler.arg, rts->header_len ? header : nullptr,
                                     rts->header_len, desc->data, rts->size, &param);
    if (settle(desc, status)) {
        return UCS_OK;
    }
    if (desc->state == recv_desc::use::callback) { // neither received nor kept
        rndv_refuse(worker, static_cast<wire::rts_hdr *>(desc->data),
                    status > UCS_OK ? UCS_OK : status);
    }
    worker->proto->descs.put(desc);
    return UCS_OK;
}

ucs_status_t am_single_handler(void *arg, void *data, size_t length, unsigned flags)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::am_hdr hdr;
    if (UCS_UNLIKELY(length < sizeof(hdr))) {
        return drop_damaged(worker, "am", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    if (UCS_UNLIKELY(hdr.header_len > length - sizeof(hdr))) {
        return drop_damaged(worker, "am", length);
    }
    size_t n = length - sizeof(hdr) - hdr.header_len;
    const char *header = static_cast<const char *>(data) + sizeof(hdr) + n;
    return deliver(worker, hdr, data, sizeof(hdr), n, header, nullptr, flags);
}

ucs_status_t am_reply_handler(void *arg, void *data, size_t length, unsigned flags)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    struct {
        wire::am_hdr am;
        uint64_t ep;
    } hdr;
    if (UCS_UNLIKELY(length < sizeof(hdr))) {
        return drop_damaged(worker, "am reply", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    if (UCS_UNLIKELY(hdr.am.header_len > length - sizeof(hdr))) {
        return drop_damaged(worker, "am reply", length);
    }
    ucp_ep *ep = find_reply_ep(worker, hdr.ep);
    if (UCS_UNLIKELY(!ep)) {
        drop_stale(worker, "am reply");
        return UCS_OK;
    }
    size_t n = length - sizeof(hdr) - hdr.am.header_len;
    const char *header = static_cast<const char *>(data) + sizeof(hdr) + n;
    return deliver(worker, hdr.am, data, sizeof(hdr), n, header, ep, flags);
}

ucs_status_t am_first_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::am_first_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, fragments.first, length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    size_t header_len = hdr.am.header_len;
    if (header_len > length - sizeof(hdr)) {
        return drop_damaged(worker, fragments.first, length);
    }
    size_t n = length - sizeof(hdr) - header_len;
    partial part = partial_of(fragments, hdr, n);
    if (!may_begin(worker, part, length)) {
        return UCS_OK;
    }
    part.am_flags = hdr.am.flags;
    part.am_id = hdr.am.am_id;
    part.header_len = static_cast<uint32_t>(header_len);
    part.header = header_len ? malloc(header_len) : nullptr;
    part.desc = worker->proto->descs.get(hdr.total);
    if (!part.desc || (header_len && !part.header)) {
        ucs_error("worker %p: no memory to keep an active message of %zu bytes: it is lost",
                  (void *)worker, (size_t)hdr.total);
        free(part.header);
        if (part.desc) {
            worker->proto->descs.put(part.desc);
        }
        return UCS_OK;
    }
    part.desc->what = recv_desc::content::am;
    const char *header = static_cast<const char *>(data) + sizeof(hdr);
    if (header_len != 0) {
        memcpy(part.header, header, header_len);
    }
    ucs::copy(part.desc->data, header + header_len, n);
    part_begun(worker, &(worker->proto->partials[part.key] = part));
    return UCS_OK;
}

ucs_status_t am_middle_handler(void *arg, void *data, size_t length, unsigned)
{
    return add_fragment(static_cast<ucp_worker *>(arg), fragments, data, length);
}

namespace {

// The descriptor behind a data pointer, if the user may still use it.
recv_desc *usable_desc(void *data) noexcept
{
    recv_desc *desc = desc_of(data);
    bool usable = desc->state == recv_desc::use::callback || desc->state == recv_desc::use::held;
    return usable && (desc->what == recv_desc::content::am ||
                      desc->what == recv_desc::content::am_rts)
               ? desc
               : nullptr;
}

void let_go(recv_desc *desc) noexcept
{
    if (desc->state == recv_desc::use::held) {
        desc->worker->proto->descs.put(desc);
    } else {
        desc->state = recv_desc::use::taken; // freed when the handler returned
    }
}

ucs_status_t set_handler(ucp_worker *worker, unsigned id, const am_handler &handler) noexcept
{
    ucs::opt_guard guard(worker->lock);
    auto &table = worker->proto->am_handlers;
    try {
        if (id >= table.size()) {
            table.resize(id + 1);
        }
    } catch (const std::bad_alloc &) {
        return UCS_ERR_NO_MEMORY;
    }
    table[id] = handler;
    return UCS_OK;
}

} // namespace
} // namespace ucp

extern "C" {

UCS_EXPORT ucs_status_t ucp_worker_set_am_recv_handler(ucp_worker_h worker,
                                                       const ucp_am_handler_param_t *param)
{
    UCS_CHECK_ARG(worker, "ucp_worker_set_am_recv_handler: worker must not be NULL");
    UCS_CHECK_ARG(param, "ucp_worker_set_am_recv_handler: param must not be NULL");
    UCS_CHECK_ARG(worker->context->has_feature(UCP_FEATURE_AM),
                  "ucp_worker_set_am_recv_handler: the context was created without UCP_FEATURE_AM");
    uint64_t needed = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
    UCS_CHECK_ARG((param->field_mask & needed) == needed,
                  "ucp_worker_set_am_recv_handler: param->field_mask must have ID and CB");
    UCS_CHECK_ARG(param->id <= UINT16_MAX,
                  "ucp_worker_set_am_recv_handler: param->id %u is above %u", param->id,
                  UINT16_MAX);
    uint32_t flags = param->field_mask & UCP_AM_HANDLER_PARAM_FIELD_FLAGS ? param->flags : 0;
    UCS_CHECK_ARG((flags & ucp::PRIVATE_FLAGS) == 0,
                  "ucp_worker_set_am_recv_handler: param->flags 0x%x has unknown bits", flags);
    ucp::am_handler handler;
    handler.cb = param->cb;
    handler.arg = param->field_mask & UCP_AM_HANDLER_PARAM_FIELD_ARG ? param->arg : nullptr;
    handler.flags = flags;
    return ucp::set_handler(worker, param->id, handler);
}

UCS_EXPORT ucs_status_t ucp_worker_set_am_handler(ucp_worker_h worker, uint16_t id,
                                                  ucp_am_callback_t cb, void *arg, uint32_t flags)
{
    UCS_CHECK_ARG(worker, "ucp_worker_set_am_handler: worker must not be NULL");
    UCS_CHECK_ARG(worker->context->has_feature(UCP_FEATURE_AM),
                  "ucp_worker_set_am_handler: the context was created without UCP_FEATURE_AM");
    UCS_CHECK_ARG((flags & ucp::PRIVATE_FLAGS) == 0,
                  "ucp_worker_set_am_handler: flags 0x%x has unknown bits", flags);
    ucp::am_handler handler;
    handler.old_cb = cb;
    handler.arg = arg;
    handler.flags = flags;
    return ucp::set_handler(worker, id, handler);
}

UCS_EXPORT ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *data_desc, void *buffer,
                                                 size_t count, const ucp_request_param_t *param)
{
    UCS_CHECK_ARG_PTR(worker, "ucp_am_recv_data_nbx: worker must not be NULL");
    UCS_CHECK_ARG_PTR(data_desc, "ucp_am_recv_data_nbx: data_desc must not be NULL");
    UCS_CHECK_ARG_PTR(param, "ucp_am_recv_data_nbx: param must not be NULL");
    ucp_datatype_t dt = ucp::datatype_of(param);
    ucs_status_t status = ucp::check_operation("ucp_am_recv_data_nbx", worker->context,
                                               UCP_FEATURE_AM, param, buffer, count, dt);
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    ucs::opt_guard guard(worker->lock);
    ucp::recv_desc *desc = ucp::usable_desc(data_desc);
    UCS_CHECK_ARG_PTR(desc, "ucp_am_recv_data_nbx: data_desc was received or released before");
    ucp_tag_recv_info_t info = {0, desc->length};

    if (desc->what == ucp::recv_desc::content::am) {
        ucp::dt_iter iter;
        status = iter.start_recv(buffer, count, dt);
        if (status == UCS_OK) {
            status = desc->length > iter.length() ? UCS_ERR_MESSAGE_TRUNCATED
                                                  : iter.unpack(0, desc->data, desc->length);
        }
        iter.finish();
        ucp::let_go(desc);
        return ucp::post_return_imm(worker, ucp::req_kind::am_recv, status, param, &info);
    }

    if (param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) {
        return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    }
    ucp::am_recv_request *req;
    status = ucp::make_receive(worker, buffer, count, dt, param, &req);
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    req->info = info;
    req->flags |= ucp::REQ_POSTING;
    if (param->op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) {
        // UCX reads nothing inside this call but over self alone, and its users count on that.
        req->flags |= ucp::REQ_LATER;
    }
    ucp::rndv_recv(req, static_cast<const ucp::wire::rts_hdr *>(desc->data));
    ucp::let_go(desc);
    return ucp::post_return(req, param);
}

UCS_EXPORT void ucp_am_data_release(ucp_worker_h worker, void *data)
{
    if (!worker || !data) {
        ucs_error("ucp_am_data_release: worker and data must not be NULL");
        return;
    }
    ucs::opt_guard guard(worker->lock);
    ucp::recv_desc *desc = ucp::usable_desc(data);
    if (!desc) {
        ucs_error("ucp_am_data_release: data %p was released before", data);
        return;
    }
    if (desc->what == ucp::recv_desc::content::am_rts) {
        ucp::rndv_refuse(worker, static_cast<const ucp::wire::rts_hdr *>(desc->data), UCS_OK);
    }
    ucp::let_go(desc);
}

} // extern "C"
