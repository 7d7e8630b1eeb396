// SPDX-License-Identifier: BSD-3-Clause
//
// The worker, how it is armed, and what arrives: messages find their sender by the id they carry;
// the handlers here only parse and hand on.
#include "prov/ucxlike/engine.h"

#include "prov/ucxlike/data/op.h"
#include "prov/ucxlike/data/rma.h"
#include "prov/ucxlike/data/rx.h"
#include "prov/ucxlike/data/tx.h"
#include "prov/ucxlike/endpoint.h"

#include "ucs/sys.h"

#include <algorithm>
#include <climits>
#include <sys/resource.h>

namespace ucxlike {

uint64_t now_ms()
{
    return ucs::monotonic_ns() / 1000000;
}

// That the process may have.
static size_t descriptors()
{
    rlimit most = {64, 64};
    getrlimit(RLIMIT_NOFILE, &most);
    return std::max<rlim_t>(most.rlim_cur, 64);
}

engine::engine(ucp_context_h context, bool locked, bool lasts)
    : lasting(lasts), lock(locked), tx_ops(64), rx_ops(64), msgs(64),
      most_strangers_(descriptors() / 4),
      patience_(static_cast<uint64_t>(param_int("peer_timeout", limit::peer_timeout)))
{
    ucp_worker_params_t params = {};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = locked ? UCS_THREAD_MODE_SERIALIZED : UCS_THREAD_MODE_SINGLE;
    if (ucs_status_t st = ucp_worker_create(context, &params, &worker); st != UCS_OK) {
        PROV_WARN(EP_CTRL, "ucp_worker_create: %s\n", ucs_status_string(st));
        throw failure{errno_of(st)};
    }
    static constexpr ucp_am_recv_callback_t handlers[] = {
        on_data<wire::am_msg>, on_data<wire::am_tagged>, on_control, on_data<wire::am_rma>};
    for (unsigned id = 0; id < wire::am_last; ++id) {
        ucp_am_handler_param_t p = {};
        p.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
        p.id = id;
        p.cb = handlers[id];
        p.arg = this;
        if (ucs_status_t st = ucp_worker_set_am_recv_handler(worker, &p); st != UCS_OK) {
            ucp_worker_destroy(worker);
            throw failure{errno_of(st)};
        }
    }
    if (ucp_worker_get_efd(worker, &efd_) != UCS_OK) {
        efd_ = -1;
    }
}

engine::~engine()
{
    stop_auto_progress();
    for (auto at = links_.begin(); at != links_.end();) {
        link *l = (at++)->second; // closing may take it out
        l->owner = nullptr;
        if (!l->closing) {
            close(l, l->failed);
        }
    }
    progress_until([this] { return closing_ == 0; }, param_int("close_timeout", 500));
    // What was reported as sent does not get lost because the receiver computes for a while.
    progress_until([this] { return lingering_ == 0; }, linger_ms());
    ucp_worker_destroy(worker);
    for (auto &[ep, l] : links_) {
        delete l;
    }
}

void engine::start_auto_progress()
{
    ucs::opt_guard g(lock);
    if (auto_progress_) {
        return;
    }
    if (efd_ < 0) {
        throw failure{FI_ENOSYS};
    }
    auto_progress_ = std::make_unique<auto_progress>(*this);
}

void engine::stop_auto_progress()
{
    std::unique_ptr<auto_progress> ending;
    {
        ucs::opt_guard g(lock);
        ending = std::move(auto_progress_);
        watched_ = false;
    }
}

bool engine::arm()
{
    ucs::opt_guard g(lock);
    bool armed = arm_worker();
    if (!armed && watched_) {
        taken_from_helper(); // the descriptor may have been read
    }
    return armed;
}

bool engine::arm_for_helper()
{
    watched_ = auto_progress_ && arm_worker(); // else it ends
    return watched_;
}

bool engine::arm_worker()
{
    if (efd_ < 0) {
        return true;
    }
    if (!failed_.empty() || mail) {
        return false;
    }
    return ucp_worker_arm(worker) == UCS_OK;
}

void engine::taken_from_helper()
{
    watched_ = false;
    auto_progress_->look_later();
}

void engine::collect_mail()
{
    mail.store(false);
    for (size_t i = 0; i < readers.size(); ++i) {
        readers[i]->collect();
    }
}

// Whose message it is. Most carry an id of ours; the first ones of a connection are known by the
// link they came by.
conn *engine::sender(const wire::message &m, const ucp_am_recv_param_t *param, link **reply)
{
    if (UCS_LIKELY(m.id != 0)) {
        return ids.find(m.id);
    }
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)) {
        return nullptr;
    }
    link *l = find(param->reply_ep);
    if (!l || l->closing) {
        return nullptr;
    }
    *reply = l;
    if (!m.hello || !l->home) {
        return l->owner;
    }
    return l->home->identify(l, m);
}

// A data message goes to the half of its endpoint that it is for.
static ucs_status_t hand_on(conn *c, unsigned am, const wire::message &m, void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    if (UCS_UNLIKELY(c->writes != 0)) {
        switch (c->admit()) {
        case conn::admission::later:
            return defer(c, am, m, data, length, param);
        case conn::admission::never:
            ++c->eng->dropped;
            return UCS_ERR_REJECTED;
        case conn::admission::now:
            break;
        }
    }
    switch (am) {
    case wire::am_msg:
        return c->owner->rx->message_arrived(c, m, data, length, param);
    case wire::am_tagged:
        return c->owner->rx->tagged_arrived(c, m, data, length, param);
    default:
        return rma_arrived(c, m, data, length, param);
    }
}

ucs_status_t dispatch(conn *c, unsigned am, const wire::message &m, void *data, size_t length,
                      const ucp_am_recv_param_t *param)
{
    return c->owner ? hand_on(c, am, m, data, length, param) : UCS_ERR_REJECTED;
}

// A data message of a conn that has an owner.
UCS_ALWAYS_INLINE ucs_status_t receive(conn *c, unsigned am, wire::message &m, void *data,
                                       size_t length, const ucp_am_recv_param_t *param)
{
    if (UCS_UNLIKELY(m.flags & wire::has_group) && !c->owner->in_group(m.group)) {
        // Sent before the sender knew that we had left.
        ++c->eng->dropped;
        if (m.flags & wire::has_ack) {
            answer(c, m.ack, FI_ENOTCONN);
        }
        return UCS_OK;
    }
    if (UCS_UNLIKELY(m.flags & wire::on_arrival)) {
        if (m.flags & wire::has_ack) {
            answer(c, m.ack, 0);
        }
        m.flags &= static_cast<uint8_t>(~(wire::has_ack | wire::on_arrival));
    }
    ucs_status_t st = hand_on(c, am, m, data, length, param);
    // The word to the sender says why; UCP's own refusal must not be faster with another reason.
    return am == wire::am_rma && st == UCS_ERR_REJECTED ? UCS_OK : st;
}

ucs_status_t arrive(conn *c, unsigned am, const wire::message &m, void *data, size_t length,
                    const ucp_am_recv_param_t *param)
{
    wire::message own = m;
    return c->owner ? receive(c, am, own, data, length, param) : UCS_ERR_REJECTED;
}

// No later message of the link can be read: it ends, which the peer sees at once.
void engine::refuse_version(link *l, const wire::message &m)
{
    PROV_WARN(EP_CTRL,
              "a peer speaks version %u of the provider's protocol, this library version %u\n",
              m.other_version, wire::version);
    if (l && !l->closing && !l->failed) {
        fail(l, UCS_ERR_UNSUPPORTED);
    }
}

// Drops a message that cannot be read.
void engine::refuse(const wire::message &m, const ucp_am_recv_param_t *param)
{
    ++dropped;
    if (m.other_version && (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)) {
        refuse_version(find(param->reply_ep), m);
    }
}

template <unsigned am>
ucs_status_t engine::on_data(void *arg, const void *header, size_t header_length, void *data,
                             size_t length, const ucp_am_recv_param_t *param)
{
    auto *e = static_cast<engine *>(arg);
    wire::message m;
    link *reply = nullptr;
    conn *c = wire::parse(header, header_length, m) ? e->sender(m, param, &reply) : nullptr;
    if (UCS_UNLIKELY(!c || !c->owner)) {
        ucs_status_t kept = UCS_OK;
        if (!c || !c->keep(am, m, data, length, param, &kept)) {
            e->refuse(m, param);
        }
        return kept;
    }
    return receive(c, am, m, data, length, param);
}

// The word of a peer about an operation of ours, if it is one that went to this peer. What brings
// data back does not succeed by a word.
static void acknowledged(conn *from, const wire::message &m)
{
    tx_op *op = from->eng->acks.find(m.tag);
    if (!op || op->to != from) {
        ++from->eng->dropped;
        return;
    }
    bool known = m.data <= INT_MAX && (m.data || !(op->cq_flags & FI_READ));
    tx_answered(op, known ? static_cast<int>(m.data) : FI_EIO);
}

ucs_status_t engine::on_control(void *arg, const void *header, size_t header_length, void *data,
                                size_t length, const ucp_am_recv_param_t *param)
{
    auto *e = static_cast<engine *>(arg);
    wire::message m;
    link *reply = nullptr;
    conn *c = wire::parse(header, header_length, m) ? e->sender(m, param, &reply) : nullptr;
    if (!c || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        e->refuse(m, param);
        return UCS_OK;
    }
    if (m.kind == wire::acked) {
        acknowledged(c, m);
        return UCS_OK;
    }
    if (guard([&] {
            c->control(m, data, length, reply);
            return 0;
        })) {
        e->give_up(c);
    }
    return UCS_OK;
}

} // namespace ucxlike
