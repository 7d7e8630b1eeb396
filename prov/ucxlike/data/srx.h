// SPDX-License-Identifier: BSD-3-Clause
//
// A shared receive context: one queue of receives for several endpoints of a domain. They
// are on the engine that MSG endpoints share.
#pragma once

#include "prov/ucxlike/data/rx.h"

namespace ucxlike {

class srx final : public fid_ep {
  public:
    static int open(fid_domain *dom, fi_rx_attr *attr, fid_ep **out, void *context);

    rx_queue *queue() { return &queue_; }
    void attach() { ++users_; }
    void detach() { --users_; }

  private:
    srx(domain *dom, void *context);
    ~srx();

    static int close(fid_t f);
    static int control(fid_t f, int command, void *arg);
    static int bind(fid_t f, fid_t other, uint64_t flags);
    static ssize_t cancel(fid_t f, void *context);
    static fi_ops fid_ops_;
    static fi_ops_ep ep_ops_;

    domain *domain_;
    cq *cq_ = nullptr; // of receives that meet no message
    std::atomic<int> users_{0};
    rx_queue queue_;
};

extern fi_ops_cm no_cm_ops;

} // namespace ucxlike
