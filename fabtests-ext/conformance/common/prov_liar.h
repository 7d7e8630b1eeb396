// SPDX-License-Identifier: BSD-3-Clause
//
// A peer of the provider that lies, and an honest one: a program of its own that speaks the
// provider's messages over UCP and says in them what no honest peer would.
#pragma once

#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/ucp_entity.h"

#include "prov/ucxlike/wire.h"
#include "ucp/connect/greeting.h"

#include <deque>
#include <netinet/in.h>
#include <ucp/api/ucp.h>

namespace prov_liar {

using namespace app;

namespace wire = ucxlike::wire;

inline sockaddr_in local(uint16_t port)
{
    sockaddr_in a = {};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

inline ucxlike::address name_of(uint16_t port)
{
    ucxlike::address a;
    a.in4 = local(port);
    return a;
}

// What came, with the hello out of it.
struct heard {
    wire::message m;
    wire::hello hello;
    ucp_ep_h reply;
};

class liar {
  public:
    liar()
    {
        setenv("UCX_TLS", "tcp", 1);
        ucp_config_t *config = nullptr;
        REQUIRE_EQ(ucp_config_read(nullptr, nullptr, &config), UCS_OK);
        ucp_params_t p = {};
        p.field_mask = UCP_PARAM_FIELD_FEATURES;
        p.features = UCP_FEATURE_AM;
        REQUIRE_EQ(ucp_init(&p, config, &context_), UCS_OK);
        ucp_config_release(config);
        ucp_worker_params_t w = {};
        REQUIRE_EQ(ucp_worker_create(context_, &w, &worker_), UCS_OK);
        for (unsigned id = 0; id < wire::am_last; ++id) {
            REQUIRE_EQ(ucp_test::set_am_handler(worker_, id, arrived, this), UCS_OK);
        }
    }

    // Where it listens.
    uint16_t listen()
    {
        sockaddr_in at = local(0);
        ucp_listener_params_t p = {};
        p.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
        p.sockaddr.addr = reinterpret_cast<sockaddr *>(&at);
        p.sockaddr.addrlen = sizeof(at);
        p.conn_handler.cb = [](ucp_conn_request_h request, void *arg) {
            static_cast<liar *>(arg)->accept(request);
        };
        p.conn_handler.arg = this;
        REQUIRE_EQ(ucp_listener_create(worker_, &p, &listener_), UCS_OK);
        ucp_listener_attr_t a = {};
        a.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
        REQUIRE_EQ(ucp_listener_query(listener_, &a), UCS_OK);
        return ntohs(reinterpret_cast<sockaddr_in *>(&a.sockaddr)->sin_port);
    }

    void stop_listening() { ucp_listener_destroy(listener_); }

    ucp_ep_h connect(const sockaddr_in &to, const sockaddr_in *from = nullptr)
    {
        ucp_ep_params_t p = client_of(to);
        if (from) {
            p.field_mask |= UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR;
            p.local_sockaddr.addr = reinterpret_cast<const sockaddr *>(from);
            p.local_sockaddr.addrlen = sizeof(*from);
        }
        ucp_ep_h ep = nullptr;
        REQUIRE_EQ(ucp_ep_create(worker_, &p, &ep), UCS_OK);
        return ep;
    }

    // As a client of a MSG endpoint; the id is that under which the server knows it, 0 until the
    // server has accepted.
    struct session {
        ucp_ep_h ep = nullptr;
        uint64_t id = 0;
    };
    void call(const sockaddr_in &to, session *s, uint8_t version = wire::version)
    {
        ucp_ep_params_t p = client_of(to);
        uint8_t words[wire::max_header];
        wire::builder b(words);
        wire::hello hello = wire::make_hello(name_of(0), 0, 1);
        hello.version = version;
        b.say_hello(hello);
        ucp::greeting g = {words, b.finish(0, wire::connect), answered, s};
        REQUIRE_EQ(ucp::create_ep(worker_, &p, g, &s->ep), UCS_OK);
    }
    template <class F>
    void progress_until(F &&done)
    {
        auto end = std::chrono::steady_clock::now() + patience;
        while (!done()) {
            REQUIRE(std::chrono::steady_clock::now() < end);
            ucp_worker_progress(worker_);
        }
    }

    void send(ucp_ep_h ep, wire::am am, const uint8_t *header, size_t length,
              const std::vector<char> &data = {})
    {
        REQUIRE_EQ(try_send(ep, am, header, length, data), UCS_OK);
    }

    // The same where the other side may end the connection.
    ucs_status_t try_send(ucp_ep_h ep, wire::am am, const uint8_t *header, size_t length,
                          const std::vector<char> &data)
    {
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        p.flags = UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER;
        void *r = ucp_am_send_nbx(ep, am, header, length, data.data(), data.size(), &p);
        if (!UCS_PTR_IS_PTR(r)) {
            return UCS_PTR_STATUS(r);
        }
        ucs_status_t status;
        while ((status = ucp_request_check_status(r)) == UCS_INPROGRESS) {
            ucp_worker_progress(worker_);
        }
        ucp_request_free(r);
        return status;
    }

    // A message that says where it comes from; `ack` is answered when it was received.
    void greet(ucp_ep_h ep, uint16_t port, uint64_t id, uint64_t ack = 0, uint64_t life = 77,
               uint8_t version = wire::version)
    {
        uint8_t to[wire::max_header];
        wire::builder b(to);
        if (ack) {
            b.ack(ack);
            b.ack_on_arrival();
        }
        wire::hello hello = wire::make_hello(name_of(port), life, id);
        hello.version = version;
        b.say_hello(hello);
        send(ep, ack ? wire::am_msg : wire::am_control, to, b.finish(0, wire::none));
    }

    // The next message of this kind; what comes before it is kept.
    heard await(wire::kind kind)
    {
        auto end = std::chrono::steady_clock::now() + patience;
        for (;;) {
            for (auto i = heard_.begin(); i != heard_.end(); ++i) {
                if (i->m.kind == kind) {
                    heard h = *i;
                    heard_.erase(i);
                    return h;
                }
            }
            REQUIRE(std::chrono::steady_clock::now() < end);
            ucp_worker_progress(worker_);
        }
    }

    size_t count(wire::kind kind) const
    {
        size_t n = 0;
        for (const heard &h : heard_) {
            n += h.m.kind == kind;
        }
        return n;
    }

    // Connections that the other side has ended.
    size_t lost() const { return lost_; }

  private:
    ucp_ep_params_t client_of(const sockaddr_in &to)
    {
        ucp_ep_params_t p = {};
        p.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                       UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        p.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
        p.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        p.err_handler.cb = ended;
        p.err_handler.arg = this;
        p.sockaddr.addr = reinterpret_cast<const sockaddr *>(&to);
        p.sockaddr.addrlen = sizeof(to);
        return p;
    }

    void accept(ucp_conn_request_h request)
    {
        ucp_ep_params_t p = {};
        p.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                       UCP_EP_PARAM_FIELD_ERR_HANDLER;
        p.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        p.err_handler.cb = [](void *, ucp_ep_h, ucs_status_t) {}; // it may end when it likes
        p.conn_request = request;
        ucp_ep_h ep = nullptr;
        REQUIRE_EQ(ucp_ep_create(worker_, &p, &ep), UCS_OK);
    }

    static void ended(void *arg, ucp_ep_h, ucs_status_t) { ++static_cast<liar *>(arg)->lost_; }

    static void answered(void *arg, const void *data, size_t length)
    {
        if (length == 0) {
            return; // of a RDM endpoint, which says what it has to say in messages
        }
        wire::message m;
        std::string_view rest;
        REQUIRE(wire::parse(data, length, m, &rest) && m.kind == wire::accept);
        static_cast<session *>(arg)->id = m.tag;
    }

    static ucs_status_t arrived(void *arg, const void *header, size_t header_length, void *, size_t,
                                const ucp_am_recv_param_t *param)
    {
        heard h = {};
        REQUIRE(wire::parse(header, header_length, h.m));
        if (h.m.hello) {
            memcpy(&h.hello, h.m.hello, sizeof(h.hello));
        }
        if (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) {
            h.reply = param->reply_ep;
        }
        static_cast<liar *>(arg)->heard_.push_back(h);
        return UCS_OK;
    }

    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
    ucp_listener_h listener_ = nullptr;
    std::deque<heard> heard_;
    size_t lost_ = 0;
};

// The honest side: one RDM endpoint. Tells its address first.
struct honest {
    explicit honest(partner &p)
        : s([] {
              setenv("FI_UCXLIKE_TLS", "tcp", 1);
              options o;
              o.caps |= FI_RMA;
              return o;
          }())
    {
        s.open_active(s.info);
        sockaddr_in name = {};
        size_t length = sizeof(name);
        REQUIRE_EQ(fi_getname(&s.ep->fid, &name, &length), 0);
        p.tell(&name, sizeof(name));
    }
    // Reads from the liar, at the port that the other process tells.
    void read(partner &p)
    {
        sockaddr_in to = local(static_cast<uint16_t>(p.hear()));
        REQUIRE_EQ(fi_av_insert(s.av, &to, 1, &s.peer, 0, nullptr), 1);
        s.retry([&] { return fi_read(s.ep, in, sizeof(in), nullptr, s.peer, 0, 1, in); });
    }
    char in[8] = "before";
    fabric_side s;
};

inline void serve(partner &p)
{
    honest h(p);
    h.s.serve_until_told(p);
}

inline sockaddr_in address_of(partner &p)
{
    sockaddr_in a;
    p.hear(&a, sizeof(a));
    return a;
}

} // namespace prov_liar
