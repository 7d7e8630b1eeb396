// SPDX-License-Identifier: BSD-3-Clause
//
// A domain: attributes its objects agree on, and the memory regions that peers may touch.
#pragma once

#include "prov/ucxlike/fabric.h"

#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ucxlike {

struct domain;
class cntr;
class eq;

struct region final : fid_mr {
    domain *dom;
    char *base; // of what the key shows
    size_t length;
    uint64_t access;
    bool virtual_addresses;
    cntr *reads = nullptr; // of peers' accesses (FI_RMA_EVENT)
    cntr *writes = nullptr;
    std::atomic<unsigned> users{0}; // accesses under way

    // Where a peer's access lands, nullptr if it is not allowed.
    char *at(uint64_t address, uint64_t bytes, uint64_t want) const;
};

// One access of a peer to a region, which is not closed as long as it lasts.
class mr_access {
  public:
    mr_access() = default;
    explicit mr_access(region *m) : region_(m) {} // counted already
    // Handed to what has no destructor: end() ends it.
    region *hand_over() { return std::exchange(region_, nullptr); }
    static void end(region *m) { mr_access ends(m); }
    mr_access(mr_access &&other) noexcept : region_(std::exchange(other.region_, nullptr)) {}
    mr_access &operator=(mr_access &&other) noexcept
    {
        std::swap(region_, other.region_);
        return *this;
    }
    ~mr_access()
    {
        if (region_) {
            region_->users.fetch_sub(1, std::memory_order_release);
        }
    }
    explicit operator bool() const { return region_; }
    region *operator->() const { return region_; }

  private:
    region *region_ = nullptr;
};

struct domain final : fid_domain {
    fabric *fab;

    static int open(fid_fabric *fab, fi_info *info, fid_domain **out, void *context);

    void add_ref() { ++refs_; }
    void drop_ref() { --refs_; }
    bool locked() const { return locked_; }
    bool auto_progress() const { return auto_; }
    uint32_t api_version() const { return fab->api_version; }
    uint32_t addr_format() const { return addr_format_; }
    fi_av_type av_type() const { return av_type_; }
    ucs::opt_lock &atomic_lock() { return atomic_lock_; }
    // What the parameter says; 0: nothing.
    size_t tx_size() const { return tx_size_; }

    mr_access access_mr(uint64_t key);
    // A peer's access to the region has ended.
    void accessed(uint64_t key, uint64_t access)
    {
        if (UCS_UNLIKELY(counted_.load(std::memory_order_relaxed))) {
            count_access(key, access);
        }
    }
    int register_memory(const fi_mr_attr &attr, uint64_t flags, fid_mr **out);
    // An endpoint's engine, which reading the counter of a region progresses as well.
    void add_engine(engine *e);
    void remove_engine(engine *e);

  private:
    domain(fabric *fab, const fi_info &info, void *context);
    ~domain();

    static int close(fid_t f);
    static int bind(fid_t f, fid_t other, uint64_t flags);
    static int close_mr(fid_t f);
    bool await_accesses(region *m);
    static int bind_mr(fid_t f, fid_t other, uint64_t flags);
    void count_access(uint64_t key, uint64_t access);
    void bind_counter(cntr *c);
    void release_counter(cntr *c);
    static fi_ops fid_ops_;
    static fi_ops_domain ops_;
    static fi_ops_mr mr_ops_;
    static fi_ops mr_fid_ops_;

    std::atomic<int> refs_{0};
    bool locked_;
    bool auto_ = false; // the helper thread progresses the engines
    uint32_t addr_format_;
    fi_av_type av_type_;
    int mr_mode_;
    const size_t tx_size_;
    ucs::opt_lock atomic_lock_;
    std::mutex mr_mutex_;
    std::atomic<bool> counted_{false}; // some region has a counter
    std::unordered_map<uint64_t, region *> mrs_;
    std::mutex engines_mutex_;      // before a queue's lock; never taken under an engine's
    std::vector<engine *> engines_; // one entry for each enabled endpoint
    std::vector<cntr *> counters_;  // one entry for each binding to a region
};

} // namespace ucxlike
