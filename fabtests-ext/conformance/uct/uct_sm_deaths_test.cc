// SPDX-License-Identifier: BSD-3-Clause
// Ways in which a peer of `sm` ends or seems to: it calls exec, it aborts and is not waited for,
// it dumps core for a long time, it is stopped. One error for each endpoint, and none for a peer
// that is only stopped.
#include "fabtests-ext/conformance/common/uct_entity.h"
#include "fabtests-ext/conformance/common/uct_peer_process.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <poll.h>
#include <sys/fanotify.h>
#include <sys/resource.h>

namespace uct_conformance {
namespace {

std::string core_pattern()
{
    std::string pattern;
    std::ifstream("/proc/sys/kernel/core_pattern") >> pattern;
    return pattern;
}

class uct_sm_deaths : public testing::Test {
  protected:
    entity &self()
    {
        if (!self_) {
            self_.emplace("sm", entity::options{});
        }
        return *self_;
    }

    void connect(peer_process &to)
    {
        ep_ = self().connect(to.where());
        ASSERT_NE(ep_, nullptr);
        to.tell(self());
    }

    // Until the peer counts as dead.
    bool has_failed()
    {
        auto end = std::chrono::steady_clock::now() + patience;
        while (self().errors.empty() && std::chrono::steady_clock::now() < end) {
            uct_worker_progress(self().worker);
        }
        return self().errors.size() == 1 && self().errors[0].first == ep_ &&
               self().errors[0].second == UCS_ERR_CONNECTION_RESET;
    }

    uct_ep_h ep_ = nullptr;

  private:
    // Made after the peers: it has a thread, and a process with threads does not fork under the
    // thread sanitizer.
    std::optional<entity> self_;
};

TEST_F(uct_sm_deaths, a_peer_that_calls_exec_is_dead)
{
    peer_process execs("sm", {}, [](entity &, const entity::address &) {
        execl("/bin/sleep", "sleep", "1000", nullptr);
        return false;
    });
    connect(execs);
    EXPECT_TRUE(has_failed());
    EXPECT_EQ(kill(execs.pid(), 0), 0) << "the process itself has ended";
    EXPECT_NE(uct_ep_am_short(ep_, 1, 0, nullptr, 0), UCS_OK);
}

TEST_F(uct_sm_deaths, a_peer_that_aborts_is_dead)
{
    peer_process aborts("sm", {}, [](entity &, const entity::address &) -> bool {
        rlimit none = {};
        setrlimit(RLIMIT_CORE, &none);
        abort();
    });
    connect(aborts);
    EXPECT_TRUE(has_failed()) << "its parent has not waited for it yet";
}

// The kernel asks the test whether the core file may be opened, and gets no answer.
TEST_F(uct_sm_deaths, a_peer_that_dumps_core_slowly_is_dead)
{
    if (core_pattern() != "core") {
        GTEST_SKIP() << "kernel.core_pattern is not a plain file name: " << core_pattern();
    }
    char folder[] = "/tmp/uct_sm_deaths.XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    int questions = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);
    if (questions < 0 || fanotify_mark(questions, FAN_MARK_ADD, FAN_OPEN_PERM | FAN_EVENT_ON_CHILD,
                                       AT_FDCWD, folder) != 0) {
        std::string reason = strerror(errno);
        rmdir(folder);
        GTEST_SKIP() << "fanotify, which needs CAP_SYS_ADMIN: " << reason;
    }
    {
        peer_process dumps("sm", {}, [&](entity &, const entity::address &) -> bool {
            close(questions);
            rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
            if (chdir(folder) != 0 || setrlimit(RLIMIT_CORE, &all) != 0) {
                return false;
            }
            abort();
        });
        connect(dumps);
        pollfd asked = {questions, POLLIN, 0};
        EXPECT_EQ(poll(&asked, 1, patience_ms), 1) << "it wants to write its core file";
        EXPECT_TRUE(has_failed());
        EXPECT_EQ(waitpid(dumps.pid(), nullptr, WNOHANG), 0) << "it has not ended";
        close(questions); // answers yes
    }
    std::filesystem::remove_all(folder);
}

// The peer's messages before its death come first, and another peer notices nothing.
TEST_F(uct_sm_deaths, what_was_sent_comes_before_the_error)
{
    peer_process execs("sm", {}, [](entity &peer, const entity::address &) {
        for (uint64_t n = 0; n < 5; ++n) {
            if (uct_ep_am_short(peer.eps[0], 1, n, nullptr, 0) != UCS_OK) {
                return false;
            }
        }
        execl("/bin/sleep", "sleep", "1000", nullptr);
        return false;
    });
    peer_process stays("sm", {}, [](entity &, const entity::address &) { return true; });
    uct_ep_h other = self().connect(stays.where());
    connect(execs);
    EXPECT_TRUE(has_failed());
    EXPECT_EQ(self().received.size(), 5u);
    EXPECT_EQ(uct_ep_am_short(other, 1, 0, nullptr, 0), UCS_OK);
}

// Death is found by looks: several of them see the stopped peer, as the dead one beside it tells.
TEST_F(uct_sm_deaths, a_stopped_peer_is_not_dead)
{
    peer_process stops("sm", {}, [](entity &peer, const entity::address &) {
        while (peer.received.empty()) {
            uct_worker_progress(peer.worker);
        }
        return peer.received[0].data.size() == sizeof(uint64_t);
    });
    std::vector<std::unique_ptr<peer_process>> die;
    for (unsigned n = 0; n < 3; ++n) {
        die.push_back(std::make_unique<peer_process>(
            "sm", entity::options{}, [](entity &, const entity::address &) { return true; }));
    }
    connect(stops);
    stops.stop();
    for (unsigned n = 0; n < 3; ++n) {
        uct_ep_h to_dead = self().connect(die[n]->where());
        die[n]->end();
        auto end = std::chrono::steady_clock::now() + patience;
        while (self().errors.size() <= n && std::chrono::steady_clock::now() < end) {
            uct_worker_progress(self().worker);
        }
        ASSERT_EQ(self().errors.size(), n + 1);
        EXPECT_EQ(self().errors[n].first, to_dead);
    }
    EXPECT_EQ(uct_ep_am_short(ep_, 1, 7, nullptr, 0), UCS_OK);
    stops.go_on();
    EXPECT_TRUE(stops.report());
}

} // namespace
} // namespace uct_conformance
