// SPDX-License-Identifier: BSD-3-Clause
//
// What the UCP conformance tests share: an entity is a context with a worker over chosen
// transports; every wait progresses the given entities and gives up after a deadline, so that a
// lost completion is a failed test and not a hanging one.
#pragma once

#include "fabtests-ext/common/transports.h"

#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include <arpa/inet.h>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace ucp_test {

// Seconds that what must come may take on a machine with much else to do.
constexpr double patience = 300;

struct options {
    std::string tls = "all";
    uint64_t features = UCP_FEATURE_TAG | UCP_FEATURE_AM;
    ucs_thread_mode_t thread_mode = UCS_THREAD_MODE_SINGLE;
    uint64_t client_id = 0;
    size_t am_alignment = 0; // 0: none given
    std::vector<std::pair<std::string, std::string>> config;
};

class entity {
  public:
    explicit entity(const options &o)
    {
        ucp_config_t *config = nullptr;
        EXPECT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config));
        EXPECT_EQ(UCS_OK, ucp_config_modify(config, "TLS", o.tls.c_str()));
        for (const auto &[name, value] : o.config) {
            EXPECT_EQ(UCS_OK, ucp_config_modify(config, name.c_str(), value.c_str()));
        }
        ucp_params_t params = {};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = o.features;
        EXPECT_EQ(UCS_OK, ucp_init(&params, config, &context));
        ucp_config_release(config);
        if (context) {
            worker = add_worker(o);
        }
    }

    ~entity()
    {
        for (ucp_worker_h w : extra_) {
            ucp_worker_destroy(w);
        }
        if (worker) {
            ucp_worker_destroy(worker);
        }
        if (context) {
            ucp_cleanup(context);
        }
    }
    entity(const entity &) = delete;
    entity &operator=(const entity &) = delete;

    ucp_worker_h second_worker(const options &o)
    {
        extra_.push_back(add_worker(o));
        return extra_.back();
    }

    std::vector<char> address(bool net_only = false) const
    {
        ucp_worker_attr_t attr = {};
        attr.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
        attr.address_flags = net_only ? UCP_WORKER_ADDRESS_FLAG_NET_ONLY : 0;
        EXPECT_EQ(UCS_OK, ucp_worker_query(worker, &attr));
        const char *p = reinterpret_cast<const char *>(attr.address);
        std::vector<char> copy(p, p + attr.address_length);
        ucp_worker_release_address(worker, attr.address);
        return copy;
    }

    void progress()
    {
        ucp_worker_progress(worker);
        for (ucp_worker_h w : extra_) {
            ucp_worker_progress(w);
        }
    }

    ucp_context_h context = nullptr;
    ucp_worker_h worker = nullptr;

  private:
    ucp_worker_h add_worker(const options &o)
    {
        ucp_worker_params_t params = {};
        params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_CLIENT_ID;
        params.thread_mode = o.thread_mode;
        params.client_id = o.client_id;
        if (o.am_alignment) {
            params.field_mask |= UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT;
            params.am_alignment = o.am_alignment;
        }
        ucp_worker_h w = nullptr;
        EXPECT_EQ(UCS_OK, ucp_worker_create(context, &params, &w));
        return w;
    }

    std::vector<ucp_worker_h> extra_;
};

// Progresses until done() or the deadline.
inline bool run_until(std::initializer_list<entity *> all, const std::function<bool()> &done,
                      double seconds = patience)
{
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!done()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        for (entity *e : all) {
            if (e) {
                e->progress();
            }
        }
    }
    return true;
}

// However long this thread is kept from running meanwhile, each gets some turns.
inline void run_for(std::initializer_list<entity *> all, double seconds)
{
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    unsigned turns = 0;
    run_until(all, [&] { return ++turns > 1000 && std::chrono::steady_clock::now() > end; });
}

// The status of an operation; UCS_INPROGRESS when it did not finish in time.
inline ucs_status_t wait(std::initializer_list<entity *> all, ucs_status_ptr_t ptr,
                         double seconds = patience)
{
    if (!UCS_PTR_IS_PTR(ptr)) {
        return UCS_PTR_STATUS(ptr);
    }
    run_until(
        all, [&] { return ucp_request_check_status(ptr) != UCS_INPROGRESS; }, seconds);
    ucs_status_t status = ucp_request_check_status(ptr);
    ucp_request_free(ptr);
    return status;
}

// What an endpoint's error handler saw.
struct errors {
    int count = 0;
    ucs_status_t status = UCS_OK;

    static void handler(void *arg, ucp_ep_h, ucs_status_t status)
    {
        auto *self = static_cast<errors *>(arg);
        ++self->count;
        self->status = status;
    }

    // Asks for the errors of the endpoint that these parameters make.
    void watch(ucp_ep_params_t *params, ucp_err_handling_mode_t mode = UCP_ERR_HANDLING_MODE_PEER)
    {
        params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
        params->err_mode = mode;
        params->err_handler.cb = handler;
        params->err_handler.arg = this;
    }
};

inline ucs_status_t create_ep(entity &from, const std::vector<char> &address, ucp_ep_h *ep,
                              errors *seen = nullptr, unsigned flags = 0)
{
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = reinterpret_cast<const ucp_address_t *>(address.data());
    if (flags) {
        params.field_mask |= UCP_EP_PARAM_FIELD_FLAGS;
        params.flags = flags;
    }
    if (seen) {
        seen->watch(&params);
    }
    return ucp_ep_create(from.worker, &params, ep);
}

inline ucs_status_ptr_t close_nb(ucp_ep_h ep, bool force = false)
{
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    return ucp_ep_close_nbx(ep, &param);
}

inline ucs_status_ptr_t flush_nb(ucp_ep_h ep)
{
    ucp_request_param_t param = {};
    return ucp_ep_flush_nbx(ep, &param);
}

inline ucs_status_ptr_t send_nb(ucp_ep_h ep, const void *data, size_t length, ucp_tag_t tag)
{
    ucp_request_param_t param = {};
    return ucp_tag_send_nbx(ep, data, length, tag, &param);
}

inline ucs_status_ptr_t recv_nb(entity &e, void *data, size_t length, ucp_tag_t tag)
{
    ucp_request_param_t param = {};
    return ucp_tag_recv_nbx(e.worker, data, length, tag, ~ucp_tag_t(0), &param);
}

// Has `callback` called with `arg` for active messages of this id.
inline ucs_status_t set_am_handler(ucp_worker_h worker, unsigned id,
                                   ucp_am_recv_callback_t callback, void *arg = nullptr)
{
    ucp_am_handler_param_t p = {};
    p.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                   UCP_AM_HANDLER_PARAM_FIELD_ARG;
    p.id = id;
    p.cb = callback;
    p.arg = arg;
    return ucp_worker_set_am_recv_handler(worker, &p);
}

// Of a receive that calls back from progress alone.
inline ucp_request_param_t called_later(ucp_am_recv_data_nbx_callback_t callback, void *arg)
{
    ucp_request_param_t p = {};
    p.op_attr_mask =
        UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    p.cb.recv_am = callback;
    p.user_data = arg;
    return p;
}

// A message from `ep` of `from` to `to`, checked.
inline void ping(entity &from, ucp_ep_h ep, entity &to, size_t length = 8, ucp_tag_t tag = 7)
{
    std::vector<char> out(length), in(length, 0);
    for (size_t i = 0; i < length; ++i) {
        out[i] = static_cast<char>(i * 31 + length);
    }
    ucs_status_ptr_t recv = recv_nb(to, in.data(), length, tag);
    ucs_status_ptr_t send = send_nb(ep, out.data(), length, tag);
    ASSERT_EQ(UCS_OK, wait({&from, &to}, send));
    ASSERT_EQ(UCS_OK, wait({&from, &to}, recv));
    ASSERT_EQ(out, in);
}

// Where servers listen: the loopback interface, or UCXLIKE_TEST_ADDRESS of this host.
inline sockaddr_in host_address(uint16_t port)
{
    sockaddr_in a = {};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (const char *other = getenv("UCXLIKE_TEST_ADDRESS")) {
        EXPECT_EQ(1, inet_pton(AF_INET, other, &a.sin_addr)) << other;
    }
    a.sin_port = htons(port);
    return a;
}

// A listener and what it received.
class server {
  public:
    explicit server(entity &e, bool accept_style = false, sockaddr_in a = host_address(0))
        : entity_(e)
    {
        ucp_listener_params_t params = {};
        params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR;
        params.sockaddr.addr = reinterpret_cast<sockaddr *>(&a);
        params.sockaddr.addrlen = sizeof(a);
        if (accept_style) {
            params.field_mask |= UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER;
            params.accept_handler.cb = [](ucp_ep_h ep, void *arg) {
                static_cast<server *>(arg)->accepted.push_back(ep);
            };
            params.accept_handler.arg = this;
        } else {
            params.field_mask |= UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
            params.conn_handler.cb = [](ucp_conn_request_h request, void *arg) {
                static_cast<server *>(arg)->requests.push_back(request);
            };
            params.conn_handler.arg = this;
        }
        EXPECT_EQ(UCS_OK, ucp_listener_create(e.worker, &params, &listener));
        ucp_listener_attr_t attr = {};
        attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
        if (listener && ucp_listener_query(listener, &attr) == UCS_OK) {
            port = ntohs(reinterpret_cast<sockaddr_in *>(&attr.sockaddr)->sin_port);
        }
    }
    ~server() { destroy(); }

    void destroy()
    {
        if (listener) {
            ucp_listener_destroy(listener);
            listener = nullptr;
        }
    }

    ucs_status_t accept(ucp_ep_h *ep, errors *seen, ucp_worker_h worker = nullptr,
                        ucp_err_handling_mode_t mode = UCP_ERR_HANDLING_MODE_PEER)
    {
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
        params.conn_request = requests.front();
        seen->watch(&params, mode);
        requests.erase(requests.begin());
        return ucp_ep_create(worker ? worker : entity_.worker, &params, ep);
    }

    ucp_listener_h listener = nullptr;
    uint16_t port = 0;
    std::vector<ucp_conn_request_h> requests;
    std::vector<ucp_ep_h> accepted;

  private:
    entity &entity_;
};

inline ucs_status_t connect(entity &client, sockaddr_in a, ucp_ep_h *ep, errors *seen,
                            ucp_err_handling_mode_t mode = UCP_ERR_HANDLING_MODE_PEER,
                            unsigned more_flags = 0)
{
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                        UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER | more_flags;
    params.sockaddr.addr = reinterpret_cast<sockaddr *>(&a);
    params.sockaddr.addrlen = sizeof(a);
    params.err_mode = mode;
    if (seen) {
        seen->watch(&params, mode);
    }
    return ucp_ep_create(client.worker, &params, ep);
}

inline ucs_status_t connect(entity &client, uint16_t port, ucp_ep_h *ep, errors *seen,
                            ucp_err_handling_mode_t mode = UCP_ERR_HANDLING_MODE_PEER,
                            unsigned more_flags = 0)
{
    return connect(client, host_address(port), ep, seen, mode, more_flags);
}

// Connected client and server endpoints.
struct connection {
    connection(entity &c, entity &s, server &listening) : client_entity(c), server_entity(s)
    {
        EXPECT_EQ(UCS_OK, connect(c, listening.port, &client, &client_errors));
        EXPECT_TRUE(run_until({&c, &s}, [&] { return !listening.requests.empty(); }));
        if (!listening.requests.empty()) {
            EXPECT_EQ(UCS_OK, listening.accept(&server, &server_errors));
        }
    }

    entity &client_entity, &server_entity;
    ucp_ep_h client = nullptr, server = nullptr;
    errors client_errors, server_errors;
};

// Closes both ends of a connection that may not stand yet, after turn % 15 rounds of progress: by
// turns with force and without, the server's end first or the client's.
inline void close_early(entity &c, entity &s, ucp_ep_h client, ucp_ep_h server, unsigned turn)
{
    for (unsigned i = 0; i < turn % 15; ++i) {
        c.progress();
        s.progress();
    }
    bool force = turn % 2;
    ucs_status_ptr_t x = close_nb(turn % 3 == 0 ? server : client, force);
    ucs_status_ptr_t y = close_nb(turn % 3 == 0 ? client : server, force);
    for (ucs_status_ptr_t closing : {x, y}) {
        ucs_status_t status = wait({&c, &s}, closing);
        EXPECT_TRUE(status == UCS_OK || status == UCS_ERR_CONNECTION_RESET) // before both knew
            << ucs_status_string(status);
    }
}

} // namespace ucp_test
