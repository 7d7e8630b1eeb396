// SPDX-License-Identifier: BSD-3-Clause
// What libfabric loads, and how a forbidden use ends.
#include "strict/strict.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <rdma/providers/fi_prov.h>

namespace strict {

void forbid(const profile &p, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    fprintf(stderr, "strict %s: %s\n", p.fabric, what);
    fflush(stderr);
    abort();
}

uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value && *value ? strtoull(value, nullptr, 0) : otherwise;
}

namespace {

fi_provider provider = {
    .version = FI_VERSION(1000, 0), // above a built-in one of that name
    .fi_version = 0,
    .context = {},
    .name = nullptr,
    .getinfo = get_infos,
    .fabric = open_fabric,
    .cleanup = [] {},
};

} // namespace

} // namespace strict

extern "C" FI_EXT_INI
{
    strict::provider.fi_version = fi_version();
    strict::provider.name = strict::profiles.front().provider;
    return &strict::provider;
}
