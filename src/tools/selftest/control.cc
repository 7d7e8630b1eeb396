// SPDX-License-Identifier: BSD-3-Clause
// The control connection: see selftest.h.
#include "tools/selftest/selftest.h"

#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace selftest {
namespace {

const std::string no_such_thing = "unsupported: ";
constexpr size_t most_bytes = 1 << 20; // of a message

struct frame {
    char kind; // 'm': a message, '!': a complaint
    uint32_t length;
} __attribute__((packed));

addrinfo *addresses(const char *host, const std::string &port, int flags)
{
    addrinfo hints = {};
    hints.ai_flags = flags;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo *list = nullptr;
    int ret = getaddrinfo(host, port.c_str(), &hints, &list);
    if (ret != 0) {
        refuse(std::string(host ? host : "any address") + ", port " + port + ": " +
               gai_strerror(ret));
    }
    return list;
}

std::string port_of(int fd)
{
    sockaddr_storage own = {};
    socklen_t length = sizeof(own);
    char port[NI_MAXSERV] = {};
    getsockname(fd, reinterpret_cast<sockaddr *>(&own), &length);
    getnameinfo(reinterpret_cast<sockaddr *>(&own), length, nullptr, 0, port, sizeof(port),
                NI_NUMERICSERV);
    return port;
}

} // namespace

void refuse(const std::string &text)
{
    fprintf(stderr, "ucxlike_selftest: %s\n", text.c_str());
    exit(EXIT_FAILURE);
}

control::~control()
{
    if (fd_ >= 0) {
        close(fd_);
    }
}

void control::send(char kind, const std::string &text)
{
    frame head = {kind, static_cast<uint32_t>(text.size())};
    std::string whole(reinterpret_cast<const char *>(&head), sizeof(head));
    whole += text;
    for (size_t at = 0; at < whole.size();) {
        ssize_t n = ::send(fd_, whole.data() + at, whole.size() - at, MSG_NOSIGNAL);
        if (n <= 0) {
            throw failure("the other process has gone");
        }
        at += static_cast<size_t>(n);
    }
}

void control::complain(const std::string &text, bool is_unsupported) noexcept
{
    try {
        send('!', (is_unsupported ? no_such_thing : "") + text);
    } catch (...) {
        // It knows already.
    }
}

void control::read_all(void *to, size_t length)
{
    if (length && recv(fd_, to, length, MSG_WAITALL) != static_cast<ssize_t>(length)) {
        throw failure("the other process has gone");
    }
}

bool control::has_message()
{
    pollfd end = {fd_, POLLIN, 0};
    if (poll(&end, 1, 0) <= 0) {
        return false;
    }
    char kind;
    if (recv(fd_, &kind, 1, MSG_PEEK) != 1) {
        throw failure("the other process has gone");
    }
    if (kind == '!') {
        hear(1); // throws
    }
    return true;
}

std::string control::hear(unsigned limit)
{
    pollfd end = {fd_, POLLIN, 0};
    if (poll(&end, 1, static_cast<int>(limit * 1000)) == 0) {
        throw failure("the other process did not answer for " + std::to_string(limit) + " s");
    }
    frame head;
    read_all(&head, sizeof(head));
    if (head.length > most_bytes || (head.kind != 'm' && head.kind != '!')) {
        throw failure("the other process does not speak the tool's protocol");
    }
    std::string text(head.length, 0);
    read_all(text.data(), text.size());
    if (head.kind == '!') {
        if (text.starts_with(no_such_thing)) {
            throw unsupported(text.substr(no_such_thing.size()));
        }
        throw failure("the other process says: " + text);
    }
    return text;
}

bool control::has_ended()
{
    char byte;
    ssize_t got = recv(fd_, &byte, 1, MSG_DONTWAIT);
    if (got > 0) {
        throw failure("the other process has not ended, but says something");
    }
    return got == 0 || (errno != EAGAIN && errno != EINTR);
}

int listen_at(const char *host, std::string *port)
{
    addrinfo *list = addresses(host, *port, AI_PASSIVE);
    int fd = -1, error = 0;
    for (addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int yes = 1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
        if (fd >= 0 && (bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, 16) != 0)) {
            error = errno;
            close(std::exchange(fd, -1));
        }
    }
    freeaddrinfo(list);
    if (fd < 0) {
        refuse("port " + *port + ": " +
               (error == EADDRINUSE ? "it is in use; another is chosen by -p" : strerror(error)));
    }
    *port = port_of(fd);
    return fd;
}

control connect_to(const std::string &host, const std::string &port)
{
    addrinfo *list = addresses(host.c_str(), port, 0);
    int fd = -1, error = 0;
    for (addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
            error = errno;
            close(std::exchange(fd, -1));
        }
    }
    freeaddrinfo(list);
    if (fd < 0) {
        throw failure("no server at " + host + ", port " + port + ": " + strerror(error) +
                      "; start ucxlike_selftest --server there");
    }
    return control(fd);
}

} // namespace selftest
