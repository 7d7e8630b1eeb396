// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of received data: see recv_desc.h.
#include "ucp/proto/recv_desc.h"

#include "ucs/wire/checked.h"

#include <uct/api/uct.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace ucp {

namespace {

// Where a descriptor tells of itself: see desc_of().
void set_data(recv_desc *desc, ucp_worker *worker, recv_desc::origin from, void *data) noexcept
{
    desc->worker = worker;
    desc->from = from;
    desc->data = data;
    static_cast<recv_desc **>(data)[-1] = desc;
}

} // namespace

desc_pool::desc_pool(ucp_worker *worker, size_t align)
    : worker_(worker), align_(align),
      pool_({.object_size = sizeof(recv_desc) + usual_align + most_pooled,
             .align = 64,
             .chunk = 64,
             .arg = worker,
             .object_init = construct})
{
}

void desc_pool::construct(void *worker, void *object)
{
    auto *desc = new (object) recv_desc;
    auto data =
        (reinterpret_cast<uintptr_t>(desc) + sizeof(recv_desc) + usual_align) & ~(usual_align - 1);
    set_data(desc, static_cast<ucp_worker *>(worker), recv_desc::origin::pool,
             reinterpret_cast<void *>(data));
}

recv_desc *desc_pool::keep_long(void *msg, size_t head, size_t length, unsigned uct_flags,
                                bool *keep_uct) noexcept
{
    char *data = static_cast<char *>(msg) + head;
    *keep_uct = false;
    if (prefers_uct(length, uct_flags) && reinterpret_cast<uintptr_t>(data) % align_ == 0) {
        char *room = static_cast<char *>(msg) - RX_HEADROOM;
        // UCT aligns the payload, not the headroom: the struct goes to the first aligned place in
        // it.
        auto at = (reinterpret_cast<uintptr_t>(room) + alignof(recv_desc) - 1) &
                  ~uintptr_t(alignof(recv_desc) - 1);
        if (at + sizeof(recv_desc) + sizeof(void *) <= reinterpret_cast<uintptr_t>(data) &&
            reinterpret_cast<uintptr_t>(data) % alignof(void *) == 0) {
            auto *desc = new (reinterpret_cast<void *>(at)) recv_desc;
            set_data(desc, worker_, recv_desc::origin::uct, data);
            desc->uct_head = room;
            desc->start(length);
            *keep_uct = true;
            return desc;
        }
    }
    recv_desc *desc = get(length);
    if (desc) {
        ucs::copy(desc->data, data, length);
    }
    return desc;
}

recv_desc *desc_pool::get_from_heap(size_t length, size_t align) noexcept
{
    size_t front, bytes;
    if (!ucs::checked_round_up(&front, sizeof(recv_desc) + sizeof(void *), align) ||
        !ucs::checked_sum(&bytes, front, length) || !ucs::checked_round_up(&bytes, bytes, align)) {
        return nullptr;
    }
    void *memory = align <= usual_align ? malloc(bytes) : aligned_alloc(align, bytes);
    if (!memory) {
        return nullptr;
    }
    auto *desc = new (memory) recv_desc;
    set_data(desc, worker_, recv_desc::origin::heap, static_cast<char *>(memory) + front);
    desc->start(length);
    return desc;
}

void desc_pool::put_other(recv_desc *desc) noexcept
{
    if (desc->from == recv_desc::origin::uct) {
        // The transport gave us the memory from RX_HEADROOM bytes in front of the message on.
        uct_iface_release_desc(desc->uct_head);
    } else {
        free(desc);
    }
}

} // namespace ucp
