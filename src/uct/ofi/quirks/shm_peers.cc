// SPDX-License-Identifier: BSD-3-Clause
#include "uct/ofi/quirks/shm_peers.h"

#include "uct/ofi/quirks/shm_region.h"

#include <cstdint>
#include <cstring>
#include <rdma/fabric.h>

namespace uct::ofi {

namespace {

// libfabric 1.17, include/ofi_shm.h
constexpr uint8_t version = 4;
constexpr size_t table_at = 96; // where the head of a region has the offset of the table
constexpr int entries = 256;

struct peer_data {
    char name[256];
    int64_t id; // -1: not connected
    uint32_t sar_status;
    uint32_t name_sent;
};
static_assert(sizeof(peer_data) == 272);

peer_data *table_of(const shm_region &region)
{
    if (!region.layout() || region.layout()->version != version) {
        return nullptr;
    }
    uint64_t at = 0;
    memcpy(&at, region.head() + table_at, sizeof(at));
    bool fits = at < region.length() && region.length() - at >= entries * sizeof(peer_data);
    return fits ? reinterpret_cast<peer_data *>(region.head() + at) : nullptr;
}

} // namespace

bool shm_peers::are_removable()
{
    return FI_VERSION_LT(fi_version(), FI_VERSION(1, 18)) &&
           FI_VERSION_GE(fi_version(), FI_VERSION(1, 17));
}

int shm_peers::find(const std::string &own, const std::string &peer)
{
    shm_region region(own);
    const peer_data *table = table_of(region);
    for (int i = 0; table && i < entries; ++i) {
        if (strncmp(table[i].name, peer.c_str(), sizeof(table[i].name)) == 0) {
            return i;
        }
    }
    return -1;
}

void shm_peers::clear(const std::string &own, int entry)
{
    shm_region region(own);
    if (peer_data *table = table_of(region)) {
        table[entry].id = -1;
        table[entry].sar_status = 0;
        table[entry].name_sent = 0;
    }
}

} // namespace uct::ofi
