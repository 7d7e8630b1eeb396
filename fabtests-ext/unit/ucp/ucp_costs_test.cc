// SPDX-License-Identifier: BSD-3-Clause
//
// What happens to some endpoints costs the same however many others there are. The tests count the
// endpoints that are looked at.
#include "fabtests-ext/common/ucp_entity.h"
#include "ucp/connect/cm.h"
#include "ucp/connect/cm_connection.h"
#include "ucp/endpoint/ep_control.h"

#include <list>

namespace {

using namespace ucp_test;

// Nothing looks at the endpoints in the background.
options quiet(const char *tls)
{
    options o;
    o.tls = tls;
    o.config = {{"KEEPALIVE_INTERVAL", "inf"}};
    return o;
}

// Endpoints of a worker to itself.
struct crowd {
    explicit crowd(entity &e, size_t count) : owner(e)
    {
        std::vector<char> address = e.address();
        for (size_t i = 0; i < count; ++i) {
            members.emplace_back();
            EXPECT_EQ(UCS_OK, create_ep(e, address, &members.back().ep, &members.back().seen));
            eps.push_back(members.back().ep);
        }
    }
    ~crowd()
    {
        for (ucp_ep_h ep : eps) {
            EXPECT_EQ(UCS_OK, wait({&owner}, close_nb(ep, true)));
        }
    }
    crowd(const crowd &) = delete;
    crowd &operator=(const crowd &) = delete;

    int failures() const
    {
        int sum = 0;
        for (const member &m : members) {
            sum += m.seen.count;
        }
        return sum;
    }

    struct member {
        ucp_ep_h ep = nullptr;
        errors seen;
    };
    entity &owner;
    std::list<member> members;
    std::vector<ucp_ep_h> eps;
};

TEST(ucp_costs, a_lost_lane_fails_its_endpoint_and_looks_at_no_other)
{
    entity e(quiet("self"));
    {
        crowd all(e, 300);
        ucp_ep_h lost = all.eps[200];
        size_t visited = e.worker->ep_ids.visited();
        ucp::on_lane_failed(e.worker, lost->lanes[0].ep, UCS_ERR_CONNECTION_RESET);
        EXPECT_EQ(visited, e.worker->ep_ids.visited());
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, lost->status);
        EXPECT_TRUE(run_until({&e}, [&] { return all.failures() > 0; }));
        EXPECT_EQ(1, all.failures());
        EXPECT_EQ(visited, e.worker->ep_ids.visited());
    }
    EXPECT_TRUE(e.worker->lane_owners.empty());
}

TEST(ucp_costs, the_failure_of_a_lane_that_is_gone_fails_nothing)
{
    entity e(quiet("self"));
    crowd all(e, 2);
    uct_ep_h lane = all.eps[0]->lanes[0].ep;
    ucp::ep_teardown_lanes(all.eps[0]);
    ucp::on_lane_failed(e.worker, lane, UCS_ERR_CONNECTION_RESET);
    EXPECT_EQ(UCS_OK, all.eps[0]->status);
    EXPECT_EQ(UCS_OK, all.eps[1]->status);
}

// Clients of one server, each with some endpoints that share a connection. The lanes of `keeping`
// do not tell of an end inside one process, so the connection is kept.
constexpr const char *keeping = "sm";
struct clients {
    clients(entity &s, size_t workers, size_t each) : owner(s), listening(s)
    {
        for (size_t i = 0; i < workers; ++i) {
            client &c = all.emplace_back(quiet(keeping));
            for (size_t k = 0; k < each; ++k) {
                connection &made = c.connections.emplace_back(c.of, s, listening);
                ping(c.of, made.client, s);
                ping(s, made.server, c.of);
            }
            EXPECT_TRUE(run_until({&c.of, &s}, [&] { return shared(c); }));
        }
    }
    ~clients()
    {
        for (client &c : all) {
            for (connection &k : c.connections) {
                EXPECT_EQ(UCS_OK, wait({&c.of, &owner}, close_nb(k.client, true)));
                EXPECT_EQ(UCS_OK, wait({&c.of, &owner}, close_nb(k.server, true)));
            }
        }
    }
    clients(const clients &) = delete;
    clients &operator=(const clients &) = delete;

    struct client {
        explicit client(const options &o) : of(o) {}
        entity of;
        std::list<connection> connections;
    };

    // By all on both sides.
    static bool shared(const client &c)
    {
        const connection &first = c.connections.front();
        return std::all_of(c.connections.begin(), c.connections.end(), [&](const connection &k) {
            return k.client->control->by_cm->cm == first.client->control->by_cm->cm &&
                   k.server->control->by_cm->cm == first.server->control->by_cm->cm;
        });
    }

    entity &owner;
    server listening;
    std::list<client> all;
};

TEST(ucp_costs, the_end_of_a_connection_looks_at_the_endpoints_that_share_it_alone)
{
    entity s(quiet(keeping));
    clients peers(s, 4, 3);
    clients::client &gone = *std::next(peers.all.begin(), 2);
    ucp::cm_connection *ended = gone.connections.front().server->control->by_cm->cm;
    size_t visited = s.worker->ep_ids.visited();
    ucp::on_connection_ended(s.worker, ended->id);
    EXPECT_EQ(visited, s.worker->ep_ids.visited());
    for (clients::client &c : peers.all) {
        for (connection &k : c.connections) {
            EXPECT_EQ(&c == &gone, k.server->control->by_cm->disconnected);
        }
    }
}

TEST(ucp_costs, a_connection_knows_its_endpoints_and_its_lane_while_they_last)
{
    entity s(quiet(keeping));
    ucp::cm_connections *known = nullptr;
    {
        clients peers(s, 2, 3);
        known = &s.worker->cm->connections;
        EXPECT_EQ(2u, known->by_lane.size());
        for (auto &[lane, connection] : known->by_lane) {
            unsigned members = 0;
            for (ucp::cm_control *c : connection->members) {
                EXPECT_EQ(connection, c->cm);
                ++members;
            }
            EXPECT_EQ(3u, members);
            EXPECT_EQ(3u, connection->users);
            EXPECT_TRUE(connection->joining.empty());
        }
    }
    EXPECT_TRUE(run_until({&s}, [&] { return known->by_lane.empty() && known->by_id.empty(); }));
}

template <ucp::listed In>
size_t length(ucp::ep_list<In> &list)
{
    size_t n = 0;
    for (ucp::ep_link<In> *link : list) {
        n += link != nullptr;
    }
    return n;
}

// Endpoints to another worker, with a key each for a word of its memory.
struct putters {
    explicit putters(size_t count) : mine(with_rma()), theirs(with_rma())
    {
        ucp_mem_map_params_t params = {};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = &target;
        params.length = sizeof(target);
        EXPECT_EQ(UCS_OK, ucp_mem_map(theirs.context, &params, &memh));
        void *packed = nullptr;
        size_t size = 0;
        EXPECT_EQ(UCS_OK, ucp_rkey_pack(theirs.context, memh, &packed, &size));
        std::vector<char> address = theirs.address();
        for (size_t i = 0; i < count; ++i) {
            eps.push_back(nullptr);
            keys.push_back(nullptr);
            EXPECT_EQ(UCS_OK, create_ep(mine, address, &eps.back()));
            EXPECT_EQ(UCS_OK, ucp_ep_rkey_unpack(eps.back(), packed, &keys.back()));
        }
        ucp_rkey_buffer_release(packed);
    }
    ~putters()
    {
        for (size_t i = 0; i < eps.size(); ++i) {
            ucp_rkey_destroy(keys[i]);
            EXPECT_EQ(UCS_OK, wait({&mine, &theirs}, close_nb(eps[i])));
        }
        EXPECT_EQ(UCS_OK, ucp_mem_unmap(theirs.context, memh));
    }
    putters(const putters &) = delete;
    putters &operator=(const putters &) = delete;

    static options with_rma()
    {
        options o = quiet("tcp");
        o.features = UCP_FEATURE_RMA;
        return o;
    }

    void put(size_t i)
    {
        ucp_request_param_t param = {};
        ucs_status_ptr_t request = ucp_put_nbx(
            eps[i], &word, sizeof(word), reinterpret_cast<uint64_t>(&target), keys[i], &param);
        EXPECT_EQ(UCS_OK, wait({&mine, &theirs}, request));
    }

    void flush()
    {
        ucp_request_param_t param = {};
        EXPECT_EQ(UCS_OK, wait({&mine, &theirs}, ucp_worker_flush_nbx(mine.worker, &param)));
    }

    entity mine, theirs;
    uint64_t word = 1, target = 0;
    ucp_mem_h memh = nullptr;
    std::vector<ucp_ep_h> eps;
    std::vector<ucp_rkey_h> keys;
};

TEST(ucp_costs, a_fence_and_a_flush_look_at_the_endpoints_that_were_used_alone)
{
    putters all(40);
    ucp_worker_h worker = all.mine.worker;
    for (size_t i = 0; i < all.eps.size(); ++i) {
        all.put(i);
    }
    EXPECT_EQ(40u, length(worker->unfenced));
    EXPECT_EQ(40u, length(worker->unflushed));
    size_t visited = worker->ep_ids.visited();
    for (int turn = 0; turn < 2; ++turn) { // the first one ends what is in flight
        EXPECT_EQ(UCS_OK, ucp_worker_fence(worker));
        all.flush();
    }
    EXPECT_EQ(0u, length(worker->unfenced));
    EXPECT_EQ(0u, length(worker->unflushed));

    all.word = 7;
    for (size_t i : {3, 17, 39}) {
        all.put(i);
    }
    EXPECT_EQ(3u, length(worker->unfenced));
    EXPECT_EQ(3u, length(worker->unflushed));
    EXPECT_EQ(UCS_OK, ucp_worker_fence(worker));
    EXPECT_EQ(0u, length(worker->unfenced));
    all.flush();
    EXPECT_EQ(7u, all.target);
    all.flush();
    EXPECT_EQ(0u, length(worker->unflushed));
    EXPECT_EQ(visited, worker->ep_ids.visited());
}

TEST(ucp_costs, an_endpoint_that_is_closed_leaves_the_lists_of_its_worker)
{
    putters all(3);
    all.put(1);
    EXPECT_EQ(1u, length(all.mine.worker->unfenced));
    ucp_rkey_destroy(all.keys[1]);
    EXPECT_EQ(UCS_OK, wait({&all.mine, &all.theirs}, close_nb(all.eps[1])));
    all.eps.erase(all.eps.begin() + 1);
    all.keys.erase(all.keys.begin() + 1);
    EXPECT_EQ(0u, length(all.mine.worker->unfenced));
    EXPECT_EQ(0u, length(all.mine.worker->unflushed));
    EXPECT_EQ(UCS_OK, ucp_worker_fence(all.mine.worker));
    all.flush();
}

} // namespace
