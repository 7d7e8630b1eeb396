// SPDX-License-Identifier: BSD-3-Clause
//
// The steps of a schedule of two RDM endpoints (rdm_model.h), the messages and the calls under way.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace rdm_model {

enum kind : unsigned { send, receive, settle, peek, take, cancel, put, get, tell, rejoin };
inline const std::vector<unsigned> kinds = {send,    send,    send, send,   receive, receive,
                                            receive, receive, peek, cancel, take,    put,
                                            get,     tell,    tell, rejoin, settle};

constexpr uint64_t tags = 4, all_tags = 0xff, marker = 1 << 16;

struct call;

struct message {
    bool tagged = false;
    uint64_t tag = 0;
    size_t length = 0;
    unsigned seed = 0; // of its bytes
    bool with_data = false;
    call *delivered = nullptr; // the send, if it completes when the message has been received
};

struct receiving {
    bool tagged = false;
    uint64_t tag = 0, ignore = 0;
    std::vector<char> buffer;
    std::optional<message> brings; // by the model
    bool cancelled = false, discarded = false;

    bool takes(const message &m) const
    {
        return tagged == m.tagged && (!tagged || ((tag ^ m.tag) & ~ignore) == 0);
    }

    void bring(const message &m);
};

// A call under way; its address is the context.
struct call {
    fi_context2 reserved = {};
    std::vector<char> data;             // of a send, put or get
    std::unique_ptr<receiving> receive; // of a receive
    int error = 0;                      // of a send, by the model
    bool peeks = false, over = false;
    std::optional<size_t> found; // by a peek: how long what it found is
};

// A sender that waits for the delivery hears that the buffer was too short.
inline void receiving::bring(const message &m)
{
    brings = m;
    if (m.delivered && m.length > buffer.size()) {
        m.delivered->error = FI_ETRUNC;
    }
}

} // namespace rdm_model
