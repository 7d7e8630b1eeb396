// SPDX-License-Identifier: BSD-3-Clause
// kill -9 of one of two connected processes at any moment: the other one gets exactly one error for
// each of its endpoints within the deadline, every request completes, closing finishes, and nothing
// is left in /dev/shm. The test process itself only starts, kills and judges; client and server are
// forked from it before it has touched the library.
#include <ucp/api/ucp.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <arpa/inet.h>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <initializer_list>
#include <poll.h>
#include <random>
#include <set>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;
using std::chrono::milliseconds;

// From the kill to the error callback, and for a whole round, on a machine with much else to do.
constexpr milliseconds error_deadline{30000};
constexpr milliseconds watchdog{120000};

// Exit codes of a survivor; each is one way to break the promise.
enum outcome : int {
    ok = 0,
    setup_failed = 10,
    no_error_in_time,
    more_than_one_error,
    request_never_completed,
    close_never_completed,
    bad_data,
};

struct pipe_pair {
    pipe_pair()
    {
        if (pipe2(fds, O_CLOEXEC | O_NONBLOCK)) {
            abort();
        }
    }
    ~pipe_pair()
    {
        close(fds[0]);
        close(fds[1]);
    }
    int fds[2];
};

// One side of the connection: keeps a few messages of mixed sizes under way in both directions.
class side {
  public:
    explicit side(unsigned seed) : random_(seed) {}

    bool open()
    {
        ucp_params_t params = {};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_TAG;
        if (ucp_init(&params, nullptr, &context_) != UCS_OK) {
            return false;
        }
        ucp_worker_params_t worker_params = {};
        return ucp_worker_create(context_, &worker_params, &worker_) == UCS_OK;
    }

    // Writes the port to each of fds as soon as it is known.
    bool listen(std::initializer_list<int> fds)
    {
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ucp_listener_params_t params = {};
        params.field_mask =
            UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
        params.sockaddr = {reinterpret_cast<sockaddr *>(&address), sizeof(address)};
        params.conn_handler = {on_request, this};
        if (ucp_listener_create(worker_, &params, &listener_) != UCS_OK) {
            return false;
        }
        ucp_listener_attr_t attr = {};
        attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
        if (ucp_listener_query(listener_, &attr) != UCS_OK) {
            return false;
        }
        uint16_t port = reinterpret_cast<sockaddr_in *>(&attr.sockaddr)->sin_port;
        for (int fd : fds) {
            if (write(fd, &port, sizeof(port)) != sizeof(port)) {
                return false;
            }
        }
        return true;
    }

    bool connect(uint16_t port)
    {
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = port;
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
        params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
        params.sockaddr = {reinterpret_cast<sockaddr *>(&address), sizeof(address)};
        return create_ep(params);
    }

    // Traffic until fd says when the peer was killed, then the promise is checked.
    outcome run(int fd)
    {
        post_receives();
        clock_type::time_point killed;
        while (read(fd, &killed, sizeof(killed)) != sizeof(killed)) {
            step();
        }
        while (ep_ && errors_ == 0) {
            step();
            if (clock_type::now() > killed + error_deadline) {
                return no_error_in_time;
            }
        }
        outcome result = drain(killed);
        return bad_data_ ? bad_data : result;
    }

    void close_all()
    {
        if (listener_) {
            ucp_listener_destroy(listener_);
        }
        ucp_worker_destroy(worker_);
        ucp_cleanup(context_);
    }

  private:
    static constexpr size_t window = 4;
    static constexpr size_t max_size = 1 << 20;

    struct slot {
        std::vector<unsigned char> buffer = std::vector<unsigned char>(max_size);
        void *request = nullptr;
        bool done = true;
    };

    bool create_ep(ucp_ep_params_t &params)
    {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler = {on_error, this};
        return ucp_ep_create(worker_, &params, &ep_) == UCS_OK;
    }

    static void on_request(ucp_conn_request_h request, void *arg)
    {
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
        params.conn_request = request;
        // The client may be dead by now, and then there is no endpoint.
        static_cast<side *>(arg)->create_ep(params);
    }

    static void on_error(void *arg, ucp_ep_h, ucs_status_t) { ++static_cast<side *>(arg)->errors_; }

    static void on_sent(void *, ucs_status_t, void *user_data)
    {
        static_cast<slot *>(user_data)->done = true;
    }

    static void on_received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info,
                            void *user_data)
    {
        auto *self = static_cast<side *>(user_data);
        for (slot &s : self->receives_) {
            if (s.request == request) {
                s.done = true;
                if (status == UCS_OK) {
                    self->check(s, info->length);
                }
            }
        }
    }

    void check(const slot &s, size_t length)
    {
        bad_data_ |= length > max_size || s.buffer[0] != static_cast<unsigned char>(length) ||
                     s.buffer[length - 1] != static_cast<unsigned char>(length);
    }

    void step()
    {
        ucp_worker_progress(worker_);
        if (ep_ && errors_ == 0) {
            send_some();
        }
        if (errors_ == 0) {
            post_receives();
        }
    }

    void send_some()
    {
        for (slot &s : sends_) {
            if (!s.done) {
                continue;
            }
            release(s);
            size_t length = size_t(1) << std::uniform_int_distribution<>(0, 20)(random_);
            memset(s.buffer.data(), static_cast<int>(length & 0xff), length);
            ucp_request_param_t param = {};
            param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
            param.cb.send = on_sent;
            param.user_data = &s;
            s.done = false;
            void *request = ucp_tag_send_nbx(ep_, s.buffer.data(), length, 1, &param);
            if (UCS_PTR_IS_PTR(request)) {
                s.request = request;
            } else {
                s.done = true;
            }
        }
    }

    void post_receives()
    {
        for (slot &s : receives_) {
            if (!s.done) {
                continue;
            }
            release(s);
            ucp_request_param_t param = {};
            param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
            param.cb.recv = on_received;
            param.user_data = this;
            ucp_tag_recv_info_t info;
            param.op_attr_mask |= UCP_OP_ATTR_FIELD_RECV_INFO;
            param.recv_info.tag_info = &info;
            s.done = false;
            void *request = ucp_tag_recv_nbx(worker_, s.buffer.data(), max_size, 0, 0, &param);
            if (UCS_PTR_IS_PTR(request)) {
                s.request = request;
            } else {
                s.done = true;
                if (!UCS_PTR_IS_ERR(request)) {
                    check(s, info.length);
                }
            }
        }
    }

    static void release(slot &s)
    {
        if (s.request) {
            ucp_request_free(s.request);
            s.request = nullptr;
        }
    }

    template <class Done>
    bool progress_until(clock_type::time_point deadline, Done done)
    {
        while (!done()) {
            ucp_worker_progress(worker_);
            if (clock_type::now() > deadline) {
                return false;
            }
        }
        return true;
    }

    static bool all_done(const slot (&slots)[window])
    {
        for (const slot &s : slots) {
            if (!s.done) {
                return false;
            }
        }
        return true;
    }

    outcome drain(clock_type::time_point killed)
    {
        auto deadline = killed + 2 * error_deadline;
        if (!progress_until(deadline, [&] { return all_done(sends_); })) {
            return request_never_completed;
        }
        // What a second callback would need to show itself.
        for (int i = 0; i < 10000; ++i) {
            ucp_worker_progress(worker_);
        }
        if (errors_ > 1) {
            return more_than_one_error;
        }
        for (slot &s : receives_) {
            if (!s.done) {
                ucp_request_cancel(worker_, s.request);
            }
        }
        if (!progress_until(deadline, [&] { return all_done(receives_); })) {
            return request_never_completed;
        }
        for (size_t i = 0; i < window; ++i) {
            release(sends_[i]);
            release(receives_[i]);
        }
        return close_ep(deadline);
    }

    outcome close_ep(clock_type::time_point deadline)
    {
        if (!ep_) {
            return ok;
        }
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        void *request = ucp_ep_close_nbx(ep_, &param);
        if (!UCS_PTR_IS_PTR(request)) {
            return ok;
        }
        bool closed = progress_until(
            deadline, [&] { return ucp_request_check_status(request) != UCS_INPROGRESS; });
        ucp_request_free(request);
        return closed ? ok : close_never_completed;
    }

    std::mt19937 random_;
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    ucp_listener_h listener_ = nullptr;
    ucp_ep_h ep_ = nullptr;
    int errors_ = 0;
    bool bad_data_ = false;
    slot sends_[window];
    slot receives_[window];
};

int finish(side &s, outcome result)
{
    if (result == ok) {
        s.close_all();
    }
    return result;
}

int server_main(unsigned seed, std::initializer_list<int> port_fds, int killed_fd)
{
    side s(seed);
    if (!s.open() || !s.listen(port_fds)) {
        return setup_failed;
    }
    return finish(s, s.run(killed_fd));
}

int client_main(unsigned seed, int port_fd, int killed_fd)
{
    side s(seed);
    uint16_t port;
    pollfd wait = {.fd = port_fd, .events = POLLIN, .revents = 0};
    if (!s.open() || poll(&wait, 1, static_cast<int>(watchdog.count())) != 1 ||
        read(port_fd, &port, sizeof(port)) != sizeof(port) || !s.connect(port)) {
        return setup_failed;
    }
    return finish(s, s.run(killed_fd));
}

template <class Main>
pid_t start(Main main)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // a test that is killed leaves no process behind
        _exit(main());
    }
    return pid;
}

// Waits for a child without polling; kills it when it hangs.
int wait_for(pid_t pid)
{
    int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    pollfd exited = {.fd = pidfd, .events = POLLIN, .revents = 0};
    bool hangs = poll(&exited, 1, static_cast<int>(watchdog.count())) != 1;
    close(pidfd);
    if (hangs) {
        kill(pid, SIGKILL);
    }
    int status;
    waitpid(pid, &status, 0);
    return hangs ? -SIGALRM : WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Files in /dev/shm whose name has the number of one of these processes between its dashes or
// colons.
std::set<std::string> shm_files_of(std::set<pid_t> pids)
{
    std::set<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator("/dev/shm")) {
        std::string name = entry.path().filename();
        for (size_t at = 0; at != std::string::npos; at = name.find_first_of("-:", at)) {
            at += at != 0 || name[0] == '-';
            if (pids.count(atoi(name.c_str() + at))) {
                names.insert(name);
            }
        }
    }
    return names;
}

struct kill_case {
    const char *tls;
    bool kill_server;
};

class kill_anytime : public ::testing::TestWithParam<kill_case> {
  protected:
    void round(unsigned seed)
    {
        SCOPED_TRACE("seed " + std::to_string(seed));
        std::mt19937 random(seed);
        pipe_pair port, ready, killed;
        pid_t server = start([&] {
            return server_main(seed, {port.fds[1], ready.fds[1]}, killed.fds[0]);
        });
        pid_t client = start([&] { return client_main(seed + 1, port.fds[0], killed.fds[0]); });
        pid_t victim = GetParam().kill_server ? server : client;
        pid_t survivor = GetParam().kill_server ? client : server;

        // The client always finds the listener; whatever comes after that may be hit.
        pollfd listening = {.fd = ready.fds[0], .events = POLLIN, .revents = 0};
        ASSERT_EQ(poll(&listening, 1, static_cast<int>(watchdog.count())), 1);
        usleep(std::uniform_int_distribution<>(0, 200000)(random));
        kill(victim, SIGKILL);
        waitpid(victim, nullptr, 0);
        auto now = clock_type::now();
        ASSERT_EQ(write(killed.fds[1], &now, sizeof(now)), static_cast<ssize_t>(sizeof(now)));
        EXPECT_EQ(wait_for(survivor), ok);
        EXPECT_EQ(shm_files_of({server, client}), std::set<std::string>{});
    }
};

TEST_P(kill_anytime, survivor_gets_one_error_per_endpoint_fixed_seeds)
{
    setenv("UCX_TLS", GetParam().tls, 1);
    for (unsigned seed = 1; seed <= 8 && !HasFailure(); ++seed) {
        round(seed * 100);
    }
}

TEST_P(kill_anytime, survivor_gets_one_error_per_endpoint_fresh_seeds)
{
    setenv("UCX_TLS", GetParam().tls, 1);
    std::random_device fresh;
    for (int i = 0; i < 4 && !HasFailure(); ++i) {
        round(fresh());
    }
}

INSTANTIATE_TEST_SUITE_P(transports, kill_anytime,
                         ::testing::Values(kill_case{"ofi_shm,tcp", true},
                                           kill_case{"ofi_shm,tcp", false},
                                           kill_case{"sm,tcp", true}, kill_case{"sm,tcp", false},
                                           kill_case{"tcp", true}, kill_case{"tcp", false}),
                         [](const auto &info) {
                             std::string name = info.param.tls;
                             std::replace(name.begin(), name.end(), ',', '_');
                             return name + (info.param.kill_server ? "_server" : "_client");
                         });

} // namespace
