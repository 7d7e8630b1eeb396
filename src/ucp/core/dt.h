// SPDX-License-Identifier: BSD-3-Clause
//
// Datatypes: one iterator over a user buffer of any kind (contiguous, iov, generic). A send packs
// from it piece by piece; a receive unpacks into it at any offset, because fragments carry their
// offset. For contiguous memory both are one memcpy, and protocols that do not copy ask for the
// address (contig_ptr) or for an iov window (to_iov).
#pragma once

#include "ucs/compiler.h"
#include "ucs/copy.h"

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <cstdint>
#include <cstring>

// What a UCP_DATATYPE_GENERIC handle points to.
struct ucp_dt_generic {
    ucp_generic_dt_ops_t ops;
    void *context;
};

namespace ucp {

class dt_iter {
  public:
    enum class kind : uint8_t { none, contig, iov, generic };

    // Bind to a buffer that is read (send) or written (recv). For generic types this calls
    // start_pack/start_unpack, so finish() must follow exactly once. INVALID_PARAM: unknown class,
    // or a NULL contiguous buffer with bytes in it.
    [[nodiscard]] ucs_status_t start_send(const void *buffer, size_t count,
                                          ucp_datatype_t dt) noexcept;
    [[nodiscard]] ucs_status_t start_recv(void *buffer, size_t count, ucp_datatype_t dt) noexcept
    {
        if (UCS_LIKELY((dt & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG && buffer)) {
            start_contig(buffer, (dt >> UCP_DATATYPE_SHIFT) * count);
            return UCS_OK;
        }
        return bind(buffer, count, dt, true);
    }

    void start_contig(const void *buffer, size_t length) noexcept
    {
        kind_ = kind::contig;
        length_ = length;
        offset_ = 0;
        u_.contig = static_cast<char *>(const_cast<void *>(buffer));
    }

    // Nothing bound: finish() is then a no-op.
    void reset() noexcept { kind_ = kind::none, length_ = offset_ = 0; }

    // Copy the next at most `max` bytes to `dest` and advance; returns the number of bytes. A
    // generic type may give less than asked before its end.
    size_t pack(void *dest, size_t max) noexcept;

    // Copy `length` received bytes to `offset` of the buffer, of whatever type. TRUNCATED when they
    // do not fit (what fits is not written).
    [[nodiscard]] ucs_status_t unpack(size_t offset, const void *src, size_t length) noexcept
    {
        if (UCS_LIKELY(kind_ == kind::contig && offset <= length_ && length <= length_ - offset)) {
            ucs::copy_small(u_.contig + offset, src, length);
            return UCS_OK;
        }
        return unpack_other(offset, src, length);
    }

    // End of the operation, also after an error. Idempotent.
    void finish() noexcept
    {
        if (UCS_UNLIKELY(kind_ == kind::generic)) {
            finish_generic();
        }
        kind_ = kind::none;
    }

    // Bytes in all: packed size for a send, capacity for a receive.
    size_t length() const noexcept { return length_; }
    size_t offset() const noexcept { return offset_; }
    bool at_end() const noexcept { return offset_ >= length_; }
    void rewind(size_t offset) noexcept;
    void advance(size_t n) noexcept { rewind(offset_ + n); }
    kind type() const noexcept { return kind_; }
    bool is_contig() const noexcept { return kind_ == kind::contig; }
    char *contig_ptr() const noexcept { return u_.contig; }

    // Describe the next at most `max` bytes as up to `*count` uct iovs without copying (contig and
    // iov only), without advancing; returns the bytes described. `memh` goes into each entry.
    size_t to_iov(uct_iov_t *iov, size_t *count, size_t max, uct_mem_h memh) const noexcept;

  private:
    kind kind_ = kind::none;
    size_t length_ = 0;
    size_t offset_ = 0;
    union {
        char *contig;
        struct {
            const ucp_dt_iov_t *v;
            size_t count;
            size_t index; // entry that offset_ falls into
            size_t start; // offset of that entry's first byte
        } iov;
        struct {
            ucp_dt_generic *dt;
            void *state;
        } generic;
    } u_; // of kind_

    ucs_status_t bind(const void *buffer, size_t count, ucp_datatype_t dt, bool recv) noexcept;
    ucs_status_t unpack_other(size_t offset, const void *src, size_t length) noexcept;
    void finish_generic() noexcept;
};

// Bytes that `count` elements of a contiguous or iov type take (a generic type needs a state: 0).
size_t dt_length(ucp_datatype_t dt, const void *buffer, size_t count) noexcept;

} // namespace ucp
