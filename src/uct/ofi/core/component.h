// SPDX-License-Identifier: BSD-3-Clause
// A core provider as a UCT component.
#pragma once

#include "uct/base/component.h"
#include "uct/ofi/core/info.h"

namespace uct::ofi {

class component final : public uct_component {
  public:
    explicit component(const core &c) : uct_component(c.transport), core_(c) {}

    uint64_t flags() const override;
    std::vector<std::string> md_names() const override;
    uct_md *open_md(const std::string &md_name, const uct_md_config &config) override;
    ucs_status_t rkey_unpack(const void *buffer, uct_rkey_bundle_t *rkey) override;
    ucs_status_t rkey_release(const uct_rkey_bundle_t *rkey) override;
    ucs_status_t rkey_ptr(const uct_rkey_bundle_t *rkey, uint64_t remote,
                          void **address_p) override;
    uct_cm *open_cm(uct_worker *worker, const uct_cm_config &config) override;

  private:
    const core &core_;
};

} // namespace uct::ofi
