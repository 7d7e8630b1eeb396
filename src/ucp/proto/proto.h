// SPDX-License-Identifier: BSD-3-Clause
//
// What the protocols (tag, am, stream, rma, rendezvous) share: the worker's and the endpoint's
// protocol state, and what handlers of messages need.
#pragma once

#include "ucp/core/am_id.h"
#include "ucp/core/request.h"
#include "ucp/endpoint/hooks.h"
#include "ucp/endpoint/send.h"
#include "ucp/mem/announced.h"
#include "ucp/proto/partials.h"
#include "ucp/proto/recv_desc.h"
#include "ucp/proto/wire.h"
#include "ucs/mpool.h"
#include "ucs/ptr_map.h"

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <array>
#include <cstddef>
#include <unordered_map>
#include <vector>

struct ucp_worker;
struct ucp_ep;

namespace ucp {

struct am_handler {
    ucp_am_recv_callback_t cb = nullptr; // of ucp_worker_set_am_recv_handler
    ucp_am_callback_t old_cb = nullptr;  // of ucp_worker_set_am_handler
    void *arg = nullptr;
    uint32_t flags = 0;
};

struct stream_state; // stream.cc

struct worker_proto {
    worker_proto(ucp_worker *worker, size_t alignment);
    ~worker_proto();
    worker_proto(const worker_proto &) = delete;
    worker_proto &operator=(const worker_proto &) = delete;

    // As many as there is memory for.
    void fill_spare_requests() noexcept;

    ucp_worker *const worker;
    tag_matcher tags{10};
    ucs::mpool_base requests;
    // Of `requests`, kept for what no caller can repeat, such as the answer to a peer.
    std::array<void *, 16> spare_requests = {};
    size_t spare_count = 0;
    desc_pool descs;
    ucs::ptr_map<ucp_request> request_ids;
    std::unordered_map<partial_key, partial, partial_hash> partials;
    std::vector<am_handler> am_handlers;
    uint64_t next_msg_id = 0;
    std::vector<ucp_ep *> stream_ready;
    size_t streams = 0; // endpoints that have a state of a stream: as many may be ready
    announced_memory announced;
};

// Count a message that was dropped because what it names is gone, or because it is damaged.
void drop_stale(ucp_worker *worker, const char *what) noexcept;
ucs_status_t drop_damaged(ucp_worker *worker, const char *what, size_t length) noexcept;

// Counts a message that was damaged or asked for what is not allowed; whether it has a line.
bool peer_fault(ucp_worker *worker) noexcept;

// The ep that a message names, if it is usable.
ucp_ep *find_usable_ep(ucp_worker *worker, uint64_t id) noexcept;
// The request of this phase with an id.
ucp_request *find_request(ucp_worker *worker, uint64_t id, uint8_t phase) noexcept;
// The same if it is on the endpoint that the peer's answer names.
ucp_request *find_asked(ucp_worker *worker, uint64_t ep, uint64_t id, uint8_t phase) noexcept;
// T: the type of the requests that have this phase.
template <request_type T>
T *find_asked(ucp_worker *worker, uint64_t ep, uint64_t id, uint8_t phase) noexcept
{
    return static_cast<T *>(find_asked(worker, ep, id, phase));
}

// ---- receive handlers: one row each in am_table.cc
ucs_status_t tag_eager_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t tag_first_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t tag_middle_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t tag_sync_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t ack_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rndv_rts_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rndv_rtr_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rndv_data_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rndv_ats_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t am_single_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t am_reply_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t am_first_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t am_middle_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t stream_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rma_put_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rma_get_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rma_get_reply_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t amo_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t amo_reply_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rma_flush_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rma_ack_handler(void *arg, void *data, size_t length, unsigned flags);

// Called by am reception when an RTS of kind AM arrived. Returns what the uct handler returns.
ucs_status_t am_rts(ucp_worker *worker, const wire::rts_hdr *rts, size_t length) noexcept;
// The same for tag.
ucs_status_t tag_rts(ucp_worker *worker, const wire::rts_hdr *rts, size_t length) noexcept;

} // namespace ucp
