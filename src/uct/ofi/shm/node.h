// SPDX-License-Identifier: BSD-3-Clause
// An interface over shm: a connectionless one with names for its files in /dev/shm, a watch over
// its peers' processes, which repairs what they leave behind, and a doorbell to sleep by.
#pragma once

#include "uct/ofi/core/component.h"

namespace uct::ofi {

uct_iface *open_shm_iface(uct_worker &worker, ofi::md &domain, const uct_iface_params_t &params,
                          const uct_iface_config &config);

} // namespace uct::ofi
