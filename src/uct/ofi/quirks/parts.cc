// SPDX-License-Identifier: BSD-3-Clause
// Putting messages together of their parts: see parts.h.
#include "uct/ofi/quirks/parts.h"

#include "ucs/log.h"

#include <cstring>

namespace uct::ofi {

part_assembly::message part_assembly::add(const char *part, size_t length)
{
    part_header header;
    if (length <= sizeof(header)) {
        ucs_warn("dropped a part of a message that has %zu bytes in all", length);
        return {};
    }
    memcpy(&header, part, sizeof(header));
    size_t n = length - sizeof(header);
    key from(header.sender, header.endpoint);
    if (header.offset == 0 && !begin(from, header.total)) {
        return {};
    }
    auto found = messages_.find(from);
    if (found == messages_.end()) {
        return {}; // of one that was dropped
    }
    unfinished &m = found->second;
    if (header.total != m.total || header.offset != m.have || n > m.total - m.have) {
        ucs_warn("dropped a message of %zu bytes whose parts end at %zu", m.total, m.have);
        drop(found);
        return {};
    }
    memcpy(m.buffer->payload + m.have, part + sizeof(header), n);
    m.have += n;
    if (m.have < m.total) {
        return {};
    }
    message whole{m.buffer, m.total};
    messages_.erase(found);
    return whole;
}

// What an endpoint that failed left of an earlier one is dropped.
bool part_assembly::begin(const key &from, size_t total)
{
    auto found = messages_.find(from);
    if (found != messages_.end()) {
        drop(found);
    }
    if (total > most_) {
        ucs_warn("dropped a message of %zu bytes: %zu is the largest", total, most_);
        return false;
    }
    auto *buffer = static_cast<receive_op *>(buffers_.get());
    if (!buffer) {
        ucs_error("dropped a message of %zu bytes: no memory to put its parts together", total);
        return false;
    }
    messages_[from] = {.buffer = buffer, .total = total, .have = 0};
    return true;
}

void part_assembly::drop(std::map<key, unfinished>::iterator which)
{
    buffers_.put(which->second.buffer);
    messages_.erase(which);
}

void part_assembly::sender_died(uint64_t sender)
{
    for (;;) {
        auto next = messages_.lower_bound({sender, 0});
        if (next == messages_.end() || next->first.first != sender) {
            return;
        }
        drop(next);
    }
}

} // namespace uct::ofi
