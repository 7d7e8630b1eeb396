// SPDX-License-Identifier: BSD-3-Clause
//
// Receiving of streams: an ordered sequence of bytes per endpoint, without message boundaries. What
// arrives goes into the first waiting receive, the rest is kept in chunks that
// ucp_stream_recv_data_nb hands out and receives drain. A receive completes when it has a whole
// number of elements (all of them with WAITALL).
#include "ucp/core/nb.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/mem.h"
#include "ucp/mem/memory_type.h"
#include "ucp/proto/pieces.h"
#include "ucp/proto/proto.h"
#include "ucs/check.h"
#include "ucs/error.h"
#include "ucs/list.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

namespace ucp {

// Bytes that arrived and were not received. `data` may be given to the user, which releases it.
struct stream_chunk {
    ucs::list_node node;
    recv_desc *desc;
    size_t used; // bytes that receives took from the front
};

struct stream_recv_request : recv_request {
    static constexpr req_kind is = req_kind::stream_recv;
    using recv_request::recv_request;

    size_t *length_p; // the caller's, inside its call alone
    size_t elem;      // bytes
};

struct stream_state {
    ucs::list<ucp_request, &ucp_request::node> recvs; // stream_recv_request
    ucs::list<stream_chunk, &stream_chunk::node> chunks;
    bool ready = false; // in worker->proto->stream_ready
};

namespace {

bool reserve_place(std::vector<ucp_ep *> &list, size_t count) noexcept
{
    return list.capacity() >= count ||
           ucs::guard([&] { list.reserve(std::max(count, 2 * list.capacity())); }) == UCS_OK;
}

// With a place for it among those that are ready. nullptr: no memory.
stream_state *state_of(ucp_ep *ep) noexcept
{
    if (!ep->stream) {
        worker_proto &proto = *ep->worker->proto;
        auto state = std::unique_ptr<stream_state>(new (std::nothrow) stream_state);
        if (!state || !reserve_place(proto.stream_ready, proto.streams + 1)) {
            return nullptr;
        }
        ++proto.streams;
        ep->stream = state.release();
    }
    return static_cast<stream_state *>(ep->stream);
}

// An endpoint that the user does not have yet stays out of what it is told.
void set_ready(ucp_ep *ep, stream_state *s) noexcept
{
    if (s->ready || ep->origin == ep_origin::reply) {
        return;
    }
    s->ready = true;
    ep->worker->proto->stream_ready.push_back(ep);
}

void clear_ready(ucp_ep *ep, stream_state *s) noexcept
{
    if (!s->ready) {
        return;
    }
    s->ready = false;
    auto &list = ep->worker->proto->stream_ready;
    list.erase(std::remove(list.begin(), list.end(), ep), list.end());
}

void free_chunk(stream_chunk *c) noexcept
{
    c->node.unlink();
    c->desc->worker->proto->descs.put(c->desc);
    delete c;
}

// Enough for the receive to complete.
bool enough(const stream_recv_request *req, size_t have) noexcept
{
    if (have == req->dt.length()) {
        return true;
    }
    return !(req->flags & REQ_WAITALL) && have != 0 && have % req->elem == 0;
}

bool satisfied(const stream_recv_request *req) noexcept
{
    return enough(req, req->info.length);
}

// Put bytes into a receive; returns how many it took.
size_t fill(stream_recv_request *req, const void *data, size_t length) noexcept
{
    size_t room = req->dt.length() - req->info.length;
    size_t n = std::min(room, length);
    ucs_status_t status = req->dt.unpack(req->info.length, data, n);
    if (status != UCS_OK && req->comp.status == UCS_OK) {
        req->comp.status = status;
    }
    req->info.length += n;
    return n;
}

void finish(stream_recv_request *req) noexcept
{
    if (req->length_p) {
        *req->length_p = req->info.length;
    }
    complete(req, req->comp.status);
}

void recv_abort(ucp_request *req, ucs_status_t status) noexcept
{
    complete(req, status);
}

// ---- receiving

// Move kept bytes into the receive until it is full or nothing is left.
void drain(stream_state *s, stream_recv_request *req) noexcept
{
    while (stream_chunk *c = s->chunks.front()) {
        size_t left = c->desc->length - c->used;
        size_t n = fill(req, static_cast<char *>(c->desc->data) + c->used, left);
        c->used += n;
        if (c->used < c->desc->length) {
            return;
        }
        free_chunk(c);
    }
}

// What a new receive would take of the kept bytes.
size_t kept_for(stream_state *s, const stream_recv_request *req) noexcept
{
    size_t have = 0, wanted = req->dt.length();
    if (!s->recvs.empty()) {
        return 0;
    }
    for (stream_chunk *c : s->chunks) {
        have += c->desc->length - c->used;
        if (have >= wanted) {
            return wanted;
        }
    }
    return have;
}

ucs_status_ptr_t stream_recv(const char *call, ucp_ep *ep, void *buffer, size_t count,
                             ucp_datatype_t dt, size_t *length_p, unsigned flags,
                             const ucp_request_param_t *param) noexcept
{
    ucp_worker *worker = ep->worker;
    UCS_CHECK_ARG_PTR(length_p, "%s: length must not be NULL", call);
    if (ucs_status_t kind =
            check_operation(call, worker->context, UCP_FEATURE_STREAM, param, buffer, count, dt);
        UCS_UNLIKELY(kind != UCS_OK)) {
        return UCS_STATUS_PTR(kind);
    }
    ucs::opt_guard guard(worker->lock);
    stream_state *s = state_of(ep);
    if (!s) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    stream_recv_request *req;
    ucs_status_t status = make_receive(worker, buffer, count, dt, param, &req);
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    req->ep = ep;
    req->length_p = length_p;
    req->elem = (dt & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG
                    ? std::max<size_t>(dt >> UCP_DATATYPE_SHIFT, 1)
                    : 1;
    req->abort = recv_abort;
    req->phase = PHASE_STREAM;
    if (flags & UCP_STREAM_RECV_FLAG_WAITALL) {
        req->flags |= REQ_WAITALL;
    }
    req->flags |= REQ_POSTING;
    bool must_end = param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
    bool may_take = !must_end || enough(req, kept_for(s, req)); // else the bytes stay
    if (may_take && s->recvs.empty()) {
        drain(s, req);
        if (s->chunks.empty()) {
            clear_ready(ep, s);
        }
    }
    if (satisfied(req)) {
        finish(req);
    } else if ((status = ep->check_usable()) != UCS_OK) {
        complete(req, status);
    } else if (must_end) {
        complete(req, UCS_ERR_NO_RESOURCE);
    } else {
        s->recvs.push_back(req);
        req->flags |= REQ_LISTED;
        req->length_p = nullptr; // valid during the call only
    }
    return post_return(req, param);
}

} // namespace

ucs_status_t stream_handler(void *arg, void *data, size_t length, unsigned flags)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    uint64_t id;
    if (length < sizeof(id)) {
        return drop_damaged(worker, "stream", length);
    }
    memcpy(&id, data, sizeof(id));
    ucp_ep *ep = find_usable_ep(worker, id);
    if (!ep) {
        drop_stale(worker, "stream data");
        return UCS_OK;
    }
    stream_state *s = state_of(ep);
    if (!s) {
        ep->set_failed(UCS_ERR_NO_MEMORY);
        return UCS_OK;
    }
    size_t head = sizeof(id);
    while (s->chunks.empty() && head < length) {
        auto *req = static_cast<stream_recv_request *>(s->recvs.front());
        if (!req) {
            break;
        }
        head += fill(req, static_cast<char *>(data) + head, length - head);
        if (satisfied(req)) {
            finish(req);
        }
    }
    if (head == length) {
        return UCS_OK;
    }
    auto *c = new (std::nothrow) stream_chunk;
    bool keep = false;
    // The descriptor's back pointer takes the eight bytes in front of the data, which are ours.
    recv_desc *desc =
        c ? worker->proto->descs.keep(data, head, length - head, flags, &keep) : nullptr;
    if (!desc) {
        delete c;
        ucs_error("ep %p: no memory to keep %zu bytes of a stream", (void *)ep, length - head);
        ep->set_failed(UCS_ERR_NO_MEMORY);
        return UCS_OK;
    }
    desc->what = recv_desc::content::am;
    c->desc = desc;
    c->used = 0;
    s->chunks.push_back(c);
    set_ready(ep, s);
    return keep ? UCS_INPROGRESS : UCS_OK;
}

void ep_proto_owned(ucp_ep *ep) noexcept
{
    auto *s = static_cast<stream_state *>(ep->stream);
    if (s && !s->chunks.empty()) {
        set_ready(ep, s);
    }
}

void ep_proto_failed(ucp_ep *ep, ucs_status_t status) noexcept
{
    // A callback may close the endpoint, and the state is gone with it.
    while (auto *s = static_cast<stream_state *>(ep->stream)) {
        ucp_request *req = s->recvs.pop_front();
        if (!req) {
            break;
        }
        req->flags &= ~REQ_LISTED;
        complete(req, status);
    }
}

void ep_proto_cleanup(ucp_ep *ep) noexcept
{
    auto *s = static_cast<stream_state *>(ep->stream);
    if (!s) {
        return;
    }
    ep->stream = nullptr; // callbacks find nothing
    while (ucp_request *req = s->recvs.pop_front()) {
        req->flags &= ~REQ_LISTED;
        complete(req, UCS_ERR_CANCELED);
    }
    while (stream_chunk *c = s->chunks.front()) {
        free_chunk(c);
    }
    clear_ready(ep, s);
    delete s;
    --ep->worker->proto->streams;
}

} // namespace ucp

extern "C" {

UCS_EXPORT ucs_status_ptr_t ucp_stream_recv_nbx(ucp_ep_h ep, void *buffer, size_t count,
                                                size_t *length, const ucp_request_param_t *param)
{
    UCS_CHECK_ARG_PTR(ep, "ucp_stream_recv_nbx: ep must not be NULL");
    UCS_CHECK_ARG_PTR(param, "ucp_stream_recv_nbx: param must not be NULL");
    uint32_t mask = param->op_attr_mask;
    ucp_datatype_t dt = mask & UCP_OP_ATTR_FIELD_DATATYPE ? param->datatype : ucp_dt_make_contig(1);
    unsigned flags = mask & UCP_OP_ATTR_FIELD_FLAGS ? param->flags : 0;
    return ucp::stream_recv("ucp_stream_recv_nbx", ep, buffer, count, dt, length, flags, param);
}

UCS_EXPORT ucs_status_ptr_t ucp_stream_recv_nb(ucp_ep_h ep, void *buffer, size_t count,
                                               ucp_datatype_t datatype,
                                               ucp_stream_recv_callback_t cb, size_t *length,
                                               unsigned flags)
{
    UCS_CHECK_ARG_PTR(ep, "ucp_stream_recv_nb: ep must not be NULL");
    ucp_request_param_t param;
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK;
    param.cb.recv_stream = ucp::newer_callback<ucp_stream_recv_nbx_callback_t>(cb);
    return ucp::stream_recv("ucp_stream_recv_nb", ep, buffer, count, datatype, length, flags,
                            &param);
}

UCS_EXPORT ucs_status_ptr_t ucp_stream_recv_data_nb(ucp_ep_h ep, size_t *length)
{
    UCS_CHECK_ARG_PTR(ep, "ucp_stream_recv_data_nb: ep must not be NULL");
    UCS_CHECK_ARG_PTR(length, "ucp_stream_recv_data_nb: length must not be NULL");
    ucp_worker *worker = ep->worker;
    UCS_CHECK_ARG_PTR(
        worker->context->has_feature(UCP_FEATURE_STREAM),
        "ucp_stream_recv_data_nb: the context was created without UCP_FEATURE_STREAM");
    ucs::opt_guard guard(worker->lock);
    auto *s = static_cast<ucp::stream_state *>(ep->stream);
    ucp::stream_chunk *c = s ? s->chunks.front() : nullptr;
    if (!c) {
        return UCS_STATUS_PTR(ep->check_usable());
    }
    ucp::recv_desc *desc = c->desc;
    size_t left = desc->length - c->used;
    if (c->used != 0) {
        // What the user gets must be found again from its address: move the rest behind the back
        // pointer.
        memmove(desc->data, static_cast<char *>(desc->data) + c->used, left);
        desc->length = left;
    }
    c->node.unlink();
    delete c;
    if (s->chunks.empty()) {
        ucp::clear_ready(ep, s);
    }
    *length = left;
    desc->state = ucp::recv_desc::use::held;
    return desc->data;
}

UCS_EXPORT void ucp_stream_data_release(ucp_ep_h ep, void *data)
{
    if (!ep || !data) {
        ucs_error("ucp_stream_data_release: ep and data must not be NULL");
        return;
    }
    ucs::opt_guard guard(ep->worker->lock);
    ep->worker->proto->descs.put(ucp::desc_of(data));
}

UCS_EXPORT ssize_t ucp_stream_worker_poll(ucp_worker_h worker, ucp_stream_poll_ep_t *poll_eps,
                                          size_t max_eps, unsigned)
{
    if (!worker || (!poll_eps && max_eps != 0) ||
        !worker->context->has_feature(UCP_FEATURE_STREAM)) {
        ucs_error(
            "ucp_stream_worker_poll: worker and poll_eps must not be NULL, and the context needs "
            "UCP_FEATURE_STREAM");
        return UCS_ERR_INVALID_PARAM;
    }
    ucs::opt_guard guard(worker->lock);
    auto &ready = worker->proto->stream_ready;
    size_t n = std::min(max_eps, ready.size());
    for (size_t i = 0; i < n; ++i) {
        poll_eps[i].ep = ready[i];
        poll_eps[i].user_data = ready[i]->user_data;
        static_cast<ucp::stream_state *>(ready[i]->stream)->ready = false;
    }
    ready.erase(ready.begin(), ready.begin() + static_cast<ptrdiff_t>(n));
    return static_cast<ssize_t>(n);
}

} // extern "C"
