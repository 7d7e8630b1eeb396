// SPDX-License-Identifier: BSD-3-Clause
// A device of the connection manager: a domain with its completion queue, and the messages that are
// sent and received there.
#pragma once

#include "ucs/mpool.h"
#include "uct/ofi/cm/wire.h"
#include "uct/ofi/core/cq_signal.h"
#include "uct/ofi/fabric/fid.h"
#include "uct/ofi/fabric/info.h"

#include <cstdint>
#include <string>

namespace uct::ofi {

class cm_conn;
class cm_device;

// One send or receive of a message. Its context is the provider's until the completion, also when
// the connection is closed before: then owner is nullptr and the completion only frees it.
struct cm_op {
    fi_context2 context; // first: the provider hands back its address
    cm_conn *owner;
    cm_device *device;
    cm_op *next;
    void *desc;
    uint32_t length; // of a send
    uint32_t room;   // at data()
    bool receive;
    bool counted; // by the device, as what may bring a completion
    bool left;    // by a channel that was closed

    char *data() { return reinterpret_cast<char *>(this + 1); }
};

// A domain with its completion queue and its registered message buffers.
class cm_device {
  public:
    cm_device(const core &c, fid_fabric *fabric, const fi_info *info);
    cm_device(const cm_device &) = delete;
    cm_device &operator=(const cm_device &) = delete;
    ~cm_device();

    // With room for a message of at least that many bytes. Throws bad_alloc.
    cm_op *get_op(cm_conn *owner, bool receive, size_t room);
    void put_op(cm_op *op) { pool_of(op->room).put(op); }

    fid_domain *domain() const { return domain_.get(); }
    fid_cq *cq() const { return cq_.get(); }

    // What may bring completions: operations that the core has, and channels that are connected.
    // Without them there is nothing in the queue but what closed channels have left behind, which
    // is not waited for: it is taken with what comes next, when it has become much, and before the
    // queue is slept on.
    void count(cm_op *op)
    {
        sources_ += !op->counted;
        op->counted = true;
    }
    void completed(cm_op *op)
    {
        sources_ -= op->counted;
        op->counted = false;
        left_behind_ -= op->left;
        op->left = false;
    }
    void channel_up() { ++sources_; }
    void channel_down() { --sources_; }
    void leave_behind(cm_op *op)
    {
        op->left = true;
        ++left_behind_;
    }
    bool has_left_behind() const { return left_behind_ != 0; }
    bool may_complete() const { return sources_ != 0 || left_behind_ >= most_left_behind; }

    const std::string name;

  private:
    ucs::mpool_base::params pool_params(size_t room);
    ucs::mpool_base &pool_of(size_t room)
    {
        return room > cm_wire::header_size ? long_ops_ : short_ops_;
    }
    void *alloc_chunk(size_t size, size_t align, void **cookie);

    static constexpr size_t most_left_behind = 64; // operations; the queue holds thousands

    const bool local_mr_;
    size_t sources_ = 0;
    size_t left_behind_ = 0;
    fid_ptr<fid_domain> domain_;
    // The completion queue's operations write here. Every open connection has a receive posted,
    // which private data cannot follow any more.
    ucs::mpool_base short_ops_;
    ucs::mpool_base long_ops_;
    fid_ptr<fid_cq> cq_;
    cq_signal signal_;
};

} // namespace uct::ofi
