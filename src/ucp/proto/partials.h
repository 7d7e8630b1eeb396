// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of which not all fragments are here: one way from fragments to a message for tags and
// active messages, which say what becomes of the bytes. The fragments of a message come in order;
// what does not continue one is dropped.
#pragma once

#include <ucs/type/status.h>

#include <cstddef>
#include <cstdint>

struct ucp_worker;

namespace ucp {

struct partial;
struct recv_desc;
struct tag_recv_request; // tag.h

struct partial_key {
    uint64_t source; // wire.h
    uint64_t msg_id;
    bool operator==(const partial_key &) const = default;
};
struct partial_hash {
    size_t operator()(const partial_key &k) const noexcept
    {
        return k.source ^ (k.msg_id * 0x9e3779b97f4a7c15ull);
    }
};

// What a protocol does with its messages.
struct fragmented {
    const char *first, *further; // its fragments, in the log
    // Some bytes of the message, at this offset.
    void (*store)(partial *part, size_t offset, const void *bytes, size_t length) noexcept;
    // All of them have come: takes the message out of the table and delivers it.
    void (*whole)(ucp_worker *worker, partial *part) noexcept;
    // The rest never comes. What the user has not seen is freed; the caller takes the message out
    // of the table.
    void (*lost)(ucp_worker *worker, partial *part, ucs_status_t status) noexcept;
};

struct partial {
    partial_key key;
    const fragmented *of;
    size_t total;
    size_t received;
    recv_desc *desc;       // collects the data, or
    tag_recv_request *req; // a matched receive gets it directly
    ucs_status_t status;
    uint64_t ep_id; // the endpoint to its sender, with which it ends; 0: none
    // active messages
    uint16_t am_id;
    uint16_t am_flags;
    uint32_t header_len;
    void *header;
};

// The message that a first fragment with this header, of either protocol, and `received` bytes of
// the total tells of.
template <class Header>
partial partial_of(const fragmented &of, const Header &hdr, size_t received) noexcept
{
    partial part = {};
    part.key = {hdr.source, hdr.msg_id};
    part.of = &of;
    part.total = hdr.total;
    part.received = received;
    part.ep_id = hdr.ep;
    return part;
}
// Whether that fragment, a message of `length` bytes, may begin it; one that may not is counted.
bool may_begin(ucp_worker *worker, const partial &part, size_t length) noexcept;
// The message has begun with part->received bytes, which are where they belong.
void part_begun(ucp_worker *worker, partial *part) noexcept;
// A further fragment of a message; returns what the handler returns.
ucs_status_t add_fragment(ucp_worker *worker, const fragmented &of, const void *data,
                          size_t length) noexcept;

} // namespace ucp
