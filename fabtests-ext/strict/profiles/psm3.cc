// SPDX-License-Identifier: BSD-3-Clause
// Intel Ethernet by PSM3: ordered, without a descriptor to wait on.
#include "strict/strict.h"

namespace strict {

namespace {

constexpr profile all[] = {{
    .provider = "psm3",
    .fabric = "psm3",
    .domain = "psm3_0",
    .addr_format = FI_ADDR_PSMX3,
    .addr_length = 32,
    .av_type = FI_AV_TABLE,
    .mr_mode = 0,
    .iov_limit = 4,
    .inject = 64,
    .inject_rma = 64,
    .cq_data_size = 4,
    .max_message = 1ul << 32,
    .caps = all_caps,
    .order = all_orders,
    .order_size = 4096,
    .order_on_request = false,
    .keeps_iovecs = false,
    .releases_alone = false,
    .has_descriptor = false,
    .does = by_itself::everything,
    .refuses_one_of = 64,
    .auth_key_size = 16,
    .most = {65535, 65535, 65535},
}};

} // namespace

constinit const std::span<const profile> profiles = all;

} // namespace strict
