// SPDX-License-Identifier: BSD-3-Clause
// A fence that one thread executes for all. Two threads that each store and then load what the
// other stored need a fence between the two; where one of them does it all the time and the other
// seldom, the latter can have every running thread of the process execute it. The former then only
// keeps the compiler from changing the order.
#pragma once

namespace ucs {

// False where the kernel has no such call: then both sides need fences of their own.
bool process_fence_works();
void process_fence();

} // namespace ucs
