// SPDX-License-Identifier: BSD-3-Clause
// What a process says to one that it does not know yet begins with a structure of fixed size, and
// that with magic and version. These stand at the same places in every such protocol and in all of
// its versions, so that a reader of another version can say so; what stands behind them is the
// protocol's own.
//
//   0       4         5
//   +-------+---------+---------+
//   | magic | version | ...
//   +-------+---------+---------+
//
// What another protocol's message carries has no magic, and begins with the version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ucs {

struct protocol {
    uint32_t magic; // 0: none
    uint8_t version;
    const char *name; // as messages call it

    constexpr size_t version_at() const { return magic ? sizeof(magic) : 0; }
};

enum class spoken : uint8_t {
    ours,
    foreign, // too short, or of another magic
    other_version
};

// `bytes` may be a stranger's.
inline spoken which_protocol(const protocol &p, const void *bytes, size_t length) noexcept
{
    uint32_t magic = 0;
    if (length <= p.version_at()) {
        return spoken::foreign;
    }
    memcpy(&magic, bytes, p.version_at());
    if (magic != p.magic) {
        return spoken::foreign;
    }
    return static_cast<const uint8_t *>(bytes)[p.version_at()] == p.version ? spoken::ours
                                                                            : spoken::other_version;
}

// The structure, if the bytes begin with all of it and are of this protocol and version.
template <class Structure>
spoken read(const protocol &p, const void *bytes, size_t length, Structure *out) noexcept
{
    static_assert(std::is_trivially_copyable_v<Structure>);
    spoken what = which_protocol(p, bytes, length);
    if (what != spoken::ours) {
        return what;
    }
    if (length < sizeof(*out)) {
        return spoken::foreign;
    }
    memcpy(out, bytes, sizeof(*out));
    return spoken::ours;
}

// Whether it is another version of the protocol. Logs both then; `peer` begins the line.
bool is_other_version(const protocol &p, const void *bytes, size_t length,
                      const char *peer) noexcept;

} // namespace ucs
