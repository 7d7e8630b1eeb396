// SPDX-License-Identifier: BSD-3-Clause
#include "ucs/wire/protocol.h"

#include "ucs/log.h"

#include <bit>

namespace ucs {

static_assert(std::endian::native == std::endian::little, "all protocols are little-endian");

bool is_other_version(const protocol &p, const void *bytes, size_t length,
                      const char *peer) noexcept
{
    if (which_protocol(p, bytes, length) != spoken::other_version) {
        return false;
    }
    ucs_error("%s speaks version %u of %s, this library version %u", peer,
              static_cast<const uint8_t *>(bytes)[p.version_at()], p.name, p.version);
    return true;
}

} // namespace ucs
