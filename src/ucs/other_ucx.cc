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

// Where the code at `address` is, and where ours; false if that is the same file or unknown.
bool is_of_others(const void *address, Dl_info *other, Dl_info *own)
{
    return dladdr(address, other) && other->dli_fname &&
           dladdr(reinterpret_cast<const void *>(&refuse_other_ucx), own) &&
           other->dli_fbase != own->dli_fbase;
}

} // namespace

bool is_other_ucs(const void *address) noexcept
{
    Dl_info other = {}, own = {};
    return is_of_others(address, &other, &own) && is_called(other.dli_fname, "libucs.so");
}

ucs_status_t refuse_other_ucx(const char *call, const void *return_address) noexcept
{
    Dl_info caller = {}, own = {};
    if (!is_of_others(return_address, &caller, &own) ||
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
