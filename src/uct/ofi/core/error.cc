// SPDX-License-Identifier: BSD-3-Clause
// The table behind status_of(). libfabric's numbers are the C library's errno values and its own
// above 255.
#include "uct/ofi/core/error.h"

#include <cstdlib>
#include <rdma/fi_errno.h>

namespace uct::ofi {

ucs_status_t status_of(int fi_errno) noexcept
{
    switch (std::abs(fi_errno)) {
    case 0:
        return UCS_OK;
    case FI_EAGAIN:
        return UCS_ERR_NO_RESOURCE;
    case FI_EINVAL:
    case FI_EFAULT:
    case FI_EBADFLAGS:
    case FI_EOPBADSTATE:
        return UCS_ERR_INVALID_PARAM;
    case FI_ENOMEM:
    case FI_ENOSPC:
    case FI_ETOOSMALL:
    case FI_EMFILE:
        return UCS_ERR_NO_MEMORY;
    case FI_ENOSYS:
    case FI_EOPNOTSUPP:
    case FI_ENOPROTOOPT:
        return UCS_ERR_UNSUPPORTED;
    case FI_ENODATA:
    case FI_ENODEV:
    case FI_EADDRNOTAVAIL:
        return UCS_ERR_NO_DEVICE;
    case FI_EADDRINUSE:
    case FI_EBUSY:
        return UCS_ERR_BUSY;
    case FI_EALREADY:
    case FI_EISCONN:
        return UCS_ERR_ALREADY_EXISTS;
    case FI_ECANCELED:
        return UCS_ERR_CANCELED;
    case FI_ECONNREFUSED:
    case FI_ENOTCONN:
        return UCS_ERR_NOT_CONNECTED;
    case FI_ECONNRESET:
    case FI_ECONNABORTED:
    case FI_ESHUTDOWN:
    case EPIPE:
        return UCS_ERR_CONNECTION_RESET;
    case FI_EHOSTUNREACH:
    case FI_ENETUNREACH:
    case FI_EHOSTDOWN:
    case FI_ENETDOWN:
    case FI_ENOENT:
        return UCS_ERR_UNREACHABLE;
    case FI_ETIMEDOUT:
        return UCS_ERR_ENDPOINT_TIMEOUT;
    case FI_ETRUNC:
    case FI_EMSGSIZE:
    case FI_E2BIG:
        return UCS_ERR_MESSAGE_TRUNCATED;
    case FI_EACCES:
    case EPERM:
        return UCS_ERR_REJECTED;
    case FI_EINPROGRESS:
        return UCS_INPROGRESS;
    default:
        return UCS_ERR_IO_ERROR;
    }
}

void check(long ret, const char *what)
{
    if (ret < 0) {
        throw ucs::error(status_of(static_cast<int>(ret)), "%s: %s", what,
                         fi_strerror(static_cast<int>(-ret)));
    }
}

} // namespace uct::ofi
