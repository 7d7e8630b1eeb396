// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that a rendezvous announced and that its request no longer needs, because its endpoint was
// closed or failed before the peer answered. The peer may still read it over a core connection that
// other endpoints to the same worker share, and a core (tcp, verbs) ends a connection when a key in
// use is gone. So the registration stays until the peer answers after all, or the last endpoint to
// it has gone and the connection with it.
#pragma once

#include "ucp/core/registration.h"

#include <cstdint>
#include <vector>

struct ucp_worker;

namespace ucp {

struct data_request;
struct rail_memory;

class announced_memory {
  public:
    explicit announced_memory(ucp_worker *worker) : worker_(worker) {}
    ~announced_memory();
    announced_memory(const announced_memory &) = delete;
    announced_memory &operator=(const announced_memory &) = delete;

    // Takes over what the request has registered, if the peer may be reading it and others share
    // the connection.
    void keep(data_request *req) noexcept;
    // The peer answered a request that is gone.
    void answered(uint64_t request_id) noexcept;
    // An endpoint to this worker is no more.
    void endpoint_gone(uint64_t peer_uuid) noexcept;

  private:
    struct entry {
        uint64_t request_id;
        uint64_t peer_uuid;
        uint8_t md;
        registration reg;
        rail_memory *rails;
    };
    void release(const entry &e) noexcept;

    ucp_worker *const worker_;
    std::vector<entry> entries_;
};

} // namespace ucp
