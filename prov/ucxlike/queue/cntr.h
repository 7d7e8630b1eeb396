// SPDX-License-Identifier: BSD-3-Clause
//
// A counter of completions. Reading it progresses the engines of its endpoints.
#pragma once

#include "prov/ucxlike/queue/queue.h"

namespace ucxlike {

struct domain;

class cntr final : public fid_cntr, public waitable {
  public:
    static int open(fid_domain *dom, fi_cntr_attr *attr, fid_cntr **out, void *context);

    void count()
    {
        value_.fetch_add(1, std::memory_order_release);
        notify();
    }
    void count_error()
    {
        errors_.fetch_add(1, std::memory_order_release);
        notify();
    }
    ~cntr() override;
    bool news() override { return total() != seen_; }
    void told() override { seen_ = total(); }
    bool polled() override { return polled_.exchange(total()) != total(); }

  private:
    cntr(domain *dom, const fi_cntr_attr &attr, void *context);
    uint64_t total() const { return value_ + errors_; }

    static uint64_t read(fid_cntr *f);
    static uint64_t readerr(fid_cntr *f);
    static int add(fid_cntr *f, uint64_t value);
    static int set(fid_cntr *f, uint64_t value);
    static int wait(fid_cntr *f, uint64_t threshold, int timeout);
    static int adderr(fid_cntr *f, uint64_t value);
    static int seterr(fid_cntr *f, uint64_t value);
    static fi_ops_cntr ops_;

    domain *domain_;
    std::atomic<uint64_t> value_{0};
    std::atomic<uint64_t> errors_{0};
    std::atomic<uint64_t> seen_{UINT64_MAX}; // what fi_trywait and fi_wait found last
    std::atomic<uint64_t> polled_{0};        // what fi_poll found last, or the application set
};

} // namespace ucxlike
