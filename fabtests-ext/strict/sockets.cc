// SPDX-License-Identifier: BSD-3-Clause
// Room for TCP below the inner core. `sockets` looks at a message's header until all of it is
// there, and takes nothing of it before. The kernel counts a packet of loopback, up to 64 KiB,
// until its last byte is taken, and asks for no more while less than a packet's room is free: when
// a header is cut by the end of a packet, a receive buffer of the usual 128 KiB is full, and the
// connection stands still for good.
#include "strict/strict.h"

#include <cstdlib>
#include <dirent.h>
#include <sys/socket.h>

namespace strict {

namespace {

constexpr int room = 4 << 20;

bool has_port(const sockaddr_storage &name, uint16_t port)
{
    return name.ss_family == AF_INET &&
           reinterpret_cast<const sockaddr_in &>(name).sin_port == htons(port);
}

// Whether the socket is a stream from or to the port.
bool is_of(int fd, uint16_t port)
{
    int type = 0;
    socklen_t length = sizeof(type);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) {
        return false;
    }
    sockaddr_storage name{};
    length = sizeof(name);
    if (getsockname(fd, reinterpret_cast<sockaddr *>(&name), &length) == 0 &&
        has_port(name, port)) {
        return true;
    }
    length = sizeof(name);
    return getpeername(fd, reinterpret_cast<sockaddr *>(&name), &length) == 0 &&
           has_port(name, port);
}

} // namespace

void widen(uint16_t port)
{
    DIR *files = opendir("/proc/self/fd");
    while (dirent *entry = files ? readdir(files) : nullptr) {
        int fd = atoi(entry->d_name);
        if (!is_of(fd, port)) {
            continue;
        }
        // What the system allows without privileges is less, but several packets.
        if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) != 0) {
            setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
        }
    }
    if (files) {
        closedir(files);
    }
}

} // namespace strict
