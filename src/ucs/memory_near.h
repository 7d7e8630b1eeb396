// SPDX-License-Identifier: BSD-3-Clause
// Where the memory comes from that a thread touches first.
#pragma once

#include <ucs/type/cpu_set.h>

#include <memory>

namespace ucs {

// While it lives, memory that this thread touches first comes from the NUMA nodes of these
// processors. Does nothing for a set without processors of this machine, nor where the kernel or a
// container's filter of system calls does not allow it.
class memory_near {
  public:
    explicit memory_near(const ucs_cpu_set_t &processors);
    ~memory_near();
    memory_near(const memory_near &) = delete;
    memory_near &operator=(const memory_near &) = delete;

  private:
    struct policy;
    std::unique_ptr<policy> previous_;
};

} // namespace ucs
