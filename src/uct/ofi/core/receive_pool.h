// SPDX-License-Identifier: BSD-3-Clause
// Receive buffers of the interfaces of a worker. Those over cores that take memory as it is have
// one pool; where memory has to be registered those of each domain have one, so that it is
// registered once. A buffer that one interface needs no more another may post.
//
// How many the interfaces keep posted is bounded for all of them together: each begins with few and
// has more when it receives much.
#pragma once

#include "ucs/mpool.h"
#include "uct/base/worker.h"
#include "uct/ofi/core/md.h"
#include "uct/ofi/core/op.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace uct::ofi {

class receive_pool final : public worker_part {
  public:
    // What interfaces agree in that have one pool.
    struct shape {
        md *domain; // that memory is registered with; nullptr: with none
        size_t headroom;
        size_t length; // of a message, with its prefix
        size_t prefix;
        size_t align; // of what follows the prefix; 0: any
        size_t align_offset;

        bool operator==(const shape &) const = default;
    };

    // That of the worker, which is made when there is none. Throws bad_alloc.
    static std::shared_ptr<receive_pool> of(uct::worker &worker, const shape &s);

    explicit receive_pool(const shape &s);

    receive_op *get(iface &user)
    {
        auto *r = static_cast<receive_op *>(all_.get());
        if (UCS_LIKELY(r != nullptr)) {
            r->user = &user;
        }
        return r;
    }
    void put(receive_op *r)
    {
        r->user = nullptr;
        all_.put(r);
    }
    // Takes the buffers that the interface still has. Its core endpoint is closed.
    void take_back(iface &user);
    ucs::mpool_base &all() { return all_; }
    void init(receive_op *r);
    // What stands before the payload may have been overwritten by a prefix.
    void restore_release(receive_op *r);

    size_t used() const { return all_.used(); }     // of all interfaces
    size_t length() const { return shape_.length; } // of a message

  private:
    static void release_desc(uct_recv_desc_t *self, void *);

    const shape shape_;
    ucs::mpool_base all_;
};

// How many receives one interface keeps posted.
struct receive_share {
    unsigned kept = 0;
    unsigned most = 0;        // that it may have
    bool has_surplus = false; // it is to give back those above its part
};

class receive_budget final : public worker_part {
  public:
    static constexpr unsigned total = 256; // of all interfaces, unless those with few have more
    static constexpr unsigned first = 32;  // of each

    static std::shared_ptr<receive_budget> of(uct::worker &worker);

    // Says what the share begins with. Throws bad_alloc.
    void join(receive_share &s);
    void leave(receive_share &s);
    // The interface received much: how many it may post beside what it has. Twice as many, of those
    // that are free or, when others have all, up to its part of the whole.
    unsigned more(receive_share &s);
    // One above its part does not post again what it received. True: this one is not to be.
    bool shrink(receive_share &s);

  private:
    unsigned part() const
    {
        return std::max(first, total / static_cast<unsigned>(std::max<size_t>(shares_.size(), 1)));
    }

    void find_surplus();

    std::vector<receive_share *> shares_;
    unsigned kept_ = 0; // by all
};

} // namespace uct::ofi
