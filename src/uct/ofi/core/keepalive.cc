// SPDX-License-Identifier: BSD-3-Clause
// A timer behind an eventfd.
#include "uct/ofi/core/keepalive.h"

#include "ucs/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/eventfd.h>
#include <unistd.h>

namespace uct::ofi {

namespace {

constexpr uint64_t least_ns = 1'000'000;

} // namespace

keepalive::keepalive(uint64_t interval_ns) : fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))
{
    if (fd_ < 0) {
        throw ucs::error(UCS_ERR_IO_ERROR, "uct_iface_open: eventfd: %s", strerror(errno));
    }
    try {
        timer_ = ucs::async_watch::timer(
            std::max(interval_ns, least_ns),
            [](void *arg, uint32_t) {
                auto *self = static_cast<keepalive *>(arg);
                if (!self->due_.exchange(true)) {
                    uint64_t one = 1;
                    [[maybe_unused]] ssize_t n = write(self->fd_, &one, sizeof(one));
                }
            },
            this);
    } catch (...) {
        close(fd_);
        throw;
    }
}

keepalive::~keepalive()
{
    timer_.reset();
    close(fd_);
}

void keepalive::begun()
{
    uint64_t count;
    [[maybe_unused]] ssize_t n = read(fd_, &count, sizeof(count));
    due_.store(false);
}

} // namespace uct::ofi
