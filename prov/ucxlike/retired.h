// SPDX-License-Identifier: BSD-3-Clause
//
// Values of libfabric 1.x that the headers of 2.x warn about or lack. Programs built for 1.x still
// pass them, so they keep their meaning here, with the numbers of the 1.x ABI.
#pragma once

#include <cstdint>

namespace ucxlike::retired {

constexpr int mr_basic = 1 << 0;            // FI_MR_BASIC
constexpr int mr_scalable = 1 << 1;         // FI_MR_SCALABLE
constexpr uint64_t order_data = 1ULL << 16; // FI_ORDER_DATA
constexpr uint32_t prov_specific = 1U
                                   << 31; // FI_PROV_SPECIFIC: the rest is the provider's own number

} // namespace ucxlike::retired
