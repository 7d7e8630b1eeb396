// SPDX-License-Identifier: BSD-3-Clause
// At the end of the process or when the library is unloaded, on a signal, or by a timer. The report
// after a signal is made by the helper thread, since a handler may do next to nothing.
#include "ucs/stats/trigger.h"

#include "ucs/async.h"
#include "ucs/error.h"
#include "ucs/stats/output.h"
#include "ucs/stats/settings.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace ucs::stats {
namespace {

int signal_fd = -1;
struct sigaction previous_action;

void on_signal(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    uint64_t one = 1;
    [[maybe_unused]] ssize_t n = write(signal_fd, &one, sizeof(one));
    if (previous_action.sa_flags & SA_SIGINFO) {
        previous_action.sa_sigaction(number, info, context);
    } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
        previous_action.sa_handler(number);
    }
    errno = saved;
}

void on_event(void *, uint32_t)
{
    uint64_t count;
    if (read(signal_fd, &count, sizeof(count)) > 0) {
        write_report();
    }
}

class armed_trigger {
  public:
    armed_trigger() { arm(); }

    ~armed_trigger()
    {
        watch_.reset();
        struct sigaction now;
        const trigger &t = the_settings().trigger;
        if (has_handler_ && sigaction(t.signal, nullptr, &now) == 0 &&
            now.sa_sigaction == on_signal) {
            sigaction(t.signal, &previous_action, nullptr);
        }
        if (t.when == trigger::kind::exit) {
            write_report();
        }
    }

    void arm_after_fork()
    {
        std::lock_guard lock(mutex_);
        if (process_ != getpid()) {
            watch_.reset();
            arm();
        }
    }

  private:
    void arm()
    {
        const trigger &t = the_settings().trigger;
        if (t.when == trigger::kind::timer) {
            watch_ = async_watch::timer(
                static_cast<uint64_t>(t.seconds * 1e9), [](void *, uint32_t) { write_report(); },
                nullptr);
        } else if (t.when == trigger::kind::signal) {
            handle(t.signal);
        }
        process_ = getpid();
    }

    void handle(int number)
    {
        if (signal_fd >= 0) {
            close(signal_fd); // shared with the parent
        }
        signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (signal_fd < 0) {
            throw error(UCS_ERR_IO_ERROR, "UCX_STATS_TRIGGER: eventfd: %s", strerror(errno));
        }
        watch_ = async_watch::fd(signal_fd, EPOLLIN, on_event, nullptr);
        if (!has_handler_) {
            struct sigaction action = {};
            action.sa_sigaction = on_signal;
            action.sa_flags = SA_SIGINFO | SA_RESTART;
            sigaction(number, nullptr, &previous_action);
            sigaction(number, &action, nullptr);
            has_handler_ = true;
        }
    }

    std::mutex mutex_;
    async_watch watch_;
    pid_t process_ = 0;
    bool has_handler_ = false;
};

} // namespace

void arm_trigger()
{
    static armed_trigger armed;
    armed.arm_after_fork();
}

} // namespace ucs::stats
