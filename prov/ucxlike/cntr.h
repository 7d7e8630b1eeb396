// SPDX-License-Identifier: BSD-3-Clause
//
// A counter of completions. Reading it progresses the engines of its endpoints.
#pragma once

#include "queue.h"

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
    int trywait();
    void attach() { ++users_; }
    void detach() { --users_; }

  private:
    cntr(domain *dom, const fi_cntr_attr &attr, void *context);
    ~cntr();

    static uint64_t read(fid_cntr *f);
    static uint64_t readerr(fid_cntr *f);
    static int add(fid_cntr *f, uint64_t value);
    static int set(fid_cntr *f, uint64_t value);
    static int wait(fid_cntr *f, uint64_t threshold, int timeout);
    static int adderr(fid_cntr *f, uint64_t value);
    static int seterr(fid_cntr *f, uint64_t value);
    static int close(fid_t f);
    static int control(fid_t f, int command, void *arg);
    static fi_ops fid_ops_;
    static fi_ops_cntr ops_;

    domain *domain_;
    fi_wait_obj wait_obj_;
    std::atomic<int> users_{0};
    std::atomic<uint64_t> value_{0};
    std::atomic<uint64_t> errors_{0};
    uint64_t seen_ = UINT64_MAX; // what fi_trywait found last
};

} // namespace ucxlike
