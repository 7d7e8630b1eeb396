// SPDX-License-Identifier: BSD-3-Clause
//
// The side that is called: see door.h.
#include "ucp/connect/door.h"

#include "ucp/core/resources.h"
#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "ucs/sys.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>

namespace ucp {

namespace {

// Strangers hold no more descriptors than this, and none for longer.
constexpr size_t most_callers = 16;
constexpr uint64_t patience_ns = 10'000'000'000;
constexpr uint64_t retry_ns = 100'000'000; // without descriptors

constexpr size_t most_hosts = 8;

// Of both families, or of IPv4 where the host has no other.
ucs::owned_fd listening_socket(uint16_t *port)
{
    sockaddr_in6 any6 = {};
    any6.sin6_family = AF_INET6;
    sockaddr_in any4 = {};
    any4.sin_family = AF_INET;
    const struct {
        sockaddr *address;
        socklen_t length;
    } tries[] = {{reinterpret_cast<sockaddr *>(&any6), sizeof(any6)},
                 {reinterpret_cast<sockaddr *>(&any4), sizeof(any4)}};
    int error = 0;
    for (const auto &t : tries) {
        ucs::owned_fd fd(
            ::socket(t.address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
        const int both = 0;
        if (t.address->sa_family == AF_INET6) {
            setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both));
        }
        socklen_t length = t.length;
        if (fd.get() >= 0 && bind(fd.get(), t.address, length) == 0 &&
            listen(fd.get(), SOMAXCONN) == 0 && getsockname(fd.get(), t.address, &length) == 0) {
            *port = ucs::sockaddr_port(t.address);
            return fd;
        }
        error = errno;
    }
    throw ucs::error(UCS_ERR_IO_ERROR, "no socket to be called at: %s", strerror(error));
}

bool is_out_of_descriptors(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

} // namespace

void knocker::knock(void *self, uint32_t) noexcept
{
    auto *k = static_cast<knocker *>(self);
    if (!k->waiting_.exchange(true)) {
        event ev;
        ev.what = k->what_;
        k->worker_->post_event(std::move(ev));
    }
}

watched_socket::watched_socket(ucs::owned_fd fd, uint32_t events, knocker &tell)
    : fd_(std::move(fd)),
      watch_(ucs::async_watch::fd(fd_.get(), events | EPOLLONESHOT, knocker::knock, &tell))
{
}

void watched_socket::await(uint32_t events)
{
    watch_.set_events(events | EPOLLONESHOT);
}

struct door::caller {
    watched_socket socket;
    uint64_t until_ns;
    door_call said = {};
    size_t bytes = 0; // of it
};

door::door(ucp_worker *worker) : worker_(worker), knocker_(worker, event::kind::door)
{
    sign_.hosts = addresses_of_this_host(most_hosts);
    if (sign_.hosts.empty()) {
        throw ucs::error(UCS_ERR_NO_DEVICE, "this host has no address to be called at");
    }
    sign_.number = ucs::random_u64() | 1;
    ucs::owned_fd fd = listening_socket(&sign_.port);
    listening_ = std::make_unique<watched_socket>(std::move(fd), EPOLLIN, knocker_);
    timer_ = ucs::async_watch::timer(0, knocker::knock, &knocker_);
}

door::~door() = default;

void door::serve() noexcept
{
    knocker_.looked();
    bool has_room = take_callers();
    callers_.remove_if([&](caller &c) { return has_finished(c); });
    while (callers_.size() > most_callers) {
        callers_.pop_front();
    }
    uint64_t next_ns = UINT64_MAX, now = ucs::monotonic_ns();
    if (!callers_.empty()) {
        next_ns = callers_.front().until_ns;
    }
    if (has_room) {
        listening_->await(EPOLLIN);
    } else { // the caller that waits, and cannot be taken, would wake us again and again
        next_ns = std::min(next_ns, now + retry_ns);
    }
    timer_.set_once(next_ns == UINT64_MAX ? 0 : std::max(next_ns, now + 1) - now);
}

// So many at a time. False: there is no descriptor, or no memory, for the next one.
bool door::take_callers() noexcept
{
    for (size_t taken = 0; taken < most_callers; ++taken) {
        ucs::owned_fd fd(accept4(listening_->fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd.get() < 0) {
            return !is_out_of_descriptors(errno);
        }
        ucs_status_t status = ucs::guard<ucs::log::level::debug>([&] {
            callers_.push_back({{std::move(fd), EPOLLIN | EPOLLRDHUP, knocker_},
                                ucs::monotonic_ns() + patience_ns});
        });
        if (status != UCS_OK) {
            return false;
        }
    }
    return true;
}

// True: it has said all, or will not.
bool door::has_finished(caller &c) noexcept
{
    while (c.bytes < sizeof(c.said)) {
        ssize_t n = recv(c.socket.fd(), reinterpret_cast<char *>(&c.said) + c.bytes,
                         sizeof(c.said) - c.bytes, 0);
        if (n > 0) {
            c.bytes += static_cast<size_t>(n);
            continue;
        }
        if (n < 0 && errno == EINTR) {
            continue;
        }
        bool may_come = n < 0 && errno == EAGAIN && ucs::monotonic_ns() < c.until_ns;
        if (may_come) {
            c.socket.await(EPOLLIN | EPOLLRDHUP);
        }
        return !may_come;
    }
    answer(c.said, c.socket.fd());
    return true;
}

// It fits into the buffer of a socket that has sent nothing.
void door::answer(const door_call &said, int fd) noexcept
{
    const ucs::spoken what = ucs::which_protocol(door_protocol, &said, sizeof(said));
    if (what == ucs::spoken::foreign ||
        (what == ucs::spoken::ours && said.number != sign_.number)) {
        ucs_debug("worker %s: a stranger called", worker_->name.c_str());
        return;
    }
    std::vector<uint8_t> out;
    ucs_status_t status = ucs::guard([&] {
        door_answer head = {door_protocol.magic, door_protocol.version, 0, 0};
        out.resize(sizeof(head));
        if (!ucs::is_other_version(door_protocol, &said, sizeof(said), "a peer")) {
            worker_->open_networks();
            std::vector<uint8_t> address = pack_address(*worker_, false);
            head.length = static_cast<uint16_t>(address.size());
            out.insert(out.end(), address.begin(), address.end());
        }
        memcpy(out.data(), &head, sizeof(head));
    });
    if (status == UCS_OK) {
        (void)send(fd, out.data(), out.size(), MSG_NOSIGNAL);
    }
}

} // namespace ucp
