// SPDX-License-Identifier: BSD-3-Clause
//
// What an idle endpoint costs in memory: a client connects many endpoints to one worker of another
// process, by address and through a listener, sends one message on each, and looks at its heap and
// its resident pages before and after: one process's part of a connection. The last line is what an
// endpoint of libfabric's tcp provider takes by itself, of which each client-server endpoint has
// one. usage: ep_memory [transports [endpoints]]
#include "fabtests-ext/benchmarks/core_ep.h"

#include <ucp/api/ucp.h>

#include <arpa/inet.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <string>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

struct side {
    side()
    {
        ucp_params_t params = {};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_TAG;
        check(ucp_init(&params, nullptr, &context), "ucp_init");
        ucp_worker_params_t worker_params = {};
        check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
    }

    void finish(ucs_status_ptr_t ptr, const char *what)
    {
        ucs_status_t status = UCS_PTR_STATUS(ptr);
        if (UCS_PTR_IS_PTR(ptr)) {
            while ((status = ucp_request_check_status(ptr)) == UCS_INPROGRESS) {
                ucp_worker_progress(worker);
            }
            ucp_request_free(ptr);
        }
        check(status, what);
    }

    ucp_context_h context = nullptr;
    ucp_worker_h worker = nullptr;
};

void tell(int fd, const std::string &bytes)
{
    if (send(fd, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
        perror("send");
        exit(1);
    }
}

std::string hear(int fd)
{
    char buffer[8192];
    ssize_t n = recv(fd, buffer, sizeof(buffer), 0);
    if (n <= 0) {
        fprintf(stderr, "the other process has gone\n");
        exit(1);
    }
    return {buffer, static_cast<size_t>(n)};
}

void accept(ucp_conn_request_h request, void *arg)
{
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    params.conn_request = request;
    ucp_ep_h ep;
    check(ucp_ep_create(static_cast<side *>(arg)->worker, &params, &ep), "accept");
}

// Tells its address and its port, then serves until it is killed.
[[noreturn]] void serve(int fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    side self;
    ucp_address_t *address;
    size_t length;
    check(ucp_worker_get_address(self.worker, &address, &length), "ucp_worker_get_address");
    tell(fd, {reinterpret_cast<char *>(address), length});
    sockaddr_in at = {};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ucp_listener_params_t params = {};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr = {reinterpret_cast<sockaddr *>(&at), sizeof(at)};
    params.conn_handler = {accept, &self};
    ucp_listener_h listener;
    check(ucp_listener_create(self.worker, &params, &listener), "ucp_listener_create");
    ucp_listener_attr_t attr = {};
    attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    check(ucp_listener_query(listener, &attr), "ucp_listener_query");
    tell(fd, {reinterpret_cast<char *>(&attr.sockaddr), sizeof(sockaddr_in)});
    for (;;) {
        ucp_worker_progress(self.worker);
    }
}

struct usage {
    double heap;
    double resident;
};

usage measure()
{
    struct mallinfo2 info = mallinfo2();
    long pages = 0;
    if (FILE *file = fopen("/proc/self/statm", "r")) {
        if (fscanf(file, "%*d %ld", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    return {static_cast<double>(info.uordblks + info.hblkhd),
            static_cast<double>(pages * sysconf(_SC_PAGESIZE))};
}

void connect_one(side &self, const ucp_ep_params_t &params)
{
    ucp_ep_h ep;
    check(ucp_ep_create(self.worker, &params, &ep), "ucp_ep_create");
    uint64_t word = 1;
    ucp_request_param_t param = {};
    self.finish(ucp_tag_send_nbx(ep, &word, sizeof(word), 1, &param), "send");
    self.finish(ucp_ep_flush_nbx(ep, &param), "flush");
}

void print(const char *kind, const char *transports, unsigned count, usage before, usage after)
{
    printf("%-14s %-10s %5u endpoints: %8.0f bytes of heap, %8.0f resident, each\n", kind,
           transports, count, (after.heap - before.heap) / count,
           (after.resident - before.resident) / count);
}

void report_core(unsigned pairs)
{
    if (!open_core_pairs(1)) {
        fprintf(stderr, "no endpoints of tcp alone\n");
        return;
    }
    usage before = measure();
    if (open_core_pairs(pairs)) {
        print("core alone", "tcp", 2 * pairs, before, measure());
    }
}

void report(const char *kind, const char *transports, const ucp_ep_params_t &params, unsigned count)
{
    constexpr unsigned first = 100; // what they cost alone is not counted, as the pools of messages
    side self;
    for (unsigned i = 0; i < first; ++i) {
        connect_one(self, params);
    }
    usage before = measure();
    for (unsigned i = 0; i < count; ++i) {
        connect_one(self, params);
    }
    print(kind, transports, count, before, measure());
}

} // namespace

int main(int argc, char **argv)
{
    const char *transports = argc > 1 ? argv[1] : "tcp";
    unsigned count = argc > 2 ? static_cast<unsigned>(strtoul(argv[2], nullptr, 10)) : 1000;
    setenv("UCX_TLS", (std::string(transports) + ",self").c_str(), 1);
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) != 0) {
        perror("socketpair");
        return 1;
    }
    pid_t server = fork();
    if (server == 0) {
        serve(fds[1]);
    }
    std::string address = hear(fds[0]);
    std::string listener = hear(fds[0]);
    ucp_ep_params_t by_address = {};
    by_address.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    by_address.address = reinterpret_cast<const ucp_address_t *>(address.data());
    ucp_ep_params_t client = {};
    client.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    client.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    client.sockaddr = {reinterpret_cast<const sockaddr *>(listener.data()), sizeof(sockaddr_in)};
    const struct {
        const char *kind;
        const ucp_ep_params_t &params;
    } kinds[] = {{"by address", by_address}, {"client-server", client}};
    for (const auto &k : kinds) {
        pid_t pid = fork(); // a fresh heap for each
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            report(k.kind, transports, k.params, count);
            fflush(stdout);
            _exit(0);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        if (status != 0) {
            fprintf(stderr, "%s: failed\n", k.kind);
        }
    }
    kill(server, SIGKILL);
    waitpid(server, nullptr, 0);
    report_core(count / 2);
    return 0;
}
