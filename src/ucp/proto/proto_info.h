// SPDX-License-Identifier: BSD-3-Clause
//
// UCX_PROTO_INFO: the tables of an endpoint configuration as text, in the boxes that UCX prints:
//   +---------------+------------------------------------------------+
//   | job ep_cfg[0] | tagged message by ucp_tag_send* from any memory |
//   +---------------+------------------------+-----------------------+
//   |       0..8184 | eager short            | native tcp/lo         |
//   +---------------+------------------------+-----------------------+
#pragma once

#include "ucp/core/protocol.h"

#include <string>
#include <vector>

struct ucp_ep;
struct ucp_worker;

namespace ucp {

struct ep_config;

struct titled_table {
    std::string title; // "tagged message by ucp_tag_send* from host memory"
    const proto_table *table;
    // Another table of the operation, whose first two ranges count the messages of both; or
    // nullptr.
    const proto_table *shared;
};

// The tables of the features that the context was made for. One that says the same as another is
// left out.
std::vector<titled_table> titled_tables(const ucp_worker &worker, const ep_config &config);

// One box. counted: with the number of operations that went each way.
std::string proto_box(const ucp_worker &worker, const ep_config &config, const titled_table &table,
                      bool counted);

// What UCX_PROTO_INFO asks for: of a configuration that is new, and of a worker that ends.
void announce_protocols(const ucp_ep &ep);
void announce_used_protocols(const ucp_worker &worker);

} // namespace ucp
