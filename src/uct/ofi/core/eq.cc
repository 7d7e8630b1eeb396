// SPDX-License-Identifier: BSD-3-Clause
// A handshake that has only begun ends when its socket does: the next look at the queue sees that
// and frees it. Its socket is known to the descriptor alone that the queue waits on.
#include "uct/ofi/core/eq.h"

#include "ucs/epoll_set.h"
#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "ucs/sys.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <memory>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
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
    std::vector<ucs::epoll_member> watched = ucs::members_of(epoll_fd);
    auto own = std::find_if(watched.begin(), watched.end(), [eq](const ucs::epoll_member &m) {
        return m.data == reinterpret_cast<uintptr_t>(eq);
    });
    if (own != watched.end()) {
        std::vector<ucs::epoll_member> inner = ucs::members_of(own->fd);
        watched.insert(watched.end(), inner.begin(), inner.end());
    }
    for (const ucs::epoll_member &m : watched) {
        if (is_inet_socket(m.fd)) {
            sockets.push_back(m.fd);
        }
    }
    return sockets;
}

bool listens(int fd)
{
    int listening = 0;
    socklen_t size = sizeof(listening);
    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening;
}

uint16_t local_port(int fd)
{
    sockaddr_storage name{};
    socklen_t length = sizeof(name);
    return getsockname(fd, reinterpret_cast<sockaddr *>(&name), &length) == 0
               ? ucs::sockaddr_port(reinterpret_cast<sockaddr *>(&name))
               : 0;
}

struct handshake {
    int fd;
    uint64_t silent_ns;
};

// Of a connection that has not asked for anything: what has come is less than any request, with the
// core's header in front of it. By a kernel that does not count bytes none is silent.
bool is_silent(int fd, handshake *h)
{
    constexpr uint64_t least_request = 32;
    tcp_info info{};
    socklen_t size = sizeof(info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(tcp_info, tcpi_bytes_received) + sizeof(info.tcpi_bytes_received) ||
        info.tcpi_bytes_received >= least_request) {
        return false;
    }
    *h = {fd, uint64_t(info.tcpi_last_data_recv) * 1000000};
    return true;
}

std::vector<uint16_t> listening_ports(const std::vector<int> &sockets)
{
    std::vector<uint16_t> ports;
    for (int fd : sockets) {
        if (listens(fd)) {
            ports.push_back(local_port(fd));
        }
    }
    return ports;
}

bool was_accepted(int fd, const std::vector<uint16_t> &ports)
{
    return std::find(ports.begin(), ports.end(), local_port(fd)) != ports.end() && !listens(fd);
}

// The longest silent first.
std::vector<handshake> silent_handshakes(const std::vector<int> &sockets,
                                         const std::vector<uint16_t> &ports)
{
    std::vector<handshake> found;
    handshake h{};
    for (int fd : sockets) {
        if (was_accepted(fd, ports) && is_silent(fd, &h)) {
            found.push_back(h);
        }
    }
    std::sort(found.begin(), found.end(),
              [](const handshake &a, const handshake &b) { return a.silent_ns > b.silent_ns; });
    return found;
}

size_t half_of_the_descriptors()
{
    rlimit limit{};
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<size_t>(limit.rlim_cur / 2)
                                                 : SIZE_MAX;
}

// More than half of the descriptors are in use.
bool descriptors_are_few()
{
    int lowest = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    if (lowest < 0) {
        return errno == EMFILE;
    }
    close(lowest);
    return static_cast<size_t>(lowest) > half_of_the_descriptors();
}

std::vector<int> inet_sockets()
{
    std::vector<int> found;
    std::unique_ptr<DIR, int (*)(DIR *)> dir(opendir("/proc/self/fd"), closedir);
    while (dirent *entry = dir ? readdir(dir.get()) : nullptr) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && is_inet_socket(fd)) {
            found.push_back(fd);
        }
    }
    return found;
}

} // namespace

void handshake_watch::end_silent(fid_eq *eq, uint64_t quiet_ns) noexcept
{
    // Without memory none ends now: the next look ends them.
    (void)ucs::guard_quietly([&] { end_those_found(eq, quiet_ns); });
}

// Throws bad_alloc.
void handshake_watch::end_those_found(fid_eq *eq, uint64_t quiet_ns)
{
    std::vector<int> sockets = sockets_of(eq);
    std::vector<uint16_t> ports = listening_ports(sockets);
    std::vector<handshake> all = silent_handshakes(sockets, ports);
    size_t left = all.size(), most = half_of_the_descriptors();
    for (const handshake &h : all) {
        if (h.silent_ns < quiet_ns && left <= most) {
            break;
        }
        shutdown(h.fd, SHUT_RDWR); // the next look at the queue frees it
        --left;
    }
    if (FI_VERSION_GE(fi_version(), FI_VERSION(1, 18))) {
        end_lost(sockets, ports, quiet_ns);
    }
}

// From 1.18 on, the core stops to watch a connection before it reads the request. When less than a
// request has come, or its end, it takes an EAGAIN that some other read has left in errno for the
// reason, and forgets the connection without closing it: nothing but the process's table of
// descriptors has it then. One that another thread has just accepted, or whose event is not read
// yet, looks the same, but not twice.
void handshake_watch::end_lost(const std::vector<int> &known, const std::vector<uint16_t> &ports,
                               uint64_t quiet_ns)
{
    uint64_t now = ucs::monotonic_ns();
    bool few = descriptors_are_few();
    if (now < next_search_ && !few) {
        return;
    }
    next_search_ = now + quiet_ns / 4;
    std::vector<seen> lost;
    for (int fd : inet_sockets()) {
        handshake h{};
        struct stat about {};
        if (!was_accepted(fd, ports) || std::find(known.begin(), known.end(), fd) != known.end() ||
            !is_silent(fd, &h) || (h.silent_ns < quiet_ns && !few) || fstat(fd, &about) != 0) {
            continue;
        }
        if (std::any_of(lost_.begin(), lost_.end(),
                        [&](const seen &s) { return s.fd == fd && s.inode == about.st_ino; })) {
            close(fd);
        } else {
            lost.push_back({fd, about.st_ino});
        }
    }
    lost_ = std::move(lost);
}

// Throws bad_alloc.
static void end_begun_handshakes(fid_eq *eq)
{
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

void end_handshakes(const core &c, fid_eq *eq) noexcept
{
    refuse_requests(eq);
    if (c.forgets_handshakes()) {
        (void)ucs::guard([&] { end_begun_handshakes(eq); });
    }
}

int listening_socket(fid_eq *eq, const sockaddr *address)
{
    for (int fd : sockets_of(eq)) {
        sockaddr_storage name{};
        socklen_t length = sizeof(name);
        if (listens(fd) && getsockname(fd, reinterpret_cast<sockaddr *>(&name), &length) == 0 &&
            ucs::sockaddr_equal(reinterpret_cast<sockaddr *>(&name), address)) {
            return fd;
        }
    }
    return -1;
}

} // namespace uct::ofi
