// SPDX-License-Identifier: BSD-3-Clause
// Connected endpoints of libfabric's tcp provider alone: what is under our own.
#pragma once

// Opens `pairs` connections of this process to itself and leaves them open. False: not to be had.
bool open_core_pairs(unsigned pairs);
