// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "uct/ofi/iface.h"
namespace uct::ofi {
class msg_iface;
}
