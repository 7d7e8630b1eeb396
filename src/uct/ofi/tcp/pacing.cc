// SPDX-License-Identifier: BSD-3-Clause
// The core's sockets are known by their addresses alone.
#include "uct/ofi/tcp/pacing.h"

#include "ucs/log.h"
#include "ucs/sockaddr.h"
#include "uct/ofi/tcp/tcp_state.h"

#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace uct::ofi {

namespace {

constexpr char unpaced[] = "reno";

} // namespace

bool system_paces()
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char name[16] = {};
    socklen_t size = sizeof(name);
    bool paces = fd >= 0 && getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0 &&
                 strncmp(name, "bbr", 3) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return paces;
}

void stop_local_pacing(fid_ep *endpoint)
{
    tcp_ends of;
    if (!ends_of(endpoint, &of) || !ucs::sockaddr_same_host(of.here(), of.there())) {
        return;
    }
    int fd = find_socket(of);
    if (fd < 0) {
        return;
    }
    if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, unpaced, sizeof(unpaced) - 1) != 0) {
        ucs_debug("congestion control %s: %s", unpaced, strerror(errno));
    }
}

} // namespace uct::ofi
