// SPDX-License-Identifier: BSD-3-Clause
//
// Worker addresses that are of no worker.
#pragma once

#include "ucp/connect/address.h"
#include "ucp/core/worker.h"

#include <cstdint>
#include <cstring>
#include <vector>

namespace ucp_test {

// The worker's address, in which another's uuid stands.
inline std::vector<uint8_t> address_in_the_name_of(uint64_t uuid, const ucp_worker &worker)
{
    std::vector<uint8_t> address = ucp::pack_address(worker, false);
    memcpy(address.data() + ucp::ADDRESS_HEAD, &uuid, sizeof(uuid));
    ucp::seal_address(address);
    return address;
}

} // namespace ucp_test
