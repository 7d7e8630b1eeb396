// SPDX-License-Identifier: BSD-3-Clause
// The worst of every fabric at once.
#include "strict/strict.h"

namespace strict {

namespace {

constexpr profile all[] = {{
    .provider = "worst",
    .fabric = "worst",
    .domain = "worst0",
    .addr_format = FI_ADDR_CXI,
    .addr_length = 8,
    .av_type = FI_AV_MAP,
    .mr_mode = FI_MR_LOCAL | FI_MR_ENDPOINT | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED,
    .iov_limit = 1,
    .inject = 16,
    .inject_rma = 0,
    .cq_data_size = 4,
    .max_message = 1ul << 30,
    .caps = base_caps | FI_TAGGED,
    .order = 0,
    .order_size = 0,
    .order_on_request = true,
    .keeps_iovecs = true,
    .releases_alone = false,
    .has_descriptor = false,
    .does = by_itself::nothing,
    .refuses_one_of = 8,
    .auth_key_size = 0,
    .most = {32, 32, 2048},
}};

} // namespace

constinit const std::span<const profile> profiles = all;

} // namespace strict
