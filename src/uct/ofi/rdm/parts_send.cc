// SPDX-License-Identifier: BSD-3-Clause
// Sending a message in parts: see quirks/parts.h.
#include "uct/ofi/quirks/parts.h"

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

} // namespace uct::ofi
