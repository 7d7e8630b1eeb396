// SPDX-License-Identifier: BSD-3-Clause
// A length that a message claims is asked of the allocator, which may say no. For one source of a
// program. The last option is explained in fabtests-ext/Makefile.inc.
#pragma once

extern "C" __attribute__((visibility("default"))) const char *__asan_default_options();
extern "C" const char *__asan_default_options()
{
    return "allocator_may_return_null=1:max_allocation_size_mb=64:intercept_tls_get_addr=0";
}
