// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/connect/claim.h"

#include "prov/ucxlike/connect/rdm.h"
#include "prov/ucxlike/data/rma.h"
#include "prov/ucxlike/data/tx.h"

#include "ucs/sys.h"

namespace ucxlike {

namespace {

constexpr size_t most_held = 16 << 20; // of one claim, bytes
constexpr size_t beside_payload = 128; // what a kept message takes

} // namespace

claim::claim(rdm_endpoint *ep, link *l, const wire::hello &h)
    : conn(ep->eng), said(h), home_(ep), callee_(this), word_(ucs::random_u64())
{
    callee_.tx = eng->connect(wire::name_of(said), nullptr, &callee_);
    if (tx_op *op = eng->try_begin_own()) {
        wire::builder b(op->header);
        b.tag(word_);
        eng->send_own(callee_.tx, op, b.finish(said.id, wire::challenge), nullptr, 0);
    } else {
        eng->close(callee_.tx, true);
        throw failure{FI_ENOMEM};
    }
    tx = l;
    l->owner = this;
}

claim::~claim()
{
    drop_deferred(this);
    if (callee_.tx) {
        eng->close(callee_.tx, !tx); // with a word, unless the claim has come to nothing
    }
    if (tx && tx->owner == this) {
        tx->owner = nullptr;
    }
}

void claim::link_failed(link *)
{
    tx = nullptr;
    home_->take_claim(this); // the last of this one
}

void claim::callee::link_failed(link *)
{
    tx = nullptr;
    PROV_INFO(EP_CTRL, "a connection names a peer that cannot be called\n");
    eng->fail(asked_for->tx, UCS_ERR_UNREACHABLE);
}

void claim::control(const wire::message &m, const void *, size_t, link *reply)
{
    if (m.kind == wire::proof && m.tag == word_ && reply == tx) {
        home_->proven(this); // the last of this one
    }
}

// The data of a rendezvous stays with its sender.
bool claim::keep(unsigned am, const wire::message &m, void *data, size_t length,
                 const ucp_am_recv_param_t *param, ucs_status_t *status)
{
    held_ += beside_payload + (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV ? 0 : length);
    if (held_ > most_held) {
        PROV_INFO(EP_CTRL, "a connection that has not shown its peer sends too much\n");
        eng->fail(tx, UCS_ERR_EXCEEDS_LIMIT);
        *status = UCS_ERR_REJECTED;
        return true;
    }
    *status = defer(this, am, m, data, length, param);
    return true;
}

} // namespace ucxlike
