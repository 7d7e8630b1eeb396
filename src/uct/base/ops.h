// SPDX-License-Identifier: BSD-3-Clause
// Fills the published table of function pointers from the methods of an interface class and an
// endpoint class: one indirect call per operation, as callers expect. Slots whose method a class
// does not have return UNSUPPORTED, so that no slot is empty.
#pragma once

#include "uct/base/iface.h"

#include <uct/api/uct.h>

namespace uct {

// A transport that something besides the user's thread works on gives a class instead, made from
// the handle for the time of each call.
struct no_guard {
    explicit no_guard(const void *) {}
};

// The function behind a slot: handle first, then the arguments of the method.
template <class Class, auto Method, class Guard>
struct thunk;

template <class Class, class Base, class R, class... A, R (Base::*Method)(A...), class Guard>
struct thunk<Class, Method, Guard> {
    template <class Handle>
    static R call(Handle handle, A... args)
    {
        [[maybe_unused]] Guard guard(handle);
        Class &object = *static_cast<Class *>(handle); // g++ for Arm takes the pointer for null
        return (object.*Method)(args...);
    }
};

template <class Slot>
struct unsupported;

template <class R, class... A>
struct unsupported<R (*)(A...)> {
    static R call(A...)
    {
        if constexpr (std::is_pointer_v<R>) {
            return UCS_STATUS_PTR(UCS_ERR_UNSUPPORTED);
        } else if constexpr (std::is_same_v<R, ucs_status_t> || std::is_same_v<R, ssize_t>) {
            return static_cast<R>(UCS_ERR_UNSUPPORTED);
        } else if constexpr (!std::is_void_v<R>) {
            return R{};
        }
    }
};

#define UCS_SLOT(slot, Class, Handle, method) UCS_GUARDED_SLOT(slot, Class, Handle, method, Guard)
#define UCS_GUARDED_SLOT(slot, Class, Handle, method, Guard)                                       \
    if constexpr (requires { &Class::method; }) {                                                  \
        ops.slot = thunk<Class, &Class::method, Guard>::template call<Handle>;                     \
    } else {                                                                                       \
        ops.slot = unsupported<decltype(ops.slot)>::call;                                          \
    }

template <class Ep, class Guard>
void fill_ep_ops(uct_iface_ops_t &ops)
{
    UCS_SLOT(ep_put_short, Ep, uct_ep_h, put_short)
    UCS_SLOT(ep_put_bcopy, Ep, uct_ep_h, put_bcopy)
    UCS_SLOT(ep_put_zcopy, Ep, uct_ep_h, put_zcopy)
    UCS_SLOT(ep_get_short, Ep, uct_ep_h, get_short)
    UCS_SLOT(ep_get_bcopy, Ep, uct_ep_h, get_bcopy)
    UCS_SLOT(ep_get_zcopy, Ep, uct_ep_h, get_zcopy)
    UCS_SLOT(ep_am_short, Ep, uct_ep_h, am_short)
    UCS_SLOT(ep_am_short_iov, Ep, uct_ep_h, am_short_iov)
    UCS_SLOT(ep_am_bcopy, Ep, uct_ep_h, am_bcopy)
    UCS_SLOT(ep_am_zcopy, Ep, uct_ep_h, am_zcopy)
    UCS_SLOT(ep_atomic_cswap64, Ep, uct_ep_h, atomic_cswap64)
    UCS_SLOT(ep_atomic_cswap32, Ep, uct_ep_h, atomic_cswap32)
    UCS_SLOT(ep_atomic32_post, Ep, uct_ep_h, atomic32_post)
    UCS_SLOT(ep_atomic64_post, Ep, uct_ep_h, atomic64_post)
    UCS_SLOT(ep_atomic32_fetch, Ep, uct_ep_h, atomic32_fetch)
    UCS_SLOT(ep_atomic64_fetch, Ep, uct_ep_h, atomic64_fetch)
    UCS_SLOT(ep_pending_add, Ep, uct_ep_h, pending_add)
    UCS_SLOT(ep_pending_purge, Ep, uct_ep_h, pending_purge)
    UCS_SLOT(ep_flush, Ep, uct_ep_h, flush)
    UCS_SLOT(ep_fence, Ep, uct_ep_h, fence)
    UCS_SLOT(ep_check, Ep, uct_ep_h, check)
    UCS_SLOT(ep_connect, Ep, uct_ep_h, connect)
    UCS_SLOT(ep_disconnect, Ep, uct_ep_h, disconnect)
    UCS_SLOT(cm_ep_conn_notify, Ep, uct_ep_h, conn_notify)
    UCS_SLOT(ep_destroy, Ep, uct_ep_h, destroy)
    UCS_SLOT(ep_get_address, Ep, uct_ep_h, get_address)
    UCS_SLOT(ep_connect_to_ep, Ep, uct_ep_h, connect_to_ep)
}

template <class Iface, class Ep, class Guard>
void fill_tag_ops(uct_iface_ops_t &ops)
{
    UCS_SLOT(ep_tag_eager_short, Ep, uct_ep_h, tag_eager_short)
    UCS_SLOT(ep_tag_eager_bcopy, Ep, uct_ep_h, tag_eager_bcopy)
    UCS_SLOT(ep_tag_eager_zcopy, Ep, uct_ep_h, tag_eager_zcopy)
    UCS_SLOT(ep_tag_rndv_zcopy, Ep, uct_ep_h, tag_rndv_zcopy)
    UCS_SLOT(ep_tag_rndv_cancel, Ep, uct_ep_h, tag_rndv_cancel)
    UCS_SLOT(ep_tag_rndv_request, Ep, uct_ep_h, tag_rndv_request)
    UCS_SLOT(iface_tag_recv_zcopy, Iface, uct_iface_h, tag_recv_zcopy)
    UCS_SLOT(iface_tag_recv_cancel, Iface, uct_iface_h, tag_recv_cancel)
}

template <class Iface, class Guard>
void fill_iface_ops(uct_iface_ops_t &ops)
{
    UCS_SLOT(iface_accept, Iface, uct_iface_h, accept)
    UCS_SLOT(iface_reject, Iface, uct_iface_h, reject)
    UCS_SLOT(iface_flush, Iface, uct_iface_h, flush)
    UCS_SLOT(iface_fence, Iface, uct_iface_h, fence)
    UCS_SLOT(iface_progress_enable, Iface, uct_iface_h, progress_enable)
    UCS_SLOT(iface_progress_disable, Iface, uct_iface_h, progress_disable)
    UCS_SLOT(iface_progress, Iface, uct_iface_h, progress)
    UCS_SLOT(iface_event_fd_get, Iface, uct_iface_h, event_fd_get)
    UCS_SLOT(iface_event_arm, Iface, uct_iface_h, event_arm)
    UCS_GUARDED_SLOT(iface_close, Iface, uct_iface_h, close, no_guard) // nothing is left to leave
    UCS_SLOT(iface_query, Iface, uct_iface_h, query)
    UCS_SLOT(iface_get_device_address, Iface, uct_iface_h, get_device_address)
    UCS_SLOT(iface_get_address, Iface, uct_iface_h, get_address)
    UCS_SLOT(iface_is_reachable, Iface, uct_iface_h, is_reachable)
    // The one slot without a handle in front: the interface is in the parameters.
    if constexpr (requires { &Iface::create_ep; }) {
        ops.ep_create = [](const uct_ep_params_t *params, uct_ep_h *ep_p) {
            [[maybe_unused]] Guard guard(params->iface);
            return static_cast<Iface *>(params->iface)->create_ep(*params, ep_p);
        };
    } else {
        ops.ep_create = unsupported<decltype(ops.ep_create)>::call;
    }
}

template <class Iface, class Ep, class Guard = no_guard>
uct_iface_ops_t make_ops()
{
    uct_iface_ops_t ops{};
    fill_ep_ops<Ep, Guard>(ops);
    fill_tag_ops<Iface, Ep, Guard>(ops);
    fill_iface_ops<Iface, Guard>(ops);
    return ops;
}

#undef UCS_SLOT
#undef UCS_GUARDED_SLOT

} // namespace uct
