// SPDX-License-Identifier: BSD-3-Clause
// The functions that stand in the table of an interface that counts.
#include "uct/base/traffic.h"

#include "ucs/error.h"
#include "uct/base/iface.h"

namespace uct {

static_assert(ucs::stats::am_flows == UCT_AM_ID_MAX);

// The function behind a slot of the table. Measure: what went out, of the result and the arguments.
template <class R, class... A>
struct traffic::call<R (*)(uct_ep_h, A...)> {
    using function = R (*)(uct_ep_h, A...);

    template <function uct_iface_ops_t::*Slot, auto Measure>
    static R counted(uct_ep_h ep, A... args)
    {
        ucs::stats::lane *lane = lane_of(ep);
        R result = (of(ep).uncounted_.*Slot)(ep, args...);
        if (UCS_LIKELY(result >= 0)) {
            sent s = Measure(static_cast<size_t>(result), args...);
            lane->flows[s.flow].count(s.length);
        } else if (result == UCS_ERR_NO_RESOURCE) {
            lane->retries.add(1);
        } else {
            lane->errors.add(1);
        }
        return result;
    }
};

#define UCS_COUNT(slot, ...)                                                                       \
    ops.slot = call<decltype(ops.slot)>::counted<&uct_iface_ops_t::slot, [] __VA_ARGS__>

void traffic::count_messages(uct_iface_ops_t &ops)
{
    UCS_COUNT(
        ep_am_short, (size_t, uint8_t id, uint64_t header, const void *, unsigned length) {
            return sent{id, sizeof(header) + length};
        });
    UCS_COUNT(
        ep_am_short_iov, (size_t, uint8_t id, const uct_iov_t *iov, size_t count) {
            return sent{id, iov_length(iov, count)};
        });
    UCS_COUNT(
        ep_am_bcopy, (size_t packed, uint8_t id, uct_pack_callback_t, void *, unsigned) {
            return sent{id, packed};
        });
    UCS_COUNT(
        ep_am_zcopy, (size_t, uint8_t id, const void *, unsigned header, const uct_iov_t *iov,
                      size_t count, unsigned, uct_completion_t *) {
            return sent{id, header + iov_length(iov, count)};
        });
}

void traffic::count_rma(uct_iface_ops_t &ops)
{
    UCS_COUNT(
        ep_put_short, (size_t, const void *, unsigned length, uint64_t, uct_rkey_t) {
            return sent{ucs::stats::put, length};
        });
    UCS_COUNT(
        ep_put_bcopy, (size_t packed, uct_pack_callback_t, void *, uint64_t, uct_rkey_t) {
            return sent{ucs::stats::put, packed};
        });
    UCS_COUNT(
        ep_put_zcopy,
        (size_t, const uct_iov_t *iov, size_t count, uint64_t, uct_rkey_t, uct_completion_t *) {
            return sent{ucs::stats::put, iov_length(iov, count)};
        });
    UCS_COUNT(
        ep_get_short, (size_t, void *, unsigned length, uint64_t, uct_rkey_t) {
            return sent{ucs::stats::get, length};
        });
    UCS_COUNT(
        ep_get_bcopy, (size_t, uct_unpack_callback_t, void *, size_t length, uint64_t, uct_rkey_t,
                       uct_completion_t *) {
            return sent{ucs::stats::get, length};
        });
    UCS_COUNT(
        ep_get_zcopy,
        (size_t, const uct_iov_t *iov, size_t count, uint64_t, uct_rkey_t, uct_completion_t *) {
            return sent{ucs::stats::get, iov_length(iov, count)};
        });
}

#define UCS_COUNT_ATOMIC(slot, size)                                                               \
    UCS_COUNT(                                                                                     \
        slot, (size_t, auto...) {                                                                  \
            return sent{ucs::stats::atomic, size};                                                 \
        })

void traffic::count_atomics(uct_iface_ops_t &ops)
{
    UCS_COUNT_ATOMIC(ep_atomic_cswap64, 8);
    UCS_COUNT_ATOMIC(ep_atomic_cswap32, 4);
    UCS_COUNT_ATOMIC(ep_atomic32_post, 4);
    UCS_COUNT_ATOMIC(ep_atomic64_post, 8);
    UCS_COUNT_ATOMIC(ep_atomic32_fetch, 4);
    UCS_COUNT_ATOMIC(ep_atomic64_fetch, 8);
}

#undef UCS_COUNT_ATOMIC
#undef UCS_COUNT

traffic::traffic(iface &counted, const char *transport, const char *device)
    : record_(ucs::stats::open_interface(static_cast<uct_iface *>(&counted), transport, device)),
      uncounted_(counted.ops)
{
    for (unsigned id = 0; id < UCT_AM_ID_MAX; ++id) {
        counted.am_[id] = counting(static_cast<uint8_t>(id), counted.am_[id]);
    }
    count_messages(counted.ops);
    count_rma(counted.ops);
    count_atomics(counted.ops);
    counted.ops.ep_create = create_ep;
}

traffic::~traffic()
{
    ucs::stats::close_interface(record_);
}

am_handler traffic::counting(uint8_t id, const am_handler &handler)
{
    slots_[id] = {ucs::stats::received(record_) + id, handler};
    return {receive, &slots_[id]};
}

traffic &traffic::of(uct_ep_h ep)
{
    return *static_cast<iface *>(ep->iface)->traffic_;
}

ucs::stats::lane *traffic::lane_of(uct_ep_h handle)
{
    return static_cast<ep *>(handle)->counted_;
}

ucs_status_t traffic::receive(void *arg, void *data, size_t length, unsigned flags)
{
    auto *s = static_cast<slot *>(arg);
    s->counted->count(length);
    return s->handler.callback(s->handler.arg, data, length, flags);
}

ucs_status_t traffic::create_ep(const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    traffic &t = *static_cast<iface *>(params->iface)->traffic_;
    ucs_status_t status = t.uncounted_.ep_create(params, ep_p);
    if (status != UCS_OK) {
        return status;
    }
    auto *created = static_cast<ep *>(*ep_p);
    status = ucs::guard([&] { created->counted_ = ucs::stats::open_lane(t.record_, *ep_p); });
    if (status != UCS_OK) {
        t.uncounted_.ep_destroy(created);
        return status;
    }
    if (created->connected()) {
        created->counted_->connects.add(1);
    }
    return UCS_OK;
}

} // namespace uct
