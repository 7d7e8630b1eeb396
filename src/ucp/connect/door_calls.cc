// SPDX-License-Identifier: BSD-3-Clause
//
// The side that calls: see door.h. The addresses of the peer's host are tried in turn.
#include "ucp/connect/door.h"

#include "ucp/connect/locality.h"
#include "ucp/endpoint/ep.h"
#include "ucs/error.h"
#include "ucs/sockaddr.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace ucp {

namespace {

sockaddr_storage address_of(const std::vector<uint8_t> &host, uint16_t port)
{
    sockaddr_storage out = {};
    if (host.size() == sizeof(in_addr)) {
        auto *four = reinterpret_cast<sockaddr_in *>(&out);
        four->sin_family = AF_INET;
        memcpy(&four->sin_addr, host.data(), host.size());
    } else {
        auto *six = reinterpret_cast<sockaddr_in6 *>(&out);
        six->sin6_family = AF_INET6;
        memcpy(&six->sin6_addr, host.data(), host.size());
    }
    ucs::sockaddr_set_port(reinterpret_cast<sockaddr *>(&out), port);
    return out;
}

// A host that does not answer is given up after some 15 s, one that is gone later after a minute. A
// peer that lives may take its time.
void set_patience(int fd)
{
    const int attempts = 3, on = 1, idle_s = 30, interval_s = 10, probes = 3;
    setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &attempts, sizeof(attempts));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

} // namespace

struct door_calls::call {
    enum class call_phase : uint8_t { connecting, listening };

    const uint64_t ep_id;
    const door_sign sign;
    size_t next_host = 0;
    sockaddr_storage host = {}; // that is called now
    call_phase phase = call_phase::connecting;
    std::unique_ptr<watched_socket> socket;
    std::vector<uint8_t> heard; // the answer, as far as it has come
    ucs_status_t status = UCS_ERR_UNREACHABLE;

    void call_next(knocker &tell);
    bool connected() noexcept;
    bool is_decided() noexcept;
    bool proceed() noexcept;
};

// The next host that can be called. Without a socket: there was none.
void door_calls::call::call_next(knocker &tell)
{
    socket.reset();
    heard.clear();
    phase = call_phase::connecting;
    while (!socket && next_host < sign.hosts.size()) {
        host = address_of(sign.hosts[next_host++], sign.port);
        const auto *address = reinterpret_cast<const sockaddr *>(&host);
        ucs::owned_fd fd(
            ::socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        if (fd.get() < 0 && errno != EAFNOSUPPORT) {
            throw ucs::error(UCS_ERR_IO_ERROR, "no socket to call a peer: %s", strerror(errno));
        }
        if (fd.get() < 0) {
            continue;
        }
        set_patience(fd.get());
        if (connect(fd.get(), address, static_cast<socklen_t>(ucs::sockaddr_length(address))) ==
                0 ||
            errno == EINPROGRESS) {
            socket = std::make_unique<watched_socket>(std::move(fd), EPOLLOUT, tell);
        }
    }
}

// The connection stands, and has taken what we say.
bool door_calls::call::connected() noexcept
{
    int error = 0;
    socklen_t length = sizeof(error);
    if (getsockopt(socket->fd(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) {
        ucs_debug("a peer cannot be called at %s: %s",
                  ucs::sockaddr_string(reinterpret_cast<const sockaddr *>(&host)).c_str(),
                  strerror(error));
        return false;
    }
    const door_call say = {door_protocol.magic, door_protocol.version, {}, sign.number};
    ssize_t sent = send(socket->fd(), &say, sizeof(say), MSG_NOSIGNAL);
    if (sent < 0 && (errno == ENOTCONN || errno == EAGAIN)) { // not yet
        socket->await(EPOLLOUT);
        return true;
    }
    if (sent != sizeof(say)) {
        return false;
    }
    phase = call_phase::listening;
    socket->await(EPOLLIN);
    return true;
}

// Whether `heard` is an answer with its address, or cannot become one; sets the status then.
bool door_calls::call::is_decided() noexcept
{
    door_answer head;
    if (heard.size() < sizeof(head)) {
        return false;
    }
    if (ucs::is_other_version(door_protocol, heard.data(), heard.size(), "a peer")) {
        status = UCS_ERR_UNSUPPORTED;
    } else if (ucs::read(door_protocol, heard.data(), heard.size(), &head) != ucs::spoken::ours ||
               head.length > ADDRESS_MAX || heard.size() > sizeof(head) + head.length) {
        status = UCS_ERR_INVALID_ADDR;
    } else if (heard.size() == sizeof(head) + head.length) {
        status = UCS_OK;
    } else {
        return false;
    }
    return true;
}

// False: nothing more comes from this host.
bool door_calls::call::proceed() noexcept
{
    if (phase == call_phase::connecting) {
        return connected();
    }
    constexpr size_t most = sizeof(door_answer) + ADDRESS_MAX;
    for (;;) {
        uint8_t bytes[most];
        ssize_t n = recv(socket->fd(), bytes, most - heard.size(), 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            socket->await(EPOLLIN);
            return true;
        }
        if (n <= 0) {
            status = status == UCS_ERR_UNREACHABLE ? UCS_ERR_CONNECTION_RESET : status;
            return false;
        }
        ucs_status_t kept = ucs::guard([&] { heard.insert(heard.end(), bytes, bytes + n); });
        if (kept != UCS_OK) {
            status = kept;
            return false;
        }
        if (is_decided()) {
            return false;
        }
    }
}

door_calls::door_calls(ucp_worker *worker)
    : worker_(worker), knocker_(worker, event::kind::door_answer)
{
}

door_calls::~door_calls() = default;

void door_calls::add(uint64_t ep_id, const door_sign &sign)
{
    calls_.push_back({ep_id, sign});
    try {
        calls_.back().call_next(knocker_);
    } catch (...) {
        calls_.pop_back();
        throw;
    }
    if (!calls_.back().socket) {
        calls_.pop_back();
        throw ucs::error(UCS_ERR_UNREACHABLE, "no address of the peer's host can be called");
    }
}

void door_calls::run() noexcept
{
    knocker_.looked();
    calls_.remove_if([&](call &c) { return has_finished(c); });
}

bool door_calls::has_finished(call &c) noexcept
{
    if (!worker_->find_ep(c.ep_id)) {
        return true;
    }
    while (!c.proceed()) {
        ucs_status_t next = UCS_OK;
        if (c.status == UCS_ERR_UNREACHABLE || c.status == UCS_ERR_CONNECTION_RESET) {
            next = ucs::guard([&] { c.call_next(knocker_); });
            c.status = next == UCS_OK ? c.status : next;
        } else {
            c.socket.reset();
        }
        if (!c.socket || next != UCS_OK) {
            c.heard.erase(c.heard.begin(),
                          c.heard.begin() + static_cast<std::ptrdiff_t>(
                                                std::min(sizeof(door_answer), c.heard.size())));
            on_door_answer(worker_->find_ep(c.ep_id), c.status, c.heard,
                           is_own_address(reinterpret_cast<const sockaddr *>(&c.host)));
            return true;
        }
    }
    return false;
}

} // namespace ucp
