// SPDX-License-Identifier: BSD-3-Clause
// See limits.h.
#include "uct/ofi/shm/limits.h"

#include "uct/ofi/core/md.h"
#include "uct/ofi/shm/entries.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <sys/uio.h>
#include <unistd.h>

namespace uct::ofi {

namespace {

// The core's own variable, in the words that it takes.
bool cross_memory_disabled()
{
    const char *value = getenv("FI_SHM_DISABLE_CMA");
    constexpr const char *yes[] = {"1", "true", "yes", "on"};
    return value && std::any_of(std::begin(yes), std::end(yes),
                                [=](const char *word) { return strcasecmp(value, word) == 0; });
}

// Whether one process may copy to another's memory here. shm's writes are done when they return
// only then.
bool cross_memory_allowed()
{
    if (cross_memory_disabled()) {
        return false;
    }
    int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        char scope = '0';
        ssize_t n = read(fd, &scope, 1);
        close(fd);
        if (n == 1 && scope != '0') {
            return false;
        }
    }
    char from = 1;
    char to = 0;
    iovec local{&to, 1};
    iovec remote{&from, 1};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

} // namespace

limits shm_limits(const md &domain, const uct_iface_config &config)
{
    // What it does not inject it has the receiver fetch, and until that is done it holds back the
    // completions of everything that was posted later, to whatever peer: one that is stopped would
    // stop us.
    limits l = find_limits(domain, config, domain.info->tx_attr->inject_size);
    l.inject_run = SIZE_MAX; // its queue has a bound of its own
    // Before libfabric 1.19 a receive with ignored bits does not find what came before it.
    l.tagged = l.tagged && fi_version() >= FI_VERSION(1, 19);
    static const bool allowed = cross_memory_allowed();
    l.put_flags = allowed ? 0 : FI_DELIVERY_COMPLETE;
    l.immediate_rma = allowed;
    // From libfabric 2.5 on it has the target copy what is injected.
    l.put_inject = allowed && fi_version() < FI_VERSION(2, 5) ? l.on_stack : 0;
    // 1.17 gives the buffer of an atomic with FI_DELIVERY_COMPLETE back twice, and two later
    // operations share it.
    l.post_by_fetch = true;
    // It keeps the order that it promises where operations are done when they are posted; else the
    // target copies when it finds the time.
    l.overtaken = atomic_kinds | (allowed ? 0 : get_kinds | put_kinds);
    l.max_peers = entry_table::size;
    l.watched = true;
    l.own_bandwidth = true; // each process copies for itself
    l.atomics = UCT_IFACE_FLAG_ATOMIC_CPU;
    return l;
}

} // namespace uct::ofi
