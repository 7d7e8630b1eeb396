// SPDX-License-Identifier: BSD-3-Clause
// Opening an interface to see what it can do.
#pragma once

#include <uct/api/uct.h>

namespace tools {

// The attributes of an interface of that resource, which is open meanwhile. Releases the
// configuration. A failure has been logged.
inline ucs_status_t query_interface(uct_md_h md, uct_worker_h worker,
                                    const uct_tl_resource_desc_t &resource,
                                    uct_iface_config_t *config, uct_iface_attr_t *attr)
{
    uct_iface_params_t params = {};
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name = resource.tl_name;
    params.mode.device.dev_name = resource.dev_name;
    uct_iface_h iface;
    ucs_status_t status = uct_iface_open(md, worker, &params, config, &iface);
    uct_config_release(config);
    if (status == UCS_OK) {
        status = uct_iface_query(iface, attr);
        uct_iface_close(iface);
    }
    return status;
}

} // namespace tools
