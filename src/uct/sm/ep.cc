// SPDX-License-Identifier: BSD-3-Clause
// Active messages, order, and the life of an endpoint.
#include "uct/sm/ep.h"

#include "ucs/copy.h"
#include "uct/sm/iface.h"

#include <atomic>
#include <cstring>

namespace uct::sm {

ep::ep(sm::iface &home) : uct::ep(home) {}

iface &ep::home() const
{
    return static_cast<sm::iface &>(interface());
}

void ep::attach(peer &to)
{
    peer_ = &to;
    box_ = to.box.get();
    to.eps.push_back(this);
    set_connected();
}

ucs_status_t ep::get_address(uct_ep_addr_t *address)
{
    return home().get_address(reinterpret_cast<uct_iface_addr_t *>(address));
}

ucs_status_t ep::connect_to_ep(const uct_device_addr_t *device, const uct_ep_addr_t *address)
{
    if (peer_) {
        ucs_error("uct_ep_connect_to_ep: ep is connected already");
        return UCS_ERR_ALREADY_EXISTS;
    }
    return ucs::guard([&] { attach(home().attach(device, address)); });
}

void ep::destroy()
{
    sm::iface &owner = home();
    owner.destroyed(*this);
    owner.operations.cancel(*this, UCS_ERR_CANCELED);
    if (sibling.linked()) {
        sibling.unlink();
    }
    if (peer_) {
        owner.release(*peer_);
    }
    delete this;
}

// ---- Active messages

ucs_status_t ep::am_short(uint8_t id, uint64_t header, const void *payload, unsigned length)
{
    if (!ready()) {
        return not_ready();
    }
    if (UCS_UNLIKELY(id >= UCT_AM_ID_MAX)) {
        return above_limit("uct_ep_am_short: id", id, UCT_AM_ID_MAX - 1);
    }
    size_t total = length + sizeof(header);
    if (UCS_UNLIKELY(total > home().segment())) {
        return above_limit("uct_ep_am_short: length", length, home().segment() - sizeof(header));
    }
    outbox &box = *box_;
    if (UCS_UNLIKELY(!box.claim())) {
        return no_resource();
    }
    bool in_frame = total > inline_size;
    char *to = in_frame ? box.frame() : box.small();
    memcpy(to, &header, sizeof(header));
    static_assert((offsetof(slot, data) + sizeof(header)) % 16 == 0);
    if (length >= 16 && !in_frame) {
        ucs::copy_pieces(to + sizeof(header), payload, length);
    } else {
        ucs::copy_small(to + sizeof(header), payload, length);
    }
    if (box.publish(id, static_cast<uint32_t>(total), in_frame)) {
        peer_->ring();
    }
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
    outbox &box = *box_;
    if (UCS_UNLIKELY(!box.claim())) {
        return no_resource();
    }
    size_t length = pack(box.frame(), arg);
    bool in_frame = length > inline_size;
    if (!in_frame) { // one line less for the receiver to fetch; the frame's stays in our cache
        memcpy(box.small(), box.frame(), length);
    }
    if (box.publish(id, static_cast<uint32_t>(length), in_frame)) {
        peer_->ring();
    }
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
    size_t total = header_length + iov_length(iov, count);
    if (UCS_UNLIKELY(total > home().segment())) {
        return above_limit("uct_ep_am_zcopy: length", total, home().segment());
    }
    outbox &box = *box_;
    if (UCS_UNLIKELY(!box.claim())) {
        return no_resource();
    }
    bool in_frame = total > inline_size;
    char *to = in_frame ? box.frame() : box.small();
    copy_bytes(to, header, header_length);
    to += header_length;
    gather(to, iov, count);
    if (box.publish(id, static_cast<uint32_t>(total), in_frame)) {
        peer_->ring();
    }
    return UCS_OK;
}

// ---- Order

ucs_status_t ep::flush(unsigned flags, uct_completion_t *completion)
{
    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        set_failed(UCS_ERR_CANCELED);
        fenced_ = false;
        if (sibling.linked()) {
            sibling.unlink();
        }
        home().operations.cancel(*this, UCS_ERR_CANCELED);
        return UCS_OK;
    }
    if (UCS_UNLIKELY(status() != UCS_OK)) {
        return status();
    }
    if (has_pending()) {
        return no_resource();
    }
    if (ops_.empty()) {
        return UCS_OK; // all else is done when its call returns
    }
    if (completion && !home().operations.add_flush(*this, completion)) {
        return no_resource();
    }
    return UCS_INPROGRESS;
}

// What the peer does is done in order, but for the parts that wait for room; what is done here
// happens at once. So nothing goes until the peer has done all.
ucs_status_t ep::fence(unsigned)
{
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!ops_.empty() && !fenced_ && status() == UCS_OK) {
        fenced_ = true;
        suspend();
    }
    return status();
}

void ep::operation_ended()
{
    if (fenced_ && ops_.empty()) {
        fenced_ = false;
        set_connected();
    }
}

ucs_status_t ep::check(unsigned, uct_completion_t *)
{
    if (status() == UCS_OK && peer_ && !peer_->there()) {
        home().suspect(*peer_);
    }
    return status();
}

void ep::fail(ucs_status_t cause)
{
    set_failed(cause);
    fenced_ = false;
    home().operations.cancel(*this, cause);
}

} // namespace uct::sm
