// SPDX-License-Identifier: BSD-3-Clause
// Where the endpoint of -e leads: see info.h.
#include "tools/info.h"

#include <arpa/inet.h>
#include <csignal>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tools {
namespace {

// What the other process does until this one has gone: it tells its address and makes progress.
[[noreturn]] void serve(const options &opts, int parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ucp_context_h context = open_context(opts);
    ucp_worker_params_t params = {};
    ucp_worker_h worker;
    if (!context || failed(ucp_worker_create(context, &params, &worker), "the peer's worker")) {
        _exit(EXIT_FAILURE);
    }
    ucp_worker_attr_t attr = {};
    attr.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
    attr.address_flags = opts.placement == "inter" ? UCP_WORKER_ADDRESS_FLAG_NET_ONLY : 0;
    if (failed(ucp_worker_query(worker, &attr), "the peer's address") ||
        send(parent, attr.address, attr.address_length, MSG_NOSIGNAL) !=
            static_cast<ssize_t>(attr.address_length)) {
        _exit(EXIT_FAILURE);
    }
    ucp_worker_release_address(worker, attr.address);
    pollfd end = {parent, POLLIN, 0};
    while (poll(&end, 1, 0) == 0) {
        ucp_worker_progress(worker);
    }
    _exit(EXIT_SUCCESS);
}

bool numeric_address(const options &opts, sockaddr_storage *result, socklen_t *length)
{
    if (opts.ipv6) {
        auto *in6 = reinterpret_cast<sockaddr_in6 *>(result);
        in6->sin6_family = AF_INET6;
        *length = sizeof(*in6);
        return inet_pton(AF_INET6, opts.server.c_str(), &in6->sin6_addr) == 1;
    }
    auto *in = reinterpret_cast<sockaddr_in *>(result);
    in->sin_family = AF_INET;
    *length = sizeof(*in);
    return inet_pton(AF_INET, opts.server.c_str(), &in->sin_addr) == 1;
}

} // namespace

other_process::other_process(const options &opts)
{
    int ends[2];
    if (opts.placement == "self" || !opts.endpoint ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return;
    }
    pid_ = fork();
    if (pid_ == 0) {
        close(ends[0]);
        serve(opts, ends[1]);
    }
    close(ends[1]);
    end_ = ends[0];
    std::vector<char> whole(65536);
    ssize_t got = recv(end_, whole.data(), whole.size(), 0);
    whole.resize(got > 0 ? static_cast<size_t>(got) : 0);
    address_ = std::move(whole);
}

other_process::~other_process()
{
    if (pid_ > 0) {
        close(end_);
        waitpid(pid_, nullptr, 0);
    }
}

bool own_server::listen(const options &opts, ucp_worker_h worker)
{
    worker_ = worker;
    if (!numeric_address(opts, &address_, &length_)) {
        fprintf(stderr, "ucxlike_info: -A: '%s' is no numeric IPv%d address\n", opts.server.c_str(),
                opts.ipv6 ? 6 : 4);
        return false;
    }
    ucp_listener_params_t params = {};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr = address();
    params.conn_handler = {[](ucp_conn_request_h request, void *arg) {
                               *static_cast<ucp_conn_request_h *>(arg) = request;
                           },
                           &request_};
    ucp_listener_attr_t attr = {};
    attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    if (failed(ucp_listener_create(worker, &params, &listener_), "listener") ||
        failed(ucp_listener_query(listener_, &attr), "listener")) {
        return false;
    }
    address_ = attr.sockaddr;
    return true;
}

void own_server::accept()
{
    if (!request_) {
        return;
    }
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    params.conn_request = std::exchange(request_, nullptr);
    failed(ucp_ep_create(worker_, &params, &ep_), "the server's endpoint");
}

own_server::~own_server()
{
    if (ep_) {
        ucp_request_param_t none = {};
        wait_for(worker_, ucp_ep_close_nbx(ep_, &none));
    }
    if (listener_) {
        ucp_listener_destroy(listener_);
    }
}

} // namespace tools
