// SPDX-License-Identifier: BSD-3-Clause
//
// Datatype iterator and the public datatype calls. See dt.h.
#include "ucp/core/dt.h"

#include "ucs/check.h"
#include "ucs/compiler.h"

#include <algorithm>
#include <new>

namespace ucp {

namespace {

ucp_dt_generic *generic_of(ucp_datatype_t dt) noexcept
{
    return reinterpret_cast<ucp_dt_generic *>(dt & ~ucp_datatype_t(UCP_DATATYPE_CLASS_MASK));
}

size_t iov_length(const ucp_dt_iov_t *v, size_t count) noexcept
{
    size_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
        sum += v[i].length;
    }
    return sum;
}

} // namespace

size_t dt_length(ucp_datatype_t dt, const void *buffer, size_t count) noexcept
{
    switch (dt & UCP_DATATYPE_CLASS_MASK) {
    case UCP_DATATYPE_CONTIG:
        return (dt >> UCP_DATATYPE_SHIFT) * count;
    case UCP_DATATYPE_IOV:
        return iov_length(static_cast<const ucp_dt_iov_t *>(buffer), count);
    default:
        return 0;
    }
}

ucs_status_t dt_iter::start_send(const void *buffer, size_t count, ucp_datatype_t dt) noexcept
{
    return bind(buffer, count, dt, false);
}

ucs_status_t dt_iter::bind(const void *buffer, size_t count, ucp_datatype_t dt, bool recv) noexcept
{
    kind_ = kind::none;
    offset_ = 0;
    length_ = 0;
    void *mutable_buffer = const_cast<void *>(buffer);
    switch (dt & UCP_DATATYPE_CLASS_MASK) {
    case UCP_DATATYPE_CONTIG:
        start_contig(buffer, (dt >> UCP_DATATYPE_SHIFT) * count);
        UCS_CHECK_ARG(buffer || length_ == 0, "buffer must not be NULL when count is not 0");
        return UCS_OK;
    case UCP_DATATYPE_IOV:
        UCS_CHECK_ARG(buffer || count == 0, "buffer must point to count entries of ucp_dt_iov_t");
        kind_ = kind::iov;
        u_.iov = {static_cast<const ucp_dt_iov_t *>(buffer), count, 0, 0};
        length_ = iov_length(u_.iov.v, count);
        return UCS_OK;
    case UCP_DATATYPE_GENERIC: {
        ucp_dt_generic *g = generic_of(dt);
        UCS_CHECK_ARG(g, "datatype is a generic type without operations");
        kind_ = kind::generic;
        u_.generic.dt = g;
        u_.generic.state = recv ? g->ops.start_unpack(g->context, mutable_buffer, count)
                                : g->ops.start_pack(g->context, buffer, count);
        length_ = g->ops.packed_size(u_.generic.state);
        return UCS_OK;
    }
    default:
        UCS_CHECK_ARG(false, "datatype 0x%llx is of an unknown class", (unsigned long long)dt);
    }
    return UCS_ERR_INVALID_PARAM;
}

void dt_iter::rewind(size_t offset) noexcept
{
    if (kind_ == kind::iov) {
        if (offset < u_.iov.start) {
            u_.iov.index = u_.iov.start = 0;
        }
        while (u_.iov.index < u_.iov.count &&
               offset - u_.iov.start >= u_.iov.v[u_.iov.index].length) {
            u_.iov.start += u_.iov.v[u_.iov.index].length;
            ++u_.iov.index;
        }
    }
    offset_ = offset;
}

size_t dt_iter::pack(void *dest, size_t max) noexcept
{
    size_t n = std::min(max, length_ - offset_);
    switch (kind_) {
    case kind::contig:
        if (n) {
            ucs::copy(dest, u_.contig + offset_, n);
        }
        offset_ += n;
        return n;
    case kind::iov: {
        size_t done = 0;
        rewind(offset_);
        while (done < n) {
            const ucp_dt_iov_t &e = u_.iov.v[u_.iov.index];
            size_t skip = offset_ - u_.iov.start;
            size_t part = std::min(n - done, e.length - skip);
            ucs::copy(static_cast<char *>(dest) + done, static_cast<char *>(e.buffer) + skip, part);
            done += part;
            rewind(offset_ + part);
        }
        return n;
    }
    case kind::generic:
        n = n ? u_.generic.dt->ops.pack(u_.generic.state, offset_, dest, n) : 0;
        offset_ += n;
        if (n == 0) { // the type has less to give than it said
            length_ = offset_;
        }
        return n;
    case kind::none:
        break;
    }
    return 0;
}

ucs_status_t dt_iter::unpack_other(size_t offset, const void *src, size_t length) noexcept
{
    if (length == 0) {
        return UCS_OK;
    }
    if (offset > length_ || length > length_ - offset) {
        return UCS_ERR_MESSAGE_TRUNCATED;
    }
    switch (kind_) {
    case kind::iov: {
        rewind(offset);
        for (size_t done = 0; done < length;) {
            const ucp_dt_iov_t &e = u_.iov.v[u_.iov.index];
            size_t skip = offset_ - u_.iov.start;
            size_t part = std::min(length - done, e.length - skip);
            ucs::copy(static_cast<char *>(e.buffer) + skip, static_cast<const char *>(src) + done,
                      part);
            done += part;
            rewind(offset_ + part);
        }
        return UCS_OK;
    }
    case kind::generic:
        return u_.generic.dt->ops.unpack(u_.generic.state, offset, src, length);
    case kind::contig: // too long
    case kind::none:
        break;
    }
    return UCS_ERR_MESSAGE_TRUNCATED;
}

void dt_iter::finish_generic() noexcept
{
    u_.generic.dt->ops.finish(u_.generic.state);
}

size_t dt_iter::to_iov(uct_iov_t *iov, size_t *count, size_t max, uct_mem_h memh) const noexcept
{
    size_t n = std::min(max, length_ - offset_);
    size_t room = *count;
    *count = 0;
    if (kind_ == kind::contig) {
        if (n == 0 || room == 0) {
            return 0;
        }
        iov[0] = {};
        iov[0].buffer = u_.contig + offset_;
        iov[0].length = n;
        iov[0].memh = memh;
        iov[0].count = 1;
        *count = 1;
        return n;
    }
    if (kind_ != kind::iov) {
        return 0;
    }
    size_t done = 0;
    size_t index = u_.iov.index, start = u_.iov.start;
    while (done < n && *count < room) {
        const ucp_dt_iov_t &e = u_.iov.v[index];
        size_t skip = offset_ + done - start;
        if (skip >= e.length) {
            start += e.length;
            ++index;
            continue;
        }
        size_t part = std::min(n - done, e.length - skip);
        uct_iov_t &out = iov[(*count)++];
        out = {};
        out.buffer = static_cast<char *>(e.buffer) + skip;
        out.length = part;
        out.memh = memh;
        out.count = 1;
        done += part;
    }
    return done;
}

} // namespace ucp

extern "C" {

UCS_EXPORT ucs_status_t ucp_dt_create_generic(const ucp_generic_dt_ops_t *ops, void *context,
                                              ucp_datatype_t *datatype_p)
{
    UCS_CHECK_ARG(ops, "ucp_dt_create_generic: ops must not be NULL");
    UCS_CHECK_ARG(datatype_p, "ucp_dt_create_generic: datatype_p must not be NULL");
    auto *g = new (std::nothrow) ucp_dt_generic{*ops, context};
    if (!g) {
        return UCS_ERR_NO_MEMORY;
    }
    *datatype_p = reinterpret_cast<uintptr_t>(g) | UCP_DATATYPE_GENERIC;
    return UCS_OK;
}

UCS_EXPORT void ucp_dt_destroy(ucp_datatype_t datatype)
{
    if ((datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_GENERIC) {
        delete ucp::generic_of(datatype);
    }
}

UCS_EXPORT ucs_status_t ucp_dt_query(ucp_datatype_t datatype, ucp_datatype_attr_t *attr)
{
    UCS_CHECK_ARG(attr, "ucp_dt_query: attr must not be NULL");
    if (!(attr->field_mask & UCP_DATATYPE_ATTR_FIELD_PACKED_SIZE)) {
        return UCS_OK;
    }
    const void *buffer = attr->field_mask & UCP_DATATYPE_ATTR_FIELD_BUFFER ? attr->buffer : nullptr;
    size_t count = attr->field_mask & UCP_DATATYPE_ATTR_FIELD_COUNT ? attr->count : 1;
    switch (datatype & UCP_DATATYPE_CLASS_MASK) {
    case UCP_DATATYPE_CONTIG:
        break;
    case UCP_DATATYPE_IOV:
        UCS_CHECK_ARG(attr->field_mask & UCP_DATATYPE_ATTR_FIELD_BUFFER && (buffer || count == 0),
                      "ucp_dt_query: attr->buffer must point to the iov of an iov datatype");
        break;
    case UCP_DATATYPE_GENERIC: {
        ucp_dt_generic *g = ucp::generic_of(datatype);
        UCS_CHECK_ARG(g, "ucp_dt_query: datatype is a generic type without operations");
        void *state = g->ops.start_pack(g->context, buffer, count);
        attr->packed_size = g->ops.packed_size(state);
        g->ops.finish(state);
        return UCS_OK;
    }
    default:
        UCS_CHECK_ARG(false, "ucp_dt_query: datatype is of an unknown class");
    }
    attr->packed_size = ucp::dt_length(datatype, buffer, count);
    return UCS_OK;
}

} // extern "C"
