// SPDX-License-Identifier: BSD-3-Clause
// Names of enumerated values, each indexed by its type and ended by a null pointer, and the small
// public calls that have nothing to do here.
#include "ucs/compiler.h"

#include <ucs/async/async_fwd.h>
#include <ucs/config/types.h>
#include <ucs/debug/debug.h>
#include <ucs/stats/stats_fwd.h>
#include <ucs/type/thread_mode.h>

extern "C" {

const char *ucs_thread_mode_names[] = {"single", "serialized", "multi", nullptr};

const char *ucs_async_mode_names[] = {"signal", "thread_spinlock", "thread_mutex", "poll", nullptr};

const char *ucs_stats_formats_names[] = {"full", "agg", "summary", nullptr};

ucs_stats_node_t *ucs_stats_get_root(void)
{
    return nullptr;
}

// No signal handler of ours is there to be removed.
void ucs_debug_disable_signal(int) {}

void ucs_debug_asan_validate_address(const char *, void *, size_t) {}
}
