// SPDX-License-Identifier: BSD-3-Clause
#include "uct/ofi/tcp/quiet_queue.h"

#include <poll.h>

namespace uct::ofi {

namespace {

constexpr unsigned enough_reads = 2; // that had nothing
constexpr size_t a_round = 8;        // connections that are looked at for each round

} // namespace

bool quiet_queue::is_quiet(size_t connections) noexcept
{
    if (fd_ < 0 || empty_reads_ < enough_reads || left_ >= connections / a_round) {
        return false;
    }
    pollfd p = {fd_, POLLIN, 0};
    if (poll(&p, 1, 0) != 0) {
        return false;
    }
    ++left_;
    return true;
}

} // namespace uct::ofi
