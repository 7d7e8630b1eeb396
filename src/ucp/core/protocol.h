// SPDX-License-Identifier: BSD-3-Clause
//
// Protocols as values. A protocol is one way to do one operation: its functions, and what
// UCX_PROTO_INFO says of it. A table has the protocols of one operation over one endpoint
// configuration by the size of the message. Everything that is sent is looked up in a table.
#pragma once

#include "ucs/compiler.h"

#include <ucs/type/status.h>

#include <cstddef>
#include <cstdint>

struct ucp_request;

namespace ucp {

template <auto f>
struct typed_call;
template <class Result, class Request, class... Args, Result (*f)(Request *, Args...) noexcept>
struct typed_call<f> {
    static Result call(ucp_request *req, Args... args) noexcept
    {
        return f(static_cast<Request *>(req), args...);
    }
};
// f, which takes a protocol's own type of request, as a function of any request. It is called with
// requests of that type alone.
template <auto f>
constexpr auto *typed = typed_call<f>::call;

struct protocol {
    const char *name; // in UCX's words
    // The lane does the operation itself; else the peer's processor does it on a message.
    bool native;
    // Prepares the request, and may replace its functions. false: the request cannot go this way,
    // and nothing has changed. nullptr: there is nothing to prepare.
    bool (*start)(ucp_request *req) noexcept;
    // Of a request, see request.h. nullptr: the operation ends inside its call.
    ucs_status_t (*progress)(ucp_request *req) noexcept;
    void (*abort)(ucp_request *req, ucs_status_t status) noexcept;
};

// The ways of an operation that sends a message. nullptr: it does not have that one.
struct message_protocols {
    const protocol *short_;
    const protocol *copy;      // one message, packed by the transport's callback
    const protocol *fragments; // as many of them as it takes
    const protocol *zcopy;     // out of the user's buffer
    const protocol *read;      // rendezvous: the receiver reads the buffer
    const protocol *send;      // rendezvous: the receiver asks for messages
    size_t copy_header;        // in front of the bytes of `copy`
    size_t zcopy_header;       // the longest in front of the bytes of `zcopy`
    bool short_first = false;  // no rendezvous by default of what goes short
};

struct proto_range {
    size_t end = 0; // the first size that is too large; SIZE_MAX: none
    const protocol *proto = nullptr;
    uint8_t lane = 0;
    mutable uint64_t used = 0; // by operations
};

// Sorted by size. The first range is what a message without any copy of ours takes, the second what
// one that is packed takes: these two are looked at inside the posting call. Both may be empty.
struct proto_table {
    static constexpr unsigned most = 7;
    static constexpr unsigned at_once = 2;

    uint8_t count = at_once;
    proto_range ranges[most];

    const proto_range &select(size_t length) const noexcept
    {
        unsigned i = 0;
        while (length >= ranges[i].end && i + 1u < count) {
            ++i;
        }
        return ranges[i];
    }
    size_t begin(unsigned i) const noexcept { return i == 0 ? 0 : ranges[i - 1].end; }
    bool empty(unsigned i) const noexcept { return ranges[i].end == begin(i); }
};

// What a posting call counted did not go out: a request takes it, which counts again.
inline void uncount(const proto_table &table, size_t length) noexcept
{
    for (unsigned i = 0; i < proto_table::at_once; ++i) {
        if (length < table.ranges[i].end) {
            --table.ranges[i].used;
            return;
        }
    }
}

} // namespace ucp
