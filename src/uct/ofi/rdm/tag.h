// SPDX-License-Identifier: BSD-3-Clause
// Tag matching by the core. Tagged messages are the core's own (FI_TAGGED) and never meet active
// messages. Each begins with
//   0    1        4      8   16
//   kind reserved length imm tag
// so that the sender's immediate value and tag arrive whole; length: of what follows.
//
// The core matches posted receives in the order of posting and keeps what matches none. UCT wants
// to hear of such messages: a receive that matches everything is posted when the interface has been
// idle for some rounds of progress, and taken back before the next receive of the user, which is
// refused until it is known whether a message came in between: it would have to be reported first.
#pragma once

#include "ucs/list.h"
#include "ucs/mpool.h"
#include "uct/ofi/core/op.h"

#include <uct/api/uct.h>

#include <rdma/fi_endpoint.h>

namespace uct::ofi {

class iface;

constexpr uint8_t tag_eager = 1;

// A receive of the user. The prefix lands here, the rest in the user's memory.
struct tag_receive_op : op {
    tag_prefix prefix;
    op_pieces pieces;
    void *desc;                 // of the registration of the above
    uct_tag_context_t *context; // nullptr: cancelled by force
    size_t room;                // in the user's memory
    ucs::list_node link;        // of tag_receives::posted_
};

// The receiving side of an interface.
class tag_receives {
  public:
    static constexpr size_t max_outstanding = 256;

    // where: the core endpoint; segment: payload of a receive buffer, headroom in front of it.
    tag_receives(ofi::iface &home, fid_ep *where, const uct_iface_params_t &params);
    tag_receives(const tag_receives &) = delete;
    tag_receives &operator=(const tag_receives &) = delete;

    ucs_status_t post(uct_tag_t tag, uct_tag_t mask, const uct_iov_t *iov, size_t count,
                      uct_tag_context_t *context);
    ucs_status_t cancel(uct_tag_context_t *context, bool force);

    // Once per round of progress.
    void progress()
    {
        if (catch_all_ == catch_all_state::none && idle_rounds_++ >= rounds_before_catch_all) {
            post_catch_all();
        }
    }

    // Messages that no receive expects are noticed.
    bool watching() const { return catch_all_ == catch_all_state::posted; }

    // The end of a receive, the user's or the catch-all.
    void ended(tag_receive_op *r, ucs_status_t status);
    void ended(receive_op *r, ucs_status_t status);

  private:
    static constexpr unsigned rounds_before_catch_all = 64;
    enum class catch_all_state { none, posted, cancelled };

    void post_catch_all();
    void unexpected(receive_op *r, const tag_prefix &prefix);

    ofi::iface &home_;
    fid_ep *where_;
    uct_tag_unexp_eager_cb_t eager_cb_;
    void *eager_arg_;
    ucs::mpool_base ops_;
    ucs::list<tag_receive_op, &tag_receive_op::link> posted_;
    size_t outstanding_ = 0;
    catch_all_state catch_all_ = catch_all_state::none;
    receive_op *catch_all_op_ = nullptr;
    // Where the end of messages that are too long goes: a core may drop the connection otherwise.
    receive_op *spill_ = nullptr;
    unsigned idle_rounds_ = 0;
};

} // namespace uct::ofi
