// SPDX-License-Identifier: BSD-3-Clause
// Checks of the user's parameters; listeners and endpoints do the rest.
#include "uct/ofi/cm/cm.h"

#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "uct/base/worker.h"
#include "uct/ofi/cm/ep.h"
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

class cm final : public uct_cm {
  public:
    cm(uct_component &component, const core &c, worker *poller, const uct_cm_config &config)
        : uct_cm(component), engine_(cm_engine::open(c, poller, limits_of(config))),
          reuse_addr_(config.v.reuse_addr)
    {
    }

    ~cm() override { engine_->stop(); }

    void query(uct_cm_attr_t *attr) const override
    {
        if (attr->field_mask & UCT_CM_ATTR_FIELD_MAX_CONN_PRIV) {
            attr->max_conn_priv = engine_->max_priv();
        }
    }

    uct_listener *listen(const sockaddr *address, const uct_listener_params_t &params) override
    {
        return new cm_listener(*this, engine_, address, params, reuse_addr_);
    }

    ucs_status_t create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p) override;

  private:
    std::shared_ptr<cm_engine> engine_;
    const bool reuse_addr_;
};

void check_client(const uct_ep_params_t &params)
{
    if (!(params.field_mask & UCT_EP_PARAM_FIELD_SOCKADDR) || !params.sockaddr ||
        !params.sockaddr->addr) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "uct_ep_create: params->sockaddr or conn_request must be given with a cm");
    }
    if (ucs::sockaddr_length(params.sockaddr->addr) == 0) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "uct_ep_create: params->sockaddr must be of family AF_INET or AF_INET6");
    }
    if ((params.field_mask & UCT_EP_PARAM_FIELD_LOCAL_SOCKADDR) && params.local_sockaddr) {
        const sockaddr *local = params.local_sockaddr->addr;
        if (!local || local->sa_family != params.sockaddr->addr->sa_family) {
            throw ucs::error(UCS_ERR_INVALID_PARAM, "uct_ep_create: params->local_sockaddr must be "
                                                    "of the family of params->sockaddr");
        }
    }
}

void check_server(const uct_ep_params_t &params)
{
    if (!params.conn_request) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "uct_ep_create: params->conn_request must not be NULL");
    }
}

ucs_status_t cm::create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p)
{
    if (!(params.field_mask & UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS) ||
        !(params.sockaddr_cb_flags & UCT_CB_FLAG_ASYNC)) {
        throw ucs::error(UCS_ERR_UNSUPPORTED,
                         "uct_ep_create: params->sockaddr_cb_flags must contain UCT_CB_FLAG_ASYNC");
    }
    if (!(params.field_mask & UCT_EP_PARAM_FIELD_CONN_REQUEST)) {
        check_client(params);
        new cm_ep(*this, engine_, params, ep_p); // fills it
        return UCS_OK;
    }
    check_server(params);
    // The request is used up also when there is to be no endpoint.
    auto *request = static_cast<cm_conn *>(params.conn_request);
    std::shared_ptr<cm_engine> home = request->engine().shared_from_this();
    auto give_up = [&] {
        cm_engine::lock held(home->mutex());
        if (home->knows(request) && !request->answered()) {
            request->reject();
        }
        home->clean();
    };
    try {
        new cm_ep(*this, engine_, params, ep_p); // fills it
        return UCS_OK;
    } catch (const peer_gone &gone) {
        give_up();
        return gone.status;
    } catch (...) {
        give_up();
        throw;
    }
}

} // namespace

uct_cm *open_cm(const core &c, uct_component &component, uct_worker *handle,
                const uct_cm_config &config)
{
    return new cm(component, c, worker_of(handle), config);
}

} // namespace uct::ofi
