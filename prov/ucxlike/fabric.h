// SPDX-License-Identifier: BSD-3-Clause
//
// A fabric: the UCP context, and the engine that all its MSG and passive endpoints share. Both are
// made when the first endpoint needs them.
#pragma once

#include "prov/ucxlike/engine.h"

#include <atomic>
#include <memory>
#include <mutex>

namespace ucxlike {

struct fabric final : fid_fabric {
    uint32_t api_version;

    fabric(const fi_fabric_attr &attr, void *context);
    ~fabric();

    void add_ref() { ++refs_; }
    void drop_ref() { --refs_; }

    ucp_context_h context(); // throws failure
    engine *cm_engine();     // throws failure
    // The same if something has asked for it before, else nullptr.
    engine *cm_engine_if_open()
    {
        std::lock_guard g(mutex_);
        return cm_engine_.get();
    }

  private:
    static int close(fid_t f);
    static int open_domain(fid_fabric *f, fi_info *info, fid_domain **out, void *context);
    static int open_domain2(fid_fabric *f, fi_info *info, fid_domain **out, uint64_t flags,
                            void *context);
    static int trywait(fid_fabric *f, fid_t *fids, int count);
    static fi_ops fid_ops_;
    static fi_ops_fabric ops_;

    std::atomic<int> refs_{0};
    std::mutex mutex_;
    ucp_context_h start(const std::string &transports); // throws failure
    void insist(const std::string &transports);

    ucp_context_h context_ = nullptr;
    std::unique_ptr<engine> cm_engine_;
};

} // namespace ucxlike
