// SPDX-License-Identifier: BSD-3-Clause
// The contract of connection managers, for every component that has one. Numbers are those of the
// lists of behaviours that UCX's tests hold: 3_2 is the order of callbacks, 3_3 what a status
// means, 3_5 one case after the other. To enrol a component, add its name at the end of the file.
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/conformance/common/uct_cm_peer.h"

#include "fabtests-ext/common/sanitized.h"

#include <algorithm>
#include <malloc.h>
#include <map>
#include <netinet/tcp.h>
#include <sstream>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace cm_test;

class uct_cm_test : public ::testing::TestWithParam<const char *> {
  protected:
    void SetUp() override
    {
        if (!find_component(GetParam())) {
            GTEST_SKIP() << "no component " << GetParam() << " here";
        }
        address_ = test_address(GetParam());
    }

    void make_pair()
    {
        server_ = std::make_unique<entity>(GetParam());
        client_ = std::make_unique<entity>(GetParam());
    }

    void listen(acceptor::policy policy = acceptor::policy::accept_at_once)
    {
        acceptor_ = std::make_unique<acceptor>(*server_, address_, policy);
    }

    std::unique_ptr<peer> connect(const std::string &data = client_data)
    {
        auto p = std::make_unique<peer>(*client_);
        p->private_data = data;
        EXPECT_EQ(UCS_OK, p->connect(acceptor_->address()));
        return p;
    }

    // The only server endpoint.
    peer &accepted()
    {
        EXPECT_TRUE(wait([&] { return acceptor_->accepted_count() == 1; }));
        return acceptor_->accepted(0);
    }

    void expect_connected(peer &c)
    {
        EXPECT_TRUE(wait([&] { return c.answered == 1; }));
        EXPECT_EQ(UCS_OK, c.status);
        EXPECT_TRUE(wait([&] { return accepted().notified == 1; }));
        EXPECT_EQ(UCS_OK, accepted().status);
    }

    sockaddr_storage address_{};
    std::unique_ptr<entity> server_;
    std::unique_ptr<entity> client_;
    std::unique_ptr<acceptor> acceptor_;
};

TEST_P(uct_cm_test, 3_5_01_cm_query)
{
    make_pair();
    uct_cm_attr_t attr{};
    attr.field_mask = UCT_CM_ATTR_FIELD_MAX_CONN_PRIV;
    ASSERT_EQ(UCS_OK, uct_cm_query(server_->cm(), &attr));
    EXPECT_GE(attr.max_conn_priv, 1024u);
}

TEST_P(uct_cm_test, 3_5_02_listener_query)
{
    make_pair();
    listen();
    uct_listener_attr_t attr{};
    attr.field_mask = UCT_LISTENER_ATTR_FIELD_SOCKADDR;
    ASSERT_EQ(UCS_OK, uct_listener_query(acceptor_->listener(), &attr));
    EXPECT_NE(0, port_of(attr.sockaddr));
    EXPECT_EQ(0, memcmp(&reinterpret_cast<sockaddr_in &>(attr.sockaddr).sin_addr,
                        &reinterpret_cast<sockaddr_in &>(address_).sin_addr, 4));
}

TEST_P(uct_cm_test, 3_5_03_ep_query)
{
    make_pair();
    listen();
    auto c = connect();
    expect_connected(*c);
    uct_ep_attr_t ours{}, theirs{};
    ours.field_mask = theirs.field_mask =
        UCT_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCT_EP_ATTR_FIELD_REMOTE_SOCKADDR;
    ASSERT_EQ(UCS_OK, uct_ep_query(c->ep(), &ours));
    ASSERT_EQ(UCS_OK, uct_ep_query(accepted().ep(), &theirs));
    sockaddr_storage listening = acceptor_->address();
    EXPECT_TRUE(same_address(ours.remote_address, listening));
    EXPECT_TRUE(same_address(theirs.local_address, listening));
    EXPECT_TRUE(same_address(ours.local_address, theirs.remote_address));
}

// Messages may come before the event that the connection is up, and their reader may ask.
TEST_P(uct_cm_test, 3_5_03_a_server_knows_its_addresses_when_it_has_accepted)
{
    make_pair();
    listen(acceptor::policy::keep);
    auto c = connect();
    ASSERT_TRUE(wait([&] { return acceptor_->kept() == 1; }));
    ASSERT_EQ(UCS_OK, acceptor_->accept_kept());
    uct_ep_attr_t theirs{};
    theirs.field_mask = UCT_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCT_EP_ATTR_FIELD_REMOTE_SOCKADDR;
    ASSERT_EQ(UCS_OK, uct_ep_query(accepted().ep(), &theirs));
    EXPECT_TRUE(same_address(theirs.local_address, acceptor_->address()));
    EXPECT_TRUE(same_address(theirs.remote_address, acceptor_->client()));
    expect_connected(*c);
}

// The client may have gone by the time that the program asks.
TEST_P(uct_cm_test, 3_5_03_a_server_knows_its_addresses_when_the_client_has_ended)
{
    make_pair();
    listen();
    auto c = connect();
    expect_connected(*c);
    c.reset();
    ASSERT_TRUE(wait([&] { return accepted().disconnected == 1; }));
    uct_ep_attr_t theirs{};
    theirs.field_mask = UCT_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCT_EP_ATTR_FIELD_REMOTE_SOCKADDR;
    ASSERT_EQ(UCS_OK, uct_ep_query(accepted().ep(), &theirs));
    EXPECT_TRUE(same_address(theirs.local_address, acceptor_->address()));
    EXPECT_TRUE(same_address(theirs.remote_address, acceptor_->client()));
}

TEST_P(uct_cm_test, 3_5_04_set_local_sockaddr)
{
    make_pair();
    listen();
    peer c(*client_);
    c.private_data = client_data;
    sockaddr_storage local = address_;
    set_port(local, 0);
    c.local = &local;
    ASSERT_EQ(UCS_OK, c.connect(acceptor_->address()));
    expect_connected(c);
    uct_ep_attr_t attr{};
    attr.field_mask = UCT_EP_ATTR_FIELD_LOCAL_SOCKADDR;
    ASSERT_EQ(UCS_OK, uct_ep_query(c.ep(), &attr));
    set_port(attr.local_address, 0);
    EXPECT_TRUE(same_address(attr.local_address, local));
}

TEST_P(uct_cm_test, 3_3_local_sockaddr_that_is_not_ours_fails)
{
    make_pair();
    listen();
    peer c(*client_);
    sockaddr_storage local = ipv4("192.0.2.1", 0);
    c.local = &local;
    ASSERT_EQ(UCS_OK, c.connect(acceptor_->address()));
    ASSERT_TRUE(wait([&] { return c.failed(); }));
    EXPECT_EQ(0u, acceptor_->requests());
}

TEST_P(uct_cm_test, 3_5_05_cm_open_listen_close)
{
    make_pair();
    listen();
    auto c = connect();
    expect_connected(*c);
    EXPECT_EQ(1, c->resolved);
    EXPECT_FALSE(c->device.empty());
    EXPECT_FALSE(acceptor_->device().empty());
    EXPECT_EQ(client_data, acceptor_->data());
    EXPECT_EQ(server_data, c->received);
    EXPECT_EQ(0, c->disconnected);

    EXPECT_EQ(UCS_OK, uct_ep_disconnect(c->ep(), 0));
    EXPECT_TRUE(wait([&] { return accepted().disconnected == 1; }));
    EXPECT_EQ(UCS_OK, uct_ep_disconnect(accepted().ep(), 0));
    EXPECT_TRUE(wait([&] { return c->disconnected == 1; }));
}

TEST_P(uct_cm_test, 3_5_06_cm_open_listen_close_large_priv_data)
{
    server_ = std::make_unique<entity>(GetParam(), "900k");
    client_ = std::make_unique<entity>(GetParam(), "900k");
    listen();
    std::string large(420 * 1024, 'c');
    for (size_t i = 0; i < large.size(); ++i) {
        large[i] = static_cast<char>(i * 7 + i / 251);
    }
    acceptor_->reply_data = large;
    std::reverse(acceptor_->reply_data.begin(), acceptor_->reply_data.end());
    auto c = connect(large);
    expect_connected(*c);
    EXPECT_TRUE(large == acceptor_->data());
    EXPECT_TRUE(acceptor_->reply_data == c->received);
}

// Every length around the borders of what a core carries at connect and of a message.
TEST_P(uct_cm_test, private_data_of_every_length)
{
    make_pair();
    listen();
    size_t done = 0;
    for (size_t length : {0,   1,    31,   32,   33,   40,   41,   239,  240,  241,
                          256, 1024, 2031, 2032, 2033, 2271, 2272, 2273, 4095, 4096}) {
        acceptor_->reply_data = std::string(length, 's');
        auto c = connect(std::string(length, 'c'));
        ASSERT_TRUE(wait([&] { return c->answered == 1; })) << length;
        EXPECT_EQ(UCS_OK, c->status);
        EXPECT_EQ(acceptor_->reply_data, c->received);
        EXPECT_EQ(std::string(length, 'c'), acceptor_->data());
        ++done;
        ASSERT_TRUE(wait([&] { return acceptor_->accepted_count() == done; }));
        ASSERT_TRUE(wait([&] { return acceptor_->accepted(done - 1).notified == 1; }));
    }
}

TEST_P(uct_cm_test, 3_2_private_data_too_long)
{
    make_pair();
    listen();
    peer c(*client_);
    c.private_data = std::string(client_->max_conn_priv() + 1, 'x');
    ASSERT_EQ(UCS_OK, c.create(acceptor_->address()));
    ASSERT_TRUE(wait([&] { return c.resolved == 1; }));
    EXPECT_EQ(UCS_ERR_BUFFER_TOO_SMALL, c.connect_status);
    EXPECT_EQ(0u, acceptor_->requests());
}

TEST_P(uct_cm_test, 3_5_07_cm_open_listen_kill_server)
{
    make_pair();
    listen();
    auto c = connect();
    expect_connected(*c);
    acceptor_.reset();
    server_.reset();
    EXPECT_TRUE(wait([&] { return c->disconnected == 1; }));
}

TEST_P(uct_cm_test, 3_5_08_cm_server_reject)
{
    make_pair();
    listen(acceptor::policy::reject_at_once);
    auto c = connect();
    ASSERT_TRUE(wait([&] { return c->answered == 1; }));
    EXPECT_EQ(UCS_ERR_REJECTED, c->status);
    EXPECT_EQ(1u, acceptor_->requests());
    EXPECT_EQ(UCS_OK, acceptor_->reject_status);
    EXPECT_EQ(UCS_ERR_NOT_CONNECTED, uct_ep_disconnect(c->ep(), 0));
    EXPECT_EQ(0, c->disconnected);
}

TEST_P(uct_cm_test, cm_server_reject_large_priv_data)
{
    make_pair();
    listen(acceptor::policy::reject_at_once);
    auto c = connect(std::string(4096, 'x'));
    ASSERT_TRUE(wait([&] { return c->answered == 1; }));
    EXPECT_EQ(UCS_ERR_REJECTED, c->status);
}

TEST_P(uct_cm_test, 3_5_09_cm_server_reject_stress)
{
    make_pair();
    for (int i = 0; i < 100; ++i) {
        listen(acceptor::policy::reject_at_once);
        auto c = connect(i % 2 ? client_data : std::string(3000, 'x'));
        ASSERT_TRUE(wait([&] { return c->answered == 1; })) << i;
        EXPECT_EQ(UCS_ERR_REJECTED, c->status);
        c.reset();
        acceptor_.reset();
    }
}

TEST_P(uct_cm_test, 3_3_pack_callback_of_server_rejects)
{
    make_pair();
    listen(acceptor::policy::refuse_in_pack);
    auto c = connect();
    ASSERT_TRUE(wait([&] { return c->answered == 1; }));
    EXPECT_EQ(UCS_ERR_REJECTED, c->status);
    EXPECT_EQ(UCS_ERR_BUSY, acceptor_->create_status);
}

TEST_P(uct_cm_test, 3_5_10_many_conns_on_client)
{
    make_pair();
    listen();
    constexpr size_t count = 100;
    std::vector<std::unique_ptr<peer>> clients;
    for (size_t i = 0; i < count; ++i) {
        clients.push_back(connect());
    }
    ASSERT_TRUE(wait([&] { return acceptor_->accepted_count() == count; }));
    for (size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(wait([&] { return clients[i]->answered == 1; }));
        ASSERT_EQ(UCS_OK, clients[i]->status);
        ASSERT_TRUE(wait([&] { return acceptor_->accepted(i).notified == 1; }));
        ASSERT_EQ(UCS_OK, acceptor_->accepted(i).status);
    }
    for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(UCS_OK, uct_ep_disconnect(acceptor_->accepted(i).ep(), 0));
    }
    for (size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(wait([&] { return clients[i]->disconnected == 1; }));
        EXPECT_EQ(UCS_OK, uct_ep_disconnect(clients[i]->ep(), 0));
    }
    for (size_t i = 0; i < count; ++i) {
        EXPECT_TRUE(wait([&] { return acceptor_->accepted(i).disconnected == 1; }));
    }
}

bool no_server(ucs_status_t status)
{
    return status == UCS_ERR_UNREACHABLE || status == UCS_ERR_NOT_CONNECTED ||
           status == UCS_ERR_CONNECTION_RESET;
}

TEST_P(uct_cm_test, 3_5_11_err_handle)
{
    make_pair();
    listen();
    sockaddr_storage nobody = acceptor_->address();
    acceptor_.reset();
    peer c(*client_);
    c.private_data = client_data;
    ASSERT_EQ(UCS_OK, c.connect(nobody));
    ASSERT_TRUE(wait([&] { return c.failed(); }));
    EXPECT_TRUE(no_server(c.status)) << ucs_status_string(c.status);
}

TEST_P(uct_cm_test, 3_5_12_conn_to_non_exist_server_port)
{
    make_pair();
    listen();
    sockaddr_storage nobody = acceptor_->address();
    set_port(nobody, 1);
    peer c(*client_);
    ASSERT_EQ(UCS_OK, c.connect(nobody));
    ASSERT_TRUE(wait([&] { return c.failed(); }));
    EXPECT_TRUE(no_server(c.status)) << ucs_status_string(c.status);
    EXPECT_EQ(0u, acceptor_->requests());
}

TEST_P(uct_cm_test, 3_5_19_conn_to_non_exist_ip)
{
    make_pair();
    peer c(*client_);
    ASSERT_EQ(UCS_OK, c.connect(ipv4("240.0.0.0", 1337)));
    ASSERT_TRUE(wait([&] { return c.failed(); }));
    EXPECT_TRUE(no_server(c.status)) << ucs_status_string(c.status);
}

TEST_P(uct_cm_test, 3_5_13_connect_client_to_server_with_delay)
{
    make_pair();
    listen(acceptor::policy::keep);
    auto c = connect();
    ASSERT_TRUE(wait([&] { return acceptor_->kept() == 1; }));
    usleep(50000);
    EXPECT_EQ(0, c->answered);
    EXPECT_EQ(UCS_OK, acceptor_->accept_kept());
    expect_connected(*c);
}

TEST_P(uct_cm_test, 3_5_14_destroy_client_before_accept)
{
    make_pair();
    for (size_t length : {20, 3000}) {
        listen(acceptor::policy::keep);
        auto c = connect(std::string(length, 'x'));
        ASSERT_TRUE(wait([&] { return acceptor_->kept() == 1; }));
        c.reset();
        usleep(50000);
        ucs_status_t status = acceptor_->accept_kept();
        EXPECT_TRUE(status == UCS_OK || no_server(status));
        if (status == UCS_OK) {
            ASSERT_TRUE(wait([&] { return accepted().notified == 1; }));
            EXPECT_TRUE(no_server(accepted().status));
        }
        acceptor_.reset();
    }
}

TEST_P(uct_cm_test, 3_5_15_connect_client_to_server_reject_with_delay)
{
    make_pair();
    for (size_t length : {20, 3000}) {
        listen(acceptor::policy::keep);
        auto c = connect(std::string(length, 'x'));
        ASSERT_TRUE(wait([&] { return acceptor_->kept() == 1; }));
        usleep(20000);
        EXPECT_EQ(UCS_OK, acceptor_->reject_kept());
        ASSERT_TRUE(wait([&] { return c->answered == 1; }));
        EXPECT_EQ(UCS_ERR_REJECTED, c->status);
        acceptor_.reset();
    }
}

TEST_P(uct_cm_test, 3_5_16_destroy_client_before_reject)
{
    make_pair();
    for (size_t length : {20, 3000}) {
        listen(acceptor::policy::keep);
        auto c = connect(std::string(length, 'x'));
        ASSERT_TRUE(wait([&] { return acceptor_->kept() == 1; }));
        c.reset();
        usleep(20000);
        ucs_status_t status = acceptor_->reject_kept();
        EXPECT_TRUE(status == UCS_OK || no_server(status));
        acceptor_.reset();
    }
}

TEST_P(uct_cm_test, request_outlives_listener)
{
    make_pair();
    listen(acceptor::policy::keep);
    auto a = connect();
    auto b = connect();
    ASSERT_TRUE(wait([&] { return acceptor_->kept() == 2; }));
    acceptor_->destroy_listener();
    EXPECT_EQ(UCS_OK, acceptor_->accept_kept());
    ASSERT_TRUE(wait([&] { return a->answered + b->answered == 1; }));
    EXPECT_EQ(UCS_OK, a->answered ? a->status : b->status);
}

TEST_P(uct_cm_test, a_request_is_answered_once)
{
    make_pair();
    listen(acceptor::policy::keep);
    auto c = connect();
    ASSERT_TRUE(wait([&] { return acceptor_->kept() == 1; }));
    uct_conn_request_h request = acceptor_->first_kept();
    EXPECT_EQ(UCS_OK, acceptor_->accept_kept());
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_listener_reject(acceptor_->listener(), request));
    peer second(*server_);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, second.accept(request, false));
    expect_connected(*c);
}

TEST_P(uct_cm_test, 3_5_17_ep_disconnect_err_codes)
{
    make_pair();
    listen(acceptor::policy::keep);
    auto c = connect();
    ASSERT_TRUE(wait([&] { return acceptor_->kept() == 1; }));
    EXPECT_EQ(UCS_ERR_BUSY, uct_ep_disconnect(c->ep(), 0));
    EXPECT_EQ(UCS_OK, acceptor_->accept_kept());
    expect_connected(*c);
    peer &s = accepted();
    EXPECT_EQ(UCS_OK, uct_ep_disconnect(c->ep(), 0));
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_disconnect(c->ep(), 0));
    ASSERT_TRUE(wait([&] { return s.disconnected == 1; }));
    EXPECT_EQ(UCS_INPROGRESS, uct_ep_disconnect(c->ep(), 0));
    EXPECT_EQ(UCS_OK, uct_ep_disconnect(s.ep(), 0));
    ASSERT_TRUE(wait([&] { return c->disconnected == 1; }));
    EXPECT_EQ(UCS_ERR_NOT_CONNECTED, uct_ep_disconnect(c->ep(), 0));
    EXPECT_EQ(UCS_ERR_NOT_CONNECTED, uct_ep_disconnect(s.ep(), 0));
}

TEST_P(uct_cm_test, 3_5_18_concurrent_handle_conn_req_and_close_listener)
{
    make_pair();
    listen(acceptor::policy::reject_slowly);
    auto c = connect();
    ASSERT_TRUE(wait([&] { return acceptor_->requests() == 1; })); // its callback rests now
    acceptor_->destroy_listener();
    EXPECT_FALSE(acceptor_->in_callback.load()) << "the callback still runs";
    ASSERT_TRUE(wait([&] { return c->answered == 1; }));
    EXPECT_EQ(UCS_ERR_REJECTED, c->status);
}

// As many as the system lets a process have; over verbs a manager takes ten.
void allow_many_descriptors()
{
    rlimit limit{};
    ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
}

TEST_P(uct_cm_test, 3_5_20_many_clients_to_one_server)
{
    allow_many_descriptors();
    make_pair();
    listen();
    acceptor_->answer_disconnect = true; // every accepted endpoint takes it over
    constexpr size_t count = 100;
    std::vector<std::unique_ptr<entity>> managers;
    std::vector<std::unique_ptr<peer>> clients;
    for (size_t i = 0; i < count; ++i) {
        managers.push_back(std::make_unique<entity>(GetParam()));
        clients.push_back(std::make_unique<peer>(*managers.back()));
        clients.back()->private_data = std::to_string(i);
        clients.back()->answer_disconnect = true;
        ASSERT_EQ(UCS_OK, clients.back()->connect(acceptor_->address()));
    }
    ASSERT_TRUE(wait([&] { return acceptor_->accepted_count() == count; }));
    for (size_t i = 0; i < count; ++i) {
        ASSERT_TRUE(wait([&] { return acceptor_->accepted(i).notified == 1; }));
    }
    // Requests need not arrive in the order in which they were made.
    std::map<std::string, peer *> other_end;
    for (size_t i = 0; i < count; ++i) {
        other_end[acceptor_->accepted(i).received] = &acceptor_->accepted(i);
    }
    ASSERT_EQ(count, other_end.size());
    std::mt19937 random(1);
    for (size_t i = 0; i < count; ++i) {
        unsigned who = random() % 3 + 1;
        if (who & 1) {
            clients[i]->ask_disconnect();
        }
        if (who & 2) {
            other_end.at(std::to_string(i))->ask_disconnect();
        }
    }
    for (size_t i = 0; i < count; ++i) {
        EXPECT_TRUE(wait([&] { return clients[i]->disconnected == 1; })) << i;
        EXPECT_TRUE(wait([&] { return acceptor_->accepted(i).disconnected == 1; })) << i;
    }
    clients.clear();
}

TEST_P(uct_cm_test, 3_5_21_server_switch_cm)
{
    make_pair();
    entity other(GetParam());
    for (size_t length : {20, 3000}) {
        listen();
        acceptor_->accept_on = &other;
        auto c = connect(std::string(length, 'x'));
        expect_connected(*c);
        EXPECT_EQ(server_data, c->received);
        EXPECT_EQ(UCS_OK, uct_ep_disconnect(c->ep(), 0));
        EXPECT_TRUE(wait([&] { return accepted().disconnected == 1; }));
        c.reset();
        acceptor_.reset();
    }
}

TEST_P(uct_cm_test, 3_5_22_legacy_cm_open_listen_close)
{
    make_pair();
    listen(acceptor::policy::accept_with_pack);
    peer c(*client_);
    c.private_data = client_data;
    c.use_pack = true;
    ASSERT_EQ(UCS_OK, c.connect(acceptor_->address()));
    expect_connected(c);
    EXPECT_EQ(client_data, acceptor_->data());
    EXPECT_EQ(server_data, c.received);
    EXPECT_EQ(0, c.resolved);
}

TEST_P(uct_cm_test, 3_2_failing_pack_callback_is_the_last)
{
    make_pair();
    listen();
    peer c(*client_);
    c.use_pack = true;
    c.pack_result = UCS_ERR_NO_MEMORY;
    ASSERT_EQ(UCS_OK, c.connect(acceptor_->address()));
    ASSERT_TRUE(wait([&] { return c.packed == 1; }));
    usleep(50000);
    EXPECT_EQ(0, c.answered);
    EXPECT_EQ(0u, acceptor_->requests());
}

TEST_P(uct_cm_test, 3_2_failing_resolve_callback_is_the_last)
{
    make_pair();
    listen();
    peer c(*client_);
    c.resolve_result = UCS_ERR_NO_MEMORY;
    ASSERT_EQ(UCS_OK, c.connect(acceptor_->address()));
    ASSERT_TRUE(wait([&] { return c.resolved == 1; }));
    usleep(50000);
    EXPECT_EQ(0, c.answered);
}

TEST_P(uct_cm_test, 3_2_connect_after_the_resolve_callback)
{
    make_pair();
    listen();
    peer c(*client_);
    c.private_data = client_data;
    c.connect_by_hand = true;
    ASSERT_EQ(UCS_OK, c.connect(acceptor_->address()));
    ASSERT_TRUE(wait([&] { return c.resolved == 1; }));
    EXPECT_EQ(0u, acceptor_->requests());
    EXPECT_EQ(UCS_OK, c.send_private_data());
    expect_connected(c);
}

TEST_P(uct_cm_test, 3_2_notify_after_the_connect_callback)
{
    make_pair();
    listen();
    peer c(*client_);
    c.notify_by_hand = true;
    ASSERT_EQ(UCS_OK, c.connect(acceptor_->address()));
    ASSERT_TRUE(wait([&] { return c.answered == 1; }));
    usleep(20000);
    EXPECT_EQ(0, accepted().notified);
    EXPECT_EQ(UCS_OK, uct_cm_client_ep_conn_notify(c.ep()));
    ASSERT_TRUE(wait([&] { return accepted().notified == 1; }));
}

TEST_P(uct_cm_test, 3_2_notify_of_a_lost_connection)
{
    make_pair();
    listen();
    peer c(*client_);
    c.notify_by_hand = true;
    ASSERT_EQ(UCS_OK, c.connect(acceptor_->address()));
    ASSERT_TRUE(wait([&] { return c.answered == 1; }));
    acceptor_.reset();
    ASSERT_TRUE(wait([&] { return c.disconnected == 1; }));
    EXPECT_EQ(UCS_ERR_NOT_CONNECTED, uct_cm_client_ep_conn_notify(c.ep()));
}

TEST_P(uct_cm_test, 3_2_client_that_leaves_before_notify)
{
    make_pair();
    listen();
    {
        peer c(*client_);
        c.notify_by_hand = true;
        ASSERT_EQ(UCS_OK, c.connect(acceptor_->address()));
        ASSERT_TRUE(wait([&] { return c.answered == 1; }));
    }
    ASSERT_TRUE(wait([&] { return accepted().notified == 1; }));
    EXPECT_TRUE(no_server(accepted().status));
    EXPECT_EQ(0, accepted().disconnected);
}

// Destroyed in each of its callbacks, and from another thread while they run.
TEST_P(uct_cm_test, 3_2_destroy_in_every_callback)
{
    make_pair();
    listen();
    for (peer::stage stage :
         {peer::stage::resolve, peer::stage::connect, peer::stage::disconnect}) {
        auto c = std::make_unique<peer>(*client_);
        c->private_data = client_data;
        c->destroy_in = stage;
        ASSERT_EQ(UCS_OK, c->connect(acceptor_->address()));
        if (stage == peer::stage::disconnect) {
            ASSERT_TRUE(wait([&] { return c->answered == 1; }));
            ASSERT_TRUE(wait([&] {
                return acceptor_->accepted_count() == 2 && acceptor_->accepted(1).notified == 1;
            }));
            EXPECT_EQ(UCS_OK, uct_ep_disconnect(acceptor_->accepted(1).ep(), 0));
        }
        ASSERT_TRUE(wait([&] { return c->destroyed && !c->in_callback; }));
    }
    usleep(20000);
}

TEST_P(uct_cm_test, 3_2_destroy_waits_for_its_callback)
{
    make_pair();
    listen();
    peer c(*client_);
    c.slow_resolve = true;
    c.connect_by_hand = true;
    ASSERT_EQ(UCS_OK, c.connect(acceptor_->address()));
    ASSERT_TRUE(wait([&] { return c.resolves.load(); })); // its callback rests now
    c.destroy();
    EXPECT_FALSE(c.in_callback.load());
}

// What was allocated and not freed. What the process has of memory says less: where something small
// stays, like what libfabric forgets, the next large piece touches new pages.
size_t allocated_bytes()
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

// Sanitizers keep freed memory for a while.
constexpr bool memory_counts = !sanitized;

class uct_cm_growth_test : public uct_cm_test {
  protected:
    // once(i) a thousand times, or as often as an emulated device can within its time; what the
    // first fifty leave is what the process needs.
    template <class F>
    void thousand_times(F &&once)
    {
        size_t files = 0, bytes = 0;
        size_t count = std::string(GetParam()) == "verbs" ? 150 : 1000;
        for (size_t i = 0; i < count && !HasFatalFailure(); ++i) {
            once(i);
            if (i == 50) {
                files = open_files();
                bytes = allocated_bytes();
            }
        }
        // The last one's may still be going.
        EXPECT_TRUE(wait([&] { return open_files() <= files + 2; })) << open_files() - files;
        if (memory_counts) {
            EXPECT_LE(allocated_bytes(), bytes + 512 * 1024) << "half a KiB each";
        }
    }
};

TEST_P(uct_cm_growth_test, thousand_connections_leave_nothing)
{
    make_pair();
    listen();
    thousand_times([&](size_t i) {
        {
            auto c = connect(i % 10 ? client_data : std::string(3000, 'x'));
            ASSERT_TRUE(wait([&] { return c->answered == 1; })) << i;
            ASSERT_EQ(UCS_OK, c->status) << i;
            ASSERT_TRUE(wait([&] { return acceptor_->accepted_count() == 1; }));
            ASSERT_TRUE(wait([&] { return acceptor_->accepted(0).notified == 1; }));
        }
        acceptor_->drop_accepted();
    });
}

// Before libfabric 2.3 each rejection over verbs leaves the 690 bytes of a request's rdma_cm_id,
// which fi_reject() does not destroy: a loop of bare fi_connect() and fi_reject() grows by as much.
TEST_P(uct_cm_growth_test, thousand_rejections_leave_nothing)
{
    make_pair();
    listen(acceptor::policy::reject_at_once);
    thousand_times([&](size_t i) {
        auto c = connect(i % 10 ? client_data : std::string(3000, 'x'));
        ASSERT_TRUE(wait([&] { return c->answered == 1; })) << i;
        ASSERT_EQ(UCS_ERR_REJECTED, c->status) << i;
    });
}

TEST_P(uct_cm_growth_test, idle_connection_takes_one_descriptor_a_side)
{
    make_pair();
    listen();
    { // queues and domains
        auto first = connect();
        expect_connected(*first);
        acceptor_->drop_accepted();
    }
    constexpr size_t count = 100;
    size_t before = open_files();
    std::vector<std::unique_ptr<peer>> clients;
    for (size_t i = 0; i < count; ++i) {
        clients.push_back(connect());
        ASSERT_TRUE(wait([&] { return acceptor_->accepted_count() == i + 1; }));
        ASSERT_TRUE(wait([&] { return acceptor_->accepted(i).notified == 1; }));
    }
    EXPECT_LE(open_files(), before + 2 * count);
}

TEST_P(uct_cm_test, 3_3_port_in_use)
{
    make_pair();
    listen();
    uct_listener_h second = nullptr;
    sockaddr_storage taken = acceptor_->address();
    EXPECT_EQ(UCS_ERR_BUSY, acceptor::create(*server_, taken, nullptr, &second));
}

TEST_P(uct_cm_test, listen_on_any_address)
{
    make_pair();
    sockaddr_storage any = ipv4("0.0.0.0", 0);
    acceptor_ = std::make_unique<acceptor>(*server_, any, acceptor::policy::accept_at_once);
    sockaddr_storage target = address_;
    set_port(target, port_of(acceptor_->address()));
    peer c(*client_);
    ASSERT_EQ(UCS_OK, c.connect(target));
    expect_connected(c);
}

TEST_P(uct_cm_test, ipv6)
{
    if (std::string(GetParam()) != "tcp") {
        GTEST_SKIP() << "the loopback address is tcp's";
    }
    make_pair();
    sockaddr_storage any{};
    auto &in6 = reinterpret_cast<sockaddr_in6 &>(any);
    in6.sin6_family = AF_INET6;
    in6.sin6_addr = in6addr_loopback;
    uct_listener_h probe = nullptr;
    if (acceptor::create(*server_, any, nullptr, &probe) != UCS_OK) {
        GTEST_SKIP() << "no IPv6 here";
    }
    uct_listener_destroy(probe);
    acceptor_ = std::make_unique<acceptor>(*server_, any, acceptor::policy::accept_at_once);
    peer c(*client_);
    c.private_data = client_data;
    ASSERT_EQ(UCS_OK, c.connect(acceptor_->address()));
    expect_connected(c);
}

TEST_P(uct_cm_test, wrong_arguments)
{
    make_pair();
    listen();
    peer unused(*client_);
    uct_ep_h ep = nullptr;
    sockaddr_storage target = acceptor_->address();
    ucs_sock_addr_t to{reinterpret_cast<sockaddr *>(&target), sizeof(sockaddr_in)};
    uct_ep_params_t params{};
    params.cm = client_->cm();
    params.sockaddr = &to;
    params.field_mask = UCT_EP_PARAM_FIELD_CM | UCT_EP_PARAM_FIELD_SOCKADDR;
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, uct_ep_create(&params, &ep)) << "no callback flags";
    params.field_mask |= UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS;
    params.sockaddr_cb_flags = 0;
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, uct_ep_create(&params, &ep)) << "not asynchronous";
    params.sockaddr_cb_flags = UCT_CB_FLAG_ASYNC;
    params.field_mask |= UCT_EP_PARAM_FIELD_CM_RESOLVE_CB;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_ep_create(&params, &ep)) << "callback NULL";
    params.field_mask &= ~(UCT_EP_PARAM_FIELD_SOCKADDR | UCT_EP_PARAM_FIELD_CM_RESOLVE_CB);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_ep_create(&params, &ep)) << "no address";
    params.field_mask |= UCT_EP_PARAM_FIELD_CONN_REQUEST;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_ep_create(&params, &ep)) << "no request";

    uct_listener_params_t listen_params{};
    uct_listener_h listener = nullptr;
    auto *address = reinterpret_cast<sockaddr *>(&target);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_listener_create(client_->cm(), address, sizeof(target),
                                                         &listen_params, &listener));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, acceptor::create(*client_, target, nullptr, &listener, 2));
    target.ss_family = AF_UNIX;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, acceptor::create(*client_, target, nullptr, &listener));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_cm_query(nullptr, nullptr));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_listener_query(nullptr, nullptr));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_listener_reject(acceptor_->listener(), nullptr));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_ep_connect(nullptr, nullptr));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_ep_disconnect(nullptr, 0));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_cm_client_ep_conn_notify(nullptr));
}

// What the addresses and names in the callbacks are good for.
TEST_P(uct_cm_test, 3_2_request_tells_client_and_device)
{
    make_pair();
    listen();
    auto c = connect();
    expect_connected(*c);
    uct_ep_attr_t attr{};
    attr.field_mask = UCT_EP_ATTR_FIELD_LOCAL_SOCKADDR;
    ASSERT_EQ(UCS_OK, uct_ep_query(c->ep(), &attr));
    EXPECT_TRUE(same_address(attr.local_address, acceptor_->client()));

    // An interface on the device that was named reaches the client's device.
    uct_component_h component = find_component(GetParam());
    uct_md_config_t *md_config = nullptr;
    uct_md_h md = nullptr;
    ASSERT_EQ(UCS_OK, uct_md_config_read(component, nullptr, nullptr, &md_config));
    ASSERT_EQ(UCS_OK, uct_md_open(component, acceptor_->device().c_str(), md_config, &md));
    uct_config_release(md_config);
    uct_worker_h worker = nullptr;
    ASSERT_EQ(UCS_OK, uct_worker_create(nullptr, UCS_THREAD_MODE_SINGLE, &worker));
    uct_iface_config_t *config = nullptr;
    ASSERT_EQ(UCS_OK, uct_md_iface_config_read(md, GetParam(), nullptr, nullptr, &config));
    uct_iface_params_t params{};
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    std::string device = acceptor_->device();
    params.mode.device.tl_name = GetParam();
    params.mode.device.dev_name = device.c_str();
    uct_iface_h iface = nullptr;
    ASSERT_EQ(UCS_OK, uct_iface_open(md, worker, &params, config, &iface));
    uct_config_release(config);
    std::string address = acceptor_->client_device_address();
    EXPECT_TRUE(uct_iface_is_reachable(
        iface, reinterpret_cast<const uct_device_addr_t *>(address.data()), nullptr));
    uct_iface_close(iface);
    uct_worker_destroy(worker);
    uct_md_close(md);
}

// The callback may be faster than the return of uct_ep_create(), but not than its result.
TEST_P(uct_cm_test, 3_2_a_client_has_its_handle_before_its_first_callback)
{
    make_pair();
    listen();
    struct early {
        uct_ep_h ep = nullptr;
        std::atomic<int> seen = -1;
    };
    sockaddr_storage to = acceptor_->address();
    ucs_sock_addr_t remote{reinterpret_cast<sockaddr *>(&to), sizeof(sockaddr_in)};
    for (int i = 0; i < 1000; ++i) {
        early e;
        uct_ep_params_t params{};
        params.field_mask = UCT_EP_PARAM_FIELD_CM | UCT_EP_PARAM_FIELD_USER_DATA |
                            UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS | UCT_EP_PARAM_FIELD_SOCKADDR |
                            UCT_EP_PARAM_FIELD_CM_RESOLVE_CB;
        params.cm = client_->cm();
        params.user_data = &e;
        params.sockaddr_cb_flags = UCT_CB_FLAG_ASYNC;
        params.sockaddr = &remote;
        params.cm_resolve_cb = [](void *arg, const uct_cm_ep_resolve_args_t *) {
            auto *self = static_cast<early *>(arg);
            self->seen = self->ep != nullptr;
            return UCS_ERR_CANCELED; // the last one
        };
        ASSERT_EQ(UCS_OK, uct_ep_create(&params, &e.ep));
        ASSERT_TRUE(wait([&] { return e.seen >= 0; }));
        uct_ep_destroy(e.ep);
        ASSERT_EQ(1, e.seen) << i;
    }
}

TEST_P(uct_cm_test, a_client_that_does_not_confirm_the_answer_is_given_up)
{
    server_ = std::make_unique<entity>(GetParam(), nullptr, nullptr, "10ms");
    client_ = std::make_unique<entity>(GetParam());
    listen();
    peer c(*client_);
    c.notify_by_hand = true;
    ASSERT_EQ(UCS_OK, c.connect(acceptor_->address()));
    ASSERT_TRUE(wait([&] { return c.answered == 1; }));
    ASSERT_TRUE(wait([&] { return accepted().notified == 1; }));
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, accepted().status);
    EXPECT_TRUE(wait([&] { return c.disconnected == 1; }));
}

TEST_P(uct_cm_test, 3_2_resolve_and_pack_exclude_each_other)
{
    make_pair();
    listen();
    sockaddr_storage target = acceptor_->address();
    ucs_sock_addr_t to{reinterpret_cast<sockaddr *>(&target), sizeof(sockaddr_in)};
    uct_ep_params_t params{};
    params.field_mask = UCT_EP_PARAM_FIELD_CM | UCT_EP_PARAM_FIELD_SOCKADDR |
                        UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS | UCT_EP_PARAM_FIELD_CM_RESOLVE_CB |
                        UCT_EP_PARAM_FIELD_SOCKADDR_PACK_CB;
    params.cm = client_->cm();
    params.sockaddr = &to;
    params.sockaddr_cb_flags = UCT_CB_FLAG_ASYNC;
    params.cm_resolve_cb = [](void *, const uct_cm_ep_resolve_args_t *) { return UCS_OK; };
    params.sockaddr_pack_cb = [](void *, const uct_cm_ep_priv_data_pack_args_t *, void *) {
        return static_cast<ssize_t>(0);
    };
    uct_ep_h ep = nullptr;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_ep_create(&params, &ep));
}

TEST_P(uct_cm_test, 3_2_connect_is_not_for_who_packs)
{
    make_pair();
    listen(acceptor::policy::keep);
    peer c(*client_);
    c.private_data = client_data;
    c.use_pack = true;
    ASSERT_EQ(UCS_OK, c.connect(acceptor_->address()));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, c.send_private_data());
    ASSERT_TRUE(wait([&] { return acceptor_->kept() == 1; }));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, c.send_private_data());
    EXPECT_EQ(UCS_OK, acceptor_->accept_kept());
    expect_connected(c);
}

TEST_P(uct_cm_test, 3_2_private_data_of_server_too_long)
{
    make_pair();
    listen();
    acceptor_->reply_data = std::string(server_->max_conn_priv() + 1, 'x');
    auto c = connect();
    ASSERT_TRUE(wait([&] { return c->answered == 1; }));
    EXPECT_EQ(UCS_ERR_REJECTED, c->status);
    EXPECT_EQ(UCS_ERR_BUFFER_TOO_SMALL, acceptor_->create_status);
}

// The same with the turns taken by the thread that polls the workers.
TEST_P(uct_cm_test, 3_2_polled_workers_drive_connections)
{
    make_pair();
    listen();
    acceptor_->answer_disconnect = true;
    auto poll = [&](auto &&done) {
        return wait([&] {
            for (int i = 0; i < 100 && !done(); ++i) {
                server_->progress();
                client_->progress();
            }
            return done();
        });
    };
    for (size_t i = 0; i < 20; ++i) {
        auto c = connect();
        ASSERT_TRUE(poll([&] { return c->answered == 1; }));
        EXPECT_EQ(UCS_OK, c->status);
        ASSERT_TRUE(poll([&] {
            return acceptor_->accepted_count() == 1 && acceptor_->accepted(0).notified == 1;
        }));
        EXPECT_EQ(UCS_OK, uct_ep_disconnect(c->ep(), 0));
        if (i % 2) {
            // Polling stops in the middle: the helper thread goes on.
            EXPECT_TRUE(wait([&] { return c->disconnected == 1; }));
        } else {
            EXPECT_TRUE(poll([&] { return c->disconnected == 1; }));
        }
        c.reset();
        acceptor_->drop_accepted();
    }
}

// The length of the queue as the kernel tells it of a listening socket.
int kernel_backlog(uint16_t port)
{
    for (int fd = 3; fd < 1024; ++fd) {
        sockaddr_in name{};
        socklen_t length = sizeof(name);
        int listens = 0;
        socklen_t size = sizeof(listens);
        if (getsockname(fd, reinterpret_cast<sockaddr *>(&name), &length) != 0 ||
            name.sin_family != AF_INET || ntohs(name.sin_port) != port ||
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens) {
            continue;
        }
        tcp_info info{};
        socklen_t info_length = sizeof(info);
        EXPECT_EQ(0, getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &info_length));
        return static_cast<int>(info.tcpi_sacked);
    }
    return -1;
}

TEST_P(uct_cm_test, backlog_is_the_kernels)
{
    if (std::string(GetParam()) != "tcp") {
        GTEST_SKIP() << "the kernel tells it of a socket";
    }
    make_pair();
    uct_listener_h listener = nullptr;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              acceptor::create(*server_, address_, nullptr, &listener, 0, 0));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              acceptor::create(*server_, address_, nullptr, &listener, 0, -1));
    ASSERT_EQ(UCS_OK, acceptor::create(*server_, address_, nullptr, &listener, 0, 7));
    uct_listener_attr_t attr{};
    attr.field_mask = UCT_LISTENER_ATTR_FIELD_SOCKADDR;
    ASSERT_EQ(UCS_OK, uct_listener_query(listener, &attr));
    EXPECT_EQ(7, kernel_backlog(port_of(attr.sockaddr)));
    uct_listener_destroy(listener);
}

TEST_P(uct_cm_test, address_with_connections_is_reused_on_demand)
{
    if (std::string(GetParam()) != "tcp") {
        GTEST_SKIP() << "ports of other transports are free at once";
    }
    make_pair();
    listen();
    auto c = connect();
    expect_connected(*c);
    sockaddr_storage used = acceptor_->address();
    acceptor_->destroy_listener(); // the connection stays
    entity strict(GetParam(), nullptr, "n");
    uct_listener_h listener = nullptr;
    EXPECT_EQ(UCS_ERR_BUSY, acceptor::create(strict, used, nullptr, &listener));
    entity lenient(GetParam(), nullptr, "y");
    ASSERT_EQ(UCS_OK, acceptor::create(lenient, used, nullptr, &listener));
    uct_listener_destroy(listener);
}

// Bytes of a stranger, at once or in pieces, or none; then he leaves or stays.
TEST_P(uct_cm_test, garbage_on_the_port)
{
    if (std::string(GetParam()) != "tcp") {
        GTEST_SKIP() << "only tcp has a port for strangers";
    }
    make_pair();
    listen();
    std::mt19937 random(7);
    std::vector<int> staying;
    for (int i = 0; i < 200; ++i) {
        int fd = stranger(acceptor_->address());
        ASSERT_GE(fd, 0);
        std::string bytes(random() % 600, '\0');
        for (char &c : bytes) {
            c = static_cast<char>(random());
        }
        if (i % 4 == 1 && bytes.size() >= 8) {
            // A header of tcp's own, with our data wrong.
            const unsigned char header[] = {3, static_cast<unsigned char>(random() % 5), 0, 40};
            memcpy(bytes.data(), header, sizeof(header));
        }
        // Whether he is still listened to is not his choice.
        [[maybe_unused]] ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (i % 10 == 0) {
            staying.push_back(fd);
        } else {
            close(fd);
        }
    }
    auto c = connect();
    expect_connected(*c);
    EXPECT_EQ(1u, acceptor_->requests());
    for (int fd : staying) {
        close(fd);
    }
}

// A client that connects and says nothing is forgotten with the connection manager.
TEST_P(uct_cm_test, silent_strangers_leave_nothing)
{
    if (std::string(GetParam()) != "tcp") {
        GTEST_SKIP() << "only tcp has a port for strangers";
    }
    std::vector<int> strangers;
    { // what a process opens once
        entity first(GetParam());
        acceptor listening(first, address_, acceptor::policy::keep);
    }
    size_t before = open_files();
    for (int i = 0; i < 3; ++i) {
        make_pair();
        listen();
        for (int k = 0; k < 5; ++k) {
            strangers.push_back(stranger(acceptor_->address()));
            ASSERT_GE(strangers.back(), 0);
        }
        auto c = connect(); // behind them
        expect_connected(*c);
        c.reset();
        acceptor_.reset();
        client_.reset();
        server_.reset();
    }
    EXPECT_TRUE(wait([&] { return open_files() <= before + strangers.size(); }));
    EXPECT_EQ(open_files(), before + strangers.size());
    for (int fd : strangers) {
        close(fd);
    }
}

// ---- Random schedules

// One process's part of a random schedule: it listens and connects, answers or not, leaves or
// stays, at any time. The guards in peer and acceptor watch the callbacks.
class chaos {
  public:
    chaos(const std::string &component, unsigned seed)
        : random(seed), address_(test_address(component)), server_(component), client_(component)
    {
        listen();
    }

    const sockaddr_storage &address() const { return acceptor_->address(); }
    void set_other(const sockaddr_storage &other) { other_ = other; }

    void step()
    {
        switch (random() % 12) {
        case 0:
        case 1:
        case 2:
            connect();
            break;
        case 3:
        case 4:
            acceptor_->accept_kept();
            break;
        case 5:
            acceptor_->reject_kept();
            break;
        case 6:
            if (!clients_.empty()) {
                clients_[random() % clients_.size()]->ask_disconnect();
            }
            break;
        case 7:
            acceptor_->disconnect_some(random());
            break;
        case 8:
            if (!clients_.empty()) {
                clients_.erase(clients_.begin() + static_cast<long>(random() % clients_.size()));
            }
            break;
        case 9:
            acceptor_->drop_some(random());
            break;
        case 10:
            if (random() % 16 == 0) {
                sockaddr_storage same = acceptor_->address();
                acceptor_.reset();
                acceptor_ = std::make_unique<acceptor>(server_, same, acceptor::policy::keep);
            }
            break;
        default:
            rest();
            break;
        }
    }

    // One side of every connection goes; the other hears of each.
    void settle()
    {
        if (random() % 2) {
            acceptor_.reset();
            for (auto &c : clients_) {
                EXPECT_TRUE(wait([&] { return c->failed() || c->disconnected == 1; }))
                    << c->resolved << c->answered << c->disconnected;
            }
            clients_.clear();
            return;
        }
        clients_.clear();
        while (acceptor_->kept() > 0) {
            acceptor_->accept_kept();
        }
        for (size_t i = 0; i < acceptor_->accepted_count(); ++i) {
            peer &s = acceptor_->accepted(i);
            EXPECT_TRUE(wait([&] { return s.failed() || s.disconnected == 1; }))
                << s.notified << s.disconnected;
        }
        acceptor_.reset();
    }

    std::mt19937 random;

  private:
    void listen()
    {
        acceptor_ = std::make_unique<acceptor>(server_, address_, acceptor::policy::keep);
    }

    // The turns are the helper thread's, or ours.
    void rest()
    {
        if (random() % 2) {
            usleep(random() % 300);
            return;
        }
        for (unsigned rounds = random() % 100; rounds > 0; --rounds) {
            server_.progress();
            client_.progress();
        }
    }

    void connect()
    {
        if (clients_.size() >= 32) {
            return;
        }
        auto c = std::make_unique<peer>(client_);
        c->private_data = std::string(random() % 4097, 'x');
        c->answer_disconnect = random() % 2;
        c->notify_by_hand = random() % 8 == 0;
        bool other = other_.ss_family != 0 && random() % 2;
        EXPECT_EQ(UCS_OK, c->connect(other ? other_ : acceptor_->address()));
        clients_.push_back(std::move(c));
    }

    sockaddr_storage address_;
    sockaddr_storage other_{};
    entity server_;
    entity client_;
    std::unique_ptr<acceptor> acceptor_;
    std::vector<std::unique_ptr<peer>> clients_;
};

// ---- Deaths
//
// The one that dies is another run of this program: a child that is only forked would share the
// verbs devices of its parent.

constexpr const char *child_variable = "UCXLIKE_CM_CHILD";

struct child_job {
    std::string component;
    bool server;
    bool keep;         // server: does not answer
    size_t length = 0; // client: of the private data
    uint16_t port = 0; // client: where to
    int pipe = -1;     // server: where to say its port
    unsigned seed = 0; // of a random schedule; 0: none

    std::string text() const
    {
        return component + " " + std::to_string(server) + " " + std::to_string(keep) + " " +
               std::to_string(length) + " " + std::to_string(port) + " " + std::to_string(pipe) +
               " " + std::to_string(seed);
    }
    static child_job parse(const char *text)
    {
        child_job job{};
        std::istringstream(text) >> job.component >> job.server >> job.keep >> job.length >>
            job.port >> job.pipe >> job.seed;
        return job;
    }
};

TEST(uct_cm_child, run)
{
    const char *text = getenv(child_variable);
    if (!text) {
        GTEST_SKIP() << "the other process of uct_cm_kill_test";
    }
    child_job job = child_job::parse(text);
    sockaddr_storage address = test_address(job.component);
    if (job.seed) {
        chaos part(job.component, job.seed);
        set_port(address, job.port);
        part.set_other(address);
        uint16_t port = port_of(part.address());
        ASSERT_EQ(static_cast<ssize_t>(sizeof(port)), write(job.pipe, &port, sizeof(port)));
        while (!HasFailure()) {
            part.step();
        }
        _exit(1); // before it is killed: its parent notices
    }
    entity own(job.component);
    if (job.server) {
        acceptor listening(own, address,
                           job.keep ? acceptor::policy::keep : acceptor::policy::accept_at_once);
        uint16_t port = port_of(listening.address());
        ASSERT_EQ(static_cast<ssize_t>(sizeof(port)), write(job.pipe, &port, sizeof(port)));
        pause();
    } else {
        peer c(own);
        c.private_data = std::string(job.length, 'x');
        set_port(address, job.port);
        c.connect(address);
        pause();
    }
}

class uct_cm_kill_test : public uct_cm_test {
  protected:
    void TearDown() override { kill_child(); }

    void start(const child_job &job)
    {
        std::string variable = std::string(child_variable) + "=" + job.text();
        char program[] = "uct_cm_test";
        char filter[] = "--gtest_filter=uct_cm_child.run";
        char *arguments[] = {program, filter, nullptr};
        std::vector<char *> variables;
        for (char **v = environ; *v; ++v) {
            variables.push_back(*v);
        }
        variables.push_back(variable.data());
        variables.push_back(nullptr);
        child_ = fork();
        if (child_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            dup2(2, 1); // its report is not ours
            for (int fd = 3; fd < 1024; ++fd) {
                if (fd != job.pipe) {
                    close(fd); // the core's sockets are inherited
                }
            }
            execve("/proc/self/exe", arguments, variables.data());
            _exit(127);
        }
    }

    sockaddr_storage start_server(bool keep) { return start_listening({GetParam(), true, keep}); }

    sockaddr_storage start_listening(child_job job)
    {
        int pipes[2];
        EXPECT_EQ(0, pipe(pipes));
        job.pipe = pipes[1];
        start(job);
        close(pipes[1]);
        uint16_t port = 0;
        EXPECT_EQ(static_cast<ssize_t>(sizeof(port)), read(pipes[0], &port, sizeof(port)));
        close(pipes[0]);
        sockaddr_storage to = address_;
        set_port(to, port);
        return to;
    }

    void kill_child()
    {
        if (child_ > 0) {
            kill(child_, SIGKILL);
            int status = 0;
            waitpid(child_, &status, 0);
            EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "it failed before";
            child_ = -1;
        }
    }

    pid_t child_ = -1;
};

TEST_P(uct_cm_kill_test, killed_server)
{
    for (size_t length : {20, 3000}) {
        sockaddr_storage to = start_server(false);
        client_ = std::make_unique<entity>(GetParam());
        peer c(*client_);
        c.private_data = std::string(length, 'x');
        ASSERT_EQ(UCS_OK, c.connect(to));
        ASSERT_TRUE(wait([&] { return c.answered == 1; }));
        ASSERT_EQ(UCS_OK, c.status);
        kill_child();
        EXPECT_TRUE(wait([&] { return c.disconnected == 1; }));
    }
}

TEST_P(uct_cm_kill_test, killed_server_that_had_not_answered)
{
    for (size_t length : {20, 3000}) {
        sockaddr_storage to = start_server(true);
        client_ = std::make_unique<entity>(GetParam());
        peer c(*client_);
        c.private_data = std::string(length, 'x');
        ASSERT_EQ(UCS_OK, c.connect(to));
        usleep(200000);
        kill_child();
        ASSERT_TRUE(wait([&] { return c.answered == 1; }));
        EXPECT_TRUE(no_server(c.status)) << ucs_status_string(c.status);
        EXPECT_EQ(0, c.disconnected);
    }
}

TEST_P(uct_cm_kill_test, killed_client)
{
    for (size_t length : {20, 3000}) {
        server_ = std::make_unique<entity>(GetParam());
        listen();
        start({GetParam(), false, false, length, port_of(acceptor_->address())});
        ASSERT_TRUE(wait([&] { return acceptor_->accepted_count() == 1; }));
        ASSERT_TRUE(wait([&] { return accepted().notified == 1; }));
        kill_child();
        EXPECT_TRUE(wait([&] { return accepted().disconnected == 1; }));
        acceptor_.reset();
    }
}

TEST_P(uct_cm_kill_test, killed_client_before_the_answer)
{
    for (size_t length : {20, 3000}) {
        server_ = std::make_unique<entity>(GetParam());
        listen(acceptor::policy::keep);
        start({GetParam(), false, false, length, port_of(acceptor_->address())});
        ASSERT_TRUE(wait([&] { return acceptor_->kept() == 1; }));
        kill_child();
        ucs_status_t status = acceptor_->accept_kept();
        if (status == UCS_OK) {
            ASSERT_TRUE(wait([&] { return accepted().notified == 1; }));
            status = accepted().status;
        }
        EXPECT_TRUE(no_server(status)) << ucs_status_string(status);
        acceptor_.reset();
    }
}

// Two processes do anything at any time, and one of them is killed now and then. It is also its own
// peer. UCXLIKE_RANDOM_STEPS says how many steps, UCXLIKE_RANDOM_SEED repeats a fresh one.
class uct_cm_random_test : public uct_cm_kill_test {
  protected:
    void run(unsigned seed)
    {
        int steps = random_steps();
        printf("seed %u, %d steps\n", seed, steps);
        SCOPED_TRACE(seed);
        chaos part(GetParam(), seed);
        for (int i = 0; i < steps && !HasFailure(); ++i) {
            if (i % 1000 == 0 || part.random() % 1000 == 0) {
                kill_child();
                child_job job{GetParam(), true, true};
                job.seed = part.random() | 1;
                job.port = port_of(part.address());
                part.set_other(start_listening(job));
            }
            part.step();
        }
        kill_child();
        part.settle();
    }
};

TEST_P(uct_cm_random_test, fixed_seed)
{
    run(42);
}

TEST_P(uct_cm_random_test, fresh_seed)
{
    const char *again = getenv("UCXLIKE_RANDOM_SEED");
    run(again ? static_cast<unsigned>(strtoul(again, nullptr, 10)) : std::random_device{}());
}

#define ENROL(name)                                                                                \
    INSTANTIATE_TEST_SUITE_P(name, uct_cm_test, ::testing::Values(#name));                         \
    INSTANTIATE_TEST_SUITE_P(name, uct_cm_growth_test, ::testing::Values(#name));                  \
    INSTANTIATE_TEST_SUITE_P(name, uct_cm_kill_test, ::testing::Values(#name));                    \
    INSTANTIATE_TEST_SUITE_P(name, uct_cm_random_test, ::testing::Values(#name))

ENROL(tcp);
ENROL(verbs);

} // namespace
