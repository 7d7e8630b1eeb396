// SPDX-License-Identifier: BSD-3-Clause
//
// Sending user active messages: header and data in one short or bcopy message where they fit, else
// fragments, else (or when the user asks) a rendezvous whose RTS carries the header. With the REPLY
// flag the message names the receiver's endpoint of the pair.
#include "ucp/am/am.h"
#include "ucp/core/nb.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/mem.h"
#include "ucp/mem/memory_type.h"
#include "ucp/proto/pieces.h"
#include "ucp/proto/proto.h"
#include "ucp/proto/protocols.h"
#include "ucp/rndv/rndv.h"
#include "ucs/check.h"
#include "ucs/copy.h"

#include <cstdlib>
#include <cstring>

namespace ucp {

namespace {

struct am_send_request : rndv_send_request {
    using rndv_send_request::rndv_send_request;

    const void *header; // the user's, or own_copy
    uint32_t header_len;
    uint16_t am_id;
    uint16_t send_flags; // UCP_AM_SEND_FLAG_*
    uint64_t msg_id;     // of a message in fragments
};

constexpr size_t STACK_MAX = 512; // header and data up to here are put together for a short send

struct single_pack {
    wire::am_hdr hdr;
    uint64_t ep; // 0: AM_SINGLE
    const void *header;
    const void *data;
    size_t length;
    dt_iter *dt; // instead of data
};

size_t pack_single(void *dest, void *arg)
{
    auto *p = static_cast<single_pack *>(arg);
    char *at = static_cast<char *>(dest);
    memcpy(at, &p->hdr, sizeof(p->hdr));
    at += sizeof(p->hdr);
    if (p->ep != 0) {
        memcpy(at, &p->ep, sizeof(p->ep));
        at += sizeof(p->ep);
    }
    if (p->dt) {
        at += p->dt->pack(at, p->length);
    } else if (p->length != 0) {
        ucs::copy(at, p->data, p->length);
        at += p->length;
    }
    if (p->hdr.header_len != 0) {
        memcpy(at, p->header, p->hdr.header_len);
    }
    return at + p->hdr.header_len - static_cast<char *>(dest);
}

uint64_t as_u64(const wire::am_hdr &hdr) noexcept
{
    uint64_t value;
    memcpy(&value, &hdr, sizeof(value));
    return value;
}

ucs_status_t single_progress(am_send_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    req->pend_lane = ep->am_lane_index;
    req->dt.rewind(0);
    bool reply = req->send_flags & UCP_AM_SEND_FLAG_REPLY;
    single_pack pack = {{req->am_id, 0, req->header_len},
                        reply ? ep->remote_id : 0,
                        req->header,
                        nullptr,
                        req->dt.length(),
                        &req->dt};
    ssize_t n =
        uct_ep_am_bcopy(ep->am_ep, reply ? AM_ID_AM_REPLY : AM_ID_AM_SINGLE, pack_single, &pack, 0);
    if (UCS_UNLIKELY(n < 0)) {
        return static_cast<ucs_status_t>(n);
    }
    complete(req, UCS_OK);
    return UCS_OK;
}

bool is_plain(const am_send_request *req) noexcept
{
    return req->header_len == 0 && req->dt.is_contig() &&
           !(req->send_flags & UCP_AM_SEND_FLAG_REPLY);
}

ucs_status_t short_progress(am_send_request *req) noexcept
{
    if (!is_plain(req)) {
        return single_progress(req);
    }
    ucp_ep *ep = req->ep;
    req->pend_lane = ep->am_lane_index;
    wire::am_hdr hdr = {req->am_id, 0, 0};
    ucs_status_t status =
        uct_ep_am_short(ep->am_ep, AM_ID_AM_SINGLE, as_u64(hdr), req->dt.contig_ptr(),
                        static_cast<unsigned>(req->dt.length()));
    if (UCS_LIKELY(status == UCS_OK)) {
        complete(req, UCS_OK);
    }
    return status;
}

wire::am_first_hdr first_header(const am_send_request *req) noexcept
{
    bool reply = req->send_flags & UCP_AM_SEND_FLAG_REPLY;
    return {{req->am_id, static_cast<uint16_t>(reply ? AM_WIRE_REPLY : 0), req->header_len},
            req->dt.length(),
            source_of(req->ep),
            req->msg_id,
            req->ep->remote_id};
}

size_t pack_fragment(void *dest, void *arg)
{
    auto *req = static_cast<am_send_request *>(arg);
    char *at = static_cast<char *>(dest);
    size_t room = req->ep->limits().max_bcopy;
    size_t head;
    if (req->dt.offset() == 0) {
        wire::am_first_hdr hdr = first_header(req);
        head = sizeof(hdr);
        memcpy(at, &hdr, head);
        if (req->header_len != 0) {
            memcpy(at + head, req->header, req->header_len);
        }
        head += req->header_len;
    } else {
        wire::frag_hdr hdr = {source_of(req->ep), req->msg_id, req->dt.offset()};
        head = sizeof(hdr);
        memcpy(at, &hdr, head);
    }
    return head + req->dt.pack(at + head, room - head);
}

ucs_status_t multi_progress(am_send_request *req) noexcept
{
    return bcopy_piece(req, req->dt.offset() == 0 ? AM_ID_AM_FIRST : AM_ID_AM_MIDDLE,
                       pack_fragment);
}

// Fragments out of the user's buffer; the user header is in the first one's transport header.
ucs_status_t zcopy_progress(am_send_request *req) noexcept
{
    size_t offset = req->dt.offset();
    char head[sizeof(wire::am_first_hdr) + ZCOPY_HEADER_MAX];
    size_t head_len;
    uint8_t id;
    if (offset == 0) {
        wire::am_first_hdr hdr = first_header(req);
        memcpy(head, &hdr, sizeof(hdr));
        if (req->header_len != 0) {
            memcpy(head + sizeof(hdr), req->header, req->header_len);
        }
        head_len = sizeof(hdr) + req->header_len;
        id = AM_ID_AM_FIRST;
    } else {
        wire::frag_hdr hdr = {source_of(req->ep), req->msg_id, offset};
        memcpy(head, &hdr, sizeof(hdr));
        head_len = sizeof(hdr);
        id = AM_ID_AM_MIDDLE;
    }
    return zcopy_message(req, id, head, head_len);
}

bool fragments_start(am_send_request *req) noexcept
{
    req->msg_id = ++req->worker->proto->next_msg_id;
    return true;
}

// The table knows the length of the data, not the user's header.
bool single_start(am_send_request *req) noexcept
{
    size_t reply = req->send_flags & UCP_AM_SEND_FLAG_REPLY ? sizeof(uint64_t) : 0;
    size_t head = sizeof(wire::am_hdr) + reply + req->header_len;
    if (UCS_UNLIKELY(head + req->dt.length() > req->ep->limits().max_bcopy)) {
        req->progress = typed<multi_progress>;
        return fragments_start(req);
    }
    return true;
}

bool zcopy_start(am_send_request *req) noexcept
{
    const ep_limits &limits = req->ep->limits();
    size_t head = sizeof(wire::am_first_hdr) + req->header_len;
    return req->header_len <= ZCOPY_HEADER_MAX && head <= limits.max_hdr &&
           head < limits.max_zcopy && start_zcopy(req, req->ep->am_lane().md_index) &&
           fragments_start(req);
}

// What the announcement of a rendezvous says of an active message.
size_t announce(const rndv_send_request *send, wire::rts_hdr *hdr, char *behind) noexcept
{
    const auto *req = static_cast<const am_send_request *>(send);
    hdr->kind = wire::RTS_AM;
    hdr->am_id = req->am_id;
    hdr->header_len = req->header_len;
    hdr->flags = req->send_flags & UCP_AM_SEND_FLAG_REPLY ? wire::RTS_FLAG_REPLY : 0;
    if (req->header_len != 0) {
        memcpy(behind, req->header, req->header_len);
    }
    return req->header_len;
}

constexpr protocol eager_short = {"eager short", true, typed<single_start>, typed<short_progress>,
                                  abort_simple};
constexpr protocol eager_copy = {"eager copy-in copy-out", true, typed<single_start>,
                                 typed<single_progress>, abort_simple};
constexpr protocol eager_fragments = {"multi-frag eager copy-in copy-out", true,
                                      typed<fragments_start>, typed<multi_progress>, abort_simple};
constexpr protocol eager_zcopy = {"eager zero-copy copy-out", true, typed<zcopy_start>,
                                  typed<zcopy_progress>, comp_abort};
constexpr protocol rndv_read = {rndv_read_name, true, typed<rndv_start<announce, true>>,
                                typed<rndv_rts_progress>, typed<rndv_rts_abort>};
constexpr protocol rndv_send = {rndv_send_name, false, typed<rndv_start<announce, false>>,
                                typed<rndv_rts_progress>, typed<rndv_rts_abort>};

// What did not go out in one call. Everything about lanes is decided when the first piece is sent.
ucs_status_t start_progress(am_send_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    if (UCS_UNLIKELY(req->header_len > max_am_header(ep->limits().max_bcopy))) {
        ucs_error("ucp_am_send_nbx: header_length %u is above %zu, the peer's limit",
                  req->header_len, max_am_header(ep->limits().max_bcopy));
        return UCS_ERR_INVALID_PARAM;
    }
    uint16_t flags = req->send_flags;
    if (flags & UCP_AM_SEND_FLAG_EAGER) {
        bool copied = req->flags & REQ_COPY || !req->dt.is_contig();
        return start_protocol(req, ep->config->am, copied ? MEMORY_EAGER_FAST : MEMORY_EAGER);
    }
    if (flags & UCP_AM_SEND_FLAG_RNDV) {
        try_protocol(req, ep->config->am_rndv);
        return req->progress(req);
    }
    return start_protocol(req, ep->config->am);
}

struct am_args {
    unsigned id;
    const void *header;
    size_t header_len;
    const void *buffer;
    size_t count;
    ucp_datatype_t dt;
    uint32_t flags;
};

UCS_NOINLINE ucs_status_ptr_t send_slow(ucp_ep *ep, const am_args &a,
                                        const ucp_request_param_t *param) noexcept
{
    am_send_request *req;
    ucs_status_t status =
        make_request(ep, data_way::from_buffer, a.buffer, a.count, a.dt, param, &req);
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    req->am_id = static_cast<uint16_t>(a.id);
    req->send_flags = static_cast<uint16_t>(a.flags);
    req->header = a.header;
    req->header_len = static_cast<uint32_t>(a.header_len);
    if (a.flags & UCP_AM_SEND_FLAG_COPY_HEADER && a.header_len != 0) {
        req->own_copy = malloc(a.header_len);
        if (!req->own_copy) {
            req->dt.finish();
            request_put(req);
            return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
        }
        req->header = memcpy(req->own_copy, a.header, a.header_len);
        req->flags |= REQ_OWN_COPY;
    }
    req->progress = typed<start_progress>;
    req->abort = abort_simple;
    return send_request(req, param);
}

UCS_ALWAYS_INLINE ucs_status_t count(const proto_range &range, ucs_status_t status) noexcept
{
    range.used += status == UCS_OK;
    return status;
}

// One short or bcopy message; NO_RESOURCE when it does not go that way.
UCS_ALWAYS_INLINE ucs_status_t send_single(ucp_ep *ep, const am_args &a, size_t length,
                                           const proto_range *ranges) noexcept
{
    wire::am_hdr hdr = {static_cast<uint16_t>(a.id), 0, static_cast<uint32_t>(a.header_len)};
    bool reply = a.flags & UCP_AM_SEND_FLAG_REPLY;
    if (UCS_LIKELY(!reply)) {
        if (a.header_len == 0 && length < ranges[0].end) {
            return count(ranges[0], uct_ep_am_short(ep->am_ep, AM_ID_AM_SINGLE, as_u64(hdr),
                                                    a.buffer, static_cast<unsigned>(length)));
        }
        if (length == 0 && a.header_len < ranges[0].end) {
            return count(ranges[0], uct_ep_am_short(ep->am_ep, AM_ID_AM_SINGLE, as_u64(hdr),
                                                    a.header, static_cast<unsigned>(a.header_len)));
        }
    }
    size_t ep_len = reply ? sizeof(uint64_t) : 0;
    size_t total = ep_len + length + a.header_len;
    uint8_t id = reply ? AM_ID_AM_REPLY : AM_ID_AM_SINGLE;
    if (total <= STACK_MAX && total < ranges[0].end) {
        char payload[STACK_MAX];
        if (reply) {
            memcpy(payload, &ep->remote_id, ep_len);
        }
        ucs::copy_small(payload + ep_len, a.buffer, length);
        ucs::copy_small(payload + ep_len + length, a.header, a.header_len);
        return count(ranges[0], uct_ep_am_short(ep->am_ep, id, as_u64(hdr), payload,
                                                static_cast<unsigned>(total)));
    }
    if (total >= ranges[1].end) {
        return UCS_ERR_NO_RESOURCE;
    }
    single_pack pack = {hdr, reply ? ep->remote_id : 0, a.header, a.buffer, length, nullptr};
    ssize_t n = uct_ep_am_bcopy(ep->am_ep, id, pack_single, &pack, 0);
    return count(ranges[1], n >= 0 ? UCS_OK : static_cast<ucs_status_t>(n));
}

UCS_ALWAYS_INLINE ucs_status_ptr_t send_host(const char *call, ucp_ep *ep, const am_args &a,
                                             const ucp_request_param_t *param) noexcept
{
    ucp_worker *worker = ep->worker;
    UCS_CHECK_ARG_PTR(a.id <= UINT16_MAX, "%s: id %u is above %u", call, a.id, UINT16_MAX);
    UCS_CHECK_ARG_PTR(a.header_len == 0 || (a.header && a.header_len <= worker->max_am_header),
                      "%s: header_length %zu is above %zu, or header is NULL", call, a.header_len,
                      worker->max_am_header);
    ucs::opt_guard guard(worker->lock);
    if (UCS_LIKELY((a.dt & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG)) {
        size_t length = a.count * (a.dt >> UCP_DATATYPE_SHIFT);
        UCS_CHECK_ARG_PTR(a.buffer || length == 0, "%s: buffer must not be NULL", call);
        bool eager = !(a.flags & UCP_AM_SEND_FLAG_RNDV) || a.flags & UCP_AM_SEND_FLAG_EAGER;
        if (UCS_LIKELY(ep->can_send() && eager)) {
            const proto_table &table =
                ep->config->am[a.flags & UCP_AM_SEND_FLAG_EAGER ? MEMORY_EAGER : MEMORY_MAPPED];
            ucs_status_t status = send_single(ep, a, length, table.ranges);
            if (UCS_LIKELY(status != UCS_ERR_NO_RESOURCE)) {
                return post_return_imm(worker, req_kind::send, status, param);
            }
        }
    }
    return send_slow(ep, a, param);
}

// Apart, so that the path of memory of the host keeps nothing for it.
UCS_NOINLINE ucs_status_ptr_t send_examined(const char *call, ucp_ep *ep, const am_args &a,
                                            const ucp_request_param_t *param) noexcept
{
    ucs_status_t status =
        examine(call, ep->worker->context, UCP_FEATURE_AM, param, a.buffer, a.count, a.dt);
    return status == UCS_OK ? send_host(call, ep, a, param) : UCS_STATUS_PTR(status);
}

UCS_ALWAYS_INLINE ucs_status_ptr_t am_send(const char *call, ucp_ep *ep, const am_args &a,
                                           const ucp_request_param_t *param) noexcept
{
    return takes_as_is(ep->worker->context, UCP_FEATURE_AM, param)
               ? send_host(call, ep, a, param)
               : send_examined(call, ep, a, param);
}

} // namespace

const message_protocols am_messages = {
    .short_ = &eager_short,
    .copy = &eager_copy,
    .fragments = &eager_fragments,
    .zcopy = &eager_zcopy,
    .read = &rndv_read,
    .send = &rndv_send,
    .copy_header = sizeof(wire::am_hdr),
    .zcopy_header = sizeof(wire::am_first_hdr),
};

} // namespace ucp

extern "C" {

UCS_EXPORT ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header,
                                            size_t header_length, const void *buffer, size_t count,
                                            const ucp_request_param_t *param)
{
    UCS_CHECK_ARG_PTR(ep, "ucp_am_send_nbx: ep must not be NULL");
    UCS_CHECK_ARG_PTR(param, "ucp_am_send_nbx: param must not be NULL");
    uint32_t mask = param->op_attr_mask;
    ucp::am_args args = {id,
                         header,
                         header_length,
                         buffer,
                         count,
                         mask & UCP_OP_ATTR_FIELD_DATATYPE ? param->datatype
                                                           : ucp_dt_make_contig(1),
                         mask & UCP_OP_ATTR_FIELD_FLAGS ? param->flags : 0};
    return ucp::am_send("ucp_am_send_nbx", ep, args, param);
}

UCS_EXPORT ucs_status_ptr_t ucp_am_send_nb(ucp_ep_h ep, uint16_t id, const void *buffer,
                                           size_t count, ucp_datatype_t datatype,
                                           ucp_send_callback_t cb, unsigned flags)
{
    UCS_CHECK_ARG_PTR(ep, "ucp_am_send_nb: ep must not be NULL");
    ucp_request_param_t param = ucp::nb_param(cb);
    // The handlers of ucp_worker_set_am_handler() run in the order of sending, so the data of each
    // message goes with it: a rendezvous would let later messages pass.
    ucp::am_args args = {id,
                         nullptr,
                         0,
                         buffer,
                         count,
                         datatype,
                         (flags & UCP_AM_SEND_FLAG_REPLY) | UCP_AM_SEND_FLAG_EAGER};
    return ucp::am_send("ucp_am_send_nb", ep, args, &param);
}

} // extern "C"
