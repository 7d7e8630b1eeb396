// SPDX-License-Identifier: BSD-3-Clause
// Sending messages in parts, and putting them together: see parts.h.
#include "uct/ofi/quirks/parts.h"

#include "ucs/copy.h"
#include "ucs/log.h"
#include "uct/ofi/core/ep.h"
#include "uct/ofi/rdm/rdm_iface.h"

#include <algorithm>
#include <cstring>
#include <rdma/fi_endpoint.h>

namespace uct::ofi {

// When the core refuses one, b->sent says where to go on.
ssize_t ep::post_parts(buffer_op *b)
{
    part_header header{.sender = static_cast<rdm_iface &>(owner()).id(),
                       .endpoint = number_,
                       .total = static_cast<uint32_t>(b->length),
                       .offset = 0};
    size_t room = std::min(owner().limit.inject, largest_part) - sizeof(header);
    while (b->sent < b->length) {
        char part[largest_part];
        size_t n = std::min(room, b->length - b->sent);
        header.offset = b->sent;
        memcpy(part, &header, sizeof(header));
        memcpy(part + sizeof(header), b->data + b->sent, n);
        ssize_t ret = fi_injectdata(target, part, sizeof(header) + n,
                                    with_mark(b->cq_data | am_part), address);
        if (ret != 0) {
            return ret;
        }
        b->sent += n;
        posted_message();
    }
    owner().put(b);
    return 0;
}

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
