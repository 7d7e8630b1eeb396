// SPDX-License-Identifier: BSD-3-Clause
//
// Requests of peers that found no descriptor for the endpoint that would answer them, or too many
// such endpoints. The sender waits, and nothing but that endpoint leads to it. So the request is
// served again when there is room.
#pragma once

#include "ucs/log.h"

#include <cstddef>
#include <cstdint>
#include <vector>

struct ucp_ep;
struct ucp_worker;

namespace ucp {

class postponed_requests {
  public:
    // Whether the process lacks the descriptors of an endpoint. Throws bad_alloc.
    static bool is_needed();

    bool empty() const noexcept { return requests_.empty(); }
    // False: there are too many. Throws bad_alloc.
    bool keep(const void *request, size_t length);
    // The peer closed the endpoint.
    void drop(uint64_t uuid, uint64_t ep) noexcept;
    // All of them, if there are descriptors and room; looks once in a while. Throws bad_alloc.
    std::vector<std::vector<uint8_t>> take(bool room);
    // Whether the log is to tell of one more that waits, or that finds no place here.
    bool worth_a_line() noexcept { return ucs::log::worth_a_line(++seen_); }

  private:
    std::vector<std::vector<uint8_t>> requests_;
    size_t bytes_ = 0;
    uint64_t next_look_ns_ = 0;
    uint64_t seen_ = 0;
};

enum class shortage : uint8_t { descriptors, endpoints };
void postpone(ucp_worker *worker, const void *request, size_t length,
              shortage of); // throws bad_alloc
// The same of the request that the endpoint was made for.
void answer_later(const ucp_ep *ep); // throws bad_alloc

} // namespace ucp
