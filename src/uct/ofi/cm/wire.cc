// SPDX-License-Identifier: BSD-3-Clause
// Writing and reading the connection manager's header. The reader is given bytes of strangers.
#include "uct/ofi/cm/wire.h"

#include <cstring>

namespace uct::ofi::cm_wire {

namespace {

struct wire_header {
    uint32_t magic;
    uint8_t version;
    uint8_t type;
    uint16_t chunk_len;
    uint32_t total_len;
    uint32_t arg;
};
static_assert(sizeof(wire_header) == header_size);

bool carries_data(type t)
{
    return t == type::connect || t == type::accept || t == type::reply || t == type::data;
}

} // namespace

size_t write(void *out, const message &m)
{
    const wire_header header = {protocol.magic,
                                protocol.version,
                                static_cast<uint8_t>(m.type),
                                static_cast<uint16_t>(m.chunk_len),
                                m.total_len,
                                m.arg};
    memcpy(out, &header, sizeof(header));
    if (m.chunk_len > 0) {
        memcpy(static_cast<char *>(out) + sizeof(header), m.chunk, m.chunk_len);
    }
    return sizeof(header) + m.chunk_len;
}

bool parse(const void *in, size_t length, message &m)
{
    wire_header header;
    if (ucs::read(protocol, in, length, &header) != ucs::spoken::ours ||
        header.type < static_cast<uint8_t>(type::connect) ||
        header.type > static_cast<uint8_t>(type::disconnect) ||
        header.chunk_len > length - sizeof(header) || header.chunk_len > header.total_len) {
        return false;
    }
    m = {static_cast<type>(header.type), header.total_len, header.arg,
         static_cast<const char *>(in) + sizeof(header), header.chunk_len};
    if (!carries_data(m.type)) {
        return m.total_len == 0;
    }
    // The offset of a part and its length stay within the whole.
    return m.type != type::data ||
           (m.chunk_len > 0 && m.arg <= m.total_len && m.chunk_len <= m.total_len - m.arg);
}

} // namespace uct::ofi::cm_wire
