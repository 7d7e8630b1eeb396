// SPDX-License-Identifier: BSD-3-Clause
//
// What an application sees of a connection's life, between two processes and through the public
// ucp.h alone: one accepted, with tag messages both ways; one rejected; one to a port where none
// listens; one whose server is killed. Builds against any UCX, so the same program shows both.
// Read run_accepted() first. ./quickstart run prints its table.

#include <ucp/api/ucp.h>

#include <arpa/inet.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using steady = std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds(60);     // for anything that ought to work
constexpr auto settle = std::chrono::milliseconds(300); // in which a second error would show

constexpr ucp_tag_t to_server = 1;
constexpr ucp_tag_t to_client = 2;

// Short, eager and rendezvous of every transport are among these.
const std::vector<size_t> message_sizes = {0,    1,    8,     100,     1000,
                                           4096, 8192, 65536, 1 << 20, 16 << 20};

enum class server_mode { accept, reject };

void check(ucs_status_t status, const std::string &what)
{
    if (status != UCS_OK) {
        throw std::runtime_error(what + ": " + ucs_status_string(status));
    }
}

void require(bool condition, const std::string &what)
{
    if (!condition) {
        throw std::runtime_error(what);
    }
}

std::vector<unsigned char> pattern(size_t size, ucp_tag_t tag)
{
    std::vector<unsigned char> data(size);
    for (size_t i = 0; i < size; ++i) {
        data[i] = static_cast<unsigned char>((i * 131 + i / 251 + tag * 17 + size) & 0xff);
    }
    return data;
}

// A context with one worker. Both sides use one, each in its own process.
class peer {
  public:
    peer()
    {
        ucp_params_t params = {};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_TAG;
        check(ucp_init(&params, nullptr, &context_), "ucp_init");
        ucp_worker_params_t worker_params = {};
        worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
        check(ucp_worker_create(context_, &worker_params, &worker), "ucp_worker_create");
    }

    ~peer()
    {
        ucp_worker_destroy(worker);
        ucp_cleanup(context_);
    }

    peer(const peer &) = delete;
    peer &operator=(const peer &) = delete;

    // Progress until `done` or until the time is over; says which.
    bool progress_until(const std::function<bool()> &done, steady::duration limit)
    {
        auto end = steady::now() + limit;
        while (!done()) {
            if (ucp_worker_progress(worker) == 0 && steady::now() > end) {
                return done();
            }
        }
        return true;
    }

    ucs_status_t wait(ucs_status_ptr_t request, const std::string &what)
    {
        if (!UCS_PTR_IS_PTR(request)) {
            return UCS_PTR_STATUS(request);
        }
        auto finished = [&] { return ucp_request_check_status(request) != UCS_INPROGRESS; };
        bool in_time = progress_until(finished, patience);
        ucs_status_t status = in_time ? ucp_request_check_status(request) : UCS_ERR_TIMED_OUT;
        ucp_request_free(request);
        require(in_time, what + " did not complete");
        return status;
    }

    void send(ucp_ep_h ep, ucp_tag_t tag, size_t size)
    {
        auto data = pattern(size, tag);
        ucp_request_param_t param = {};
        check(wait(ucp_tag_send_nbx(ep, data.data(), size, tag, &param), "send"),
              "send of " + std::to_string(size));
    }

    void receive(ucp_tag_t tag, size_t size)
    {
        std::vector<unsigned char> data(size, 0xee);
        ucp_request_param_t param = {};
        auto request = ucp_tag_recv_nbx(worker, data.data(), size, tag, ~ucp_tag_t(0), &param);
        check(wait(request, "receive"), "receive of " + std::to_string(size));
        require(data == pattern(size, tag), "wrong data in " + std::to_string(size) + " bytes");
    }

    void close(ucp_ep_h ep, bool force)
    {
        ucp_request_param_t param = {};
        if (force) {
            param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
            param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        }
        wait(ucp_ep_close_nbx(ep, &param), "close"); // the peer may have closed before: no matter
    }

    ucp_worker_h worker = nullptr;

  private:
    ucp_context_h context_ = nullptr;
};

// An endpoint and the errors it was told of; the API promises one at most.
struct connection {
    ucp_ep_h ep = nullptr;
    int errors = 0;
    ucs_status_t last_error = UCS_OK;
    std::string transports = "none: it never connected";

    void create(peer &self, ucp_ep_params_t &params)
    {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.cb = [](void *arg, ucp_ep_h, ucs_status_t status) {
            auto *conn = static_cast<connection *>(arg);
            conn->errors++;
            conn->last_error = status;
        };
        params.err_handler.arg = this;
        check(ucp_ep_create(self.worker, &params, &ep), "ucp_ep_create");
    }

    // The names stay valid with the endpoint, so they are copied. 1.13 had no such query.
    void query_transports()
    {
#if UCP_API_VERSION >= UCP_VERSION(1, 14)
        ucp_transport_entry_t entries[16];
        ucp_ep_attr_t attr = {};
        attr.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
        attr.transports.entries = entries;
        attr.transports.num_entries = 16;
        attr.transports.entry_size = sizeof(entries[0]);
        if (ucp_ep_query(ep, &attr) != UCS_OK || attr.transports.num_entries == 0) {
            return;
        }
        transports.clear();
        for (unsigned i = 0; i < attr.transports.num_entries; ++i) {
            transports += (i ? " " : "") + std::string(entries[i].transport_name) + "/" +
                          entries[i].device_name;
        }
#endif
    }
};

sockaddr_in socket_address(const std::string &host, uint16_t port)
{
    sockaddr_in addr = {};
    addr.sin_family = AF_INET;
    addr.sin_port = htons(port);
    require(inet_pton(AF_INET, host.c_str(), &addr.sin_addr) == 1, "not an IPv4 address: " + host);
    return addr;
}

// ---- the server, a process of its own
// -------------------------------------------------------------

uint16_t listen_on(peer &self, const std::string &host, ucp_conn_request_h *request,
                   ucp_listener_h *listener)
{
    auto addr = socket_address(host, 0);
    ucp_listener_params_t params = {};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr.addr = reinterpret_cast<sockaddr *>(&addr);
    params.sockaddr.addrlen = sizeof(addr);
    params.conn_handler.cb = [](ucp_conn_request_h arrived, void *arg) {
        *static_cast<ucp_conn_request_h *>(arg) = arrived;
    };
    params.conn_handler.arg = request;
    check(ucp_listener_create(self.worker, &params, listener), "ucp_listener_create");
    ucp_listener_attr_t attr = {};
    attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    check(ucp_listener_query(*listener, &attr), "ucp_listener_query");
    return ntohs(reinterpret_cast<sockaddr_in *>(&attr.sockaddr)->sin_port);
}

void serve_connection(peer &self, ucp_conn_request_h request)
{
    connection conn;
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    params.conn_request = request;
    conn.create(self, params);
    for (size_t size : message_sizes) {
        self.receive(to_server, size);
        self.send(conn.ep, to_client, size);
    }
    // The client ends the connection, or the test ends this process.
    self.progress_until([&] { return conn.errors > 0; }, patience);
    self.close(conn.ep, true);
}

// Serves one client, then ends. The port goes to the parent through the pipe.
void run_server(const std::string &host, server_mode mode, int port_fd)
{
    peer self;
    ucp_conn_request_h request = nullptr;
    ucp_listener_h listener = nullptr;
    uint16_t port = listen_on(self, host, &request, &listener);
    require(write(port_fd, &port, sizeof(port)) == sizeof(port), "write of the port");
    close(port_fd);
    bool arrived = self.progress_until([&] { return request != nullptr; }, patience);
    require(arrived, "no connection request arrived");
    if (mode == server_mode::accept) {
        serve_connection(self, request);
    } else {
        check(ucp_listener_reject(listener, request), "ucp_listener_reject");
        self.progress_until([] { return false; }, settle); // until the answer is on its way
    }
    ucp_listener_destroy(listener);
}

class server_process {
  public:
    server_process(const std::string &host, server_mode mode)
    {
        int fds[2];
        require(pipe(fds) == 0, "pipe");
        pid_ = fork();
        require(pid_ >= 0, "fork");
        if (pid_ == 0) {
            close(fds[0]);
            _exit(child(host, mode, fds[1]));
        }
        close(fds[1]);
        bool told = read(fds[0], &port, sizeof(port)) == sizeof(port);
        close(fds[0]);
        require(told, "the server did not start");
    }

    ~server_process()
    {
        if (pid_ > 0) {
            kill_now();
        }
    }

    server_process(const server_process &) = delete;
    server_process &operator=(const server_process &) = delete;

    void kill_now()
    {
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }

    // The server must have been content, too.
    void join()
    {
        int status = 0;
        waitpid(pid_, &status, 0);
        pid_ = -1;
        require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the server reported a failure");
    }

    uint16_t port = 0;

  private:
    static int child(const std::string &host, server_mode mode, int port_fd)
    {
        prctl(PR_SET_PDEATHSIG, SIGKILL); // a demo that is interrupted leaves no server
        try {
            run_server(host, mode, port_fd);
            return 0;
        } catch (const std::exception &e) {
            fprintf(stderr, "server: %s\n", e.what());
            return 1;
        }
    }

    pid_t pid_ = -1;
};

// ---- the client: one function for each way that a connection can go
// -------------------------------------

struct outcome {
    std::string text;
    std::string transports;
};

void connect(peer &self, const std::string &host, uint16_t port, connection &conn)
{
    auto addr = socket_address(host, port);
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr.addr = reinterpret_cast<sockaddr *>(&addr);
    params.sockaddr.addrlen = sizeof(addr);
    conn.create(self, params);
    conn.query_transports();
}

void exchange_messages(peer &self, connection &conn)
{
    for (size_t size : message_sizes) {
        self.send(conn.ep, to_server, size);
        self.receive(to_client, size);
    }
    conn.query_transports();
}

// Waits for the error, then a little longer: it must stay the only one.
std::string one_error(peer &self, connection &conn)
{
    auto start = steady::now();
    require(self.progress_until([&] { return conn.errors > 0; }, patience), "no error in time");
    auto after = std::chrono::duration_cast<std::chrono::milliseconds>(steady::now() - start);
    self.progress_until([] { return false; }, settle);
    require(conn.errors == 1, std::to_string(conn.errors) + " errors instead of one");
    return std::string("one error after ") + std::to_string(after.count()) +
           " ms: " + ucs_status_string(conn.last_error);
}

outcome run_accepted(const std::string &host)
{
    server_process server(host, server_mode::accept);
    peer self;
    connection conn;
    connect(self, host, server.port, conn);
    exchange_messages(self, conn);
    self.close(conn.ep, false);
    require(conn.errors == 0, "an error on a connection that was closed in order");
    server.join();
    return {std::to_string(message_sizes.size()) + " tag messages each way, up to " +
                std::to_string(message_sizes.back() >> 20) + " MiB, verified",
            conn.transports};
}

outcome run_rejected(const std::string &host)
{
    server_process server(host, server_mode::reject);
    peer self;
    connection conn;
    connect(self, host, server.port, conn);
    auto text = one_error(self, conn);
    require(conn.last_error == UCS_ERR_REJECTED, "not UCS_ERR_REJECTED: " + text);
    self.close(conn.ep, true);
    server.join();
    return {text, conn.transports};
}

// A port that was free a moment ago.
uint16_t unused_port(const std::string &host)
{
    auto addr = socket_address(host, 0);
    socklen_t length = sizeof(addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool found = fd >= 0 && bind(fd, reinterpret_cast<sockaddr *>(&addr), length) == 0 &&
                 getsockname(fd, reinterpret_cast<sockaddr *>(&addr), &length) == 0;
    close(fd);
    require(found, "no free port");
    return ntohs(addr.sin_port);
}

outcome run_nobody_listens(const std::string &host)
{
    peer self;
    connection conn;
    connect(self, host, unused_port(host), conn);
    auto text = one_error(self, conn);
    self.close(conn.ep, true);
    return {text, conn.transports};
}

outcome run_server_killed(const std::string &host)
{
    server_process server(host, server_mode::accept);
    peer self;
    connection conn;
    connect(self, host, server.port, conn);
    exchange_messages(self, conn);
    require(conn.errors == 0, "an error before the kill");
    server.kill_now();
    auto text = one_error(self, conn);
    self.close(conn.ep, true);
    return {text, conn.transports};
}

struct scenario {
    const char *name;
    outcome (*run)(const std::string &host);
};

constexpr scenario scenarios[] = {
    {"accepted", run_accepted},
    {"rejected", run_rejected},
    {"nobody listens", run_nobody_listens},
    {"server killed", run_server_killed},
};

// Each in a process of its own: a library that hangs or dies in one must not take the others along.
bool report(const scenario &test, const std::string &host)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(300);
        try {
            auto result = test.run(host);
            printf("%-15s ok      %-55s %s\n", test.name, result.text.c_str(),
                   result.transports.c_str());
            fflush(stdout);
            _exit(0);
        } catch (const std::exception &e) {
            printf("%-15s FAILED  %s\n", test.name, e.what());
            fflush(stdout);
            _exit(1);
        }
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFSIGNALED(status)) {
        printf("%-15s FAILED  ended by signal %d\n", test.name, WTERMSIG(status));
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace

// Usage: ucp_cm_demo [IPV4-ADDRESS]
int main(int argc, char **argv)
{
    std::string host = argc > 1 ? argv[1] : "127.0.0.1";
    int failed = 0;
    printf("%-15s %-7s %-55s %s\n", "connection", "", "what the client saw", "carried by");
    for (const auto &test : scenarios) {
        failed += report(test, host) ? 0 : 1;
    }
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
