// SPDX-License-Identifier: BSD-3-Clause
//
// The variables of UCP, read once by ucp_config_read() into a plain struct.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ucp {

constexpr size_t SIZE_INF = SIZE_MAX;      // "inf"
constexpr size_t SIZE_AUTO = SIZE_MAX - 1; // "auto"

struct config {
    std::vector<std::string> tls = {"all"};
    std::vector<std::string> net_devices = {"all"};
    size_t rndv_thresh = SIZE_AUTO;
    size_t zcopy_thresh = SIZE_AUTO;
    size_t bcopy_thresh = SIZE_AUTO;
    unsigned rndv_scheme = 0; // enum rndv_scheme
    unsigned max_rndv_rails = 2;
    unsigned max_eager_lanes = 1;
    unsigned listener_backlog = 1024;
    bool cm_reuseaddr = false;
    double keepalive_interval = 20;
    bool proto_info = false;
    bool address_debug_info = false;
};

enum rndv_scheme : unsigned { RNDV_AUTO, RNDV_GET_ZCOPY, RNDV_PUT_ZCOPY, RNDV_AM };

} // namespace ucp
