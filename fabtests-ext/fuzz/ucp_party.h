// SPDX-License-Identifier: BSD-3-Clause
// A worker of a live pair, with an endpoint to the other one.
#pragma once

#include "fabtests-ext/fuzz/target.h"

#include <ucp/api/ucp.h>

namespace fuzz {

struct party {
    ucp_context_h context = nullptr;
    ucp_worker_h worker = nullptr;
    ucp_ep_h ep = nullptr;

    party()
    {
        ucp_config_t *config;
        expect(ucp_config_read(nullptr, nullptr, &config) == UCS_OK, "ucp_config_read");
        expect(ucp_config_modify(config, "TLS", "shm") == UCS_OK, "ucp_config_modify");
        ucp_params_t params = {};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA |
                          UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
        expect(ucp_init(&params, config, &context) == UCS_OK, "ucp_init");
        ucp_config_release(config);
        ucp_worker_params_t w = {};
        expect(ucp_worker_create(context, &w, &worker) == UCS_OK, "ucp_worker_create");
    }
    party(const party &) = delete;
    party &operator=(const party &) = delete;
    ~party()
    {
        ucp_worker_destroy(worker);
        ucp_cleanup(context);
    }

    void connect(const party &to)
    {
        ucp_address_t *address;
        size_t length;
        expect(ucp_worker_get_address(to.worker, &address, &length) == UCS_OK, "address");
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.address = address;
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.cb = [](void *, ucp_ep_h, ucs_status_t) {};
        expect(ucp_ep_create(worker, &params, &ep) == UCS_OK, "ucp_ep_create");
        ucp_worker_release_address(to.worker, address);
    }
};

} // namespace fuzz
