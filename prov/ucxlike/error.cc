// SPDX-License-Identifier: BSD-3-Clause
//
// Statuses of the engine in the provider's own language, fabric errno.
#include "prov/ucxlike/prov.h"

#include <cstdio>

namespace ucxlike {

int errno_of(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return FI_SUCCESS;
    case UCS_INPROGRESS:
    case UCS_ERR_NO_RESOURCE:
    case UCS_ERR_NO_PROGRESS:
        return FI_EAGAIN;
    case UCS_ERR_NO_MESSAGE:
        return FI_ENOMSG;
    case UCS_ERR_IO_ERROR:
    case UCS_ERR_SHMEM_SEGMENT:
        return FI_EIO;
    case UCS_ERR_NO_MEMORY:
        return FI_ENOMEM;
    case UCS_ERR_INVALID_PARAM:
        return FI_EINVAL;
    case UCS_ERR_UNREACHABLE:
        return FI_EHOSTUNREACH;
    case UCS_ERR_INVALID_ADDR:
        return FI_EADDRNOTAVAIL;
    case UCS_ERR_NOT_IMPLEMENTED:
    case UCS_ERR_UNSUPPORTED:
        return FI_ENOSYS;
    case UCS_ERR_MESSAGE_TRUNCATED:
        return FI_ETRUNC;
    case UCS_ERR_BUFFER_TOO_SMALL:
        return FI_ETOOSMALL;
    case UCS_ERR_NO_ELEM:
    case UCS_ERR_NO_DEVICE:
    case UCS_ERR_SOME_CONNECTS_FAILED:
        return FI_ENODATA;
    case UCS_ERR_BUSY:
        return FI_EBUSY;
    case UCS_ERR_CANCELED:
        return FI_ECANCELED;
    case UCS_ERR_ALREADY_EXISTS:
        return FI_EALREADY;
    case UCS_ERR_OUT_OF_RANGE:
    case UCS_ERR_EXCEEDS_LIMIT:
        return FI_E2BIG;
    case UCS_ERR_TIMED_OUT:
    case UCS_ERR_ENDPOINT_TIMEOUT:
        return FI_ETIMEDOUT;
    case UCS_ERR_REJECTED:
    case UCS_ERR_NOT_CONNECTED:
        return FI_ECONNREFUSED;
    case UCS_ERR_CONNECTION_RESET:
        return FI_ECONNRESET;
    default:
        return FI_EOTHER;
    }
}

const char *strerror_of(int prov_errno, char *buf, size_t len)
{
    const char *text = ucs_status_string(static_cast<ucs_status_t>(prov_errno));
    if (buf && len) {
        snprintf(buf, len, "%s", text);
    }
    return text;
}

} // namespace ucxlike
