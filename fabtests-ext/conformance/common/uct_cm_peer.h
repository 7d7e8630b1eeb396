// SPDX-License-Identifier: BSD-3-Clause
// The two sides of a connection in tests: they count their callbacks, keep what they were told, and
// fail the test when a callback comes twice, out of order, or after the end.
#pragma once

#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <memory>
#include <mutex>
#include <net/if.h>
#include <random>
#include <string>
#include <thread>
#include <uct/api/uct.h>
#include <uct/api/v2/uct_v2.h>
#include <unistd.h>
#include <vector>

namespace cm_test {

inline const std::string client_data = "what the client says";
inline const std::string server_data = "what the server says";

// Whether this thread is inside a call of the library: no callback may come there.
inline thread_local int calls = 0;

template <class F>
auto call(F &&what)
{
    struct counter {
        counter() { ++calls; }
        ~counter() { --calls; }
    } in_call;
    return what();
}

template <class F>
bool wait(F &&done, int seconds = 60)
{
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (!done()) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
        usleep(100);
    }
    return true;
}

inline int random_steps()
{
    const char *text = getenv("UCXLIKE_RANDOM_STEPS");
    return text ? atoi(text) : 2000;
}

inline sockaddr_storage ipv4(const char *text, uint16_t port)
{
    sockaddr_storage address{};
    auto &in = reinterpret_cast<sockaddr_in &>(address);
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    inet_pton(AF_INET, text, &in.sin_addr);
    return address;
}

inline uint16_t port_of(const sockaddr_storage &address)
{
    return ntohs(reinterpret_cast<const sockaddr_in &>(address).sin_port);
}

inline void set_port(sockaddr_storage &address, uint16_t port)
{
    reinterpret_cast<sockaddr_in &>(address).sin_port = htons(port);
}

inline bool same_address(const sockaddr_storage &a, const sockaddr_storage &b)
{
    auto &x = reinterpret_cast<const sockaddr_in &>(a);
    auto &y = reinterpret_cast<const sockaddr_in &>(b);
    return x.sin_family == y.sin_family && x.sin_port == y.sin_port &&
           x.sin_addr.s_addr == y.sin_addr.s_addr;
}

// Where to listen: loopback for tcp, else the first address that is not loopback's.
inline sockaddr_storage test_address(const std::string &component)
{
    sockaddr_storage found = ipv4("127.0.0.1", 0);
    ifaddrs *list = nullptr;
    if (component == "tcp" || getifaddrs(&list) != 0) {
        return found;
    }
    for (ifaddrs *i = list; i; i = i->ifa_next) {
        if (i->ifa_addr && i->ifa_addr->sa_family == AF_INET && !(i->ifa_flags & IFF_LOOPBACK)) {
            memcpy(&found, i->ifa_addr, sizeof(sockaddr_in));
            break;
        }
    }
    freeifaddrs(list);
    return found;
}

inline int stranger(const sockaddr_storage &to)
{
    int fd = socket(to.ss_family, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<const sockaddr *>(&to), sizeof(sockaddr_in)) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

inline uct_component_h find_component(const std::string &name)
{
    uct_component_h *list = nullptr;
    unsigned count = 0;
    uct_component_h found = nullptr;
    if (uct_query_components(&list, &count) != UCS_OK) {
        return nullptr;
    }
    for (unsigned i = 0; i < count; ++i) {
        uct_component_attr_t attr{};
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_FLAGS;
        uct_component_query(list[i], &attr);
        if (attr.name == name && (attr.flags & UCT_COMPONENT_FLAG_CM)) {
            found = list[i];
        }
    }
    uct_release_component_list(list);
    return found;
}

class entity {
  public:
    explicit entity(const std::string &component, const char *max_priv = nullptr,
                    const char *reuse_address = nullptr, const char *peer_timeout = nullptr)
    {
        uct_component_h handle = find_component(component);
        EXPECT_EQ(UCS_OK, uct_worker_create(nullptr, UCS_THREAD_MODE_SINGLE, &worker_));
        uct_cm_config_t *config = nullptr;
        EXPECT_EQ(UCS_OK, uct_cm_config_read(handle, nullptr, nullptr, &config));
        if (max_priv) {
            EXPECT_EQ(UCS_OK, uct_config_modify(config, "PRIV_DATA_LEN", max_priv));
        }
        if (reuse_address) {
            EXPECT_EQ(UCS_OK, uct_config_modify(config, "REUSEADDR", reuse_address));
        }
        if (peer_timeout) {
            EXPECT_EQ(UCS_OK, uct_config_modify(config, "PEER_TIMEOUT", peer_timeout));
        }
        EXPECT_EQ(UCS_OK, uct_cm_open(handle, worker_, config, &cm_));
        uct_config_release(config);
    }
    entity(const entity &) = delete;
    entity &operator=(const entity &) = delete;
    ~entity()
    {
        uct_cm_close(cm_);
        uct_worker_destroy(worker_);
    }

    uct_cm_h cm() const { return cm_; }
    unsigned progress() { return uct_worker_progress(worker_); }
    size_t max_conn_priv() const
    {
        uct_cm_attr_t attr{};
        attr.field_mask = UCT_CM_ATTR_FIELD_MAX_CONN_PRIV;
        EXPECT_EQ(UCS_OK, uct_cm_query(cm_, &attr));
        return attr.max_conn_priv;
    }

  private:
    uct_worker_h worker_ = nullptr;
    uct_cm_h cm_ = nullptr;
};

// One endpoint, of either side. Set the plain members before connect().
class peer {
  public:
    enum class stage { none, resolve, connect, disconnect };

    explicit peer(entity &owner) : owner_(owner) {}
    peer(const peer &) = delete;
    peer &operator=(const peer &) = delete;
    ~peer() { destroy(); }

    // Without a word more to come after it.
    void destroy()
    {
        if (ep_ && !gone_.exchange(true)) {
            uct_ep_destroy(ep_); // its callbacks may still use ep() until this returns
        }
        destroyed = true;
    }

    ucs_status_t create(const sockaddr_storage &to) { return connect(to); }

    ucs_status_t connect(const sockaddr_storage &to)
    {
        sockaddr_storage copy = to;
        socklen_t length = to.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
        ucs_sock_addr_t remote{reinterpret_cast<sockaddr *>(&copy), length};
        ucs_sock_addr_t source{reinterpret_cast<sockaddr *>(local), length};
        uct_ep_params_t params = common_params(owner_);
        params.field_mask |=
            UCT_EP_PARAM_FIELD_SOCKADDR | UCT_EP_PARAM_FIELD_SOCKADDR_CONNECT_CB_CLIENT;
        params.sockaddr = &remote;
        params.sockaddr_cb_client = on_connect;
        if (use_pack) {
            params.field_mask |= UCT_EP_PARAM_FIELD_SOCKADDR_PACK_CB;
            params.sockaddr_pack_cb = on_pack;
        } else {
            params.field_mask |= UCT_EP_PARAM_FIELD_CM_RESOLVE_CB;
            params.cm_resolve_cb = on_resolve;
        }
        if (local) {
            params.field_mask |= UCT_EP_PARAM_FIELD_LOCAL_SOCKADDR;
            params.local_sockaddr = &source;
        }
        return create_ep(params);
    }

    ucs_status_t accept(uct_conn_request_h request, bool pack)
    {
        server_ = true;
        uct_ep_params_t params = common_params(owner_);
        params.field_mask |=
            UCT_EP_PARAM_FIELD_CONN_REQUEST | UCT_EP_PARAM_FIELD_SOCKADDR_NOTIFY_CB_SERVER;
        params.conn_request = request;
        params.sockaddr_cb_server = on_notify;
        if (pack) {
            params.field_mask |= UCT_EP_PARAM_FIELD_SOCKADDR_PACK_CB;
            params.sockaddr_pack_cb = on_pack;
        } else {
            params.field_mask |= UCT_EP_PARAM_FIELD_PRIV_DATA | UCT_EP_PARAM_FIELD_PRIV_DATA_LENGTH;
            params.private_data = private_data.data();
            params.private_data_length = private_data.size();
        }
        return create_ep(params);
    }

    ucs_status_t send_private_data() { return send_private_data(ep()); }

    void ask_disconnect()
    {
        ucs_status_t ret = call([&] { return uct_ep_disconnect(ep(), 0); });
        EXPECT_TRUE(ret == UCS_OK || ret == UCS_INPROGRESS || ret == UCS_ERR_BUSY ||
                    ret == UCS_ERR_NOT_CONNECTED)
            << ucs_status_string(ret);
    }

    // From here on a connection that is open is left to the test to end.
    void arm() {}

    uct_ep_h ep()
    {
        // The callback may be faster than the return of uct_ep_create().
        while (!ep_ && !destroyed) {
            usleep(10);
        }
        return ep_;
    }
    bool failed() const { return status != UCS_INPROGRESS && status != UCS_OK; }

    std::string private_data;
    sockaddr_storage *local = nullptr;
    bool use_pack = false;
    bool slow_resolve = false;
    std::atomic<bool> connect_by_hand = false;
    std::atomic<bool> notify_by_hand = false;
    std::atomic<bool> answer_disconnect = false;
    stage destroy_in = stage::none;
    ucs_status_t resolve_result = UCS_OK;
    ucs_status_t pack_result = UCS_OK;

    std::atomic<int> resolved = 0, packed = 0, answered = 0, notified = 0, disconnected = 0;
    std::atomic<bool> resolves = false; // its callback has been entered
    std::atomic<bool> in_callback = false;
    std::atomic<bool> destroyed = false;
    std::atomic<ucs_status_t> status = UCS_INPROGRESS; // of the last of them that has one
    std::atomic<ucs_status_t> connect_status = UCS_OK;
    std::string device;
    std::string received;

  private:
    struct visit {
        explicit visit(peer &p) : p(p)
        {
            EXPECT_FALSE(p.destroyed) << "a callback after the end";
            EXPECT_FALSE(p.in_callback.exchange(true)) << "two callbacks at a time";
            EXPECT_EQ(0, calls) << "a callback inside a call";
        }
        ~visit() { p.in_callback = false; }
        peer &p;
    };

    uct_ep_params_t common_params(entity &owner)
    {
        uct_ep_params_t params{};
        params.field_mask = UCT_EP_PARAM_FIELD_CM | UCT_EP_PARAM_FIELD_USER_DATA |
                            UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS |
                            UCT_EP_PARAM_FIELD_SOCKADDR_DISCONNECT_CB;
        params.cm = owner.cm();
        params.user_data = this;
        params.sockaddr_cb_flags = UCT_CB_FLAG_ASYNC;
        params.disconnect_cb = on_disconnect;
        return params;
    }

    ucs_status_t create_ep(const uct_ep_params_t &params)
    {
        uct_ep_h ep = nullptr;
        ucs_status_t ret = call([&] { return uct_ep_create(&params, &ep); });
        if (ret == UCS_OK) {
            ep_ = ep;
        }
        return ret;
    }

    ucs_status_t send_private_data(uct_ep_h ep)
    {
        uct_ep_connect_params_t params{};
        params.field_mask = UCT_EP_CONNECT_PARAM_FIELD_PRIVATE_DATA |
                            UCT_EP_CONNECT_PARAM_FIELD_PRIVATE_DATA_LENGTH;
        params.private_data = private_data.data();
        params.private_data_length = private_data.size();
        return call([&] { return uct_ep_connect(ep, &params); });
    }

    static ucs_status_t on_resolve(void *arg, const uct_cm_ep_resolve_args_t *args)
    {
        auto &p = *static_cast<peer *>(arg);
        visit v(p);
        EXPECT_EQ(0, p.resolved + p.answered + p.disconnected);
        EXPECT_TRUE(args->field_mask & UCT_CM_EP_RESOLVE_ARGS_FIELD_STATUS);
        if (args->status != UCS_OK) {
            p.status = args->status;
        } else {
            EXPECT_TRUE(args->field_mask & UCT_CM_EP_RESOLVE_ARGS_FIELD_DEV_NAME);
            p.device = args->dev_name;
            p.resolves = true;
            if (p.slow_resolve) {
                usleep(50000);
            }
            if (p.destroy_in == stage::resolve) {
                p.ep();
                p.destroy();
                ++p.resolved;
                return UCS_OK;
            }
            if (!p.connect_by_hand && p.resolve_result == UCS_OK) {
                p.connect_status = p.send_private_data(p.ep());
            }
        }
        ++p.resolved;
        return p.resolve_result;
    }

    static ssize_t on_pack(void *arg, const uct_cm_ep_priv_data_pack_args_t *args, void *out)
    {
        auto &p = *static_cast<peer *>(arg);
        EXPECT_TRUE(args->field_mask & UCT_CM_EP_PRIV_DATA_PACK_ARGS_FIELD_DEVICE_NAME);
        EXPECT_EQ(0, p.packed);
        ++p.packed;
        if (p.pack_result != UCS_OK) {
            return p.pack_result;
        }
        memcpy(out, p.private_data.data(), p.private_data.size());
        return static_cast<ssize_t>(p.private_data.size());
    }

    static void on_connect(uct_ep_h ep, void *arg, const uct_cm_ep_client_connect_args_t *args)
    {
        auto &p = *static_cast<peer *>(arg);
        visit v(p);
        EXPECT_EQ(0, p.answered + p.disconnected);
        EXPECT_TRUE(args->field_mask & UCT_CM_EP_CLIENT_CONNECT_ARGS_FIELD_STATUS);
        EXPECT_TRUE(args->field_mask & UCT_CM_EP_CLIENT_CONNECT_ARGS_FIELD_REMOTE_DATA);
        if (args->status == UCS_OK) {
            const uct_cm_remote_data_t &data = *args->remote_data;
            EXPECT_EQ(15u, data.field_mask);
            EXPECT_GT(data.dev_addr_length, 0u);
            p.received.assign(static_cast<const char *>(data.conn_priv_data),
                              data.conn_priv_data_length);
        } else {
            EXPECT_EQ(0u, args->remote_data->field_mask);
        }
        if (p.destroy_in == stage::connect) {
            p.ep();
            p.destroy();
            return;
        }
        if (args->status == UCS_OK && !p.notify_by_hand) {
            ucs_status_t ret = call([&] { return uct_cm_client_ep_conn_notify(ep); });
            // The server may have left since.
            EXPECT_TRUE(ret == UCS_OK || ret == UCS_ERR_NOT_CONNECTED) << ucs_status_string(ret);
        }
        p.status = args->status;
        ++p.answered;
    }

    static void on_notify(uct_ep_h, void *arg, const uct_cm_ep_server_conn_notify_args_t *args)
    {
        auto &p = *static_cast<peer *>(arg);
        visit v(p);
        EXPECT_EQ(0, p.notified + p.disconnected);
        EXPECT_TRUE(args->field_mask & UCT_CM_EP_SERVER_CONN_NOTIFY_ARGS_FIELD_STATUS);
        p.status = args->status;
        ++p.notified;
    }

    static void on_disconnect(uct_ep_h ep, void *arg)
    {
        auto &p = *static_cast<peer *>(arg);
        visit v(p);
        EXPECT_EQ(0, p.disconnected);
        EXPECT_EQ(1, p.server_ ? p.notified : p.answered);
        EXPECT_EQ(UCS_OK, p.status);
        if (p.destroy_in == stage::disconnect) {
            p.ep();
            p.destroy();
            return;
        }
        if (p.answer_disconnect) {
            ucs_status_t ret = call([&] { return uct_ep_disconnect(ep, 0); });
            EXPECT_TRUE(ret == UCS_OK || ret == UCS_ERR_NOT_CONNECTED) << ucs_status_string(ret);
        }
        ++p.disconnected;
    }

    entity &owner_;
    std::atomic<uct_ep_h> ep_ = nullptr;
    std::atomic<bool> gone_ = false;
    std::atomic<bool> server_ = false;
};

// A listener and what came in.
class acceptor {
  public:
    enum class policy {
        accept_at_once,
        accept_with_pack,
        refuse_in_pack,
        reject_at_once,
        reject_slowly,
        keep,
    };

    static ucs_status_t create(entity &owner, sockaddr_storage address, acceptor *arg,
                               uct_listener_h *listener_p, socklen_t length = 0, int backlog = 128)
    {
        uct_listener_params_t params{};
        params.field_mask = UCT_LISTENER_PARAM_FIELD_CONN_REQUEST_CB |
                            UCT_LISTENER_PARAM_FIELD_USER_DATA | UCT_LISTENER_PARAM_FIELD_BACKLOG;
        params.conn_request_cb = on_request;
        params.user_data = arg;
        params.backlog = backlog;
        return uct_listener_create(owner.cm(), reinterpret_cast<sockaddr *>(&address),
                                   length ? length : sizeof(address), &params, listener_p);
    }

    acceptor(entity &owner, const sockaddr_storage &address, policy what)
        : owner_(owner), policy_(what)
    {
        EXPECT_EQ(UCS_OK, create(owner, address, this, &listener_));
        uct_listener_attr_t attr{};
        attr.field_mask = UCT_LISTENER_ATTR_FIELD_SOCKADDR;
        EXPECT_EQ(UCS_OK, uct_listener_query(listener_, &attr));
        address_ = attr.sockaddr;
    }
    acceptor(const acceptor &) = delete;
    acceptor &operator=(const acceptor &) = delete;
    ~acceptor()
    {
        while (listener_ && kept() > 0) {
            reject_kept();
        }
        destroy_listener();
        while (kept() > 0) {
            accept_kept(); // came in meanwhile
        }
        drop_accepted();
    }

    void destroy_listener()
    {
        if (listener_) {
            call([&] { uct_listener_destroy(listener_); });
            listener_ = nullptr;
        }
    }

    uct_listener_h listener() const { return listener_; }
    const sockaddr_storage &address() const { return address_; }
    unsigned requests() const { return requests_; }
    std::string device()
    {
        std::lock_guard<std::mutex> held(mutex_);
        return device_;
    }
    std::string data()
    {
        std::lock_guard<std::mutex> held(mutex_);
        return data_;
    }
    // What the last request said of its client.
    sockaddr_storage client()
    {
        std::lock_guard<std::mutex> held(mutex_);
        return client_;
    }
    std::string client_device_address()
    {
        std::lock_guard<std::mutex> held(mutex_);
        return client_device_address_;
    }
    size_t accepted_count()
    {
        std::lock_guard<std::mutex> held(mutex_);
        return accepted_.size();
    }
    peer &accepted(size_t i)
    {
        std::lock_guard<std::mutex> held(mutex_);
        return *accepted_.at(i);
    }
    void drop_accepted()
    {
        std::vector<std::unique_ptr<peer>> gone;
        std::lock_guard<std::mutex> held(mutex_);
        gone.swap(accepted_);
    }
    void drop_some(unsigned random)
    {
        std::unique_ptr<peer> gone;
        std::lock_guard<std::mutex> held(mutex_);
        if (!accepted_.empty()) {
            auto it = accepted_.begin() + static_cast<long>(random % accepted_.size());
            gone = std::move(*it);
            accepted_.erase(it);
        }
    }
    void disconnect_some(unsigned random)
    {
        std::lock_guard<std::mutex> held(mutex_);
        if (!accepted_.empty()) {
            accepted_[random % accepted_.size()]->ask_disconnect();
        }
    }
    size_t kept()
    {
        std::lock_guard<std::mutex> held(mutex_);
        return kept_.size();
    }
    uct_conn_request_h first_kept()
    {
        std::lock_guard<std::mutex> held(mutex_);
        return kept_.front();
    }
    ucs_status_t accept_kept()
    {
        uct_conn_request_h request = pop();
        return request ? accept(request) : UCS_ERR_NO_ELEM;
    }
    ucs_status_t reject_kept()
    {
        uct_conn_request_h request = pop();
        return request ? call([&] { return uct_listener_reject(listener_, request); })
                       : UCS_ERR_NO_ELEM;
    }

    std::string reply_data = server_data;
    entity *accept_on = nullptr;
    std::atomic<bool> answer_disconnect = false;
    std::atomic<bool> in_callback = false;
    std::atomic<ucs_status_t> reject_status = UCS_INPROGRESS;
    std::atomic<ucs_status_t> create_status = UCS_INPROGRESS;

  private:
    uct_conn_request_h pop()
    {
        std::lock_guard<std::mutex> held(mutex_);
        if (kept_.empty()) {
            return nullptr;
        }
        uct_conn_request_h request = kept_.front();
        kept_.erase(kept_.begin());
        return request;
    }

    // data: what came with the request, where the caller knows.
    ucs_status_t accept(uct_conn_request_h request, const std::string &data = {})
    {
        auto p = std::make_unique<peer>(accept_on ? *accept_on : owner_);
        p->private_data = reply_data;
        p->received = data;
        p->answer_disconnect = answer_disconnect.load();
        p->pack_result = policy_ == policy::refuse_in_pack ? UCS_ERR_BUSY : UCS_OK;
        ucs_status_t ret = p->accept(request, policy_ == policy::accept_with_pack ||
                                                  policy_ == policy::refuse_in_pack);
        create_status = ret;
        if (ret == UCS_OK) {
            std::lock_guard<std::mutex> held(mutex_);
            accepted_.push_back(std::move(p));
        }
        return ret;
    }

    static void on_request(uct_listener_h listener, void *arg,
                           const uct_cm_listener_conn_request_args_t *args)
    {
        auto &a = *static_cast<acceptor *>(arg);
        EXPECT_FALSE(a.in_callback.exchange(true)) << "two callbacks at a time";
        EXPECT_EQ(0, calls) << "a callback inside a call";
        EXPECT_EQ(15u, args->field_mask);
        EXPECT_EQ(15u, args->remote_data->field_mask);
        EXPECT_NE(0,
                  port_of(*reinterpret_cast<const sockaddr_storage *>(args->client_address.addr)));
        {
            std::lock_guard<std::mutex> held(a.mutex_);
            a.device_ = args->dev_name;
            memcpy(&a.client_, args->client_address.addr, args->client_address.addrlen);
            a.client_device_address_.assign(
                reinterpret_cast<const char *>(args->remote_data->dev_addr),
                args->remote_data->dev_addr_length);
            a.data_.assign(static_cast<const char *>(args->remote_data->conn_priv_data),
                           args->remote_data->conn_priv_data_length);
        }
        ++a.requests_;
        switch (a.policy_) {
        case policy::keep: {
            std::lock_guard<std::mutex> held(a.mutex_);
            a.kept_.push_back(args->conn_request);
            break;
        }
        case policy::reject_slowly:
            usleep(100000);
            [[fallthrough]];
        case policy::reject_at_once:
            a.reject_status =
                call([&] { return uct_listener_reject(listener, args->conn_request); });
            break;
        default:
            a.accept(args->conn_request, a.data());
            break;
        }
        a.in_callback = false;
    }

    entity &owner_;
    const policy policy_;
    uct_listener_h listener_ = nullptr;
    sockaddr_storage address_{};
    std::atomic<unsigned> requests_ = 0;
    std::mutex mutex_;
    std::string device_;
    std::string data_;
    sockaddr_storage client_{};
    std::string client_device_address_;
    std::vector<uct_conn_request_h> kept_;
    std::vector<std::unique_ptr<peer>> accepted_;
};

} // namespace cm_test
