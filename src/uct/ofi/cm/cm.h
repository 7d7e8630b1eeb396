// SPDX-License-Identifier: BSD-3-Clause
// The connection manager over a core provider with connected endpoints.
#pragma once

#include "uct/base/cm.h"
#include "uct/base/component.h"
#include "uct/ofi/fabric/info.h"

#include <memory>

namespace uct {
class worker;
}

namespace uct::ofi {

class cm_engine;

class cm final : public uct_cm {
  public:
    cm(uct_component &component, const core &c, worker *poller, const uct_cm_config &config);
    ~cm() override;

    void query(uct_cm_attr_t *attr) const override;
    uct_listener *listen(const sockaddr *address, const uct_listener_params_t &params) override;
    ucs_status_t create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p) override; // ep.cc

  private:
    std::shared_ptr<cm_engine> engine_;
    const bool reuse_addr_;
};

// c outlives the result. Throws ucs::error.
uct_cm *open_cm(const core &c, uct_component &component, uct_worker *worker,
                const uct_cm_config &config);

} // namespace uct::ofi
