// SPDX-License-Identifier: BSD-3-Clause
//
// What the protocols with a user's buffer (tag, am, stream, put, get) share: making the request,
// and posting one piece of its data after the other.
#pragma once

#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/mem.h"
#include "ucp/proto/proto.h"
#include "ucs/compiler.h"
#include "ucs/copy.h"

#include <cstring>
#include <utility>

namespace ucp {

// What a message of eight bytes and a contiguous buffer is packed from. An empty buffer may be
// null.
struct word_and_buffer {
    uint64_t word;
    const void *data;
    size_t length;
};

inline size_t pack_word_and_buffer(void *dest, void *arg)
{
    auto *p = static_cast<word_and_buffer *>(arg);
    memcpy(dest, &p->word, sizeof(p->word));
    if (p->length != 0) {
        ucs::copy(static_cast<char *>(dest) + sizeof(p->word), p->data, p->length);
    }
    return sizeof(p->word) + p->length;
}

// Of an endpoint's fragmented messages: see wire.h.
inline uint64_t source_of(const ucp_ep *ep) noexcept
{
    return ep->worker->uuid ^ ep->local_id;
}

enum class data_way { from_buffer, into_buffer };

// A request for `count` elements at `buffer`: one that the caller sees, or with param == nullptr
// one it does not. progress and abort are the caller's to set. *req_p is unchanged when it fails.
template <request_type T>
ucs_status_t make_request(ucp_ep *ep, data_way way, const void *buffer, size_t count,
                          ucp_datatype_t dt, const ucp_request_param_t *param, T **req_p) noexcept
{
    ucs_status_t status = ep->check_usable();
    if (UCS_UNLIKELY(status != UCS_OK)) {
        return status;
    }
    if (param && param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) {
        return UCS_ERR_NO_RESOURCE;
    }
    T *req = param ? request_get<T>(ep->worker, param) : request_get_internal<T>(ep->worker);
    if (!req) {
        return UCS_ERR_NO_MEMORY;
    }
    req->ep = ep;
    if (param && param->op_attr_mask & UCP_OP_ATTR_FLAG_FAST_CMPL) {
        req->flags |= REQ_COPY;
    }
    status = way == data_way::from_buffer
                 ? req->dt.start_send(buffer, count, dt)
                 : req->dt.start_recv(const_cast<void *>(buffer), count, dt);
    if (status != UCS_OK) {
        request_put(req);
        return status;
    }
    *req_p = req;
    return UCS_OK;
}

// A request to receive into `count` elements at `buffer`. *req_p is unchanged when it fails.
template <request_type T>
UCS_ALWAYS_INLINE ucs_status_t make_receive(ucp_worker *worker, void *buffer, size_t count,
                                            ucp_datatype_t dt, const ucp_request_param_t *param,
                                            T **req_p) noexcept
{
    T *req;
    if (UCS_UNLIKELY(param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST)) {
        req = request_get<T>(worker, param);
    } else {
        void *memory = worker->proto->requests.get();
        req = UCS_LIKELY(memory) ? new (memory) T(worker, T::is, param) : nullptr;
    }
    if (UCS_UNLIKELY(!req)) {
        return UCS_ERR_NO_MEMORY;
    }
    ucs_status_t status = req->dt.start_recv(buffer, count, dt);
    if (UCS_UNLIKELY(status != UCS_OK)) {
        request_put(req);
        return status;
    }
    *req_p = req;
    return UCS_OK;
}

// What the request's bytes are to the tables. Whether they are mapped decides where the tables say
// different things.
inline memory_kind memory_of(const data_request *req, const ep_config::tables &tables) noexcept
{
    size_t length = req->dt.length();
    if (!req->dt.is_contig()) {
        return MEMORY_SCATTERED;
    }
    bool fast = req->flags & REQ_COPY;
    memory_kind plain = fast ? MEMORY_FAST : MEMORY_PLAIN;
    memory_kind mapped = fast ? MEMORY_FAST_MAPPED : MEMORY_MAPPED;
    return tables[plain].select(length).proto != tables[mapped].select(length).proto &&
                   find_allocated(req->worker, req->dt.contig_ptr(), length)
               ? mapped
               : plain;
}

// From now on the request goes this way, unless that is false.
inline bool try_protocol(ucp_request *req, const proto_range &range) noexcept
{
    req->progress = range.proto->progress;
    req->abort = range.proto->abort;
    if (range.proto->start && !range.proto->start(req)) {
        return false;
    }
    ++range.used;
    return true;
}

// Chooses the way of a request and posts its first piece; returns what progress() returns. What
// cannot be sent from where it is goes as what the user wants back soon: copied.
inline ucs_status_t start_protocol(data_request *req, const ep_config::tables &tables,
                                   memory_kind kind) noexcept
{
    size_t length = req->dt.length();
    if (!try_protocol(req, tables[kind].select(length))) {
        kind = kind == MEMORY_MAPPED  ? MEMORY_FAST_MAPPED
               : kind == MEMORY_EAGER ? MEMORY_EAGER_FAST
                                      : MEMORY_FAST;
        try_protocol(req, tables[kind].select(length));
    }
    return req->progress(req);
}

inline ucs_status_t start_protocol(data_request *req, const ep_config::tables &tables) noexcept
{
    return start_protocol(req, tables, memory_of(req, tables));
}

// The buffer of a contiguous request is registered with the domain `md_index`; progress() is to
// call zcopy_piece(). false: it cannot be registered, nothing has changed.
inline bool start_zcopy(data_request *req, uint8_t md_index,
                        uct_completion_callback_t done = comp_done) noexcept
{
    uct_mem_h memh = nullptr;
    if (request_reg(req, md_index, req->dt.contig_ptr(), req->dt.length(), &memh) != UCS_OK) {
        return false;
    }
    req->memory.zmemh = memh;
    comp_begin(req, done);
    return true;
}

// The pieces return what progress() returns: UCS_INPROGRESS when there is another piece, UCS_OK
// when the last one is posted, else the transport's refusal, with nothing posted.

// One active message, packed by `pack`, which gets `req` and takes what fits from req->dt.
template <request_type T>
ucs_status_t bcopy_piece(T *req, uint8_t am_id, uct_pack_callback_t pack) noexcept
{
    ucp_ep *ep = req->ep;
    req->pend_lane = ep->am_lane_index;
    size_t before = req->dt.offset();
    ssize_t n = uct_ep_am_bcopy(ep->am_ep, am_id, pack, req, 0);
    if (UCS_UNLIKELY(n < 0)) {
        req->dt.rewind(before);
        return static_cast<ucs_status_t>(n);
    }
    if (!req->dt.at_end()) {
        return UCS_INPROGRESS;
    }
    complete(req, UCS_OK);
    return UCS_OK;
}

// One active message, the last of a request that ends with the peer's answer to it: `phase` is what
// the answer shall find.
template <request_type T>
ucs_status_t answered_piece(T *req, phase waiting, uint8_t am_id, uct_pack_callback_t pack,
                            unsigned uct_flags = 0) noexcept
{
    if (UCS_UNLIKELY(request_wire_id(req) == 0)) {
        return UCS_ERR_NO_MEMORY;
    }
    ucp_ep *ep = req->ep;
    req->pend_lane = ep->am_lane_index;
    size_t before = req->dt.offset();
    uint8_t phase_before = req->phase;
    // The answer may come inside the call (loopback): the request must be ready for it.
    req->phase = waiting;
    ep->add_outstanding(req);
    ssize_t n = uct_ep_am_bcopy(ep->am_ep, am_id, pack, req, uct_flags);
    if (UCS_LIKELY(n >= 0)) {
        return UCS_OK;
    }
    request_unlist(req);
    req->phase = phase_before;
    req->dt.rewind(before);
    return static_cast<ucs_status_t>(n);
}

// At most `room` bytes of the registered buffer, which post(iov, count) hands to the endpoint of
// `lane`.
template <class Post>
UCS_ALWAYS_INLINE ucs_status_t zcopy_piece(data_request *req, uint8_t lane, size_t room,
                                           Post &&post) noexcept
{
    req->pend_lane = lane;
    uct_iov_t iov;
    size_t count = 1;
    size_t n = req->dt.to_iov(&iov, &count, room, req->memory.zmemh);
    ++req->comp.count;
    ucs_status_t status = std::forward<Post>(post)(&iov, count);
    if (status != UCS_INPROGRESS) {
        --req->comp.count;
    }
    if (UCS_UNLIKELY(status != UCS_OK && status != UCS_INPROGRESS)) {
        return status;
    }
    req->dt.advance(n);
    if (!req->dt.at_end()) {
        return UCS_INPROGRESS;
    }
    comp_end(req);
    return UCS_OK;
}

// The same as an active message on the endpoint's message lane, behind `header`.
UCS_ALWAYS_INLINE ucs_status_t zcopy_message(data_request *req, uint8_t am_id, const void *header,
                                             size_t header_length) noexcept
{
    ucp_ep *ep = req->ep;
    return zcopy_piece(req, ep->am_lane_index, ep->limits().max_zcopy - header_length,
                       [=](const uct_iov_t *iov, size_t count) {
                           return uct_ep_am_zcopy(ep->am_ep, am_id, header,
                                                  static_cast<unsigned>(header_length), iov, count,
                                                  0, &req->comp);
                       });
}

} // namespace ucp
