// SPDX-License-Identifier: BSD-3-Clause
// HPE Slingshot: regions belong to an endpoint, and an operation has one piece.
#include "strict/strict.h"

namespace strict {

namespace {

constexpr profile all[] = {{
    .provider = "cxi",
    .fabric = "cxi",
    .domain = "cxi0",
    .addr_format = FI_ADDR_CXI,
    .addr_length = 8,
    .av_type = FI_AV_TABLE,
    .mr_mode = FI_MR_ENDPOINT | FI_MR_PROV_KEY | FI_MR_ALLOCATED,
    .iov_limit = 1,
    .inject = 192,
    .inject_rma = 192,
    .cq_data_size = 8,
    .max_message = 1ul << 30,
    .caps = all_caps,
    .order = all_orders,
    .order_size = SIZE_MAX,
    .order_on_request = true,
    .keeps_iovecs = false,
    .releases_alone = false,
    .has_descriptor = true,
    .does = by_itself::everything,
    .refuses_one_of = 16,
    .auth_key_size = 8,
    .most = {128, 32, 2048}, // its info says 100 regions, and it has many more
}};

} // namespace

constinit const std::span<const profile> profiles = all;

} // namespace strict
