// SPDX-License-Identifier: BSD-3-Clause
// Requests for one socket by its addresses and ports, over netlink.
#include "uct/ofi/tcp/tcp_state.h"

#include "ucs/sockaddr.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fi_cm.h>
#include <sys/ioctl.h>

namespace uct::ofi {

namespace {

constexpr uint32_t recent_ms = 1000;
constexpr int most_closed = 64; // descriptors in a row that are not open: there are no more above

struct diag_request {
    nlmsghdr header;
    inet_diag_req_v2 body;
};

// Room for the answer about one socket. The kernel sends some 400 bytes; what later kernels append
// is not needed.
struct alignas(nlmsghdr) diag_answer {
    char bytes[2048];
};

void set_end(const sockaddr_storage &from, __be16 *port, __be32 *address)
{
    *port = htons(ucs::sockaddr_port(reinterpret_cast<const sockaddr *>(&from)));
    if (from.ss_family == AF_INET) {
        memcpy(address, &reinterpret_cast<const sockaddr_in &>(from).sin_addr, 4);
    } else {
        memcpy(address, &reinterpret_cast<const sockaddr_in6 &>(from).sin6_addr, 16);
    }
}

diag_request request_for(const tcp_ends &of)
{
    diag_request r{};
    r.header.nlmsg_len = sizeof(r);
    r.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    r.header.nlmsg_flags = NLM_F_REQUEST;
    r.body.sdiag_family = static_cast<uint8_t>(of.local.ss_family);
    r.body.sdiag_protocol = IPPROTO_TCP;
    r.body.idiag_ext = 1u << (INET_DIAG_INFO - 1);
    r.body.idiag_states = ~0u;
    set_end(of.local, &r.body.id.idiag_sport, r.body.id.idiag_src);
    set_end(of.remote, &r.body.id.idiag_dport, r.body.id.idiag_dst);
    if (of.local.ss_family == AF_INET6) {
        // A socket of a link's own address is bound to the link.
        r.body.id.idiag_if = reinterpret_cast<const sockaddr_in6 &>(of.local).sin6_scope_id;
    }
    std::fill(std::begin(r.body.id.idiag_cookie), std::end(r.body.id.idiag_cookie),
              static_cast<uint32_t>(INET_DIAG_NOCOOKIE));
    return r;
}

// Of an answer: none if it is an error. Without a connection the kernel tells of the socket that
// listens on the local address; that one never sends again, and has nothing.
std::optional<tcp_look> look_in(const diag_answer &answer, size_t length)
{
    auto *header = reinterpret_cast<const nlmsghdr *>(answer.bytes);
    if (length < NLMSG_LENGTH(sizeof(inet_diag_msg)) || header->nlmsg_type != SOCK_DIAG_BY_FAMILY) {
        return {};
    }
    auto *about = static_cast<const inet_diag_msg *>(NLMSG_DATA(header));
    auto left = static_cast<int>(std::min<size_t>(length, header->nlmsg_len)) -
                static_cast<int>(NLMSG_SPACE(sizeof(inet_diag_msg)));
    auto *a = reinterpret_cast<const rtattr *>(about + 1);
    for (; RTA_OK(a, left); a = RTA_NEXT(a, left)) {
        if (a->rta_type == INET_DIAG_INFO) {
            tcp_info info{};
            memcpy(&info, RTA_DATA(a), std::min<size_t>(RTA_PAYLOAD(a), sizeof(info)));
            return tcp_look{info.tcpi_retransmits,
                            about->idiag_rqueue > 0 || info.tcpi_last_data_recv < recent_ms};
        }
    }
    return tcp_look{};
}

using name_call = int (*)(int, sockaddr *, socklen_t *);

bool is(name_call name_of, int fd, const sockaddr *address)
{
    sockaddr_storage name{};
    socklen_t length = sizeof(name);
    return name_of(fd, reinterpret_cast<sockaddr *>(&name), &length) == 0 &&
           ucs::sockaddr_equal(reinterpret_cast<sockaddr *>(&name), address);
}

bool is_between(int fd, const tcp_ends &of)
{
    return is(getsockname, fd, of.here()) && is(getpeername, fd, of.there());
}

// near: tried first, then those above it, then those below.
int search_from(int near, const tcp_ends &of)
{
    for (int fd = near, closed = 0; closed < most_closed; ++fd) {
        errno = 0;
        if (is_between(fd, of)) {
            return fd;
        }
        closed = errno == EBADF ? closed + 1 : 0;
    }
    for (int fd = near - 1; fd >= 0; --fd) {
        if (is_between(fd, of)) {
            return fd;
        }
    }
    return -1;
}

} // namespace

bool ends_of(fid_ep *endpoint, tcp_ends *out)
{
    *out = {};
    size_t local = sizeof(out->local), remote = sizeof(out->remote);
    return fi_getname(&endpoint->fid, &out->local, &local) == 0 &&
           fi_getpeer(endpoint, &out->remote, &remote) == 0;
}

int find_socket(const tcp_ends &of)
{
    static std::atomic<int> last = 0;
    int fd = search_from(last.load(std::memory_order_relaxed), of);
    if (fd >= 0) {
        last.store(fd, std::memory_order_relaxed);
    }
    return fd;
}

tcp_look tcp_inquiry::look(const tcp_ends &of, int *found)
{
    std::optional<tcp_look> told = ask_kernel(of);
    answered_ |= told.has_value();
    return told ? *told : answered_ ? tcp_look{} : ask_socket(of, found);
}

bool tcp_inquiry::open()
{
    if (netlink_.get() < 0 && !refused_) {
        netlink_ = ucs::owned_fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
        refused_ = netlink_.get() < 0;
    }
    return !refused_;
}

// None: the kernel does not know the socket, or does not answer such requests. It answers before
// send() returns.
std::optional<tcp_look> tcp_inquiry::ask_kernel(const tcp_ends &of)
{
    if (!open()) {
        return {};
    }
    diag_request request = request_for(of);
    diag_answer answer;
    if (send(netlink_.get(), &request, sizeof(request), 0) != sizeof(request)) {
        return {};
    }
    ssize_t length = recv(netlink_.get(), &answer, sizeof(answer), MSG_DONTWAIT);
    return length < 0 ? std::nullopt : look_in(answer, static_cast<size_t>(length));
}

tcp_look tcp_inquiry::ask_socket(const tcp_ends &of, int *found)
{
    int fd = *found;
    if (!is_between(fd, of)) {
        if (searched_) {
            return {};
        }
        fd = find_socket(of);
        searched_ = fd < 0;
    }
    tcp_info info{};
    socklen_t size = sizeof(info);
    if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
        return {};
    }
    *found = fd;
    int unread = 0;
    bool has_unread = ioctl(fd, SIOCINQ, &unread) == 0 && unread > 0;
    return {info.tcpi_retransmits, has_unread || info.tcpi_last_data_recv < recent_ms};
}

} // namespace uct::ofi
