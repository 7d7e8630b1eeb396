/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints what a compiled program knows of the interface: the value of every constant, the size of
 * every type, offset and size of every member, and if the callback types are what they should be.
 * Built once with our headers and once with those of an installed UCX; abi_compare.sh compares.
 * The names are in list_*.h. A name that an older UCX does not have stands below SINCE there.
 */
#include <ucp/api/ucp.h>
#if __has_include(<ucp/api/device/ucp_host.h>)
#include <ucp/api/device/ucp_host.h>
#endif
#include <uct/api/uct.h>

#include <ucs/async/async_fwd.h>
#include <ucs/config/types.h>
#include <ucs/datastruct/list.h>
#include <ucs/debug/log_def.h>
#include <ucs/sys/event_set.h>
#include <ucs/sys/topo/base/topo.h>
#if __has_include(<ucs/memory/numa.h>)
#include <ucs/memory/numa.h>
#endif

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define SINCE(_major, _minor) (UCP_API_VERSION >= UCP_VERSION(_major, _minor))
#define VALUE(_name) printf("%s=%lld\n", #_name, (long long)(intptr_t)(_name));
#define TYPE(_type) printf("sizeof(%s)=%zu\n", #_type, sizeof(_type));
#define MEMBER(_type, _member)                                                                     \
    printf("%s.%s=%zu+%zu\n", #_type, #_member, offsetof(_type, _member),                          \
           sizeof(((_type *)0)->_member));
#define OPAQUE(_type) printf("%s=%zu\n", #_type, sizeof(_type *));
#define CALLBACK(_type, ...)                                                                       \
    printf("%s=%s\n", #_type,                                                                      \
           __builtin_types_compatible_p(_type, __VA_ARGS__) ? "as listed" : "WRONG TYPE");

int main(void)
{
#include "list_macros.h"

#include "list_ucs.h"

#include "list_uct.h"

#include "list_ucp.h"
    return 0;
}
