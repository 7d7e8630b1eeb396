// SPDX-License-Identifier: BSD-3-Clause
#include "ucs/other_ucx.h"

#include "ucs/log.h"

#include <cstring>
#include <dlfcn.h>

namespace ucs {

namespace {

bool is_called(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, name, strlen(name)) == 0;
}

} // namespace

ucs_status_t refuse_other_ucx(const char *call, const void *return_address) noexcept
{
    Dl_info caller = {}, own = {};
    if (!dladdr(return_address, &caller) || !caller.dli_fname ||
        !dladdr(reinterpret_cast<const void *>(&refuse_other_ucx), &own) ||
        caller.dli_fbase == own.dli_fbase ||
        !(is_called(caller.dli_fname, "libucp.so") || is_called(caller.dli_fname, "libuct.so"))) {
        return UCS_OK;
    }
    ucs_error(
        "%s: called by %s, another UCX, since %s is linked with the program or was opened before "
        "with RTLD_GLOBAL: open ours with RTLD_LOCAL, or the other one with RTLD_DEEPBIND",
        call, caller.dli_fname, own.dli_fname);
    return UCS_ERR_UNSUPPORTED;
}

} // namespace ucs
