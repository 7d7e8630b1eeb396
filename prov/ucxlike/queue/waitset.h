// SPDX-License-Identifier: BSD-3-Clause
//
// Wait sets and poll sets: several queues and counters, slept on together or asked together.
#pragma once

#include "prov/ucxlike/queue/queue.h"

#include <mutex>

namespace ucxlike {

struct domain;
struct fabric;

class wait_set final : public fid_wait {
  public:
    static int open(fid_fabric *fab, fi_wait_attr *attr, fid_wait **out);

    void add(waitable *w);            // throws failure
    void remove(waitable *w, int fd); // which it was waited on
    // fi_trywait: 0 when the caller may sleep.
    int trywait();

  private:
    wait_set(fabric *fab, fi_wait_obj wait_obj);
    ~wait_set();
    int wait_until(const deadline &end);

    static int wait(fid_wait *f, int timeout);
    static int close(fid_t f);
    static int control(fid_t f, int command, void *arg);
    static fi_ops fid_ops_;
    static fi_ops_wait ops_;

    fabric *fabric_;
    fi_wait_obj wait_obj_;
    int epoll_; // of the members' descriptors
    std::mutex mutex_;
    std::vector<waitable *> members_;
};

class poll_set final : public fid_poll {
  public:
    static int open(fid_domain *dom, fi_poll_attr *attr, fid_poll **out);

  private:
    explicit poll_set(domain *dom);
    ~poll_set();

    static int poll(fid_poll *f, void **contexts, int count);
    static int add(fid_poll *f, fid_t member, uint64_t flags);
    static int del(fid_poll *f, fid_t member, uint64_t flags);
    static int close(fid_t f);
    static fi_ops fid_ops_;
    static fi_ops_poll ops_;

    domain *domain_;
    std::mutex mutex_;
    std::vector<fid_t> members_;
};

} // namespace ucxlike
