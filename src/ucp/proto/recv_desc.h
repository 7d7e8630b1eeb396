// SPDX-License-Identifier: BSD-3-Clause
//
// Received data that must outlive the transport's callback.
#pragma once

#include "ucp/core/request.h"
#include "ucs/compiler.h"
#include "ucs/copy.h"
#include "ucs/mpool.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

struct ucp_worker;

namespace ucp {

// Room that the transports leave in front of a received descriptor: a recv_desc is built there.
constexpr size_t RX_HEADROOM = 128;

struct partial; // proto.h

// Received data that is kept: an unexpected tag message (the ucp_tag_message_h), or AM data that
// the user holds. The memory is the transport's own descriptor when it lets us have it, else a
// copy. The eight bytes in front of `data` hold the address of this struct, which is how
// ucp_am_data_release() finds it.
struct recv_desc {
    enum class origin : uint8_t { uct, pool, heap };
    enum class content : uint8_t {
        tag,      // whole tag message
        tag_sync, // whole, wants an ACK
        tag_part, // arriving fragments: `part`
        tag_lost, // fragments of which the rest never comes: `lost`
        rts,      // data is the rts_hdr and what follows it
        am,       // data of an active message
        am_rts,   // rts of an active message
    };
    // States of what ucp_am_recv_data_nbx and ucp_am_data_release get.
    enum class use : uint8_t { free, callback, held, taken };

    tag_matcher::msg_entry match;
    ucp_worker *worker;
    void *data;
    size_t length; // of data; of the whole message for tag_part, rts
    partial *part;
    uint64_t ep_id;  // sync, rts: the endpoint to answer
    uint64_t req_id; // the sender's request
    void *uct_head;  // what uct_iface_release_desc() takes
    origin from;
    content what;
    use state;
    ucs_status_t lost;
    uint16_t am_id; // am_rts

    // Anew, with `data` and the rest of what tells of the memory as they are.
    void start(size_t size) noexcept
    {
        length = size;
        part = nullptr;
        ep_id = req_id = 0;
        state = use::callback;
    }
    static recv_desc *from_match(tag_matcher::msg_entry *m) noexcept
    {
        return reinterpret_cast<recv_desc *>(m); // first member
    }

    // Nothing more comes of a tag message.
    bool is_whole() const noexcept
    {
        return what == content::tag || what == content::tag_sync || what == content::tag_lost;
    }
};
static_assert(sizeof(recv_desc) + sizeof(void *) <= RX_HEADROOM);

// Where the received data of a worker is kept. Used under the worker's lock.
class desc_pool {
  public:
    // align: of active messages' data that the user may keep.
    desc_pool(ucp_worker *worker, size_t align);

    // Whether keep() takes the transport's descriptor, if the bytes are aligned there. A copy of
    // fewer bytes costs less.
    static bool prefers_uct(size_t length, unsigned uct_flags) noexcept
    {
        return length >= 2048 && uct_flags & UCT_CB_PARAM_FLAG_DESC;
    }

    // Keep `length` bytes, which stand `head` bytes (>= 8) behind `msg`, the message as the
    // transport gave it with `uct_flags`. Takes the transport's descriptor if it may: then
    // *keep_uct is set and the handler must return UCS_INPROGRESS. nullptr: no memory.
    UCS_ALWAYS_INLINE recv_desc *keep(void *msg, size_t head, size_t length, unsigned uct_flags,
                                      bool *keep_uct) noexcept
    {
        if (UCS_UNLIKELY(length > most_pooled)) {
            return keep_long(msg, head, length, uct_flags, keep_uct);
        }
        *keep_uct = false;
        recv_desc *desc = get(length);
        if (UCS_LIKELY(desc)) {
            ucs::copy_small(desc->data, static_cast<const char *>(msg) + head, length);
        }
        return desc;
    }

    // Memory for `length` bytes to be filled by the caller; `aligned` as the user asked for active
    // messages' data. nullptr: no memory.
    UCS_ALWAYS_INLINE recv_desc *get(size_t length, bool aligned = true) noexcept
    {
        if (UCS_UNLIKELY(length > most_pooled || (aligned && align_ > usual_align))) {
            return get_from_heap(length, aligned ? std::max(align_, usual_align) : usual_align);
        }
        auto *desc = static_cast<recv_desc *>(pool_.get());
        if (UCS_LIKELY(desc)) {
            desc->start(length);
        }
        return desc;
    }

    UCS_ALWAYS_INLINE void put(recv_desc *desc) noexcept
    {
        desc->state = recv_desc::use::free;
        if (UCS_LIKELY(desc->from == recv_desc::origin::pool)) {
            pool_.put(desc);
        } else {
            put_other(desc);
        }
    }

  private:
    static constexpr size_t most_pooled = 1024; // data bytes
    static constexpr size_t usual_align = 16;

    static void construct(void *worker, void *object);
    UCS_NOINLINE recv_desc *keep_long(void *msg, size_t head, size_t length, unsigned uct_flags,
                                      bool *keep_uct) noexcept;
    UCS_NOINLINE recv_desc *get_from_heap(size_t length, size_t align) noexcept;
    UCS_NOINLINE static void put_other(recv_desc *desc) noexcept;

    ucp_worker *const worker_;
    const size_t align_;
    ucs::mpool_base pool_;
};

inline recv_desc *desc_of(void *data) noexcept
{
    return static_cast<recv_desc **>(data)[-1];
}

} // namespace ucp
