// SPDX-License-Identifier: BSD-3-Clause
//
// A client endpoint that asks in its request to share a connection which stands already
// (connect/cm_connection.h): no message crosses its lane for that, and whatever happens on the way
// each side is told of the other's end, once.
#include "fabtests-ext/conformance/ucp/peers/client_server.h"

namespace {

using namespace ucp_test;

class ucp_asked_connection : public client_server {
  protected:
    // The client has what it asked for, the server has not read that yet.
    const ends &begin_half()
    {
        const ends &k = begin();
        EXPECT_TRUE(run_until({&c}, [&] { return !has_its_own(k.client); }));
        EXPECT_TRUE(has_its_own(k.server));
        return k;
    }
};

TEST_P(ucp_asked_connection, sends_no_message_for_it)
{
    const ends &first = open_first();
    const ends &second = begin();
    EXPECT_TRUE(until([&] { return !has_its_own(second.client) && !has_its_own(second.server); }));
    EXPECT_EQ(connection_of(first.client), connection_of(second.client));
    EXPECT_EQ(connection_of(first.server), connection_of(second.server));
    EXPECT_FALSE(second.client->control->wired || second.server->control->wired);
    EXPECT_TRUE(until([&] { return known(c) == 1 && known(s) == 1; })) << "the other's has ended";
    exchange(first);
    exchange(second);
    close_all();
}

TEST_P(ucp_asked_connection, is_found_by_the_third_when_the_first_has_closed)
{
    open_first();
    exchange(begin());
    ends &first = all.front();
    ucs_status_ptr_t x = close_nb(first.client);
    ucs_status_ptr_t y = close_nb(first.server);
    EXPECT_EQ(UCS_OK, finish(x));
    EXPECT_EQ(UCS_OK, finish(y));
    all.pop_front();
    const ends &third = begin();
    EXPECT_TRUE(until([&] { return !has_its_own(third.client) && !has_its_own(third.server); }));
    exchange(third);
    close_all();
}

TEST_P(ucp_asked_connection, the_client_is_told_that_the_server_closed_before_it_knew)
{
    open_first();
    begin_half();
    ends &second = all.back();
    EXPECT_EQ(UCS_OK, wait({&s}, close_nb(std::exchange(second.server, nullptr), true)));
    expect_told(second.client_errors);
}

// The notice comes over the lane of the first endpoint, which may be faster than the answer; the
// end of the endpoint's own connection comes too late, as that has been given up by then.
TEST_P(ucp_asked_connection, the_client_is_told_that_the_server_closed_before_it_read_the_answer)
{
    open_first();
    ends &second = begin();
    ucp::wireup_hdr notice = ucp::notice_of(second.server, ucp::wireup_kind::close);
    notice.reason = static_cast<uint8_t>(ucp::close_reason::forced);
    connection_of(all.front().server)->send_notice(notice);
    ASSERT_TRUE(run_until({&s}, [&] {
        uct_worker_progress(c.worker->uct);
        return second.client->control->close_seen;
    }));
    expect_told(second.client_errors);
}

TEST_P(ucp_asked_connection, the_server_is_told_that_the_client_closed_at_once)
{
    open_first();
    begin_half();
    ends &second = all.back();
    EXPECT_EQ(UCS_OK, wait({&c}, close_nb(std::exchange(second.client, nullptr), true)));
    expect_told(second.server_errors);
}

TEST_P(ucp_asked_connection, the_server_is_told_that_the_client_never_read_the_answer)
{
    open_first();
    begin();
    ends &second = all.back();
    EXPECT_EQ(UCS_OK, wait({&c}, close_nb(std::exchange(second.client, nullptr), true)));
    expect_told(second.server_errors);
}

TEST_P(ucp_asked_connection, keeps_its_own_where_the_server_does_not_know_the_name)
{
    connection_of(open_first().client)->peer_id ^= 1;
    const ends &second = begin();
    exchange(second);
    EXPECT_TRUE(has_its_own(second.client) && has_its_own(second.server));
    close_all();
}

TEST_P(ucp_asked_connection, keeps_its_own_where_the_server_has_closed_what_it_asked_for)
{
    open_first();
    ends &second = ask();
    ends &first = all.front();
    EXPECT_EQ(UCS_OK, wait({&s}, close_nb(std::exchange(first.server, nullptr), true)));
    ASSERT_EQ(UCS_OK, listening.accept(&second.server, &second.server_errors));
    ASSERT_TRUE(until([&] { return first.client_errors.count > 0; }));
    EXPECT_EQ(UCS_OK, finish(close_nb(first.client, true)));
    all.pop_front();
    exchange(second);
    EXPECT_TRUE(has_its_own(second.client) && has_its_own(second.server));
    EXPECT_EQ(0, second.client_errors.count + second.server_errors.count);
    close_all();
}

// The connection ends while the server's answer is on its way.
TEST_P(ucp_asked_connection, keeps_its_own_where_what_it_asked_for_ends_meanwhile)
{
    open_first();
    const ends &second = begin();
    const ends &first = all.front();
    ucp::on_connection_ended(c.worker, first.client->local_id);
    ucp::on_connection_ended(s.worker, first.server->local_id);
    ASSERT_TRUE(until([&] { return first.client_errors.count && first.server_errors.count; }));
    exchange(second);
    EXPECT_TRUE(has_its_own(second.client) && has_its_own(second.server));
    close_all();
}

UCP_TEST_OVER(ucp_asked_connection, "tcp,self", "sm,self", "all");

} // namespace
