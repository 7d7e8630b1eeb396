// SPDX-License-Identifier: BSD-3-Clause
// Shared memory of our own: the transport "sm". It needs no core provider.
#pragma once

struct uct_component;

namespace uct::sm {

uct_component *make_component();

} // namespace uct::sm
