// SPDX-License-Identifier: BSD-3-Clause
// An endpoint over a core provider: where it sends (a core endpoint and an address in it) and what
// is in flight. The same class serves both kinds of interface; over connected endpoints the
// connection, shared by all endpoints to one peer, sets and clears the target.
#pragma once

#include "uct/base/iface.h"
#include "uct/ofi/core/gathering.h"
#include "uct/ofi/core/iface.h"
#include "uct/ofi/core/sleeper.h"

#include <memory>
#include <sys/uio.h>
#include <utility>

namespace uct::ofi {

// UCT's pieces as the core's; empty ones are left out. Returns how many there are.
size_t fill_iov(const uct_iov_t *iov, size_t count, iovec *pieces, void **descs);
size_t total_length(const iovec *pieces, size_t count);

class connection;
struct peer;

class ep final : public uct::ep {
  public:
    explicit ep(ofi::iface &owner) : uct::ep(owner) {}

    // Active messages (am.cc).
    ucs_status_t am_short(uint8_t id, uint64_t header, const void *payload, unsigned length);
    ucs_status_t am_short_iov(uint8_t id, const uct_iov_t *iov, size_t count);
    ssize_t am_bcopy(uint8_t id, uct_pack_callback_t pack, void *arg, unsigned flags);
    ucs_status_t am_zcopy(uint8_t id, const void *header, unsigned header_length,
                          const uct_iov_t *iov, size_t count, unsigned flags,
                          uct_completion_t *completion);

    // Remote memory (rma.cc).
    ucs_status_t put_short(const void *buffer, unsigned length, uint64_t remote, uct_rkey_t key);
    ssize_t put_bcopy(uct_pack_callback_t pack, void *arg, uint64_t remote, uct_rkey_t key);
    ucs_status_t put_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t key,
                           uct_completion_t *completion);
    ucs_status_t get_short(void *buffer, unsigned length, uint64_t remote, uct_rkey_t key);
    ucs_status_t get_bcopy(uct_unpack_callback_t unpack, void *arg, size_t length, uint64_t remote,
                           uct_rkey_t key, uct_completion_t *completion);
    ucs_status_t get_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t key,
                           uct_completion_t *completion);

    // Atomic operations on it (amo.cc).
    ucs_status_t atomic32_post(unsigned op, uint32_t value, uint64_t remote, uct_rkey_t key);
    ucs_status_t atomic64_post(unsigned op, uint64_t value, uint64_t remote, uct_rkey_t key);
    ucs_status_t atomic32_fetch(unsigned op, uint32_t value, uint32_t *result, uint64_t remote,
                                uct_rkey_t key, uct_completion_t *completion);
    ucs_status_t atomic64_fetch(unsigned op, uint64_t value, uint64_t *result, uint64_t remote,
                                uct_rkey_t key, uct_completion_t *completion);
    ucs_status_t atomic_cswap32(uint32_t compare, uint32_t swap, uint64_t remote, uct_rkey_t key,
                                uint32_t *result, uct_completion_t *completion);
    ucs_status_t atomic_cswap64(uint64_t compare, uint64_t swap, uint64_t remote, uct_rkey_t key,
                                uint64_t *result, uct_completion_t *completion);

    // Tagged messages (tag_send.cc).
    ucs_status_t tag_eager_short(uct_tag_t tag, const void *data, size_t length);
    ssize_t tag_eager_bcopy(uct_tag_t tag, uint64_t imm, uct_pack_callback_t pack, void *arg,
                            unsigned flags);
    ucs_status_t tag_eager_zcopy(uct_tag_t tag, uint64_t imm, const uct_iov_t *iov, size_t count,
                                 unsigned flags, uct_completion_t *completion);

    ucs_status_t flush(unsigned flags, uct_completion_t *completion);
    ucs_status_t fence(unsigned flags);
    ucs_status_t check(unsigned flags, uct_completion_t *completion);
    ucs_status_t get_address(uct_ep_addr_t *address);
    ucs_status_t connect_to_ep(const uct_device_addr_t *device, const uct_ep_addr_t *address);
    void destroy();
    // Sends the peer something that it drops. When it or the way to it has gone, that shows. False:
    // the core did not take it.
    bool ping();

    // Flush marks that nothing stands in front of any more.
    void take_marks(ucs::list<op, &op::link> &marks);
    // nullptr: none is in flight.
    op *oldest_rma();
    bool connected_to_someone() const { return conn || remote; }
    // Completes everything in flight, because the peer or the connection to it has gone.
    void fail_operations(ucs_status_t status);
    // Ends everything for the user, though the core may not be done.
    void cancel();
    // Of its gathering.
    void post_gathered(buffer_op *b);

    // Where an atomic operation's buffer has its operands: the value at 0.
    static constexpr size_t atomic_compare = 8;
    static constexpr size_t atomic_result = 16;

    // Of injected messages: see backlog_full().
    static constexpr uint8_t most_marks = 16;
    // Of copied messages: see copies_full(). Some more are counted that were gathered or held.
    static constexpr uint8_t most_copies = 200;

    // What a fence has to wait for; nullptr: nothing.
    op *last_overtaken();
    // Such a one waits for room in the core.
    bool holds_overtaken();
    // Behind a closed fence the endpoint is not ready, not even for memory that is mapped here.
    enum fence_kind : uint8_t { own_fence = 1, interface_fence = 2 };
    void close_fence(fence_kind kind);
    void open_fence(fence_kind kind) { fenced_ &= static_cast<uint8_t>(~kind); }

    fid_ep *target = nullptr;
    fi_addr_t address = FI_ADDR_UNSPEC;
    void set_sleeper(sleeper *peer) { sleeper_ = peer; }
    void set_gathering(std::unique_ptr<gathering> g) { gathering_ = std::move(g); }

    connection *conn = nullptr; // over connected endpoints
    peer *remote = nullptr;     // over connectionless ones
    ucs::list_node sibling;     // in the list of the connection's or peer's endpoints

    // nullptr: there is no room for a message that is copied.
    buffer_op *get_send_buffer()
    {
        return is_full() || window_full() ? nullptr : owner().get_buffer();
    }
    // What a send returns that got none.
    UCS_NOINLINE ucs_status_t no_buffer();

  private:
    friend class ofi::iface;

    ofi::iface &owner() const { return static_cast<ofi::iface &>(interface()); }
    bool post_held() override;
    bool is_full() const override { return backlog_full() || copies_full(); }

    UCS_NOINLINE ucs_status_t am_short_buffered(uint8_t id, uint64_t header, const void *payload,
                                                unsigned length);
    void refused();
    ssize_t post_tagged(buffer_op *b);
    ucs_status_t post_failed(ssize_t ret);
    ucs_status_t post_failed(ssize_t ret, op *unused);
    void posted(op *o, op::kind what, uct_completion_t *completion);
    ssize_t send_packed(buffer_op *b, uint64_t data, size_t length);
    ssize_t post_packed(buffer_op *b);
    // The core has no room for what was packed: it goes before anything else.
    void hold_packed(buffer_op *b, op::kind what);
    ssize_t post_numbered(buffer_op *b);
    ssize_t post_numbered(buffer_op *b, size_t pieces, uint64_t data, uct_completion_t *completion);
    size_t fill_message(buffer_op *b, size_t header_length, const uct_iov_t *iov, size_t count);
    ssize_t send_small(buffer_op *b, uint8_t id, size_t length, unsigned alone);
    bool gathers() const { return gathering_ && owner().limit.batched > 0; }
    void went_alone(unsigned alone)
    {
        if (gathering_) {
            gathering_->went_alone(alone);
        }
    }
    // Before anything else that the endpoint sends. False: nothing was gathered.
    bool send_gathered()
    {
        bool begun = gathering_ && gathering_->begun();
        if (UCS_UNLIKELY(begun)) {
            gathering_->send();
        }
        return begun;
    }
    void drop_unsent();
    void leave_operations();
    void end_for_user();
    template <class T>
    ucs_status_t atomic(bool fetches, unsigned op, T value, T compare, T *result, uint64_t remote,
                        uct_rkey_t key, uct_completion_t *completion);
    ssize_t send_atomic(buffer_op *b, bool fetches, unsigned op, fi_datatype type, fi_addr_t to,
                        uint64_t remote, uint64_t key);
    // What is injected has no completion, and some cores take any number for a peer that takes
    // none. So after each run of injected messages one goes as a mark, with a completion; with so
    // many marks on their way there is no room for more.
    bool backlog_full() const
    {
        return UCS_UNLIKELY(marks_ >= most_marks) && injected_ >= owner().limit.inject_run;
    }
    // A core of sockets tells that a message has gone when its queue is read. A program that need
    // not wait does not progress, and each of its messages takes another buffer, which is cold.
    bool copies_full() const { return UCS_UNLIKELY(copies_ >= owner().limit.copies); }
    // What is packed counts as sent: no more of it than the peer can put in order.
    bool window_full() const { return UCS_UNLIKELY(owner().limit.prefix != 0) && order_full(); }
    bool order_full() const;
    // Where remote memory is here: in a mapping of it or, if it is of this process, at its address.
    // shm 2.x completes writes to its own process early and reads only when the target progresses.
    char *here(uct_rkey_t key, uint64_t remote, size_t length) const
    {
        const rkey *k = rkey::of(key);
        char *at = k->mapped(remote, length);
        return UCS_LIKELY(at || k->own.empty()) ? at : k->owned(remote, length);
    }
    static void aim(buffer_op *b, size_t length, fi_addr_t to, uint64_t remote, uct_rkey_t key);
    ucs_status_t write_buffer(buffer_op *b, size_t length, fi_addr_t to, uint64_t remote,
                              uct_rkey_t key);
    ssize_t post_put(buffer_op *b);
    // Where the memory of a key is reached: at the peer's endpoint, or at the one that carries the
    // region. False: the core has no room for its address.
    UCS_ALWAYS_INLINE bool find_memory(uct_rkey_t key, fi_addr_t *to_p)
    {
        *to_p = address;
        const std::string &carrier = rkey::of(key)->carrier;
        return UCS_LIKELY(carrier.empty()) || owner().find_carrier(*this, carrier, to_p);
    }
    // Before an operation on remote memory that is not here: UCS_OK and where it is reached, or
    // what the call returns. value: of an argument whose limit is `most`; what: call and argument.
    UCS_ALWAYS_INLINE ucs_status_t reach(uct_rkey_t key, fi_addr_t *to_p, size_t value = 0,
                                         size_t most = 0, const char *what = nullptr)
    {
        if (!ready()) {
            return not_ready();
        }
        if (UCS_UNLIKELY(value > most)) {
            return above_limit(what, value, most);
        }
        return UCS_LIKELY(find_memory(key, to_p)) ? UCS_OK : UCS_ERR_UNREACHABLE;
    }
    // After each post: the peer may sleep.
    UCS_ALWAYS_INLINE void ring()
    {
        if (sleeper_) {
            sleeper_->look();
        } else {
            reached_ = true;
        }
    }

    sleeper *sleeper_ = nullptr; // nullptr: the core wakes the peer
    ucs::list<op, &op::link> in_flight_;
    ucs::list<op, &op::link> held_ops_;    // packed, and refused by the core for now
    std::unique_ptr<gathering> gathering_; // nullptr: each message goes by itself
    bool reached_ = false;                 // a post succeeded; without a sleeper
    uint8_t fenced_ = 0;                   // kinds of fences that are closed
    uint8_t marks_ = 0;                    // on their way
    uint8_t copies_ = 0;                   // on their way; modulo 256 where nothing limits them
    uint32_t injected_ = 0;                // messages since the last mark
};

} // namespace uct::ofi
