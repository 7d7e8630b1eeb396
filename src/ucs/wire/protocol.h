// SPDX-License-Identifier: BSD-3-Clause
// The head of what a process says to one that it does not know yet. Magic and version stand at the
// same places in every such protocol and in all of its versions, so that a reader of another
// version can say so; what the byte behind them means is the protocol's own.
//
//   0       4         5
//   +-------+---------+---------+
//   | magic | version | ...
//   +-------+---------+---------+
#pragma once

#include <cstddef>
#include <cstdint>

namespace ucs {

struct protocol {
    uint32_t magic;
    uint8_t version;
    const char *name; // as messages call it
};

constexpr size_t protocol_head = 5; // bytes

enum class spoken : uint8_t {
    ours,
    foreign, // too short, or of another magic
    other_version
};

// `bytes` may be a stranger's.
spoken which_protocol(const protocol &p, const void *bytes, size_t length) noexcept;

// Whether it is another version of the protocol. Logs both then; `peer` begins the line.
bool is_other_version(const protocol &p, const void *bytes, size_t length,
                      const char *peer) noexcept;
// The same for a version that stands alone.
bool is_other_version(const protocol &p, uint8_t version, const char *peer) noexcept;

} // namespace ucs
