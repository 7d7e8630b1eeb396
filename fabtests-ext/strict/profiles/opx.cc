// SPDX-License-Identifier: BSD-3-Clause
// Cornelis Omni-Path: the caller's iovecs are read late, and messages have no order.
#include "strict/strict.h"

namespace strict {

namespace {

constexpr profile all[] = {{
    .provider = "opx",
    .fabric = "opx",
    .domain = "hfi1_0",
    .addr_format = FI_ADDR_OPX,
    .addr_length = 8,
    .av_type = FI_AV_MAP,
    .mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
    .iov_limit = 4,
    .inject = 16,
    .inject_rma = 16,
    .cq_data_size = 4,
    .max_message = 1ul << 40,
    .caps = all_caps,
    .order = 0,
    .order_size = 0,
    .order_on_request = false,
    .keeps_iovecs = true,
    .releases_alone = false,
    .has_descriptor = false,
    .does = by_itself::sending,
    .refuses_one_of = 16,
    .auth_key_size = 0,
    .most = {160, SIZE_MAX, SIZE_MAX},
}};

} // namespace

constinit const std::span<const profile> profiles = all;

} // namespace strict
