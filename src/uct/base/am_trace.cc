// SPDX-License-Identifier: BSD-3-Clause
// The functions that stand in the table of an interface that traces. They copy what they send to
// show it in one piece.
#include "uct/base/am_trace.h"

#include "ucs/log.h"
#include "uct/base/iface.h"

#include <cstring>
#include <string>

namespace uct {

namespace {

void append(std::string &to, const uct_iov_t *iov, size_t count)
{
    for_each_piece(iov, count, [&](const char *from, size_t length, const uct_iov_t &) {
        to.append(from, length);
        return true;
    });
}

struct packing {
    uct_pack_callback_t pack;
    void *arg;
    std::string data;

    static size_t run(void *to, void *arg)
    {
        auto *p = static_cast<packing *>(arg);
        size_t length = p->pack(to, p->arg);
        p->data.assign(static_cast<const char *>(to), length);
        return length;
    }
};

} // namespace

am_trace::am_trace(iface &traced, uct_am_tracer_t tracer, void *arg)
    : traced_(traced), tracer_(tracer), arg_(arg), untraced_(traced.ops)
{
    for (unsigned id = 0; id < UCT_AM_ID_MAX; ++id) {
        slots_[id] = {this, static_cast<uint8_t>(id), traced_.am_[id]};
        traced_.am_[id] = {receive, &slots_[id]};
    }
    traced_.ops.ep_am_short = am_short;
    traced_.ops.ep_am_short_iov = am_short_iov;
    traced_.ops.ep_am_bcopy = am_bcopy;
    traced_.ops.ep_am_zcopy = am_zcopy;
}

am_trace::~am_trace()
{
    for (unsigned id = 0; id < UCT_AM_ID_MAX; ++id) {
        traced_.am_[id] = slots_[id].handler;
    }
    traced_.ops = untraced_;
}

am_trace &am_trace::of(uct_ep_h ep)
{
    return *static_cast<iface *>(ep->iface)->trace_;
}

void am_trace::describe(uct_am_trace_type_t type, uint8_t id, const void *data, size_t length) const
{
    char text[512] = "";
    tracer_(arg_, type, id, data, length, text, sizeof(text));
    UCS_LOG_AT(trace_data, "%s am_id %u len %zu %s", type == UCT_AM_TRACE_TYPE_SEND ? "TX" : "RX",
               id, length, text);
}

ucs_status_t am_trace::receive(void *arg, void *data, size_t length, unsigned flags)
{
    auto *s = static_cast<slot *>(arg);
    s->home->describe(UCT_AM_TRACE_TYPE_RECV, s->id, data, length);
    return s->handler.callback(s->handler.arg, data, length, flags);
}

ucs_status_t am_trace::am_short(uct_ep_h ep, uint8_t id, uint64_t header, const void *payload,
                                unsigned length)
{
    ucs_status_t status = of(ep).untraced_.ep_am_short(ep, id, header, payload, length);
    if (status == UCS_OK) {
        std::string whole(reinterpret_cast<const char *>(&header), sizeof(header));
        whole.append(static_cast<const char *>(payload), length);
        of(ep).describe(UCT_AM_TRACE_TYPE_SEND, id, whole.data(), whole.size());
    }
    return status;
}

ucs_status_t am_trace::am_short_iov(uct_ep_h ep, uint8_t id, const uct_iov_t *iov, size_t count)
{
    ucs_status_t status = of(ep).untraced_.ep_am_short_iov(ep, id, iov, count);
    if (status == UCS_OK) {
        std::string whole;
        append(whole, iov, count);
        of(ep).describe(UCT_AM_TRACE_TYPE_SEND, id, whole.data(), whole.size());
    }
    return status;
}

ssize_t am_trace::am_bcopy(uct_ep_h ep, uint8_t id, uct_pack_callback_t pack, void *arg,
                           unsigned flags)
{
    packing p{pack, arg, {}};
    ssize_t result = of(ep).untraced_.ep_am_bcopy(ep, id, packing::run, &p, flags);
    if (result >= 0) {
        of(ep).describe(UCT_AM_TRACE_TYPE_SEND, id, p.data.data(), p.data.size());
    }
    return result;
}

ucs_status_t am_trace::am_zcopy(uct_ep_h ep, uint8_t id, const void *header, unsigned header_length,
                                const uct_iov_t *iov, size_t count, unsigned flags,
                                uct_completion_t *completion)
{
    ucs_status_t status =
        of(ep).untraced_.ep_am_zcopy(ep, id, header, header_length, iov, count, flags, completion);
    if (status == UCS_OK || status == UCS_INPROGRESS) {
        std::string whole(static_cast<const char *>(header), header_length);
        append(whole, iov, count);
        of(ep).describe(UCT_AM_TRACE_TYPE_SEND, id, whole.data(), whole.size());
    }
    return status;
}

} // namespace uct
