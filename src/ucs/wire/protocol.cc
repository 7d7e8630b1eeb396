// SPDX-License-Identifier: BSD-3-Clause
#include "ucs/wire/protocol.h"

#include "ucs/log.h"

#include <bit>
#include <cstring>

namespace ucs {

static_assert(std::endian::native == std::endian::little, "all protocols are little-endian");

spoken which_protocol(const protocol &p, const void *bytes, size_t length) noexcept
{
    uint32_t magic;
    if (length < protocol_head) {
        return spoken::foreign;
    }
    memcpy(&magic, bytes, sizeof(magic));
    if (magic != p.magic) {
        return spoken::foreign;
    }
    return static_cast<const uint8_t *>(bytes)[sizeof(magic)] == p.version ? spoken::ours
                                                                           : spoken::other_version;
}

bool is_other_version(const protocol &p, const void *bytes, size_t length,
                      const char *peer) noexcept
{
    return which_protocol(p, bytes, length) == spoken::other_version &&
           is_other_version(p, static_cast<const uint8_t *>(bytes)[protocol_head - 1], peer);
}

bool is_other_version(const protocol &p, uint8_t version, const char *peer) noexcept
{
    if (version == p.version) {
        return false;
    }
    ucs_error("%s speaks version %u of %s, this library version %u", peer, version, p.name,
              p.version);
    return true;
}

} // namespace ucs
