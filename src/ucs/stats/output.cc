// SPDX-License-Identifier: BSD-3-Clause
// Writing a report: see output.h.
#include "ucs/stats/output.h"

#include "ucs/error.h"
#include "ucs/log_file.h"
#include "ucs/stats/settings.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ucs::stats {
namespace {

[[noreturn]] void fail(const char *what, const char *why)
{
    throw error(UCS_ERR_IO_ERROR, "UCX_STATS_DEST: %s: %s", what, why);
}

void write_all(int fd, const std::string &text, const char *what)
{
    for (size_t done = 0; done < text.size();) {
        ssize_t n = write(fd, text.data() + done, text.size() - done);
        if (n < 0 && errno != EINTR) {
            fail(what, strerror(errno));
        }
        done += n > 0 ? static_cast<size_t>(n) : 0;
    }
}

void write_and_close(const std::string &path, int flags, const std::string &text)
{
    int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
    if (fd < 0) {
        fail(path.c_str(), strerror(errno));
    }
    try {
        write_all(fd, text, path.c_str());
    } catch (...) {
        close(fd);
        throw;
    }
    close(fd);
}

// A reader of the file finds one whole report.
void replace_file(const std::string &path, const std::string &text)
{
    struct stat there;
    if (lstat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
        return write_and_close(path, O_TRUNC, text); // a device, a pipe or a link
    }
    std::string fresh = path + "." + std::to_string(getpid()) + ".new";
    write_and_close(fresh, O_TRUNC, text);
    if (rename(fresh.c_str(), path.c_str()) != 0) {
        int saved = errno;
        unlink(fresh.c_str());
        fail(path.c_str(), strerror(saved));
    }
}

// Datagrams of whole lines, as many as fit a network's packet.
void send_lines(const destination &to, const std::string &text)
{
    constexpr size_t most = 1400;
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = SOCK_DGRAM;
    int error = getaddrinfo(to.name.c_str(), to.port.c_str(), &hints, &found);
    if (error != 0) {
        fail(to.name.c_str(), gai_strerror(error));
    }
    int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool sent = fd >= 0;
    for (size_t begin = 0; sent && begin < text.size();) {
        size_t end = text.size();
        if (end - begin > most) {
            size_t line = text.rfind('\n', begin + most - 1);
            end = line == std::string::npos || line < begin ? begin + most : line + 1;
        }
        sent =
            sendto(fd, text.data() + begin, end - begin, 0, found->ai_addr, found->ai_addrlen) >= 0;
        begin = end;
    }
    int saved = errno;
    freeaddrinfo(found);
    if (fd >= 0) {
        close(fd);
    }
    if (!sent) {
        fail(to.name.c_str(), strerror(saved));
    }
}

std::string formatted(report whole, const settings &s)
{
    filter(whole, s.patterns);
    switch (s.format) {
    case form::json:
        return to_json(whole);
    case form::prometheus:
        return to_prometheus(whole);
    case form::agg:
    case form::summary:
        return to_text(add_up(std::move(whole), s.format == form::summary));
    case form::full:
        break;
    }
    return to_text(whole);
}

void send_report(const destination &to, const std::string &text)
{
    switch (to.where) {
    case destination::kind::standard_output:
        return write_all(STDOUT_FILENO, text, "stdout");
    case destination::kind::standard_error:
        return write_all(STDERR_FILENO, text, "stderr");
    case destination::kind::file:
        return replace_file(log::expanded(to.name.c_str()), text);
    case destination::kind::udp:
        return send_lines(to, text);
    case destination::kind::none:
        break;
    }
}

} // namespace

void write_report() noexcept
{
    static std::mutex &mutex = *new std::mutex;
    (void)guard([] {
        report whole = take_report();
        if (!whole.interfaces.empty() || !whole.caches.empty()) {
            std::string text = formatted(std::move(whole), the_settings());
            std::lock_guard lock(mutex);
            send_report(the_settings().dest, text);
        }
    });
}

} // namespace ucs::stats
