// SPDX-License-Identifier: BSD-3-Clause
//
// The variables of UCP, read once by ucp_config_read() into a plain struct, and what the caller
// changed with ucp_config_modify() but belongs to a transport, which is passed on when it is
// opened.
#pragma once

#include "ucs/config/config.h"

#include <ucp/api/ucp.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ucp {

constexpr size_t SIZE_INF = ucs::config::memunits_inf;
constexpr size_t SIZE_AUTO = ucs::config::memunits_auto;

enum class address_format : int { v1, v2 };
enum class rndv_scheme : int { auto_, get_zcopy, get_ppln, rkey_ptr, put_zcopy, put_ppln, am };

// One limit for peers of this node and one for others.
struct thresholds {
    size_t intra;
    size_t inter;
};

// What executes atomic operations; guess: what there is.
enum class atomic_mode : int { cpu, device, guess };

struct config {
    std::vector<std::string> tls;
    std::vector<std::string> net_devices;
    thresholds rndv_thresh;
    size_t zcopy_thresh;
    size_t bcopy_thresh;
    double bcopy_bw;
    double rndv_perf_diff; // percent
    rndv_scheme scheme;
    unsigned max_rndv_rails;
    unsigned max_eager_lanes;
    unsigned max_rma_rails;
    unsigned listener_backlog;
    bool cm_reuseaddr;
    double keepalive_interval;
    unsigned keepalive_num_eps;
    unsigned max_peer_eps;
    std::string proto_info;
    ucs::config::ternary late_networks;
    ucs::config::ternary progress_yield;
    double arm_poll_time;
    double wakeup_interval;
    atomic_mode atomics;
    ucs::config::ternary rcache_enable;
    size_t rcache_max_size;
    size_t rcache_max_regions;
    bool unified_mode;
    address_format address_version;
    bool strict;
    bool tls_by_program; // set with ucp_config_modify(): messages name it so
    bool net_devices_by_program;
};

// Where the values come from; the transports read theirs from there, too. nullptr stands for none.
struct config_source {
    config_source(const char *env_prefix, const char *filename)
        : prefix_(env_prefix ? env_prefix : ""), file_(filename ? filename : "")
    {
    }
    const char *prefix() const { return prefix_.empty() ? nullptr : prefix_.c_str(); }
    const char *file() const { return file_.empty() ? nullptr : file_.c_str(); }

  private:
    std::string prefix_; // "MPI"
    std::string file_;
};

extern const ucs::config::table config_table;

} // namespace ucp

struct ucp_config {
    ucp_config(const char *env_prefix, const char *filename);

    ucp::config values = {};
    ucp::config_source source;
    std::vector<std::pair<std::string, std::string>> overrides; // names that UCP does not know
};
