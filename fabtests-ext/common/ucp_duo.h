// SPDX-License-Identifier: BSD-3-Clause
//
// Two forked processes with an actor each, and the test between them: it hands over what they have
// to know of each other, and tells the survivor that the other has ended.
#pragma once

#include "fabtests-ext/common/ucp_actor.h"

#include <atomic>
#include <csignal>
#include <functional>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" __attribute__((weak)) int __lsan_do_recoverable_leak_check();

namespace ucp_actor {

constexpr int watchdog_ms = 180000;

// The socket between the test and one process.
class channel {
  public:
    explicit channel(int fd = -1) : fd_(fd) {}
    template <class T>
    bool say(const T &what) const
    {
        return send(fd_, &what, sizeof(what), MSG_NOSIGNAL) == sizeof(what);
    }
    // With `now`, only what is there.
    template <class T>
    bool hear(T *what, bool now = false) const
    {
        pollfd p = {fd_, POLLIN, 0};
        return poll(&p, 1, now ? 0 : watchdog_ms) == 1 &&
               recv(fd_, what, sizeof(*what), 0) == sizeof(*what);
    }
    int fd() const { return fd_; }

  private:
    int fd_;
};

// What both processes and the test look at.
struct shared_words {
    std::atomic<unsigned> rounds;  // of the survivor
    std::atomic<unsigned> reached; // the other one has lied, or is where it stops
};

inline shared_words &words()
{
    static auto *page = static_cast<shared_words *>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    return *page;
}

struct process {
    pid_t pid = -1;
    channel to;
    int pidfd = -1;

    ~process()
    {
        if (pid > 0) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
            close(pidfd);
            close(to.fd());
        }
    }
    void start(const std::function<outcome(const channel &)> &body)
    {
        int ends[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
        pid = fork();
        ASSERT_GE(pid, 0);
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); // a test that is killed leaves no process behind
            close(ends[0]);
            outcome result = body(channel(ends[1]));
            if (result == outcome::ok && __lsan_do_recoverable_leak_check &&
                __lsan_do_recoverable_leak_check()) {
                result = outcome::leaks;
            }
            _exit(static_cast<int>(testing::Test::HasFailure() ? outcome::not_set_up : result));
        }
        close(ends[1]);
        to = channel(ends[0]);
        pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    }
    // The exit code, or the signal's number less than 0.
    int end()
    {
        pollfd p = {pidfd, POLLIN, 0};
        bool hangs = poll(&p, 1, watchdog_ms) != 1;
        if (hangs) {
            kill(pid, SIGKILL);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        pid = -1;
        close(pidfd);
        close(to.fd());
        return hangs ? -SIGALRM : WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
};

// Connects by worker addresses, after `change` has seen what is told to the other side.
inline bool meet(actor &a, const channel &test, const std::function<void(contact &)> &change = {})
{
    contact mine = a.about(), other;
    if (change) {
        change(mine);
    }
    return test.say(mine) && test.hear(&other) && a.connect(other) && (a.learn(other) || true);
}

// Hands the contacts over. False: one of them has ended.
inline bool introduce(const process &a, const process &b)
{
    contact of_a, of_b;
    return a.to.hear(&of_a) && b.to.hear(&of_b) && a.to.say(of_b) && b.to.say(of_a);
}

// The honest side: goes on until the test says that the other has ended.
inline outcome survive(actor &a, const channel &test)
{
    char gone;
    do {
        for (int i = 0; i < 16; ++i) {
            a.progress();
        }
        words().rounds.fetch_add(1, std::memory_order_relaxed);
    } while (!test.hear(&gone, true));
    outcome result = a.judge_end();
    outcome left = a.leave(true);
    return result == outcome::ok ? left : result;
}

} // namespace ucp_actor
