// SPDX-License-Identifier: BSD-3-Clause
// The ucs_* calls that UCX consumers make directly, for hosts without UCX's own libucs.so.0. The
// async context is an opaque token to uct_worker_create, so a bare allocation is the whole of it
// here.
#include "ucs/compiler.h"

#include <ucs/async/async_fwd.h>
#include <ucs/type/status.h>

#include <new>

struct ucs_async_context {
    ucs_async_mode_t mode;
};

extern "C" UCS_EXPORT ucs_status_t ucs_async_context_create(ucs_async_mode_t mode,
                                                            ucs_async_context_t **async_p)
{
    if (!async_p) {
        return UCS_ERR_INVALID_PARAM;
    }
    auto *async = new (std::nothrow) ucs_async_context{mode};
    if (!async) {
        return UCS_ERR_NO_MEMORY;
    }
    *async_p = async;
    return UCS_OK;
}

extern "C" UCS_EXPORT void ucs_async_context_destroy(ucs_async_context_t *async)
{
    delete async;
}
