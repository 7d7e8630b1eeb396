// SPDX-License-Identifier: BSD-3-Clause
//
// A process with few descriptors, no files of any size, or no locked memory: every call returns its
// error, or works. Each limit has a process of its own, from one that has not touched the library.
// UCXLIKE_LIMITS=all tries every number of descriptors from 8 to 64.
#include "fabtests-ext/common/all_descriptors.h"
#include "fabtests-ext/common/sanitized.h"
#include "fabtests-ext/common/ucp_entity.h"
#include "fabtests-ext/common/ucp_pair.h"

#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace ucp_test;

// What a process was able to do before a call failed.
enum class reached : int { nothing = 1, context, workers, endpoint, messages, client, hangs = 99 };

struct holdings {
    ucp_context_h context = nullptr;
    ucp_worker_h workers[2] = {};
    ucp_listener_h listener = nullptr;
    ucp_ep_h ep = nullptr, client = nullptr;

    ~holdings()
    {
        close(client);
        close(ep);
        if (listener) {
            ucp_listener_destroy(listener);
        }
        for (ucp_worker_h w : workers) {
            if (w) {
                ucp_worker_destroy(w);
            }
        }
        if (context) {
            ucp_cleanup(context);
        }
    }
    template <class Done>
    bool until(Done &&done, std::chrono::seconds patience = std::chrono::seconds(100))
    {
        auto end = std::chrono::steady_clock::now() + patience;
        while (!done()) {
            for (ucp_worker_h w : workers) {
                ucp_worker_progress(w);
            }
            if (std::chrono::steady_clock::now() > end) {
                return false;
            }
        }
        return true;
    }
    // Whether it has ended, well or not.
    bool ends(ucs_status_ptr_t r)
    {
        if (!UCS_PTR_IS_PTR(r)) {
            return true;
        }
        bool over = until([&] { return ucp_request_check_status(r) != UCS_INPROGRESS; });
        ucp_request_free(r);
        return over;
    }
    // A peer that has no descriptor for its answer keeps the sender waiting until it has.
    bool ends_with_more_descriptors(ucs_status_ptr_t r)
    {
        auto over = [&] { return ucp_request_check_status(r) != UCS_INPROGRESS; };
        if (UCS_PTR_IS_PTR(r) && !until(over, std::chrono::seconds(3))) {
            rlimit files{};
            getrlimit(RLIMIT_NOFILE, &files);
            files.rlim_cur = files.rlim_max;
            setrlimit(RLIMIT_NOFILE, &files);
        }
        return ends(r);
    }
    void close(ucp_ep_h which)
    {
        if (which) {
            ends(close_nb(which, true));
        }
    }
};

bool open_workers(holdings &h, const char *tls)
{
    ucp_config_t *config = nullptr;
    if (ucp_config_read(nullptr, nullptr, &config) != UCS_OK) {
        return false;
    }
    (void)ucp_config_modify(config, "TLS", tls);
    (void)ucp_config_modify(config, "TCP_CONN_TIMEOUT", "1s"); // of a peer that cannot accept
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
    ucs_status_t status = ucp_init(&params, config, &h.context);
    ucp_config_release(config);
    if (status != UCS_OK) {
        h.context = nullptr;
        return false;
    }
    ucp_worker_params_t w = {};
    for (ucp_worker_h &one : h.workers) {
        if (ucp_worker_create(h.context, &w, &one) != UCS_OK) {
            one = nullptr;
            return false;
        }
    }
    return true;
}

bool connect_by_address(holdings &h, errors *seen)
{
    ucp_address_t *address = nullptr;
    size_t length = 0;
    if (ucp_worker_get_address(h.workers[1], &address, &length) != UCS_OK) {
        return false;
    }
    ucp_ep_params_t p = {};
    p.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    p.address = address;
    seen->watch(&p);
    ucs_status_t status = ucp_ep_create(h.workers[0], &p, &h.ep);
    ucp_worker_release_address(h.workers[1], address);
    if (status != UCS_OK) {
        h.ep = nullptr;
    }
    return h.ep;
}

// Of a small message and of one that is read by rendezvous.
bool send_messages(holdings &h, const errors &seen)
{
    for (size_t length : {size_t(8), size_t(300000)}) {
        std::vector<char> out = pattern(length), in(length);
        ucp_request_param_t p = {};
        ucs_status_ptr_t recv =
            ucp_tag_recv_nbx(h.workers[1], in.data(), length, 1, ~ucp_tag_t(0), &p);
        ucs_status_ptr_t send = ucp_tag_send_nbx(h.ep, out.data(), length, 1, &p);
        if (!h.ends_with_more_descriptors(send)) {
            _exit(static_cast<int>(reached::hangs));
        }
        if (UCS_PTR_IS_PTR(recv)) {
            bool came = h.until(
                [&] { return ucp_request_check_status(recv) != UCS_INPROGRESS || seen.count; });
            if (!came) {
                _exit(static_cast<int>(reached::hangs));
            }
            ucp_request_cancel(h.workers[1], recv);
            h.ends(recv);
        }
        if (seen.count) {
            return false;
        }
    }
    return true;
}

void listen_and_connect(holdings &h, errors *seen)
{
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ucp_listener_params_t p = {};
    p.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    p.sockaddr.addr = reinterpret_cast<sockaddr *>(&at);
    p.sockaddr.addrlen = sizeof(at);
    p.conn_handler.cb = [](ucp_conn_request_h request, void *arg) {
        (void)ucp_listener_reject(static_cast<holdings *>(arg)->listener, request);
    };
    p.conn_handler.arg = &h;
    if (ucp_listener_create(h.workers[1], &p, &h.listener) != UCS_OK) {
        h.listener = nullptr;
        return;
    }
    ucp_listener_attr_t attr = {};
    attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    if (ucp_listener_query(h.listener, &attr) != UCS_OK) {
        return;
    }
    ucp_ep_params_t e = {};
    e.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    e.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    e.sockaddr.addr = reinterpret_cast<sockaddr *>(&attr.sockaddr);
    e.sockaddr.addrlen = sizeof(at);
    seen->watch(&e);
    if (ucp_ep_create(h.workers[0], &e, &h.client) != UCS_OK) {
        h.client = nullptr;
    }
    // A listener without descriptors keeps its clients waiting, as one with a full backlog.
    for (int i = 0; i < 1000 && h.client && !seen->count; ++i) {
        ucp_worker_progress(h.workers[0]);
        ucp_worker_progress(h.workers[1]);
    }
}

int use_everything(const char *tls)
{
    reached at = reached::nothing;
    errors seen, refused;
    {
        holdings h;
        if (open_workers(h, tls)) {
            at = reached::workers;
            if (connect_by_address(h, &seen)) {
                at = send_messages(h, seen) ? reached::messages : reached::endpoint;
            }
            listen_and_connect(h, &refused);
        }
    }
    return static_cast<int>(at);
}

// The peer's endpoint, which answers, finds no descriptor until all that the process holds besides
// are closed.
int let_the_peer_wait(const char *tls)
{
    errors seen;
    holdings h;
    if (!open_workers(h, tls) || !connect_by_address(h, &seen)) {
        return static_cast<int>(reached::context);
    }
    uint64_t word = 1;
    ucp_request_param_t p = {};
    ucs_status_ptr_t send;
    {
        all_descriptors taken;
        send = ucp_tag_send_nbx(h.ep, &word, sizeof(word), 1, &p);
        for (int i = 0; i < 1000; ++i) {
            for (ucp_worker_h w : h.workers) {
                ucp_worker_progress(w);
            }
        }
    }
    ucp_tag_recv_info_t info;
    bool over = h.ends(send) && h.until([&] {
        return seen.count || ucp_tag_probe_nb(h.workers[1], 1, ~ucp_tag_t(0), 0, &info);
    });
    return static_cast<int>(!over        ? reached::hangs
                            : seen.count ? reached::endpoint
                                         : reached::messages);
}

struct limit {
    const char *name;
    int resource;
    rlim_t value;
};

class ucp_limits : public testing::TestWithParam<const char *> {
  protected:
    // How far a process gets.
    static reached run(const limit &l, int (*uses)(const char *tls) = use_everything)
    {
        SCOPED_TRACE(std::string(l.name) + " " + std::to_string(l.value));
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            dup2(open("/dev/null", O_WRONLY), STDERR_FILENO); // a file would be over the limit, too
            auto resource = static_cast<__rlimit_resource_t>(l.resource);
            rlimit most{};
            getrlimit(resource, &most);
            most.rlim_cur = l.value;
            if (resource != RLIMIT_NOFILE) {
                most.rlim_max = l.value;
            }
            setrlimit(resource, &most);
            _exit(uses(GetParam()));
        }
        int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
        pollfd p = {pidfd, POLLIN, 0};
        EXPECT_EQ(poll(&p, 1, 300000), 1) << "it hangs";
        kill(pid, SIGKILL);
        close(pidfd);
        int status = 0;
        waitpid(pid, &status, 0);
        EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
        EXPECT_NE(WEXITSTATUS(status), static_cast<int>(reached::hangs));
        return static_cast<reached>(WIFEXITED(status) ? WEXITSTATUS(status) : 0);
    }
};

TEST_P(ucp_limits, of_descriptors)
{
    const char *all = getenv("UCXLIKE_LIMITS");
    const rlim_t step = all && std::string(all) == "all" ? 1 : 3;
    for (rlim_t n = 8; n <= 64 && !HasFailure(); n += step) {
        run({"RLIMIT_NOFILE", RLIMIT_NOFILE, n});
    }
    EXPECT_EQ(run({"RLIMIT_NOFILE", RLIMIT_NOFILE, 128}), reached::messages);
}

// Over sockets the sender may lose its patience, and so it may over an imitation, which has sockets
// below.
TEST_P(ucp_limits, a_peer_without_descriptors_answers_when_it_has_some)
{
    if (address_sanitized) {
        GTEST_SKIP() << "the sanitizer asks a pipe whether an object is there";
    }
    reached got = run({"RLIMIT_NOFILE", RLIMIT_NOFILE, 128}, let_the_peer_wait);
    std::string tls = GetParam();
    bool may_fail = tls != "all" && !tls.starts_with("sm") && !tls.starts_with("ofi_shm");
    EXPECT_TRUE(got == reached::messages || (may_fail && got == reached::endpoint))
        << static_cast<int>(got);
}

TEST_P(ucp_limits, of_the_size_of_files)
{
    for (rlim_t n : {0, 1, 4096, 100000}) {
        run({"RLIMIT_FSIZE", RLIMIT_FSIZE, n});
    }
}

TEST_P(ucp_limits, of_locked_memory)
{
    EXPECT_EQ(run({"RLIMIT_MEMLOCK", RLIMIT_MEMLOCK, 0}), reached::messages);
}

UCP_TEST_OVER(ucp_limits, "sm,self", "tcp,self", "ofi_shm,self", "ofi_shm,tcp,self", "all");

} // namespace
