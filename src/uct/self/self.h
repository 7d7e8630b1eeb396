// SPDX-License-Identifier: BSD-3-Clause
// The transport from an interface to itself: no libfabric, no other process. The smallest
// transport there is; read it first to learn what one consists of.
#pragma once

#include "uct/base/component.h"

namespace uct::self {

uct_component *make_component();

} // namespace uct::self
