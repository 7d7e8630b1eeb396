// SPDX-License-Identifier: BSD-3-Clause
// The table behind status_of(). libfabric's numbers are the C library's errno values and its own
// above 255.
#include "uct/ofi/fabric/error.h"

#include <cstdlib>
#include <rdma/fi_errno.h>

namespace uct::ofi {

namespace {

struct meaning {
    int fi_errno;
    ucs_status_t status;
};

constexpr meaning meanings[] = {
    {0, UCS_OK},
    {FI_EAGAIN, UCS_ERR_NO_RESOURCE},
    {FI_EINVAL, UCS_ERR_INVALID_PARAM},
    {FI_EFAULT, UCS_ERR_INVALID_PARAM},
    {FI_EBADFLAGS, UCS_ERR_INVALID_PARAM},
    {FI_EOPBADSTATE, UCS_ERR_INVALID_PARAM},
    {FI_ENOMEM, UCS_ERR_NO_MEMORY},
    {FI_ENOSPC, UCS_ERR_NO_MEMORY},
    {FI_ETOOSMALL, UCS_ERR_NO_MEMORY},
    {FI_EMFILE, UCS_ERR_NO_MEMORY},
    {FI_ENOSYS, UCS_ERR_UNSUPPORTED},
    {FI_EOPNOTSUPP, UCS_ERR_UNSUPPORTED},
    {FI_ENOPROTOOPT, UCS_ERR_UNSUPPORTED},
    {FI_ENODATA, UCS_ERR_NO_DEVICE},
    {FI_ENODEV, UCS_ERR_NO_DEVICE},
    {FI_EADDRNOTAVAIL, UCS_ERR_NO_DEVICE},
    {FI_EADDRINUSE, UCS_ERR_BUSY},
    {FI_EBUSY, UCS_ERR_BUSY},
    {FI_EALREADY, UCS_ERR_ALREADY_EXISTS},
    {FI_EISCONN, UCS_ERR_ALREADY_EXISTS},
    {FI_ECANCELED, UCS_ERR_CANCELED},
    {FI_ECONNREFUSED, UCS_ERR_NOT_CONNECTED},
    {FI_ENOTCONN, UCS_ERR_NOT_CONNECTED},
    {FI_ECONNRESET, UCS_ERR_CONNECTION_RESET},
    {FI_ECONNABORTED, UCS_ERR_CONNECTION_RESET},
    {FI_ESHUTDOWN, UCS_ERR_CONNECTION_RESET},
    {EPIPE, UCS_ERR_CONNECTION_RESET},
    {FI_EHOSTUNREACH, UCS_ERR_UNREACHABLE},
    {FI_ENETUNREACH, UCS_ERR_UNREACHABLE},
    {FI_EHOSTDOWN, UCS_ERR_UNREACHABLE},
    {FI_ENETDOWN, UCS_ERR_UNREACHABLE},
    {FI_ENOENT, UCS_ERR_UNREACHABLE},
    {FI_ETIMEDOUT, UCS_ERR_ENDPOINT_TIMEOUT},
    {FI_ETRUNC, UCS_ERR_MESSAGE_TRUNCATED},
    {FI_EMSGSIZE, UCS_ERR_MESSAGE_TRUNCATED},
    {FI_E2BIG, UCS_ERR_MESSAGE_TRUNCATED},
    {FI_EACCES, UCS_ERR_REJECTED},
    {EPERM, UCS_ERR_REJECTED},
    {FI_ENOKEY, UCS_ERR_REJECTED},
    {FI_EKEYREJECTED, UCS_ERR_REJECTED},
    {FI_EINPROGRESS, UCS_INPROGRESS},
};

} // namespace

ucs_status_t status_of(int fi_errno) noexcept
{
    for (const meaning &known : meanings) {
        if (known.fi_errno == std::abs(fi_errno)) {
            return known.status;
        }
    }
    return UCS_ERR_IO_ERROR;
}

void check(long ret, const char *what)
{
    if (ret < 0) {
        throw ucs::error(status_of(static_cast<int>(ret)), "%s: %s", what,
                         fi_strerror(static_cast<int>(-ret)));
    }
}

} // namespace uct::ofi
