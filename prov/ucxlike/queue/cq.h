// SPDX-License-Identifier: BSD-3-Clause
//
// A completion queue: a ring that UCP's callbacks fill and the application empties. It grows when
// the application reads too slowly; nothing is lost. Error entries keep their place among the
// others: the ring holds a mark, the entry itself is in a list. Entries are counted and never
// renumbered, so that a look at the two counts, without the lock, tells whether there are any.
#pragma once

#include "prov/ucxlike/queue/queue.h"

#include <deque>

namespace ucxlike {

struct domain;

struct completion {
    void *context;
    uint64_t flags;
    size_t length;
    void *buffer;
    uint64_t data;
    uint64_t tag;
    fi_addr_t source;
};

class cq final : public fid_cq, public waitable {
  public:
    static int open(fid_domain *dom, fi_cq_attr *attr, fid_cq **out, void *context);

    UCS_ALWAYS_INLINE void write(const completion &c)
    {
        ucs::opt_guard g(lock_);
        if (completion *at = add(); UCS_LIKELY(at)) {
            *at = c;
            added();
        }
    }
    void write_error(const completion &c, int err, int prov_errno, size_t overflow = 0,
                     const void *err_data = nullptr, size_t err_data_size = 0);

    ~cq() override;
    // Under the lock, so that a writer that is not seen here sees the armed flag.
    bool news() override
    {
        ucs::opt_guard g(lock_);
        return !empty() || signalled_ || overrun_;
    }
    bool polled() override { return !empty() || overrun_; }

  private:
    friend struct domain;
    static constexpr uint64_t error_mark = 1ULL << 63;

    struct error_entry {
        fi_cq_err_entry entry;
        fi_addr_t source;
        std::string data;
    };

    cq(domain *dom, const fi_cq_attr &attr, void *context);
    bool empty() const
    {
        return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_acquire);
    }
    // The place of the next entry, which counts from added() on. Under the lock. nullptr: there is
    // no memory, and the queue is overrun.
    completion *add()
    {
        size_t tail = tail_.load(std::memory_order_relaxed);
        if (UCS_UNLIKELY(tail - head_.load(std::memory_order_relaxed) > mask_)) {
            if (!grow()) {
                return nullptr;
            }
        }
        return &ring_[tail & mask_];
    }
    void added()
    {
        tail_.store(tail_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        notify();
    }
    UCS_NOINLINE bool grow() noexcept;
    void lose(); // an entry has no room
    ssize_t take(void *buf, size_t count, fi_addr_t *source);
    ssize_t wait(void *buf, size_t count, fi_addr_t *source, const void *cond, int timeout);

    static ssize_t read(fid_cq *fid, void *buf, size_t count);
    static ssize_t readfrom(fid_cq *fid, void *buf, size_t count, fi_addr_t *source);
    static ssize_t readerr(fid_cq *fid, fi_cq_err_entry *buf, uint64_t flags);
    static ssize_t sread(fid_cq *fid, void *buf, size_t count, const void *cond, int timeout);
    static ssize_t sreadfrom(fid_cq *fid, void *buf, size_t count, fi_addr_t *source,
                             const void *cond, int timeout);
    static int signal(fid_cq *fid);
    static const char *strerror(fid_cq *fid, int prov_errno, const void *err_data, char *buf,
                                size_t len);
    static fi_ops_cq ops_;

    domain *domain_;
    ucs::opt_lock lock_;
    size_t entry_size_;
    bool threshold_;
    std::atomic<bool> signalled_{false};
    std::atomic<bool> overrun_{false}; // said by reading when the rest has been read
    std::atomic<size_t> head_{0};      // entries read so far
    std::atomic<size_t> tail_{0};      // entries written so far
    size_t mask_;
    std::vector<completion> ring_;
    std::deque<error_entry> errors_;
    std::string last_error_data_; // what err_data points to until the next read
};

} // namespace ucxlike
