// SPDX-License-Identifier: BSD-3-Clause
// Interfaces opened in the two sockaddr modes: requests that are accepted, rejected and kept,
// clients and servers that go away, wrong arguments; callbacks from progress and from anywhere.
#include "fabtests-ext/conformance/common/refused.h"
#include "fabtests-ext/conformance/common/uct_cm_peer.h"
#include "fabtests-ext/conformance/common/uct_entity.h"

#include <deque>
#include <fstream>
#include <functional>

namespace {

using uct_conformance::guard;

// The domain of a component that reaches an address.
class domain {
  public:
    domain(const std::string &name, const sockaddr_storage &address)
    {
        component = cm_test::find_component(name);
        if (!component) {
            return;
        }
        uct_component_attr_t about{};
        about.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        EXPECT_EQ(UCS_OK, uct_component_query(component, &about));
        std::vector<uct_md_resource_desc_t> names(about.md_resource_count);
        about.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        about.md_resources = names.data();
        EXPECT_EQ(UCS_OK, uct_component_query(component, &about));
        for (const uct_md_resource_desc_t &n : names) {
            open(n.md_name);
            ucs_sock_addr_t a{reinterpret_cast<const sockaddr *>(&address), sizeof(sockaddr_in)};
            if (uct_md_is_sockaddr_accessible(md, &a, UCT_SOCKADDR_ACC_LOCAL)) {
                return;
            }
            close();
        }
    }
    domain(const domain &) = delete;
    domain &operator=(const domain &) = delete;
    ~domain() { close(); }

    uct_component_h component = nullptr;
    uct_md_h md = nullptr;
    uct_iface_config_t *config = nullptr;

  private:
    void open(const char *name)
    {
        uct_md_config_t *md_config = nullptr;
        EXPECT_EQ(UCS_OK, uct_md_config_read(component, nullptr, nullptr, &md_config));
        EXPECT_EQ(UCS_OK, uct_md_open(component, name, md_config, &md));
        uct_config_release(md_config);
        EXPECT_EQ(UCS_OK, uct_md_iface_config_read(md, nullptr, nullptr, nullptr, &config));
    }
    void close()
    {
        if (md) {
            uct_config_release(config);
            uct_md_close(md);
            md = nullptr;
        }
    }
};

const std::string greeting = "private data of a client";

// One interface of either mode on a worker of its own, and what it was told.
class side {
  public:
    side(domain &d, const sockaddr_storage *listen, uint32_t flags) : flags(flags)
    {
        EXPECT_EQ(UCS_OK, uct_worker_create(nullptr, UCS_THREAD_MODE_SINGLE, &worker));
        uct_iface_params_t params = parameters(listen, flags);
        EXPECT_EQ(UCS_OK, uct_iface_open(d.md, worker, &params, d.config, &iface));
        EXPECT_EQ(UCS_OK, uct_iface_query(iface, &attr));
        uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    }
    side(const side &) = delete;
    side &operator=(const side &) = delete;
    ~side()
    {
        for (uct_ep_h ep : eps) {
            uct_ep_destroy(ep);
        }
        close();
        uct_worker_destroy(worker);
    }
    void close()
    {
        if (iface) {
            uct_iface_close(iface);
            iface = nullptr;
        }
    }

    uct_iface_params_t parameters(const sockaddr_storage *listen, uint32_t cb_flags)
    {
        uct_iface_params_t params{};
        params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                            UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                            UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS;
        params.err_handler = on_error;
        params.err_handler_arg = this;
        params.err_handler_flags = cb_flags;
        params.open_mode = UCT_IFACE_OPEN_MODE_SOCKADDR_CLIENT;
        if (listen) {
            params.field_mask |= UCT_IFACE_PARAM_FIELD_SOCKADDR;
            params.open_mode = UCT_IFACE_OPEN_MODE_SOCKADDR_SERVER;
            params.mode.sockaddr.listen_sockaddr = {reinterpret_cast<const sockaddr *>(listen),
                                                    sizeof(sockaddr_in)};
            params.mode.sockaddr.conn_request_cb = on_request;
            params.mode.sockaddr.conn_request_arg = this;
            params.mode.sockaddr.cb_flags = cb_flags;
        }
        return params;
    }

    uct_ep_h connect(const sockaddr_storage &to, bool with_callbacks = false)
    {
        ucs_sock_addr_t address{reinterpret_cast<const sockaddr *>(&to), sizeof(sockaddr_in)};
        uct_ep_params_t params{};
        params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_SOCKADDR |
                            UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS |
                            UCT_EP_PARAM_FIELD_SOCKADDR_PACK_CB | UCT_EP_PARAM_FIELD_USER_DATA;
        params.iface = iface;
        params.sockaddr = &address;
        params.sockaddr_cb_flags = flags;
        params.sockaddr_pack_cb = on_pack;
        params.user_data = this;
        if (with_callbacks) {
            params.field_mask |= UCT_EP_PARAM_FIELD_SOCKADDR_CONNECT_CB_CLIENT |
                                 UCT_EP_PARAM_FIELD_SOCKADDR_DISCONNECT_CB;
            params.sockaddr_cb_client = on_connect;
            params.disconnect_cb = on_disconnect;
        }
        uct_ep_h ep = nullptr;
        EXPECT_EQ(UCS_OK, uct_ep_create(&params, &ep));
        if (ep) {
            eps.push_back(ep);
        }
        return ep;
    }

    void destroy(uct_ep_h ep)
    {
        std::erase(eps, ep);
        uct_ep_destroy(ep);
    }

    ucs_status_t answer(bool accept)
    {
        uct_conn_request_h request;
        {
            std::lock_guard<std::mutex> held(mutex);
            request = requests.front();
            requests.pop_front();
        }
        return accept ? uct_iface_accept(iface, request) : uct_iface_reject(iface, request);
    }

    size_t waiting()
    {
        std::lock_guard<std::mutex> held(mutex);
        return requests.size();
    }

    void expect_thread() const
    {
        if (!(flags & UCT_CB_FLAG_ASYNC)) {
            EXPECT_EQ(main_thread, std::this_thread::get_id()) << "a callback not from progress";
        }
    }

    static void on_request(uct_iface_h, void *arg, uct_conn_request_h request, const void *data,
                           size_t length)
    {
        auto &s = *static_cast<side *>(arg);
        s.expect_thread();
        EXPECT_EQ(greeting, std::string(static_cast<const char *>(data), length));
        if (s.meanwhile) {
            s.meanwhile(request);
            return;
        }
        std::lock_guard<std::mutex> held(s.mutex);
        s.requests.push_back(request);
    }

    static ssize_t on_pack(void *arg, const uct_cm_ep_priv_data_pack_args_t *args, void *out)
    {
        auto &s = *static_cast<side *>(arg);
        s.expect_thread();
        EXPECT_TRUE(args->field_mask & UCT_CM_EP_PRIV_DATA_PACK_ARGS_FIELD_DEVICE_NAME);
        EXPECT_NE('\0', args->dev_name[0]);
        if (s.pack_result != UCS_OK) {
            return s.pack_result;
        }
        memcpy(out, greeting.data(), greeting.size());
        return static_cast<ssize_t>(greeting.size());
    }

    static void on_connect(uct_ep_h, void *arg, const uct_cm_ep_client_connect_args_t *args)
    {
        auto &s = *static_cast<side *>(arg);
        s.expect_thread();
        EXPECT_EQ(args->status == UCS_OK ? 15u : 0u, args->remote_data->field_mask);
        s.status = args->status;
        ++s.answered;
    }

    static void on_disconnect(uct_ep_h, void *arg)
    {
        auto &s = *static_cast<side *>(arg);
        s.expect_thread();
        ++s.disconnected;
    }

    static ucs_status_t on_error(void *arg, uct_ep_h ep, ucs_status_t status)
    {
        auto &s = *static_cast<side *>(arg);
        s.expect_thread();
        s.status = status;
        if (s.destroy_in_handler) {
            s.destroy(ep);
        }
        ++s.errors;
        return UCS_OK;
    }

    const uint32_t flags;
    const std::thread::id main_thread = std::this_thread::get_id();
    uct_worker_h worker = nullptr;
    uct_iface_h iface = nullptr;
    uct_iface_attr_t attr{};
    std::vector<uct_ep_h> eps;
    std::mutex mutex;
    std::deque<uct_conn_request_h> requests;
    std::function<void(uct_conn_request_h)> meanwhile; // a request's callback, if not the usual one
    ucs_status_t pack_result = UCS_OK;
    bool destroy_in_handler = false;
    std::atomic<int> errors = 0, answered = 0, disconnected = 0;
    std::atomic<ucs_status_t> status = UCS_OK;
};

struct variant {
    const char *component;
    uint32_t flags;
};

class uct_sockaddr : public testing::TestWithParam<variant> {
  protected:
    void SetUp() override
    {
        address_ = cm_test::test_address(GetParam().component);
        domain_ = std::make_unique<domain>(GetParam().component, address_);
        if (!domain_->md) {
            GTEST_SKIP() << "no " << GetParam().component << " here";
        }
        server_ = std::make_unique<side>(*domain_, &address_, GetParam().flags);
        client_ = std::make_unique<side>(*domain_, nullptr, GetParam().flags);
        address_ = server_->attr.listen_sockaddr;
        ASSERT_NE(0, cm_test::port_of(address_));
    }

    bool until(const std::function<bool()> &holds)
    {
        return cm_test::wait([&] {
            uct_worker_progress(client_->worker);
            uct_worker_progress(server_->worker);
            return holds();
        });
    }

    // The flush of a client's endpoint tells how the server answered.
    ucs_status_t answer_of(uct_ep_h ep)
    {
        guard g;
        ucs_status_t status = uct_conformance::posting(
            [&] { return uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, &g.completion); });
        if (status != UCS_INPROGRESS) {
            return status;
        }
        EXPECT_TRUE(until([&] { return g.calls == 1; }));
        return g.completion.status;
    }

    sockaddr_storage address_;
    std::unique_ptr<domain> domain_;
    std::unique_ptr<side> server_;
    std::unique_ptr<side> client_;
};

TEST_P(uct_sockaddr, attributes_name_the_mode)
{
    for (side *s : {server_.get(), client_.get()}) {
        EXPECT_TRUE(s->attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_SOCKADDR);
        EXPECT_TRUE(s->attr.cap.flags & UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE);
        EXPECT_GE(s->attr.max_conn_priv, 1024u);
        EXPECT_EQ(0u, s->attr.iface_addr_len);
        EXPECT_FALSE(uct_iface_is_reachable(s->iface, nullptr, nullptr));
    }
    EXPECT_EQ(0, client_->attr.listen_sockaddr.ss_family);
    uct_md_attr_t md_attr;
    ASSERT_EQ(UCS_OK, uct_md_query(domain_->md, &md_attr));
    EXPECT_TRUE(md_attr.cap.flags & UCT_MD_FLAG_SOCKADDR);
}

TEST_P(uct_sockaddr, accept)
{
    uct_ep_h ep = client_->connect(address_, true);
    ASSERT_TRUE(until([&] { return server_->waiting() == 1; }));
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, nullptr));
    EXPECT_EQ(UCS_OK, server_->answer(true));
    EXPECT_EQ(UCS_OK, answer_of(ep));
    ASSERT_TRUE(until([&] { return client_->answered == 1; }));
    EXPECT_EQ(UCS_OK, client_->status);
    EXPECT_EQ(UCS_OK, uct_ep_check(ep, 0, nullptr));
    EXPECT_EQ(0, client_->errors + server_->errors + client_->disconnected);
}

TEST_P(uct_sockaddr, reject)
{
    uct_ep_h ep = client_->connect(address_);
    ASSERT_TRUE(until([&] { return server_->waiting() == 1; }));
    EXPECT_EQ(UCS_OK, server_->answer(false));
    EXPECT_EQ(UCS_ERR_REJECTED, answer_of(ep));
    ASSERT_TRUE(until([&] { return client_->errors == 1; }));
    EXPECT_EQ(UCS_ERR_REJECTED, client_->status);
    EXPECT_EQ(UCS_ERR_REJECTED, uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, nullptr));
}

TEST_P(uct_sockaddr, reject_is_told_by_the_connect_callback_where_there_is_one)
{
    client_->connect(address_, true);
    ASSERT_TRUE(until([&] { return server_->waiting() == 1; }));
    EXPECT_EQ(UCS_OK, server_->answer(false));
    ASSERT_TRUE(until([&] { return client_->answered == 1; }));
    EXPECT_EQ(UCS_ERR_REJECTED, client_->status);
    EXPECT_EQ(0, client_->errors);
}

TEST_P(uct_sockaddr, many_connections_of_one_client)
{
    constexpr size_t count = 50;
    for (size_t i = 0; i < count; ++i) {
        client_->connect(address_);
    }
    for (size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(until([&] { return server_->waiting() > 0; }));
        EXPECT_EQ(UCS_OK, server_->answer(i % 2 == 0));
    }
    size_t accepted = 0;
    for (uct_ep_h ep : client_->eps) {
        accepted += answer_of(ep) == UCS_OK;
    }
    EXPECT_EQ(count / 2, accepted);
    EXPECT_TRUE(until([&] { return client_->errors == int(count / 2); }));
}

TEST_P(uct_sockaddr, client_that_leaves_before_the_answer)
{
    uct_ep_h ep = client_->connect(address_);
    ASSERT_TRUE(until([&] { return server_->waiting() == 1; }));
    client_->destroy(ep);
    // The server may not have noticed yet.
    ucs_status_t status = server_->answer(true);
    EXPECT_TRUE(status == UCS_OK || status == UCS_ERR_CONNECTION_RESET)
        << ucs_status_string(status);
    uct_ep_h next = client_->connect(address_);
    ASSERT_TRUE(until([&] { return server_->waiting() == 1; }));
    EXPECT_EQ(UCS_OK, server_->answer(true));
    EXPECT_EQ(UCS_OK, answer_of(next));
}

TEST_P(uct_sockaddr, client_that_leaves_after_the_answer)
{
    for (int i = 0; i < 10; ++i) {
        uct_ep_h ep = client_->connect(address_);
        ASSERT_TRUE(until([&] { return server_->waiting() == 1; }));
        EXPECT_EQ(UCS_OK, server_->answer(true));
        EXPECT_EQ(UCS_OK, answer_of(ep));
        client_->destroy(ep);
    }
    EXPECT_EQ(0, client_->errors + server_->errors);
}

TEST_P(uct_sockaddr, server_that_leaves_with_connections_is_an_error)
{
    uct_ep_h ep = client_->connect(address_);
    uct_ep_h listens = client_->connect(address_, true);
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(until([&] { return server_->waiting() > 0; }));
        EXPECT_EQ(UCS_OK, server_->answer(true));
    }
    EXPECT_EQ(UCS_OK, answer_of(ep));
    EXPECT_EQ(UCS_OK, answer_of(listens));
    server_->close();
    EXPECT_TRUE(until([&] { return client_->errors == 1 && client_->disconnected == 1; }));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, client_->status);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, nullptr));
}

TEST_P(uct_sockaddr, server_that_leaves_with_requests_not_answered_ends_them)
{
    constexpr int count = 30;
    for (int i = 0; i < count; ++i) {
        client_->connect(address_);
    }
    // Some have come, and wait for progress of the server or were handed out; some are on their
    // way.
    uct_worker_progress(client_->worker);
    if (GetParam().flags & UCT_CB_FLAG_ASYNC) {
        ASSERT_TRUE(until([&] { return server_->waiting() > 0; }));
        while (server_->waiting() > 0) {
            server_->answer(false);
        }
    }
    server_->close();
    // Those that came in meanwhile are the program's, which has nothing left to answer them by.
    // They end with the interface, as far as their clients hear of it.
    int unanswered = static_cast<int>(server_->waiting());
    EXPECT_TRUE(until([&] { return client_->errors >= count - unanswered; })) << client_->errors;
}

bool sleeps(pid_t thread)
{
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string text;
    std::getline(file, text);
    return text.compare(text.rfind(')') + 1, 2, " S") == 0; // behind the name
}

class uct_sockaddr_anywhere : public uct_sockaddr {};

// Closing waits for the callback, which answers when it does.
TEST_P(uct_sockaddr_anywhere, request_answered_in_its_callback_while_the_server_leaves)
{
    std::atomic<bool> called = false, closing = false;
    pid_t main_thread = gettid();
    server_->meanwhile = [&](uct_conn_request_h request) {
        called = true;
        EXPECT_TRUE(cm_test::wait([&] { return closing && sleeps(main_thread); }));
        EXPECT_EQ(UCS_OK, uct_iface_reject(server_->iface, request));
    };
    uct_ep_h ep = client_->connect(address_);
    // Without progress of the server, which would call back here.
    ASSERT_TRUE(cm_test::wait([&] {
        uct_worker_progress(client_->worker);
        return called.load();
    }));
    closing = true;
    server_->close();
    EXPECT_EQ(UCS_ERR_REJECTED, answer_of(ep));
}

TEST_P(uct_sockaddr, nobody_listens)
{
    server_->close();
    uct_ep_h ep = client_->connect(address_);
    ucs_status_t status = answer_of(ep);
    EXPECT_TRUE(status == UCS_ERR_NOT_CONNECTED || status == UCS_ERR_UNREACHABLE ||
                status == UCS_ERR_CONNECTION_RESET)
        << ucs_status_string(status);
    EXPECT_TRUE(until([&] { return client_->errors == 1; }));
}

TEST_P(uct_sockaddr, endpoint_destroyed_in_its_error_handler)
{
    client_->destroy_in_handler = true;
    client_->connect(address_);
    ASSERT_TRUE(until([&] { return server_->waiting() == 1; }));
    EXPECT_EQ(UCS_OK, server_->answer(false));
    EXPECT_TRUE(until([&] { return client_->errors == 1; }));
    EXPECT_TRUE(client_->eps.empty());
}

TEST_P(uct_sockaddr, pack_callback_that_fails_ends_the_connection_without_a_callback)
{
    client_->pack_result = UCS_ERR_BUSY;
    uct_ep_h ep = client_->connect(address_, true);
    EXPECT_EQ(UCS_ERR_BUSY, answer_of(ep));
    EXPECT_EQ(0, client_->answered + client_->errors);
    EXPECT_EQ(0u, server_->waiting());
}

TEST_P(uct_sockaddr, cancel_ends_what_waits)
{
    uct_ep_h ep = client_->connect(address_);
    ASSERT_TRUE(until([&] { return server_->waiting() == 1; }));
    guard g;
    ASSERT_EQ(UCS_INPROGRESS, uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, &g.completion));
    EXPECT_EQ(UCS_OK, uct_conformance::posting(
                          [&] { return uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, nullptr); }));
    EXPECT_TRUE(until([&] { return g.calls == 1; }));
    EXPECT_EQ(UCS_ERR_CANCELED, g.completion.status);
    server_->answer(false);
    EXPECT_EQ(0, client_->errors);
}

TEST_P(uct_sockaddr, calls_of_the_other_modes_are_refused)
{
    uct_ep_h ep = client_->connect(address_);
    ASSERT_TRUE(until([&] { return server_->waiting() == 1; }));
    uct_conn_request_h request = server_->requests.front();
    refused::keep_errors();
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, uct_iface_accept(client_->iface, request));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, uct_iface_reject(client_->iface, request));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, uct_ep_am_short(ep, 0, 0, nullptr, 0));
    uct_ep_params_t params{};
    ucs_sock_addr_t to{reinterpret_cast<const sockaddr *>(&address_), sizeof(sockaddr_in)};
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_SOCKADDR;
    params.iface = server_->iface;
    params.sockaddr = &to;
    uct_ep_h none = nullptr;
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, uct_ep_create(&params, &none));
    EXPECT_EQ(nullptr, none);
    refused::let_errors_go();
    EXPECT_EQ(UCS_OK, server_->answer(false));
}

TEST_P(uct_sockaddr, wrong_arguments_of_the_endpoint)
{
    refused::keep_errors();
    uct_ep_params_t params{};
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_SOCKADDR;
    params.iface = client_->iface;
    uct_ep_h none = nullptr;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_ep_create(&params, &none)); // NULL
    ucs_sock_addr_t to{reinterpret_cast<const sockaddr *>(&address_), 4};
    params.sockaddr = &to;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_ep_create(&params, &none)); // cut off
    sockaddr_storage odd{};
    odd.ss_family = AF_UNIX;
    to = {reinterpret_cast<const sockaddr *>(&odd), sizeof(odd)};
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_ep_create(&params, &none));
    to = {reinterpret_cast<const sockaddr *>(&address_), sizeof(sockaddr_in)};
    params.field_mask |= UCT_EP_PARAM_FIELD_SOCKADDR_PACK_CB;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_ep_create(&params, &none)); // callback NULL
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_ep_create(&params, &none)); // no address
    sockaddr_storage far = cm_test::ipv4("192.0.2.1", 1);
    if (std::string(GetParam().component) == "tcp") { // of loopback, which leads nowhere else
        params.field_mask |= UCT_EP_PARAM_FIELD_SOCKADDR;
        to = {reinterpret_cast<const sockaddr *>(&far), sizeof(sockaddr_in)};
        EXPECT_EQ(UCS_ERR_UNREACHABLE, uct_ep_create(&params, &none));
    }
    EXPECT_EQ(nullptr, none);
    refused::let_errors_go();
}

TEST_P(uct_sockaddr, wrong_arguments_of_the_interface)
{
    refused::keep_errors();
    uct_iface_h none = nullptr;
    auto open = [&](const uct_iface_params_t &params) {
        return uct_iface_open(domain_->md, server_->worker, &params, domain_->config, &none);
    };
    uct_iface_params_t good = server_->parameters(&address_, 0);
    uct_iface_params_t params = good;
    params.field_mask &= ~uint64_t(UCT_IFACE_PARAM_FIELD_SOCKADDR);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, open(params));
    params = good;
    params.mode.sockaddr.conn_request_cb = nullptr;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, open(params));
    params = good;
    params.mode.sockaddr.listen_sockaddr.addrlen = 3;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, open(params));
    params = good;
    params.open_mode |= UCT_IFACE_OPEN_MODE_SOCKADDR_CLIENT;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, open(params));
    EXPECT_EQ(UCS_ERR_BUSY, open(good)); // the port is taken
    sockaddr_storage far = cm_test::ipv4("192.0.2.1", 0);
    params = good;
    params.mode.sockaddr.listen_sockaddr.addr = reinterpret_cast<const sockaddr *>(&far);
    EXPECT_EQ(UCS_ERR_NO_DEVICE, open(params));
    EXPECT_EQ(nullptr, none);
    refused::let_errors_go();
}

std::string name_of(const testing::TestParamInfo<variant> &info)
{
    return std::string(info.param.component) +
           (info.param.flags & UCT_CB_FLAG_ASYNC ? "_anywhere" : "_in_progress");
}

INSTANTIATE_TEST_SUITE_P(on, uct_sockaddr,
                         testing::Values(variant{"tcp", 0}, variant{"tcp", UCT_CB_FLAG_ASYNC},
                                         variant{"verbs", 0}, variant{"verbs", UCT_CB_FLAG_ASYNC}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(on, uct_sockaddr_anywhere,
                         testing::Values(variant{"tcp", UCT_CB_FLAG_ASYNC},
                                         variant{"verbs", UCT_CB_FLAG_ASYNC}),
                         name_of);

} // namespace
