// SPDX-License-Identifier: BSD-3-Clause
// The handle of a connection manager; listeners and endpoints do the rest.
#include "uct/ofi/cm/cm.h"

#include "uct/base/worker.h"
#include "uct/ofi/cm/engine.h"
#include "uct/ofi/cm/listener.h"

namespace uct::ofi {

namespace {

constexpr double most_seconds = 1e9; // as good as for ever

cm_limits limits_of(const uct_cm_config &config)
{
    double seconds = config.v.peer_timeout;
    return {.private_data = config.v.max_conn_priv,
            .peer_ns = seconds < most_seconds ? static_cast<uint64_t>(seconds * 1e9) : UINT64_MAX};
}

} // namespace

cm::cm(uct_component &component, const core &c, worker *poller, const uct_cm_config &config)
    : uct_cm(component), engine_(cm_engine::open(c, poller, limits_of(config))),
      reuse_addr_(config.v.reuse_addr)
{
}

cm::~cm()
{
    engine_->stop();
}

void cm::query(uct_cm_attr_t *attr) const
{
    if (attr->field_mask & UCT_CM_ATTR_FIELD_MAX_CONN_PRIV) {
        attr->max_conn_priv = engine_->max_priv();
    }
}

uct_listener *cm::listen(const sockaddr *address, const uct_listener_params_t &params)
{
    return new cm_listener(*this, engine_, address, params, reuse_addr_);
}

uct_cm *open_cm(const core &c, uct_component &component, uct_worker *handle,
                const uct_cm_config &config)
{
    return new cm(component, c, worker_of(handle), config);
}

} // namespace uct::ofi
