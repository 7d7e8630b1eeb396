// SPDX-License-Identifier: BSD-3-Clause
// A core provider as a UCT component.
#pragma once

#include "uct/base/component.h"
#include "uct/ofi/fabric/info.h"

#include <atomic>

namespace uct::ofi {

class md;
struct limits;

// How a kind of core provider is opened: the folder of that kind gives these, uct/registry.cc
// brings them together.
struct doors {
    uct_iface *(*open_iface)(uct_worker &worker, ofi::md &domain, const uct_iface_params_t &params,
                             const uct_iface_config &config); // throws ucs::error
    uct_cm *(*open_cm)(
        const core &c, uct_component &component, uct_worker *worker,
        const uct_cm_config &config); // nullptr: no connection manager; throws ucs::error
    limits (*limits_of)(const md &domain, const uct_iface_config &config);
};

class component final : public uct_component {
  public:
    component(const core &c, const doors &d) : uct_component(c.transport), core_(c), doors_(d) {}

    uint64_t flags() const override;
    std::vector<std::string> md_names() const override;
    uct_md *open_md(const std::string &md_name, const uct_md_config &config) override;
    ucs_status_t rkey_unpack(const void *buffer, uct_rkey_bundle_t *rkey) override;
    ucs_status_t rkey_release(const uct_rkey_bundle_t *rkey) override;
    ucs_status_t rkey_ptr(const uct_rkey_bundle_t *rkey, uint64_t remote,
                          void **address_p) override;
    uct_cm *open_cm(uct_worker *worker, const uct_cm_config &config) override;
    uct_iface *open_iface(uct_worker &worker, ofi::md &domain, const uct_iface_params_t &params,
                          const uct_iface_config &config) const
    {
        return doors_.open_iface(worker, domain, params, config);
    }

    limits limits_of(const md &domain, const uct_iface_config &config) const;

    // How long the part of a packed key is that names the endpoint which carries the region. An md
    // of ours says so when it is opened: before, there is nothing that a key could be used with.
    void expect_carrier(size_t length)
    {
        carrier_length_.store(static_cast<uint16_t>(length), std::memory_order_relaxed);
    }

  private:
    const core &core_;
    const doors doors_;
    std::atomic<uint16_t> carrier_length_ = 0;
};

} // namespace uct::ofi
