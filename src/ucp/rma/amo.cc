// SPDX-License-Identifier: BSD-3-Clause
//
// Atomics of 4 and 8 bytes: the processor's own on memory that is mapped here, else done by the
// target's processor on a message. Both kinds on one word are atomic to each other.
#include "ucp/core/nb.h"
#include "ucp/proto/protocols.h"
#include "ucp/rma/dispatch.h"

#include <cstring>

namespace ucp {

namespace {

struct amo_request : ucp_request {
    using ucp_request::ucp_request;

    uint64_t address; // of the target's memory
    ucp_rkey *rkey;
    void *result; // where the old value goes; nullptr: it is not asked for
    uint64_t value;
    uint64_t compare; // what a CSWAP expects
    uint8_t op;       // ucp_atomic_op_t
    uint8_t size;     // bytes
};

template <class T>
T apply(T *p, uint8_t op, T value, T compare) noexcept
{
    switch (op) {
    case UCP_ATOMIC_OP_ADD:
        return __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST);
    case UCP_ATOMIC_OP_SWAP:
        return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);
    case UCP_ATOMIC_OP_CSWAP:
        __atomic_compare_exchange_n(p, &compare, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        return compare; // what was there, whether it was equal or not
    case UCP_ATOMIC_OP_AND:
        return __atomic_fetch_and(p, value, __ATOMIC_SEQ_CST);
    case UCP_ATOMIC_OP_OR:
        return __atomic_fetch_or(p, value, __ATOMIC_SEQ_CST);
    case UCP_ATOMIC_OP_XOR:
        return __atomic_fetch_xor(p, value, __ATOMIC_SEQ_CST);
    }
    return 0;
}

uint64_t apply_sized(void *p, uint8_t op, uint8_t size, uint64_t value, uint64_t compare) noexcept
{
    if (size == 4) {
        return apply(static_cast<uint32_t *>(p), op, static_cast<uint32_t>(value),
                     static_cast<uint32_t>(compare));
    }
    return apply(static_cast<uint64_t *>(p), op, value, compare);
}

uint64_t load(const void *p, uint8_t size) noexcept
{
    uint64_t v = 0;
    memcpy(&v, p, size); // little-endian
    return v;
}

size_t pack_amo(void *dest, void *arg)
{
    auto *req = static_cast<amo_request *>(arg);
    wire::amo_hdr hdr = {};
    hdr.memh = req->rkey->memh_id;
    hdr.address = req->address;
    hdr.ep = req->ep->remote_id;
    hdr.req = req->id;
    hdr.value = req->value;
    hdr.compare = req->compare;
    hdr.op = req->op;
    hdr.size = req->size;
    memcpy(dest, &hdr, sizeof(hdr));
    return sizeof(hdr);
}

ucs_status_t message_progress(amo_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    bool fetch = req->result;
    req->pend_lane = ep->am_lane_index;
    if (fetch) {
        if (UCS_UNLIKELY(request_wire_id(req) == 0)) {
            return UCS_ERR_NO_MEMORY;
        }
        req->phase = PHASE_AMO;
        ep->add_outstanding(req);
    }
    ssize_t n = uct_ep_am_bcopy(ep->am_ep, AM_ID_AMO, pack_amo, req, 0);
    if (UCS_UNLIKELY(n < 0)) {
        request_unlist(req);
        req->phase = PHASE_NONE;
        return static_cast<ucs_status_t>(n);
    }
    ++ep->config->atomic.select(req->size).used;
    ep->rma_sent(); // the answer, if any, comes before the confirmation that a flush asks for
    if (!fetch) {
        complete(req, UCS_OK);
    }
    return UCS_OK;
}

struct amo_args {
    const char *call;
    ucp_ep *ep;
    unsigned op; // ucp_atomic_op_t
    uint64_t value;
    uint64_t compare;
    void *result;
    size_t size;
    uint64_t address;
    ucp_rkey *rkey;
};

ucs_status_t check_reply(const char *call, const void *reply, size_t size) noexcept
{
    return UCS_LIKELY(!ucs::device_memory::possible())
               ? UCS_OK
               : check_address(call, "the reply buffer", reply, size);
}

ucs_status_t check_amo(const amo_args &a) noexcept
{
    UCS_CHECK_ARG(a.ep, "%s: ep must not be NULL", a.call);
    UCS_CHECK_ARG(a.rkey, "%s: rkey must not be NULL", a.call);
    UCS_CHECK_ARG(a.op < UCP_ATOMIC_OP_LAST, "%s: opcode %u is unknown", a.call, a.op);
    UCS_CHECK_ARG(a.size == 4 || a.size == 8, "%s: op_size %zu is neither 4 nor 8", a.call, a.size);
    UCS_CHECK_ARG(a.address % a.size == 0, "%s: remote_addr 0x%llx is not aligned to %zu", a.call,
                  (unsigned long long)a.address, a.size);
    UCS_CHECK_ARG(
        a.ep->worker->context->has_feature(a.size == 4 ? UCP_FEATURE_AMO32 : UCP_FEATURE_AMO64),
        "%s: the context was created without UCP_FEATURE_AMO%zu", a.call, a.size * 8);
    UCS_CHECK_ARG(a.result || (a.op != UCP_ATOMIC_OP_SWAP && a.op != UCP_ATOMIC_OP_CSWAP),
                  "%s: SWAP and CSWAP need a reply buffer", a.call);
    return check_reply(a.call, a.result, a.size);
}

struct amo_operation {
    using args = amo_args;
    using request = amo_request;
    static constexpr ucs::stats::flow counted = ucs::stats::memory_atomic;

    static ucs_status_t check(const amo_args &a, const ucp_request_param_t *) noexcept
    {
        return check_amo(a);
    }
    static size_t length(const amo_args &a) noexcept { return a.size; }
    static size_t length(const amo_request &req) noexcept { return req.size; }
    static bool is_contig(const amo_args &) noexcept { return true; }
    static void at_mapped(const amo_args &a, char *word, size_t) noexcept
    {
        uint64_t old = apply_sized(word, static_cast<uint8_t>(a.op), static_cast<uint8_t>(a.size),
                                   a.value, a.compare);
        if (a.result) {
            memcpy(a.result, &old, a.size);
        }
    }
    static ucs_status_t at_once(const amo_args &, size_t) noexcept { return UCS_ERR_NO_RESOURCE; }
    static ucs_status_t make(const amo_args &a, const ucp_request_param_t *param,
                             amo_request **req_p) noexcept
    {
        ucs_status_t status = a.ep->check_usable();
        if (status != UCS_OK) {
            return status;
        }
        if (param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) {
            return UCS_ERR_NO_RESOURCE;
        }
        auto *req = request_get<amo_request>(a.ep->worker, param);
        if (!req) {
            return UCS_ERR_NO_MEMORY;
        }
        req->ep = a.ep;
        req->address = a.address;
        req->rkey = a.rkey;
        req->result = a.result;
        req->value = a.value;
        req->compare = a.compare;
        req->op = static_cast<uint8_t>(a.op);
        req->size = static_cast<uint8_t>(a.size);
        *req_p = req;
        return UCS_OK;
    }
    static ucs_status_t at_mapped(amo_request *req, char *word) noexcept
    {
        uint64_t old = apply_sized(word, req->op, req->size, req->value, req->compare);
        if (req->result) {
            memcpy(req->result, &old, req->size);
        }
        return UCS_OK;
    }
    static ucs_status_t start(amo_request *req) noexcept { return message_progress(req); }
};

ucs_status_ptr_t amo(const amo_args &a, const ucp_request_param_t *param) noexcept
{
    return rma_post<amo_operation>(a, param);
}

ucs_status_t fetch_blocking(const char *call, ucp_ep *ep, unsigned op, uint64_t value,
                            uint64_t compare, void *result, size_t size, uint64_t address,
                            ucp_rkey *rkey) noexcept
{
    ucp_request_param_t param;
    param.op_attr_mask = 0;
    ucs_status_ptr_t ptr = amo({call, ep, op, value, compare, result, size, address, rkey}, &param);
    return UCS_PTR_IS_PTR(ptr) ? rma_wait(ep->worker, ptr) : UCS_PTR_STATUS(ptr);
}

} // namespace

const protocol atomic_mapped = {"processor's atomic", true, nullptr, nullptr, nullptr};
const protocol atomic_message = {"software emulation", false, nullptr, typed<message_progress>,
                                 abort_simple};

ucs_status_t amo_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::amo_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, "amo", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    if ((hdr.size != 4 && hdr.size != 8) || hdr.address % hdr.size != 0 ||
        hdr.op >= UCP_ATOMIC_OP_LAST) {
        return drop_damaged(worker, "amo", length);
    }
    wire::amo_reply_hdr reply = {0, hdr.req, 0, UCS_OK};
    bool good =
        access_mapped(worker, hdr.memh, hdr.address, hdr.size, RIGHT_WRITE, [&](char *word) {
            reply.value = apply_sized(word, hdr.op, hdr.size, hdr.value, hdr.compare);
        });
    if (!good) {
        if (peer_fault(worker)) {
            ucs_error("worker %p: an atomic at 0x%llx is outside the mapping it names, or denied",
                      (void *)worker, (unsigned long long)hdr.address);
        }
        reply.status = UCS_ERR_INVALID_ADDR;
    }
    if (hdr.req == 0) {
        return UCS_OK;
    }
    ucp_ep *ep = find_usable_ep(worker, hdr.ep);
    if (!ep) {
        drop_stale(worker, "amo");
    } else {
        reply.ep = ep->remote_id;
        send_control(ep, AM_ID_AMO_REPLY, reply);
    }
    return UCS_OK;
}

ucs_status_t amo_reply_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::amo_reply_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, "amo reply", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    auto *req = find_asked<amo_request>(worker, hdr.ep, hdr.req, PHASE_AMO);
    if (!req) {
        drop_stale(worker, "amo reply");
        return UCS_OK;
    }
    if (hdr.status == UCS_OK) {
        memcpy(req->result, &hdr.value, req->size);
    }
    complete(req, hdr.status == UCS_OK ? UCS_OK : UCS_ERR_INVALID_ADDR);
    return UCS_OK;
}

} // namespace ucp

extern "C" {

UCS_EXPORT ucs_status_ptr_t ucp_atomic_op_nbx(ucp_ep_h ep, ucp_atomic_op_t opcode,
                                              const void *buffer, size_t count,
                                              uint64_t remote_addr, ucp_rkey_h rkey,
                                              const ucp_request_param_t *param)
{
    UCS_CHECK_ARG_PTR(param, "ucp_atomic_op_nbx: param must not be NULL");
    UCS_CHECK_ARG_PTR(buffer, "ucp_atomic_op_nbx: buffer must not be NULL");
    UCS_CHECK_ARG_PTR(count == 1, "ucp_atomic_op_nbx: count %zu is not 1", count);
    UCS_CHECK_ARG_PTR(
        param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE &&
            (param->datatype == ucp_dt_make_contig(4) || param->datatype == ucp_dt_make_contig(8)),
        "ucp_atomic_op_nbx: param->datatype must be contiguous of 4 or 8 bytes");
    ucs_status_t status = UCS_OK;
    if (UCS_UNLIKELY(param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE ||
                     ucs::device_memory::possible())) {
        status = ucp::examine_buffer("ucp_atomic_op_nbx", param, buffer, count, param->datatype);
    }
    if (UCS_UNLIKELY(status != UCS_OK)) {
        return UCS_STATUS_PTR(status);
    }
    auto size = static_cast<uint8_t>(param->datatype >> UCP_DATATYPE_SHIFT);
    void *reply =
        param->op_attr_mask & UCP_OP_ATTR_FIELD_REPLY_BUFFER ? param->reply_buffer : nullptr;
    uint64_t value = ucp::load(buffer, size);
    uint64_t compare = 0;
    if (opcode == UCP_ATOMIC_OP_CSWAP && reply) {
        status = ucp::check_reply("ucp_atomic_op_nbx", reply, size);
        if (status != UCS_OK) {
            return UCS_STATUS_PTR(status);
        }
        compare = value;
        value = ucp::load(reply, size);
    }
    return ucp::amo(
        {"ucp_atomic_op_nbx", ep, opcode, value, compare, reply, size, remote_addr, rkey}, param);
}

UCS_EXPORT ucs_status_t ucp_atomic_post(ucp_ep_h ep, ucp_atomic_post_op_t opcode, uint64_t value,
                                        size_t op_size, uint64_t remote_addr, ucp_rkey_h rkey)
{
    static const uint8_t map[] = {UCP_ATOMIC_OP_ADD, UCP_ATOMIC_OP_AND, UCP_ATOMIC_OP_OR,
                                  UCP_ATOMIC_OP_XOR};
    UCS_CHECK_ARG(opcode < UCP_ATOMIC_POST_OP_LAST, "ucp_atomic_post: opcode %d is unknown",
                  (int)opcode);
    ucp_request_param_t param;
    param.op_attr_mask = 0;
    ucs_status_ptr_t ptr = ucp::amo(
        {"ucp_atomic_post", ep, map[opcode], value, 0, nullptr, op_size, remote_addr, rkey},
        &param);
    if (!UCS_PTR_IS_PTR(ptr)) {
        return UCS_PTR_STATUS(ptr);
    }
    ucp_request_free(ptr); // completion is seen through flush
    return UCS_OK;
}

UCS_EXPORT ucs_status_ptr_t ucp_atomic_fetch_nb(ucp_ep_h ep, ucp_atomic_fetch_op_t opcode,
                                                uint64_t value, void *result, size_t op_size,
                                                uint64_t remote_addr, ucp_rkey_h rkey,
                                                ucp_send_callback_t cb)
{
    static const uint8_t map[] = {UCP_ATOMIC_OP_ADD, UCP_ATOMIC_OP_SWAP, UCP_ATOMIC_OP_CSWAP,
                                  UCP_ATOMIC_OP_AND, UCP_ATOMIC_OP_OR,   UCP_ATOMIC_OP_XOR};
    UCS_CHECK_ARG_PTR(opcode < UCP_ATOMIC_FETCH_OP_LAST,
                      "ucp_atomic_fetch_nb: opcode %d is unknown", (int)opcode);
    UCS_CHECK_ARG_PTR(result, "ucp_atomic_fetch_nb: result must not be NULL");
    UCS_CHECK_ARG_PTR(op_size == 4 || op_size == 8,
                      "ucp_atomic_fetch_nb: op_size %zu is not 4 or 8", op_size);
    uint64_t compare = 0;
    if (opcode == UCP_ATOMIC_FETCH_OP_CSWAP) {
        ucs_status_t status = ucp::check_reply("ucp_atomic_fetch_nb", result, op_size);
        if (status != UCS_OK) {
            return UCS_STATUS_PTR(status);
        }
        compare = value;
        value = ucp::load(result, static_cast<uint8_t>(op_size));
    }
    ucp_request_param_t param = ucp::nb_param(cb);
    return ucp::amo({"ucp_atomic_fetch_nb", ep, map[opcode], value, compare, result, op_size,
                     remote_addr, rkey},
                    &param);
}

UCS_EXPORT ucs_status_t ucp_atomic_add32(ucp_ep_h ep, uint32_t add, uint64_t remote_addr,
                                         ucp_rkey_h rkey)
{
    return ucp::fetch_blocking("ucp_atomic_add32", ep, UCP_ATOMIC_OP_ADD, add, 0, nullptr, 4,
                               remote_addr, rkey);
}

UCS_EXPORT ucs_status_t ucp_atomic_add64(ucp_ep_h ep, uint64_t add, uint64_t remote_addr,
                                         ucp_rkey_h rkey)
{
    return ucp::fetch_blocking("ucp_atomic_add64", ep, UCP_ATOMIC_OP_ADD, add, 0, nullptr, 8,
                               remote_addr, rkey);
}

UCS_EXPORT ucs_status_t ucp_atomic_fadd32(ucp_ep_h ep, uint32_t add, uint64_t remote_addr,
                                          ucp_rkey_h rkey, uint32_t *result)
{
    UCS_CHECK_ARG(result, "ucp_atomic_fadd32: result must not be NULL");
    return ucp::fetch_blocking("ucp_atomic_fadd32", ep, UCP_ATOMIC_OP_ADD, add, 0, result, 4,
                               remote_addr, rkey);
}

UCS_EXPORT ucs_status_t ucp_atomic_fadd64(ucp_ep_h ep, uint64_t add, uint64_t remote_addr,
                                          ucp_rkey_h rkey, uint64_t *result)
{
    UCS_CHECK_ARG(result, "ucp_atomic_fadd64: result must not be NULL");
    return ucp::fetch_blocking("ucp_atomic_fadd64", ep, UCP_ATOMIC_OP_ADD, add, 0, result, 8,
                               remote_addr, rkey);
}

UCS_EXPORT ucs_status_t ucp_atomic_swap32(ucp_ep_h ep, uint32_t swap, uint64_t remote_addr,
                                          ucp_rkey_h rkey, uint32_t *result)
{
    UCS_CHECK_ARG(result, "ucp_atomic_swap32: result must not be NULL");
    return ucp::fetch_blocking("ucp_atomic_swap32", ep, UCP_ATOMIC_OP_SWAP, swap, 0, result, 4,
                               remote_addr, rkey);
}

UCS_EXPORT ucs_status_t ucp_atomic_swap64(ucp_ep_h ep, uint64_t swap, uint64_t remote_addr,
                                          ucp_rkey_h rkey, uint64_t *result)
{
    UCS_CHECK_ARG(result, "ucp_atomic_swap64: result must not be NULL");
    return ucp::fetch_blocking("ucp_atomic_swap64", ep, UCP_ATOMIC_OP_SWAP, swap, 0, result, 8,
                               remote_addr, rkey);
}

UCS_EXPORT ucs_status_t ucp_atomic_cswap32(ucp_ep_h ep, uint32_t compare, uint32_t swap,
                                           uint64_t remote_addr, ucp_rkey_h rkey, uint32_t *result)
{
    UCS_CHECK_ARG(result, "ucp_atomic_cswap32: result must not be NULL");
    return ucp::fetch_blocking("ucp_atomic_cswap32", ep, UCP_ATOMIC_OP_CSWAP, swap, compare, result,
                               4, remote_addr, rkey);
}

UCS_EXPORT ucs_status_t ucp_atomic_cswap64(ucp_ep_h ep, uint64_t compare, uint64_t swap,
                                           uint64_t remote_addr, ucp_rkey_h rkey, uint64_t *result)
{
    UCS_CHECK_ARG(result, "ucp_atomic_cswap64: result must not be NULL");
    return ucp::fetch_blocking("ucp_atomic_cswap64", ep, UCP_ATOMIC_OP_CSWAP, swap, compare, result,
                               8, remote_addr, rkey);
}

} // extern "C"
