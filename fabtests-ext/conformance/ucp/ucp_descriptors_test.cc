// SPDX-License-Identifier: BSD-3-Clause
//
// What endpoints over shared memory take of a process's descriptors.
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/common/sanitized.h"
#include "fabtests-ext/common/ucp_entity.h"

#include <csignal>
#include <cstdlib>
#include <dirent.h>
#include <string>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ucp_test;

namespace {

options over_sm()
{
    options o;
    o.tls = "sm,self";
    return o;
}

// Those of a kind.
size_t descriptors(const std::string &kind)
{
    size_t count = 0;
    DIR *all = opendir("/proc/self/fd");
    while (const dirent *entry = all ? readdir(all) : nullptr) {
        char target[256];
        ssize_t length = readlinkat(dirfd(all), entry->d_name, target, sizeof(target));
        count += length > 0 &&
                 std::string(target, static_cast<size_t>(length)).find(kind) != std::string::npos;
    }
    if (all) {
        closedir(all);
    }
    return count;
}

// A process with some workers, each of which receives one message. It ends when it is killed.
class process {
  public:
    explicit process(size_t workers)
    {
        int ends[2];
        EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            live(ends[1], workers);
        }
        close(ends[1]);
        for (size_t i = 0; i < workers; ++i) {
            std::vector<char> address(4096);
            ssize_t n = recv(ends[0], address.data(), address.size(), 0);
            address.resize(n > 0 ? static_cast<size_t>(n) : 0);
            addresses.push_back(std::move(address));
        }
        close(ends[0]);
    }
    process(const process &) = delete;
    process &operator=(const process &) = delete;
    ~process() { end(); }
    void end()
    {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
            pid_ = -1;
        }
    }

    std::vector<std::vector<char>> addresses;

  private:
    [[noreturn]] static void live(int fd, size_t count)
    {
        entity e(over_sm());
        std::vector<ucp_worker_h> workers;
        std::vector<ucs_status_ptr_t> receives;
        std::vector<uint64_t> words(count);
        for (size_t i = 0; i < count; ++i) {
            ucp_worker_params_t params = {};
            ucp_worker_h worker;
            ucp_address_t *address;
            size_t length;
            if (ucp_worker_create(e.context, &params, &worker) != UCS_OK ||
                ucp_worker_get_address(worker, &address, &length) != UCS_OK ||
                send(fd, address, length, MSG_NOSIGNAL) != static_cast<ssize_t>(length)) {
                _exit(1);
            }
            ucp_worker_release_address(worker, address);
            workers.push_back(worker);
            ucp_request_param_t param = {};
            receives.push_back(
                ucp_tag_recv_nbx(worker, &words[i], sizeof(words[i]), 7, UINT64_MAX, &param));
        }
        for (size_t i = 0; i < count; ++i) {
            while (ucp_request_check_status(receives[i]) == UCS_INPROGRESS) {
                for (ucp_worker_h worker : workers) {
                    ucp_worker_progress(worker);
                }
                usleep(100); // many such processes
            }
        }
        for (;;) {
            for (ucp_worker_h worker : workers) {
                ucp_worker_progress(worker);
            }
            usleep(1000);
        }
    }

    pid_t pid_;
};

TEST(ucp_descriptors, one_process_takes_one_watch)
{
    process peer(4);
    entity a(over_sm()), b(over_sm());
    errors seen;
    std::vector<ucp_ep_h> eps;
    size_t before = descriptors("pidfd");
    for (entity *e : {&a, &b}) {
        ucp_ep_h plain;
        ASSERT_EQ(UCS_OK, create_ep(*e, peer.addresses[3], &plain));
        EXPECT_EQ(descriptors("pidfd"), before + (e == &b)) << "without error handling";
        for (size_t i = 0; i < 3; ++i) {
            ucp_ep_h ep;
            ASSERT_EQ(UCS_OK, create_ep(*e, peer.addresses[i], &ep, &seen));
            EXPECT_EQ(descriptors("pidfd"), before + 1);
            eps.push_back(ep);
        }
    }
    peer.end();
    EXPECT_TRUE(run_until({&a, &b}, [&] { return seen.count == 6; }));
    run_for({&a, &b}, 0.1);
    EXPECT_EQ(6u, seen.count) << "one error for each endpoint";
    for (ucp_ep_h ep : eps) {
        wait({&a, &b}, close_nb(ep, true));
    }
    EXPECT_EQ(descriptors("pidfd"), before);
}

TEST(ucp_descriptors, a_thousand_peers_fit_in_the_usual_limit)
{
    constexpr size_t most_bells = 64, processes = 10;
    constexpr size_t each = sanitized ? 25 : 100; // their memory takes the sanitizers a minute
    rlimit before = {};
    ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
    rlimit usual = {.rlim_cur = 1024, .rlim_max = before.rlim_max};
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &usual));
    std::vector<std::unique_ptr<process>> peers;
    for (size_t i = 0; i < processes; ++i) {
        peers.push_back(std::make_unique<process>(each));
    }
    entity self(over_sm());
    errors seen;
    size_t none = open_files();
    uint64_t word = 1;
    for (auto &peer : peers) {
        for (const std::vector<char> &address : peer->addresses) {
            ucp_ep_h ep;
            ASSERT_EQ(UCS_OK, create_ep(self, address, &ep, &seen));
            ASSERT_EQ(UCS_OK, wait({&self}, send_nb(ep, &word, sizeof(word), 7)));
            ASSERT_EQ(UCS_OK, wait({&self}, flush_nb(ep)));
        }
    }
    EXPECT_LE(open_files(), none + most_bells + processes);
    rlimit after = {};
    EXPECT_EQ(0, getrlimit(RLIMIT_NOFILE, &after));
    EXPECT_EQ(usual.rlim_cur, after.rlim_cur) << "the limit is the program's";
    for (auto &peer : peers) {
        peer->end();
    }
    EXPECT_TRUE(run_until({&self}, [&] { return seen.count == processes * each; }));
    EXPECT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
}

} // namespace
