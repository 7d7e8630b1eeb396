// SPDX-License-Identifier: BSD-3-Clause
// Active messages and the state of an endpoint.
#include "uct/self/ep.h"

#include "uct/base/ops.h"
#include "uct/base/transport.h"

#include <cstring>

namespace uct::self {

const uct_iface_ops_t &operations()
{
    static_assert(transport<iface, ep>);
    static const uct_iface_ops_t ops = make_ops<iface, ep>();
    return ops;
}

ucs_status_t ep::get_address(uct_ep_addr_t *address)
{
    return home().get_address(reinterpret_cast<uct_iface_addr_t *>(address));
}

ucs_status_t ep::connect_to_ep(const uct_device_addr_t *device, const uct_ep_addr_t *address)
{
    if (connected()) {
        ucs_error("uct_ep_connect_to_ep: ep is connected already");
        return UCS_ERR_ALREADY_EXISTS;
    }
    if (!home().is_reachable(device, reinterpret_cast<const uct_iface_addr_t *>(address))) {
        ucs_error("uct_ep_connect_to_ep: ep_addr is of another interface, and self reaches only "
                  "its own");
        return UCS_ERR_UNREACHABLE;
    }
    set_connected();
    return UCS_OK;
}

ucs_status_t ep::am_short(uint8_t id, uint64_t header, const void *payload, unsigned length)
{
    if (!ready()) {
        return not_ready();
    }
    if (UCS_UNLIKELY(id >= UCT_AM_ID_MAX)) {
        return above_limit("uct_ep_am_short: id", id, UCT_AM_ID_MAX - 1);
    }
    size_t segment = home().segment();
    if (UCS_UNLIKELY(length + sizeof(header) > segment)) {
        return above_limit("uct_ep_am_short: length", length, segment - sizeof(header));
    }
    message *m = home().get();
    if (!m) {
        return no_resource();
    }
    memcpy(m->payload, &header, sizeof(header));
    copy_bytes(m->payload + sizeof(header), payload, length);
    home().send(m, id, length + sizeof(header));
    return UCS_OK;
}

ucs_status_t ep::am_short_iov(uint8_t id, const uct_iov_t *iov, size_t count)
{
    return am_zcopy(id, nullptr, 0, iov, count, 0, nullptr);
}

ssize_t ep::am_bcopy(uint8_t id, uct_pack_callback_t pack, void *arg, unsigned)
{
    if (!ready()) {
        return not_ready();
    }
    if (UCS_UNLIKELY(id >= UCT_AM_ID_MAX)) {
        return above_limit("uct_ep_am_bcopy: id", id, UCT_AM_ID_MAX - 1);
    }
    message *m = home().get();
    if (!m) {
        return no_resource();
    }
    size_t length = pack(m->payload, arg);
    home().send(m, id, length);
    return static_cast<ssize_t>(length);
}

ucs_status_t ep::am_zcopy(uint8_t id, const void *header, unsigned header_length,
                          const uct_iov_t *iov, size_t count, unsigned, uct_completion_t *)
{
    if (!ready()) {
        return not_ready();
    }
    if (UCS_UNLIKELY(id >= UCT_AM_ID_MAX)) {
        return above_limit("uct_ep_am_zcopy: id", id, UCT_AM_ID_MAX - 1);
    }
    if (UCS_UNLIKELY(count > max_pieces)) {
        return above_limit("uct_ep_am_zcopy: iovcnt", count, max_pieces);
    }
    if (UCS_UNLIKELY(header_length > max_header)) {
        return above_limit("uct_ep_am_zcopy: header_length", header_length, max_header);
    }
    size_t segment = home().segment();
    if (UCS_UNLIKELY(header_length + iov_length(iov, count) > segment)) {
        return above_limit("uct_ep_am_zcopy: length", header_length + iov_length(iov, count),
                           segment);
    }
    message *m = home().get();
    if (!m) {
        return no_resource();
    }
    copy_bytes(m->payload, header, header_length);
    size_t length = header_length + gather(m->payload + header_length, iov, count);
    home().send(m, id, length);
    return UCS_OK;
}

ucs_status_t ep::flush(unsigned flags, uct_completion_t *)
{
    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        set_failed(UCS_ERR_CANCELED);
        return UCS_OK;
    }
    return has_pending() ? no_resource() : status();
}

} // namespace uct::self
