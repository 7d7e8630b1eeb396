// SPDX-License-Identifier: BSD-3-Clause
// See memory_near.h. The C library has no functions for these two system calls.
#include "ucs/memory_near.h"

#include "ucs/log.h"
#include "ucs/sysfs.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ucs {

// The kernel has at most 1024 nodes; it wants to be told one bit more than there are.
struct memory_near::policy {
    static constexpr unsigned long bits = 1024;
    int mode = MPOL_BIND;
    unsigned long nodes[bits / (8 * sizeof(unsigned long))] = {};

    bool take() { return syscall(SYS_get_mempolicy, &mode, nodes, bits, nullptr, 0) == 0; }
    bool give() const { return syscall(SYS_set_mempolicy, mode, nodes, bits + 1) == 0; }
    bool add(unsigned node)
    {
        constexpr unsigned word = 8 * sizeof(nodes[0]);
        if (node >= bits) {
            return false;
        }
        nodes[node / word] |= 1ul << node % word;
        return true;
    }
};

memory_near::memory_near(const ucs_cpu_set_t &processors)
{
    policy wanted;
    bool some = false;
    for (unsigned node : sysfs().nodes_of(processors)) {
        some |= wanted.add(node);
    }
    auto before = std::make_unique<policy>();
    if (some && before->take() && wanted.give()) {
        previous_ = std::move(before);
    }
}

memory_near::~memory_near()
{
    if (previous_ && !previous_->give()) {
        ucs_warn("the memory binding of this thread cannot be restored");
    }
}

} // namespace ucs
