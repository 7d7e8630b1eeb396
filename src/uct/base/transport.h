// SPDX-License-Identifier: BSD-3-Clause
// The contract of a transport: what each method of its interface class and its endpoint class
// promises. The methods have the names and arguments of the calls of uct.h; ops.h makes the
// published table of functions from them.
//
// Callers. One thread at a time, the one that has the worker: the user's, or any with the
// worker's lock in mode MULTI. A transport with a thread of its own gives ops.h a guard class that
// takes its lock for each call.
//
// Blocking. No method waits for a peer. open and close of an interface, create_ep, registration and
// the address calls are control path: they may make system calls and throw ucs::error, which
// create_ep turns into a status itself. Everything else is data path: no allocation, no lock, no
// exception.
//
// Callbacks. Handlers of messages and completions run from progress(), exactly once, never inside
// the call that posted the operation. They may post, destroy the endpoint they came from, and free
// what they were given.
//
// What the methods of an endpoint return, and what it means:
//   - am_short, put_short: UCS_OK: the buffer can be used again. NO_RESOURCE: nothing was taken,
//     and the caller tries again after progress() or through pending_add(). Any other error:
//     nothing was taken, and the error is the endpoint's.
//   - am_bcopy, put_bcopy: the number of bytes that `pack` wrote, or a status as above. `pack` runs
//     inside the call, once, and only when there is room.
//   - am_zcopy, put_zcopy, get_*, atomic*: UCS_OK: done. INPROGRESS: the buffers belong to the
//     transport until the completion is called; without one, only flush() tells.
//   - pending_add: UCS_OK: the request is called from progress() when there may be room. BUSY:
//     there is room now.
//   - pending_purge: gives every waiting request to the callback and forgets it.
//   - flush: UCS_OK: everything posted is complete at the peer's memory or handed to its queue.
//     INPROGRESS: the completion tells. With CANCEL it ends everything posted with
//     UCS_ERR_CANCELED.
//   - fence: what is posted afterwards takes effect after what was posted before.
//   - check: finds out whether the peer is there; a failure goes to the error handler.
//   - destroy: no completion of the endpoint is called afterwards; the endpoint frees itself.
//
// Order. Active messages of an endpoint arrive in the order in which they were posted, whatever
// their size and call. Puts, gets and atomics may overtake each other and the messages, but for
// fence().
//
// Room. A send that returns NO_RESOURCE says what it lacks: see credits.h.
//
// What the methods of an interface return, and what it means:
//   - create_ep: outputs are written only on success. UNREACHABLE, INVALID_ADDR: the address is not
//     one of ours, or leads nowhere. An address is a claim of the peer's: it is tried, not
//     believed.
//   - query: what the interface can do. It does not change while the interface is open.
//   - is_reachable: whether create_ep would work; it may try.
//   - progress: one round: arrived messages, completions, waiting requests, in this order. Returns
//     how many events it had: a bounded number, and in time that does not grow with the number of
//     peers.
//   - event_fd_get: a descriptor that becomes readable after event_arm() when there is something to
//     progress.
//   - event_arm: UCS_OK: whatever comes from now on makes the descriptor readable. BUSY: something
//     is there already.
//   - close: every endpoint was destroyed. Frees the interface; nothing of it is left in any file
//     system.
//
// Errors. An endpoint fails once: set_failed() of the base class, then the error handler, once,
// from progress(). What was in flight ends with that status before.
#pragma once

#include <uct/api/uct.h>

#include <concepts>

namespace uct {

// What none may lack. Data operations are optional: query() says which there are.
template <class Ep>
concept transport_endpoint = requires(Ep ep, uct_pending_req_t *request,
                                      uct_completion_t *completion)
{
    ep.pending_add(request, 0u);
    ep.pending_purge(uct_pending_purge_callback_t{}, nullptr);
    {
        ep.flush(0u, completion)
        } -> std::same_as<ucs_status_t>;
    {
        ep.fence(0u)
        } -> std::same_as<ucs_status_t>;
    {
        ep.check(0u, completion)
        } -> std::same_as<ucs_status_t>;
    ep.destroy();
};

template <class Iface>
concept transport_interface = requires(Iface iface, uct_iface_attr_t *attr,
                                       uct_completion_t *completion, const uct_ep_params_t &params,
                                       uct_ep_h *ep, int *fd, uct_device_addr_t *device,
                                       uct_iface_addr_t *address)
{
    {
        iface.create_ep(params, ep)
        } -> std::same_as<ucs_status_t>;
    {
        iface.query(attr)
        } -> std::same_as<ucs_status_t>;
    {
        iface.get_device_address(device)
        } -> std::same_as<ucs_status_t>;
    {
        iface.get_address(address)
        } -> std::same_as<ucs_status_t>;
    {
        iface.is_reachable(device, address)
        } -> std::same_as<int>;
    {
        iface.flush(0u, completion)
        } -> std::same_as<ucs_status_t>;
    {
        iface.fence(0u)
        } -> std::same_as<ucs_status_t>;
    {
        iface.progress()
        } -> std::same_as<unsigned>;
    {
        iface.event_fd_get(fd)
        } -> std::same_as<ucs_status_t>;
    {
        iface.event_arm(0u)
        } -> std::same_as<ucs_status_t>;
    iface.close();
};

template <class Iface, class Ep>
concept transport = transport_interface<Iface> && transport_endpoint<Ep>;

} // namespace uct
