// SPDX-License-Identifier: BSD-3-Clause
// AWS EFA, as libfabric 2.1 lists it: the bare device first, then reliable datagrams in software.
#include "strict/strict.h"

namespace strict {

namespace {

constexpr int registration = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

constexpr profile all[] = {
    {
        .provider = "efa",
        .fabric = "efa-direct",
        .domain = "rdmap0s6-rdm",
        .addr_format = FI_ADDR_EFA,
        .addr_length = 32,
        .av_type = FI_AV_TABLE,
        .mr_mode = registration,
        .iov_limit = 2,
        .inject = 32,
        .inject_rma = 0,
        .cq_data_size = 4,
        .max_message = 8760,
        .caps = base_caps,
        .order = 0,
        .order_size = 0,
        .order_on_request = true,
        .keeps_iovecs = false,
        .releases_alone = false,
        .has_descriptor = true,
        .does = by_itself::everything,
        .refuses_one_of = 16,
        .auth_key_size = 0,
        // A device says its own (max_qp, max_cq and max_mr of ibv_query_device); these are chosen.
        .most = {256, 512, 65536},
    },
    {
        .provider = "efa",
        .fabric = "efa",
        .domain = "rdmap0s6-rdm",
        .addr_format = FI_ADDR_EFA,
        .addr_length = 32,
        .av_type = FI_AV_TABLE,
        .mr_mode = registration,
        .iov_limit = 4,
        .inject = 4096,
        .inject_rma = 0,
        .cq_data_size = 4,
        .max_message = 1ul << 40,
        .caps = all_caps,
        .order = FI_ORDER_SAS,
        .order_size = 0,
        .order_on_request = true,
        .keeps_iovecs = false,
        .releases_alone = true,
        .has_descriptor = false,
        .does = by_itself::everything,
        .refuses_one_of = 16,
        .auth_key_size = 0,
        .most = {256, 512, 65536},
    },
};

} // namespace

constinit const std::span<const profile> profiles = all;

} // namespace strict
