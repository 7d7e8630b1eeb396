// SPDX-License-Identifier: BSD-3-Clause
// An entity of the UCT conformance tests in a process of its own, which can be killed.
#pragma once

#include "fabtests-ext/conformance/common/uct_entity.h"

#include <functional>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace uct_conformance {

class peer_process {
  public:
    // Runs once the peer is connected to us. What it returns is for report().
    using body = std::function<bool(entity &self, const entity::address &us)>;

    peer_process(const std::string &transport, const entity::options &o, const body &run)
    {
        EXPECT_EQ(pipe(up_), 0);
        EXPECT_EQ(pipe(down_), 0);
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); // a test that crashes leaves no process behind
            live(transport, o, run);
            _exit(0);
        }
        close(up_[1]);
        close(down_[0]);
    }
    peer_process(const peer_process &) = delete;
    peer_process &operator=(const peer_process &) = delete;
    ~peer_process()
    {
        end();
        close(up_[0]);
        close(down_[1]);
    }

    // With kill -9.
    void end()
    {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
            pid_ = -1;
        }
    }

    pid_t pid() const { return pid_; }

    // Until go_on().
    void stop()
    {
        kill(pid_, SIGSTOP);
        waitpid(pid_, nullptr, WUNTRACED);
    }
    void go_on() { kill(pid_, SIGCONT); }

    entity::address where() { return take(up_[0]); }
    void tell(const entity &us) { give(down_[1], us.where()); }
    // Blocks until the body has returned.
    bool report()
    {
        char result = 0;
        return read(up_[0], &result, 1) == 1 && result;
    }

  private:
    void live(const std::string &transport, const entity::options &o, const body &run)
    {
        entity self(transport, o);
        give(up_[1], self.where());
        entity::address us = take(down_[0]);
        self.connect(us);
        char result = run(self, us);
        if (write(up_[1], &result, 1) == 1) {
            pause();
        }
    }

    static void give(int fd, const entity::address &a)
    {
        for (const std::vector<char> *part : {&a.device, &a.iface}) {
            size_t size = part->size();
            EXPECT_EQ(write(fd, &size, sizeof(size)), static_cast<ssize_t>(sizeof(size)));
            EXPECT_EQ(write(fd, part->data(), size), static_cast<ssize_t>(size));
        }
    }

    static entity::address take(int fd)
    {
        entity::address a;
        for (std::vector<char> *part : {&a.device, &a.iface}) {
            size_t size = 0;
            EXPECT_EQ(read(fd, &size, sizeof(size)), static_cast<ssize_t>(sizeof(size)));
            part->resize(size);
            EXPECT_EQ(read(fd, part->data(), size), static_cast<ssize_t>(size));
        }
        return a;
    }

    pid_t pid_ = -1;
    int up_[2];
    int down_[2];
};

} // namespace uct_conformance
