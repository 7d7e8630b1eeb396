// SPDX-License-Identifier: BSD-3-Clause
//
// A context: the configuration of one ucp_init() and the transport resources it allows. It opens
// the memory domains; the interfaces belong to the workers. Nearly everything here is constant
// after construction, so workers of several threads read it without a lock. (A context that several
// threads share has no late networks.)
#pragma once

#include "ucp/core/config.h"
#include "ucp/core/mem_table.h"
#include "ucp/core/registration.h"
#include "ucs/lock.h"

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace ucp {

constexpr unsigned MAX_MDS = 16; // bits of an rkey's md map; the best stay, see keep_best()

struct md {
    uct_component_h cmpt = nullptr;
    uct_component_attr_t cmpt_attr = {};
    uct_md_h md = nullptr;
    uct_md_attr_t attr = {};
    std::string name; // of the md resource
};

// What a resource is to the choice of lanes: a higher class is tried first.
enum class tl_class : uint8_t { other, net, rdma, shm, self };

// Whether it reaches processes of this node alone.
constexpr bool on_node(tl_class cls) noexcept
{
    return cls == tl_class::shm || cls == tl_class::self;
}

struct tl_resource {
    uct_tl_resource_desc_t desc = {};
    uint8_t md_index = 0;
    tl_class cls = tl_class::other;
    bool extra_rail = false; // a network interface that is opened beside the best one
};

} // namespace ucp

struct ucp_context {
    ucp_context(const ucp_params_t *params, const ucp_config_t *config);
    ~ucp_context();
    ucp_context(const ucp_context &) = delete;
    ucp_context &operator=(const ucp_context &) = delete;

    bool has_feature(uint64_t bits) const noexcept { return (features & bits) != 0; }

    // Whether an operation of this feature takes a buffer as it is: until a driver that may know
    // the buffer is in the process.
    bool takes_any_buffer(uint64_t feature) const noexcept
    {
        return (unexamined.load(std::memory_order_relaxed) & feature) != 0;
    }
    void look_for_drivers() noexcept;

    // Networks that UCX_LATE_NETWORKS left out of `mds` and `resources`: behind those that are
    // there, which stay where they are. Nothing, when they are there. Throws bad_alloc, or what
    // uct says; the next call tries again.
    void open_networks();

    // Whether workers open this resource unasked.
    bool default_open(const ucp::tl_resource &rsc) const noexcept;

    // The components with a connection manager, the best first. They are core providers' and looked
    // for when the first listener or connection is made, whatever transports carry the data.
    std::vector<uct_component_h> connection_managers() const;

    ucp::config config;
    std::vector<std::pair<std::string, std::string>> overrides; // for the transports
    ucp::config_source source;
    std::string name;
    uint64_t features = 0;
    std::atomic<uint64_t> unexamined{0}; // features, or none
    size_t request_size = 0;             // the user's part
    void (*request_init)(void *request) = nullptr;
    void (*request_cleanup)(void *request) = nullptr;
    ucp_tag_t tag_sender_mask = 0;
    bool mt_workers_shared = false;
    size_t est_num_eps = 1;
    size_t est_num_ppn = 1;

    std::vector<ucp::md> mds; // index = md index in rkeys and worker addresses
    unsigned md_count = 0;
    std::unique_ptr<ucp::md_regions> regions[ucp::MAX_MDS]; // of domains where registering is dear
    std::vector<ucp::tl_resource> resources; // best first; index travels in worker addresses
    bool networks_are_late = false;          // open_networks() has something to open

    ucs::opt_lock lock; // of the listeners' connection requests
    std::atomic<unsigned> worker_count{0};
    std::atomic<unsigned> asked_over_lanes{0}; // connection requests that came over lanes
    ucp::mem_table memory;

  private:
    void release() noexcept;
};
