// SPDX-License-Identifier: BSD-3-Clause
// A handshake that has only begun ends when its socket does: the next look at the queue sees that
// and frees it. Its socket is known to nobody but the descriptor that the queue waits on.
#include "uct/ofi/core/eq.h"

#include "ucs/sockaddr.h"
#include "uct/ofi/core/epoll_set.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <netinet/in.h>
#include <sys/socket.h>
#include <vector>

namespace uct::ofi {

namespace {

void refuse_requests(fid_eq *eq)
{
    union {
        fi_eq_cm_entry entry;
        char room[sizeof(fi_eq_cm_entry) + 1024];
    } e;
    for (;;) {
        uint32_t kind = 0;
        errno = 0; // tcp looks at what is left in it after a short read
        ssize_t n = fi_eq_read(eq, &kind, &e, sizeof(e), 0);
        if (n == -FI_EAVAIL) {
            fi_eq_err_entry error{};
            if (fi_eq_readerr(eq, &error, 0) < 0) {
                return;
            }
        } else if (n < static_cast<ssize_t>(sizeof(e.entry))) {
            return;
        } else if (kind == FI_CONNREQ) {
            info_ptr info(e.entry.info);
            auto *pep = reinterpret_cast<fid_pep *>(e.entry.fid); // the fid is its first member
            fi_reject(pep, info->handle, nullptr, 0);
        }
    }
}

bool is_inet_socket(int fd)
{
    sockaddr_storage name{};
    socklen_t length = sizeof(name);
    return getsockname(fd, reinterpret_cast<sockaddr *>(&name), &length) == 0 &&
           (name.ss_family == AF_INET || name.ss_family == AF_INET6);
}

// What an event queue waits on. From 1.18 that are sets of sockets: one of passive endpoints and
// handshakes, which tcp adds with the queue as its data, and one for each domain, whose sockets may
// be of other queues' endpoints.
std::vector<int> sockets_of(fid_eq *eq)
{
    int epoll_fd = -1;
    std::vector<int> sockets;
    if (fi_control(&eq->fid, FI_GETWAIT, &epoll_fd) != 0) {
        return sockets;
    }
    std::vector<epoll_member> watched = members_of(epoll_fd);
    auto own = std::find_if(watched.begin(), watched.end(), [eq](const epoll_member &m) {
        return m.data == reinterpret_cast<uintptr_t>(eq);
    });
    if (own != watched.end()) {
        std::vector<epoll_member> inner = members_of(own->fd);
        watched.insert(watched.end(), inner.begin(), inner.end());
    }
    for (const epoll_member &m : watched) {
        if (is_inet_socket(m.fd)) {
            sockets.push_back(m.fd);
        }
    }
    return sockets;
}

} // namespace

void end_handshakes(const core &c, fid_eq *eq)
{
    refuse_requests(eq);
    if (!c.forgets_handshakes()) {
        return;
    }
    std::vector<int> sockets = sockets_of(eq);
    for (int fd : sockets) {
        shutdown(fd, SHUT_RDWR); // of a listening one, too: none comes after these
    }
    for (size_t before = SIZE_MAX; !sockets.empty() && sockets.size() < before;) {
        before = sockets.size();
        refuse_requests(eq);
        sockets = sockets_of(eq);
    }
}

int listening_socket(fid_eq *eq, const sockaddr *address)
{
    for (int fd : sockets_of(eq)) {
        int listens = 0;
        socklen_t size = sizeof(listens);
        sockaddr_storage name{};
        socklen_t length = sizeof(name);
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens &&
            getsockname(fd, reinterpret_cast<sockaddr *>(&name), &length) == 0 &&
            ucs::sockaddr_equal(reinterpret_cast<sockaddr *>(&name), address)) {
            return fd;
        }
    }
    return -1;
}

} // namespace uct::ofi
