// SPDX-License-Identifier: BSD-3-Clause
//
// Peers that die: destroyed workers in this process, killed processes elsewhere. Every endpoint's
// handler runs once, and every request ends.
#include "fabtests-ext/common/sanitized.h"
#include "fabtests-ext/common/ucp_entity.h"
#include "fabtests-ext/common/ucp_region.h"

#include <algorithm>
#include <csignal>
#include <span>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

using namespace ucp_test;

namespace {

class ucp_failure : public testing::TestWithParam<const char *> {
  protected:
    static options with_tls()
    {
        options o;
        o.tls = GetParam();
        return o;
    }
};

// A child process that serves until it is killed. It writes its address or port first.
class child {
  public:
    explicit child(const std::function<std::vector<char>(entity &, server *&)> &start,
                   const options &o = {}, const std::function<void(entity &)> &turn = {})
    {
        int fds[2];
        if (pipe(fds) != 0) {
            return;
        }
        pid = fork();
        if (pid == 0) {
            close(fds[0]);
            options own = o;
            own.tls = ucp_failure::GetParam();
            entity e(own);
            server *listening = nullptr;
            std::vector<char> hello = start(e, listening);
            auto length = static_cast<uint32_t>(hello.size());
            if (write(fds[1], &length, sizeof(length)) != sizeof(length) ||
                write(fds[1], hello.data(), length) != static_cast<ssize_t>(length)) {
                _exit(1);
            }
            std::vector<std::unique_ptr<errors>> seen;
            alarm(900);
            for (;;) {
                e.progress();
                if (turn) {
                    turn(e);
                }
                if (listening && !listening->requests.empty()) {
                    ucp_ep_h ep;
                    seen.push_back(std::make_unique<errors>());
                    listening->accept(&ep, seen.back().get());
                }
            }
        }
        close(fds[1]);
        uint32_t length = 0;
        if (read(fds[0], &length, sizeof(length)) == sizeof(length)) {
            hello.resize(length);
            size_t got = 0;
            while (got < length) {
                ssize_t n = read(fds[0], hello.data() + got, length - got);
                if (n <= 0) {
                    break;
                }
                got += static_cast<size_t>(n);
            }
        }
        close(fds[0]);
    }
    ~child() { kill_now(); }

    void kill_now()
    {
        if (pid > 0) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
            pid = -1;
        }
    }

    pid_t pid = -1;
    std::vector<char> hello;
};

child serving_by_address()
{
    return child([](entity &e, server *&) { return e.address(); });
}

child listening_child()
{
    return child([](entity &e, server *&listening) {
        listening = new server(e);
        std::vector<char> port(sizeof(uint16_t));
        memcpy(port.data(), &listening->port, sizeof(uint16_t));
        return port;
    });
}

TEST_P(ucp_failure, b191_killed_peer_by_address)
{
    child peer = serving_by_address();
    ASSERT_FALSE(peer.hello.empty());
    entity e(with_tls());
    ucp_ep_h ep;
    errors seen;
    ASSERT_EQ(UCS_OK, create_ep(e, peer.hello, &ep, &seen));
    ASSERT_EQ(UCS_OK, wait({&e}, send_nb(ep, "x", 1, 1)));
    ASSERT_EQ(UCS_OK, wait({&e}, flush_nb(ep)));
    peer.kill_now();
    EXPECT_TRUE(run_until({&e}, [&] { return seen.count > 0; }));
    EXPECT_TRUE(seen.status == UCS_ERR_CONNECTION_RESET || seen.status == UCS_ERR_ENDPOINT_TIMEOUT)
        << ucs_status_string(seen.status);
    EXPECT_TRUE(UCS_PTR_IS_ERR(send_nb(ep, "x", 1, 1))); // b188
    run_for({&e}, 0.3);
    EXPECT_EQ(1, seen.count);
    EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep)));
}

TEST_P(ucp_failure, killed_server)
{
    child peer = listening_child();
    ASSERT_EQ(sizeof(uint16_t), peer.hello.size());
    uint16_t port;
    memcpy(&port, peer.hello.data(), sizeof(port));
    entity e(with_tls());
    constexpr unsigned count = 3;
    ucp_ep_h eps[count];
    errors seen[count];
    for (unsigned i = 0; i < count; ++i) {
        ASSERT_EQ(UCS_OK, connect(e, port, &eps[i], &seen[i]));
    }
    for (ucp_ep_h ep : eps) {
        ASSERT_EQ(UCS_OK, wait({&e}, send_nb(ep, "x", 1, 1)));
    }
    std::vector<char> big(4 << 20, 'b');
    ucs_status_ptr_t stuck = send_nb(eps[0], big.data(), big.size(), 9); // not received
    run_for({&e}, 0.05);
    peer.kill_now();
    EXPECT_TRUE(run_until({&e}, [&] { return seen[0].count && seen[1].count && seen[2].count; }));
    EXPECT_NE(UCS_OK, wait({&e}, stuck));
    run_for({&e}, 0.3);
    for (unsigned i = 0; i < count; ++i) {
        EXPECT_EQ(1, seen[i].count);
        EXPECT_EQ(UCS_OK, wait({&e}, close_nb(eps[i], true)));
    }
}

TEST_P(ucp_failure, killed_server_of_many_endpoints)
{
    child peer = listening_child();
    ASSERT_EQ(sizeof(uint16_t), peer.hello.size());
    uint16_t port;
    memcpy(&port, peer.hello.data(), sizeof(port));
    entity e(with_tls());
    struct one {
        ucp_ep_h ep = nullptr;
        errors seen;
    } all[6];
    for (one &o : all) {
        ASSERT_EQ(UCS_OK, connect(e, port, &o.ep, &o.seen));
        ASSERT_EQ(UCS_OK, wait({&e}, send_nb(o.ep, "x", 1, 1)));
        ASSERT_EQ(UCS_OK, wait({&e}, flush_nb(o.ep)));
    }
    run_for({&e}, 0.05);
    EXPECT_EQ(UCS_OK, wait({&e}, close_nb(all[0].ep, true))); // what was made first may go first
    peer.kill_now();
    EXPECT_TRUE(run_until({&e}, [&] {
        return std::all_of(all + 1, std::end(all), [](one &o) { return o.seen.count > 0; });
    }));
    run_for({&e}, 0.3);
    EXPECT_EQ(0, all[0].seen.count);
    for (one &o : std::span(all).subspan(1)) {
        EXPECT_EQ(1, o.seen.count);
        EXPECT_EQ(UCS_OK, wait({&e}, close_nb(o.ep)));
    }
}

TEST_P(ucp_failure, killed_while_connecting)
{
    child peer = listening_child();
    uint16_t port;
    ASSERT_EQ(sizeof(uint16_t), peer.hello.size());
    memcpy(&port, peer.hello.data(), sizeof(port));
    kill(peer.pid, SIGSTOP);
    entity e(with_tls());
    ucp_ep_h ep;
    errors seen;
    ASSERT_EQ(UCS_OK, connect(e, port, &ep, &seen));
    ucs_status_ptr_t send = send_nb(ep, "x", 1, 1);
    run_for({&e}, 0.1);
    peer.kill_now();
    EXPECT_TRUE(run_until({&e}, [&] { return seen.count > 0; }));
    EXPECT_NE(UCS_OK, wait({&e}, send));
    EXPECT_EQ(1, seen.count);
    EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep, true)));
}

TEST_P(ucp_failure, b187_b189_destroyed_peer_and_another_that_stays)
{
    entity e(with_tls()), stable(with_tls());
    auto doomed = std::make_unique<entity>(with_tls());
    ucp_ep_h ep, good;
    errors seen, none;
    ASSERT_EQ(UCS_OK, create_ep(e, doomed->address(), &ep, &seen));
    ASSERT_EQ(UCS_OK, create_ep(e, stable.address(), &good, &none));
    ping(e, ep, *doomed);
    ping(e, good, stable);
    doomed.reset();
    EXPECT_TRUE(run_until({&e}, [&] { return seen.count > 0; }));
    EXPECT_EQ(1, seen.count);
    ping(e, good, stable, 10000);
    EXPECT_EQ(0, none.count);
    EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep, true)));
    EXPECT_EQ(UCS_OK, wait({&e, &stable}, close_nb(good)));
}

TEST_P(ucp_failure, b190_force_close_ends_every_request)
{
    entity a(with_tls()), b(with_tls());
    ucp_ep_h ep;
    errors seen;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep, &seen));
    ping(a, ep, b);
    std::vector<char> data(16000, 'f');
    std::vector<ucs_status_ptr_t> sends;
    for (unsigned i = 0; i < 1000; ++i) {
        sends.push_back(send_nb(ep, data.data(), data.size(), 1000 + i));
    }
    EXPECT_EQ(UCS_OK, wait({&a}, close_nb(ep, true)));
    for (ucs_status_ptr_t s : sends) {
        EXPECT_NE(UCS_INPROGRESS, wait({&a}, s));
    }
    run_for({&a, &b}, 0.05);
    EXPECT_EQ(0, seen.count);
}

// Puts, gets and atomics to a peer.
class ucp_failure_rma : public ucp_failure {
  protected:
    void SetUp() override
    {
        if (with_tls().tls == "tcprdm,self" && leaks_by_itself("tcprdm")) {
            GTEST_SKIP() << "libfabric before 1.18 does not free its net's endpoints";
        }
    }
    static options with_rma()
    {
        options o = with_tls();
        o.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO64;
        return o;
    }
    // One of everything, some of it too large to be done in the call.
    static void post(ucp_ep_h ep, uint64_t at, ucp_rkey_h rkey, std::vector<char> &from,
                     std::vector<char> &to, std::vector<ucs_status_ptr_t> *posted)
    {
        static const uint64_t one = 1;
        static uint64_t old;
        ucp_request_param_t p = {}, amo = {};
        amo.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        amo.datatype = ucp_dt_make_contig(sizeof(one));
        amo.reply_buffer = &old;
        posted->push_back(ucp_put_nbx(ep, from.data(), from.size(), at, rkey, &p));
        posted->push_back(ucp_get_nbx(ep, to.data(), to.size(), at, rkey, &p));
        posted->push_back(ucp_atomic_op_nbx(ep, UCP_ATOMIC_OP_ADD, &one, 1, at, rkey, &amo));
        posted->push_back(flush_nb(ep));
    }
};

TEST_P(ucp_failure_rma, b184_force_close_ends_puts_and_gets)
{
    constexpr size_t n = 300000;
    entity a(with_rma()), b(with_rma());
    std::vector<char> target(n), from(n, 'p'), to(n);
    ucp_ep_h stays;
    errors none;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &stays, &none));
    {
        region r(b, stays, target.data(), n);
        const std::vector<char> packed = r.packed();
        for (unsigned round = 0; round < 5; ++round) {
            ucp_ep_h ep;
            errors seen;
            ucp_rkey_h rkey;
            ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep, &seen));
            ASSERT_EQ(UCS_OK, ucp_ep_rkey_unpack(ep, packed.data(), &rkey));
            ASSERT_EQ(UCS_OK, wait({&a, &b}, flush_nb(ep)));
            std::vector<ucs_status_ptr_t> posted;
            for (unsigned i = 0; i < 20; ++i) {
                post(ep, r.at(), rkey, from, to, &posted);
            }
            for (unsigned i = 0; i < round; ++i) { // some of it done
                a.progress();
                b.progress();
            }
            ucs_status_ptr_t close = close_nb(ep, true);
            for (ucs_status_ptr_t p : posted) {
                ucs_status_t status = wait({&a, &b}, p);
                EXPECT_TRUE(status == UCS_OK || status == UCS_ERR_CANCELED)
                    << ucs_status_string(status);
            }
            EXPECT_EQ(UCS_OK, wait({&a, &b}, close));
            ucp_rkey_destroy(rkey);
            EXPECT_EQ(0, seen.count);
            ping(a, stays, b, 1000);
        }
    }
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(stays)));
    EXPECT_EQ(0, none.count);
}

TEST_P(ucp_failure_rma, b134_b194_others_are_flushed_and_keys_and_memory_go)
{
    constexpr size_t n = 100000;
    entity e(with_rma()), stable(with_rma());
    auto doomed = std::make_unique<entity>(with_rma());
    ucp_ep_h ep, good;
    errors seen, none;
    ASSERT_EQ(UCS_OK, create_ep(e, doomed->address(), &ep, &seen));
    ASSERT_EQ(UCS_OK, create_ep(e, stable.address(), &good, &none));
    std::vector<char> target(n), other_target(n), from(n, 'q'), to(n), local(n);
    region here(e, good, local.data(), n); // of the own memory, for the peer that stays
    region kept(stable, good, target.data(), n);
    std::vector<ucs_status_ptr_t> posted;
    std::vector<char> packed;
    {
        auto gone = std::make_unique<region>(*doomed, ep, other_target.data(), n);
        ASSERT_EQ(UCS_OK, wait({&e, doomed.get()}, flush_nb(ep)));
        post(ep, gone->at(), gone->rkey, from, to, &posted);
        packed = gone->packed();
        for (ucs_status_ptr_t p : posted) {
            EXPECT_NE(UCS_INPROGRESS, wait({&e, doomed.get()}, p));
        }
    }
    ucp_rkey_h rkey = nullptr;
    ASSERT_EQ(UCS_OK, ucp_ep_rkey_unpack(ep, packed.data(), &rkey));
    doomed.reset();
    ASSERT_TRUE(run_until({&e}, [&] { return seen.count > 0; }));
    EXPECT_NE(UCS_OK, wait({&e}, flush_nb(ep))) << "b134: its own flush fails";
    ucp_request_param_t p = {};
    std::fill(from.begin(), from.end(), 'r');
    EXPECT_EQ(UCS_OK,
              wait({&e, &stable}, ucp_put_nbx(good, from.data(), n, kept.at(), kept.rkey, &p)));
    EXPECT_EQ(UCS_OK, wait({&e, &stable}, ucp_worker_flush_nbx(e.worker, &p)));
    EXPECT_EQ(from, target);
    ucp_rkey_destroy(rkey);
    EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep, true)));
    EXPECT_EQ(UCS_OK, wait({&e, &stable}, close_nb(good)));
    EXPECT_EQ(0, none.count);
}

TEST_P(ucp_failure, b196_failure_without_error_handling)
{
    // Both from before this process opens a device of verbs: what is open at a fork fails in the
    // child.
    child peers[] = {serving_by_address(), serving_by_address()};
    for (bool handler : {false, true}) { // without one it is only logged
        child &peer = peers[handler];
        ASSERT_FALSE(peer.hello.empty());
        entity e(with_tls()), other(with_tls());
        errors seen;
        ucp_ep_params_t params = {};
        params.field_mask =
            UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
        params.address = reinterpret_cast<const ucp_address_t *>(peer.hello.data());
        params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
        if (handler) {
            params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
            params.err_handler.cb = errors::handler;
            params.err_handler.arg = &seen;
        }
        ucp_ep_h ep, good;
        ASSERT_EQ(UCS_OK, ucp_ep_create(e.worker, &params, &ep));
        ASSERT_EQ(UCS_OK, wait({&e}, send_nb(ep, "x", 1, 1)));
        ASSERT_EQ(UCS_OK, wait({&e}, flush_nb(ep)));
        peer.kill_now();
        std::vector<char> data(100000, 'n');
        for (unsigned i = 0; i < 20; ++i) { // whatever becomes of these
            ucs_status_ptr_t s = send_nb(ep, data.data(), i % 2 ? data.size() : 8, 1);
            run_for({&e}, 0.02);
            if (UCS_PTR_IS_PTR(s)) {
                ucp_request_free(s);
            }
        }
        EXPECT_LE(seen.count, 1);
        if (handler && std::string(GetParam()) == "tcp,self") {
            EXPECT_EQ(1, seen.count);
        }
        ASSERT_EQ(UCS_OK, create_ep(e, other.address(), &good));
        ping(e, good, other, 5000);
        EXPECT_EQ(UCS_OK, wait({&e, &other}, close_nb(good)));
    }
}

// Memory of a child: the length of its worker's address and where it is, the address, the key.
child child_with_memory(size_t n, const options &o)
{
    return child(
        [n](entity &e, server *&) {
            auto *memory = new std::vector<char>(n);
            ucp_mem_map_params_t map = {};
            map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
            map.address = memory->data();
            map.length = n;
            ucp_mem_h memh;
            void *key;
            size_t length;
            if (ucp_mem_map(e.context, &map, &memh) != UCS_OK ||
                ucp_rkey_pack(e.context, memh, &key, &length) != UCS_OK) {
                _exit(1);
            }
            std::vector<char> address = e.address(), hello(2 * sizeof(uint64_t));
            uint64_t head[] = {address.size(), reinterpret_cast<uint64_t>(memory->data())};
            memcpy(hello.data(), head, sizeof(head));
            hello.insert(hello.end(), address.begin(), address.end());
            hello.insert(hello.end(), static_cast<char *>(key), static_cast<char *>(key) + length);
            return hello;
        },
        o);
}

TEST_P(ucp_failure_rma, what_is_under_way_ends_with_the_endpoints_error)
{
    constexpr size_t n = 4 << 20;
    child peer = child_with_memory(n, with_rma());
    uint64_t head[2];
    ASSERT_GT(peer.hello.size(), sizeof(head));
    memcpy(head, peer.hello.data(), sizeof(head));
    const char *address = peer.hello.data() + sizeof(head);
    entity e(with_rma());
    ucp_ep_h ep;
    errors seen;
    ucp_rkey_h rkey;
    ASSERT_EQ(UCS_OK, create_ep(e, {address, address + head[0]}, &ep, &seen));
    ASSERT_EQ(UCS_OK, wait({&e}, flush_nb(ep)));
    ASSERT_EQ(UCS_OK, ucp_ep_rkey_unpack(ep, address + head[0], &rkey));
    kill(peer.pid, SIGSTOP); // nothing of what follows is answered
    std::vector<char> from(n, 'p'), to(n);
    std::vector<ucs_status_ptr_t> posted;
    for (int i = 0; i < 10; ++i) {
        post(ep, head[1], rkey, from, to, &posted);
        posted.push_back(send_nb(ep, from.data(), 1 << 20, 1));
        posted.push_back(send_nb(ep, from.data(), 4000, 1));
    }
    run_for({&e}, 0.01);
    peer.kill_now();
    ASSERT_TRUE(run_until({&e}, [&] { return seen.count > 0; }));
    unsigned failed = 0;
    for (ucs_status_ptr_t p : posted) {
        ucs_status_t status = wait({&e}, p);
        failed += status != UCS_OK;
        EXPECT_TRUE(status == UCS_OK || status == seen.status) << ucs_status_string(status);
    }
    EXPECT_LT(0u, failed);
    EXPECT_EQ(1, seen.count);
    ucp_rkey_destroy(rkey);
    EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep, true)));
}

// A sender is killed in the middle of a message.
class ucp_failure_half : public ucp_failure {
  protected:
    enum kind : ucp_tag_t { small = 1, tagged, active, stream };
    static constexpr size_t n = 16 << 20; // more than a turn moves
    static constexpr ucp_tag_t all_bits = ~ucp_tag_t(0);
    static inline const ucp_request_param_t no_param = {};

    static options eager()
    {
        options o = with_tls();
        o.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM;
        o.config = {{"RNDV_THRESH", "inf"}};
        return o;
    }

    // Sends one, of the kind that it is asked for, to the address that the request has. From then
    // on it makes progress in turns with the test: the message can't end between its begin and the
    // end of its sender.
    static child sender(int turns)
    {
        return child([](entity &e, server *&) { return e.address(); }, eager(),
                     [turns, sending = false](entity &e) mutable {
                         ucp_tag_recv_info_t info;
                         if (ucp_tag_message_h m = ucp_tag_probe_nb(e.worker, 0, 0, 1, &info)) {
                             send(e, m, info, turns);
                             sending = true;
                         }
                         if (sending) {
                             await_turn(turns);
                         }
                     });
    }

    // In the sender: says that its turn is over, and waits for the next.
    static void await_turn(int turns)
    {
        char c = 0;
        if (write(turns, &c, 1) != 1 || read(turns, &c, 1) != 1) {
            _exit(1);
        }
    }

    static void send(entity &e, ucp_tag_message_h m, const ucp_tag_recv_info_t &info, int turns)
    {
        std::vector<char> address(info.length);
        ucp_ep_h back = nullptr;
        if (wait({&e}, ucp_tag_msg_recv_nbx(e.worker, address.data(), info.length, m, &no_param)) !=
                UCS_OK ||
            create_ep(e, address, &back) != UCS_OK) {
            _exit(1);
        }
        await_turn(turns);
        const auto *data = new std::vector<char>(n, 'h');
        (void)ucp_tag_send_nbx(back, "first", 5, small, &no_param);
        if (info.sender_tag == tagged) {
            (void)ucp_tag_send_nbx(back, data->data(), n, tagged, &no_param);
        } else if (info.sender_tag == active) {
            ucp_request_param_t p = {};
            p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
            p.flags = UCP_AM_SEND_FLAG_EAGER;
            (void)ucp_am_send_nbx(back, 5, nullptr, 0, data->data(), n, &p);
        } else {
            (void)ucp_stream_send_nbx(back, data->data(), n, &no_param);
        }
    }

    void start(kind what)
    {
        ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, turns));
        peer.reset(new child(sender(turns[1]))); // in place: a copy would end it
        close(std::exchange(turns[1], -1));
        ASSERT_FALSE(peer->hello.empty());
        e = std::make_unique<entity>(eager());
        ASSERT_EQ(UCS_OK, create_ep(*e, peer->hello, &ep, &seen));
        std::vector<char> address = e->address();
        ASSERT_EQ(UCS_OK, wait({e.get()}, send_nb(ep, address.data(), address.size(), what)));
    }

    ucp_tag_message_h arrived(kind what)
    {
        ucp_tag_recv_info_t info;
        ucp_tag_message_h m = nullptr;
        EXPECT_TRUE(run_until({e.get()}, [&] {
            m = ucp_tag_probe_nb(e->worker, what, all_bits, 0, &info);
            return m != nullptr || !give_turn();
        }));
        return m;
    }

    // The sender's one turn, if it is sending. False if it has ended.
    bool give_turn()
    {
        char c = 0;
        if (!sending) {
            sending = recv(turns[0], &c, 1, MSG_DONTWAIT) == 1;
            return sending || errno == EAGAIN;
        }
        return ::send(turns[0], &c, 1, MSG_NOSIGNAL) == 1 && recv(turns[0], &c, 1, 0) == 1;
    }

    bool begun()
    {
        bool has = false;
        EXPECT_TRUE(run_until({e.get()}, [&] {
            has = std::atomic_ref(in[0]) == 'h';
            return has || !give_turn();
        }));
        return has;
    }

    void end()
    {
        peer->kill_now();
        ASSERT_TRUE(run_until({e.get()}, [&] { return seen.count > 0; }));
    }

    void TearDown() override
    {
        if (ep) {
            EXPECT_EQ(UCS_OK, wait({e.get()}, close_nb(ep, true)));
        }
        EXPECT_EQ(1, seen.count);
        close(turns[0]);
    }

    int turns[2] = {-1, -1};
    bool sending = false;
    errors seen;
    std::unique_ptr<child> peer;
    std::unique_ptr<entity> e;
    ucp_ep_h ep = nullptr;
    std::vector<char> in = std::vector<char>(n);
};

TEST_P(ucp_failure_half, a_receive_that_had_begun)
{
    ASSERT_NO_FATAL_FAILURE(start(tagged));
    ucs_status_ptr_t r = recv_nb(*e, in.data(), n, tagged);
    ASSERT_TRUE(begun());
    end();
    EXPECT_EQ(seen.status, wait({e.get()}, r));
}

TEST_P(ucp_failure_half, a_receive_after_the_death)
{
    ASSERT_NO_FATAL_FAILURE(start(tagged));
    ASSERT_NE(nullptr, arrived(tagged));
    end();
    EXPECT_NE(nullptr, arrived(tagged)); // it was seen
    EXPECT_EQ(seen.status, wait({e.get()}, recv_nb(*e, in.data(), n, tagged)));
    ucp_tag_recv_info_t info;
    EXPECT_EQ(nullptr, ucp_tag_probe_nb(e->worker, tagged, all_bits, 0, &info));
}

TEST_P(ucp_failure_half, an_active_message)
{
    ASSERT_NO_FATAL_FAILURE(start(active));
    int calls = 0;
    auto on_message = [](void *arg, const void *, size_t, void *, size_t,
                         const ucp_am_recv_param_t *) {
        ++*static_cast<int *>(arg);
        return UCS_OK;
    };
    ASSERT_EQ(UCS_OK, set_am_handler(e->worker, 5, on_message, &calls));
    ASSERT_NE(nullptr, arrived(small));
    end();
    EXPECT_EQ(0, calls);
}

TEST_P(ucp_failure_half, a_stream)
{
    ASSERT_NO_FATAL_FAILURE(start(stream));
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    p.flags = UCP_STREAM_RECV_FLAG_WAITALL;
    size_t length = 0;
    ucs_status_ptr_t r = ucp_stream_recv_nbx(ep, in.data(), n, &length, &p);
    ASSERT_TRUE(begun());
    end();
    EXPECT_EQ(seen.status, wait({e.get()}, r));
}

UCP_TEST_OVER(ucp_failure_half, "sm,self", "ofi_shm,self", "tcp,self");

UCP_TEST_OVER(ucp_failure_rma, "sm,self", "ofi_shm,self", "tcp,self", "tcprdm,self", "all");

UCP_TEST_OVER(ucp_failure, "sm,self", "ofi_shm,self", "tcp,self", "all");

} // namespace
