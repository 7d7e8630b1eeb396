// SPDX-License-Identifier: BSD-3-Clause
//
// Networks that stay closed until something needs them (UCX_LATE_NETWORKS), and the doors at which
// peers that shared memory does not reach call for them.
#include "fabtests-ext/common/all_descriptors.h"
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/common/printed.h"
#include "fabtests-ext/common/relay.h"
#include "fabtests-ext/common/ucp_lanes.h"
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/common/warnings.h"
#include "ucp/connect/door.h"
#include "ucp/endpoint/ep_control.h"

#include <algorithm>
#include <cerrno>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

namespace {

using namespace ucp_test;

options late(uint64_t more_features = 0)
{
    options o;
    o.features |= UCP_FEATURE_RMA | more_features;
    o.config = {{"LATE_NETWORKS", "y"}};
    return o;
}

options over_tcp()
{
    options o;
    o.tls = "tcp";
    o.features |= UCP_FEATURE_RMA;
    return o;
}

size_t networks_of(const entity &e)
{
    return static_cast<size_t>(
        std::count_if(e.worker->ifaces.begin(), e.worker->ifaces.end(), [&](const auto &iface) {
            return !ucp::on_node(e.context->resources[iface->resource].cls);
        }));
}

bool says_that_they_are_closed(const entity &e)
{
    std::string text = printed([&](FILE *stream) { ucp_worker_print_info(e.worker, stream); });
    return text.find("networks: not opened so far") != std::string::npos;
}

// Of a late worker.
const ucp::door_sign &sign_of(const entity &e)
{
    return e.worker->door->sign();
}

std::vector<char> resealed(std::vector<char> address)
{
    std::vector<uint8_t> bytes(address.begin(), address.end());
    ucp::seal_address(bytes);
    return {bytes.begin(), bytes.end()};
}

std::vector<char>::iterator find_in(std::vector<char> &address, const void *what, size_t length)
{
    const char *bytes = static_cast<const char *>(what);
    auto at = std::search(address.begin(), address.end(), bytes, bytes + length);
    EXPECT_NE(address.end(), at);
    return at;
}

// The address as it is where shared memory leads to another process.
std::vector<char> from_elsewhere(const entity &e)
{
    std::vector<char> address = e.address();
    for (const auto &iface : e.worker->ifaces) {
        if (e.context->resources[iface->resource].cls == ucp::tl_class::shm) {
            const auto &bytes = iface->iface_addr;
            auto at = find_in(address, bytes.data(), bytes.size());
            std::transform(at + 1, at + static_cast<std::ptrdiff_t>(bytes.size()), at + 1,
                           [](char c) { return static_cast<char>(~c); });
        }
    }
    return resealed(address);
}

// The address with another door.
std::vector<char> with_port(const entity &e, uint16_t port)
{
    std::vector<char> address = from_elsewhere(e);
    auto at = find_in(address, &sign_of(e).number, sizeof(uint64_t)) + sizeof(uint64_t);
    memcpy(&*at, &port, sizeof(port));
    return resealed(address);
}

// Two endpoints that are each other's peers.
void close_pair(entity &a, ucp_ep_h ab, entity &b, ucp_ep_h ba)
{
    EXPECT_EQ(ab->remote_id, ba->local_id);
    EXPECT_EQ(ba->remote_id, ab->local_id);
    void *x = close_nb(ab), *y = close_nb(ba);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, x));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, y));
}

// ---- when they are opened

TEST(ucp_late_networks, stay_closed_on_a_node)
{
    entity a(late()), b(late());
    ucp_ep_h ab = nullptr, ba = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ab));
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &ba));
    ping(a, ab, b);
    ping(b, ba, a, 1 << 20);
    EXPECT_EQ(std::vector<std::string>{"sm/memory"}, transports_of(ab));
    EXPECT_EQ(0u, networks_of(a) + networks_of(b));
    EXPECT_TRUE(a.context->networks_are_late && b.context->networks_are_late);
    close_pair(a, ab, b, ba);
}

// A worker of a program without late networks, that has no shared memory.
TEST(ucp_late_networks, are_opened_for_a_caller)
{
    entity a(late()), b(over_tcp());
    ucp_ep_h ab = nullptr, ba = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &ba));
    EXPECT_EQ(0u, networks_of(a));
    ping(b, ba, a, 100'000);
    EXPECT_LT(0u, networks_of(a));
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ab));
    ping(a, ab, b);
    close_pair(a, ab, b, ba);
}

TEST(ucp_late_networks, are_opened_for_an_endpoint)
{
    entity a(late()), b(over_tcp());
    ucp_ep_h ab = nullptr, ba = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ab));
    EXPECT_LT(0u, networks_of(a));
    ping(a, ab, b);
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &ba));
    ping(b, ba, a);
    close_pair(a, ab, b, ba);
}

TEST(ucp_late_networks, are_opened_by_two_that_call_each_other)
{
    entity a(late()), b(late());
    ucp_ep_h ab = nullptr, ba = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(a, from_elsewhere(b), &ab));
    ASSERT_EQ(UCS_OK, create_ep(b, from_elsewhere(a), &ba));
    ping(a, ab, b);
    ping(b, ba, a, 100'000);
    EXPECT_EQ(2u, a.worker->ep_ids.size() + b.worker->ep_ids.size());
    close_pair(a, ab, b, ba);
}

TEST(ucp_late_networks, are_opened_for_one_that_is_answered_before_it_asks)
{
    entity a(late()), b(late());
    ucp_ep_h ab = nullptr, ba = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(a, from_elsewhere(b), &ab));
    ASSERT_TRUE(run_until({&a, &b}, [&] { return ab->remote_id != 0; }));
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &ba));
    ping(b, ba, a);
    ping(a, ab, b);
    close_pair(a, ab, b, ba);
}

TEST(ucp_late_networks, are_opened_for_memory_that_peers_reach)
{
    entity a(late()), b(over_tcp());
    char memory[64] = {}, word[8] = "written";
    ucp_mem_map_params_t params = {};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = memory;
    params.length = sizeof(memory);
    ucp_mem_h memh = nullptr;
    ASSERT_EQ(UCS_OK, ucp_mem_map(a.context, &params, &memh));
    EXPECT_FALSE(a.context->networks_are_late);
    EXPECT_EQ(0u, networks_of(a)) << "nobody needs the worker's";
    EXPECT_TRUE(says_that_they_are_closed(a));
    ucp_ep_h ba = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &ba));
    void *packed = nullptr;
    size_t size = 0;
    ASSERT_EQ(UCS_OK, ucp_rkey_pack(a.context, memh, &packed, &size));
    ucp_rkey_h rkey = nullptr;
    ASSERT_EQ(UCS_OK, ucp_ep_rkey_unpack(ba, packed, &rkey));
    ucp_rkey_buffer_release(packed);
    ucp_request_param_t p = {};
    void *put = ucp_put_nbx(ba, word, sizeof(word), reinterpret_cast<uintptr_t>(memory), rkey, &p);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, put));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, flush_nb(ba)));
    EXPECT_STREQ("written", memory);
    EXPECT_FALSE(says_that_they_are_closed(a));
    ucp_rkey_destroy(rkey);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ba)));
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(a.context, memh));
}

TEST(ucp_late_networks, are_opened_for_a_listener_and_its_client)
{
    entity a(late()), b(late());
    server s(a);
    EXPECT_LT(0u, networks_of(a));
    errors of_client, of_server;
    ucp_ep_h client = nullptr, accepted = nullptr;
    ASSERT_EQ(UCS_OK, connect(b, host_address(s.port), &client, &of_client));
    ASSERT_TRUE(run_until({&a, &b}, [&] { return !s.requests.empty(); }));
    ASSERT_EQ(UCS_OK, s.accept(&accepted, &of_server));
    ping(b, client, a);
    ping(a, accepted, b);
    close_pair(b, client, a, accepted);
}

// Open MPI asks for such an address in each job.
TEST(ucp_late_networks, stay_closed_for_an_address_for_networks)
{
    entity a(late()), b(over_tcp());
    std::vector<char> address = a.address(true);
    EXPECT_EQ(0u, networks_of(a));
    ucp_ep_h ep = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(b, address, &ep));
    ping(b, ep, a);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
    // With networks it says where they are, and needs no door.
    ucp::unpacked_address out;
    address = a.address(true);
    ASSERT_EQ(UCS_OK, ucp::unpack_address(address.data(), address.size(), &out));
    EXPECT_EQ(0u, out.door.number);
    EXPECT_EQ(networks_of(a), out.resources.size());
}

TEST(ucp_late_networks, are_not_missed_when_they_are_opened)
{
    options o = late();
    o.tls = "sm,self,all";
    entity a(o);
    kept_warnings kept;
    ASSERT_TRUE(a.worker->open_networks());
    EXPECT_EQ(std::vector<std::string>(), kept.lines);
}

TEST(ucp_late_networks, wake_a_worker_that_sleeps)
{
    entity a(late(UCP_FEATURE_WAKEUP)), b(over_tcp());
    pollfd fd = {-1, POLLIN, 0};
    ASSERT_EQ(UCS_OK, ucp_worker_get_efd(a.worker, &fd.fd));
    auto fall_asleep = [&] {
        while (ucp_worker_arm(a.worker) == UCS_ERR_BUSY) {
            a.progress();
        }
    };
    auto wakes = [&] { return run_until({&b}, [&] { return poll(&fd, 1, 0) == 1; }); };
    fall_asleep();
    ucp_ep_h ba = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &ba));
    ASSERT_TRUE(wakes());
    EXPECT_TRUE(run_until({&a, &b}, [&] { return networks_of(a) > 0 && ba->remote_id != 0; }));
    // The network that was opened wakes it, too.
    fall_asleep();
    void *s = send_nb(ba, "a word", 7, 3);
    ASSERT_TRUE(wakes());
    char word[7];
    EXPECT_EQ(UCS_OK, wait({&a, &b}, recv_nb(a, word, sizeof(word), 3)));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, s));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ba)));
}

// ---- ends

TEST(ucp_late_networks, an_endpoint_that_calls_is_closed)
{
    entity a(late()), b(over_tcp());
    for (bool force : {false, true}) {
        errors seen;
        ucp_ep_h ba = nullptr;
        ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &ba, &seen));
        EXPECT_EQ(UCS_OK, wait({&b}, close_nb(ba, force)));
        EXPECT_EQ(0, seen.count);
    }
    // What waits goes out before a close that flushes, and is cancelled by one that does not.
    for (bool force : {true, false}) {
        errors seen;
        ucp_ep_h ba = nullptr;
        ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &ba, &seen));
        char word[7] = {};
        void *s = send_nb(ba, "a word", 7, 3), *c = close_nb(ba, force);
        EXPECT_EQ(force ? UCS_ERR_CANCELED : UCS_OK, wait({&a, &b}, s));
        EXPECT_EQ(UCS_OK, wait({&a, &b}, c));
        void *r = recv_nb(a, word, sizeof(word), 3);
        if (force) {
            ucp_request_cancel(a.worker, r);
        }
        EXPECT_EQ(force ? UCS_ERR_CANCELED : UCS_OK, wait({&a, &b}, r));
        EXPECT_EQ(0, seen.count);
    }
}

TEST(ucp_late_networks, a_worker_ends_while_it_calls)
{
    entity a(late());
    const size_t before = open_files();
    {
        entity b(over_tcp());
        ucp_ep_h ba = nullptr;
        ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &ba));
        void *s = send_nb(ba, "a word", 7, 3);
        run_for({&b}, 0.01);
        EXPECT_TRUE(UCS_PTR_IS_PTR(s));
        ucp_request_free(s);
    }
    EXPECT_EQ(before, open_files());
    run_for({&a}, 0.01); // it does not answer
}

TEST(ucp_late_networks, a_peer_ends_before_and_while_it_is_called)
{
    for (bool before : {true, false}) {
        auto a = std::make_unique<entity>(late());
        entity b(over_tcp());
        std::vector<char> address = a->address();
        if (before) {
            a.reset();
        }
        errors seen;
        ucp_ep_h ba = nullptr;
        ASSERT_EQ(UCS_OK, create_ep(b, address, &ba, &seen));
        void *s = send_nb(ba, "a word", 7, 3);
        run_for({&b}, 0.01);
        a.reset();
        ucs_status_t status = wait({&b}, s);
        EXPECT_TRUE(status == UCS_ERR_UNREACHABLE || status == UCS_ERR_CONNECTION_RESET)
            << ucs_status_string(status);
        EXPECT_TRUE(run_until({&b}, [&] { return seen.count > 0; }));
        run_for({&b}, 0.01);
        EXPECT_EQ(1, seen.count);
        EXPECT_EQ(status, seen.status);
        EXPECT_EQ(UCS_OK, wait({&b}, close_nb(ba)));
    }
}

// ---- addresses with a door that is none

TEST(ucp_late_networks, a_damaged_sign_is_refused)
{
    entity a(late()), b(over_tcp());
    const std::vector<char> good = a.address();
    std::vector<char> copy = good;
    const size_t number =
        static_cast<size_t>(find_in(copy, &sign_of(a).number, sizeof(uint64_t)) - copy.begin());
    const size_t port = number + sizeof(uint64_t), count = port + sizeof(uint16_t);
    const struct {
        const char *what;
        size_t at, length;
        char value;
    } damages[] = {{"no number", number, sizeof(uint64_t), 0},
                   {"no port", port, sizeof(uint16_t), 0},
                   {"no host", count, 1, 0},
                   {"too many hosts", count, 1, 127},
                   {"a host of no family", count + 1, 1, 5},
                   {"a host that does not end", count + 1, 1, 127}};
    relay_test::error_lines lines;
    ucp_ep_h ep = nullptr;
    for (const auto &d : damages) {
        std::vector<char> bad = good;
        memset(bad.data() + d.at, d.value, d.length);
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, create_ep(b, resealed(bad), &ep)) << d.what;
    }
    for (size_t length = ucp::ADDRESS_HEAD; length < good.size(); ++length) {
        std::vector<char> cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, create_ep(b, resealed(cut), &ep)) << length;
    }
}

// ---- strangers at the door

class stranger {
  public:
    explicit stranger(uint16_t port)
    {
        sockaddr_in to = {};
        to.sin_family = AF_INET;
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        to.sin_port = htons(port);
        EXPECT_EQ(0, connect(fd_, reinterpret_cast<sockaddr *>(&to), sizeof(to)));
    }
    ~stranger() { close(fd_); }
    stranger(const stranger &) = delete;

    void say(const void *data, size_t length) const
    {
        EXPECT_EQ(static_cast<ssize_t>(length), send(fd_, data, length, MSG_NOSIGNAL));
    }
    // Until the other side closes.
    std::vector<char> hear(entity &e) const
    {
        std::vector<char> all;
        char bytes[256];
        ssize_t n = -1;
        EXPECT_TRUE(run_until({&e}, [&] {
            n = recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT);
            all.insert(all.end(), bytes, bytes + std::max<ssize_t>(n, 0));
            return n == 0 || (n < 0 && errno == ECONNRESET);
        }));
        return all;
    }

  private:
    const int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

TEST(ucp_late_networks, strangers_get_nothing)
{
    entity a(late());
    const ucp::door_call right = {
        ucp::door_protocol.magic, ucp::door_protocol.version, {}, sign_of(a).number};
    ucp::door_call wrong_number = right, wrong_magic = right, wrong_version = right;
    ++wrong_number.number;
    ++wrong_magic.magic;
    ++wrong_version.version;
    for (const ucp::door_call &call : {wrong_number, wrong_magic}) {
        stranger s(sign_of(a).port);
        s.say(&call, sizeof(call));
        EXPECT_EQ(0u, s.hear(a).size());
    }
    relay_test::error_lines lines;
    stranger s(sign_of(a).port);
    s.say(&wrong_version, sizeof(wrong_version));
    std::vector<char> heard = s.hear(a);
    ucp::door_answer answer = {};
    ASSERT_EQ(sizeof(answer), heard.size());
    memcpy(&answer, heard.data(), sizeof(answer));
    EXPECT_EQ(ucp::door_protocol.version, answer.version);
    EXPECT_EQ(0, answer.length);
    EXPECT_TRUE(lines.has("a peer speaks version 2 of the protocol of late networks"));
    EXPECT_EQ(0u, networks_of(a));
}

TEST(ucp_late_networks, silent_strangers_are_bounded_and_keep_nobody_out)
{
    entity a(late()), b(over_tcp());
    const size_t before = open_files();
    constexpr size_t many = 60, most = 16;
    std::vector<std::unique_ptr<stranger>> all;
    for (size_t i = 0; i < many; ++i) {
        all.push_back(std::make_unique<stranger>(sign_of(a).port));
        all.back()->say("x", 1);
    }
    for (size_t i = 0; i < many - most; ++i) {
        EXPECT_EQ(0u, all[i]->hear(a).size());
    }
    EXPECT_LE(open_files(), before + many + most);
    ucp_ep_h ba = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &ba));
    ping(b, ba, a);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ba)));
}

TEST(ucp_late_networks, a_worker_without_descriptors_answers_when_it_has_some)
{
    entity a(late());
    stranger s(sign_of(a).port);
    const ucp::door_call call = {
        ucp::door_protocol.magic, ucp::door_protocol.version, {}, sign_of(a).number};
    s.say(&call, sizeof(call));
    {
        all_descriptors none;
        ASSERT_TRUE(none.all());
        run_for({&a}, 0.3);
        EXPECT_EQ(0u, networks_of(a));
    }
    std::vector<char> heard = s.hear(a);
    ASSERT_LT(sizeof(ucp::door_answer), heard.size());
    ucp::unpacked_address address;
    EXPECT_EQ(UCS_OK, ucp::unpack_address(heard.data() + sizeof(ucp::door_answer),
                                          heard.size() - sizeof(ucp::door_answer), &address));
    EXPECT_EQ(a.worker->uuid, address.uuid);
    EXPECT_LT(0u, networks_of(a));
}

// ---- doors that lie

struct lie {
    const char *name;
    std::vector<char> (*answer)(entity &peer, entity &other);
    ucs_status_t expected;
};

std::vector<char> answer_of(const std::vector<char> &address, size_t length)
{
    const ucp::door_answer head = {ucp::door_protocol.magic, ucp::door_protocol.version, 0,
                                   static_cast<uint16_t>(length)};
    const char *p = reinterpret_cast<const char *>(&head);
    std::vector<char> all(p, p + sizeof(head));
    all.insert(all.end(), address.begin(), address.end());
    return all;
}

const lie lies[] = {
    {"nothing", [](entity &, entity &) { return std::vector<char>(); }, UCS_ERR_CONNECTION_RESET},
    {"half",
     [](entity &peer, entity &) {
         std::vector<char> a = peer.address();
         std::vector<char> all = answer_of(a, a.size());
         all.resize(all.size() / 2);
         return all;
     },
     UCS_ERR_CONNECTION_RESET},
    {"another_protocol", [](entity &, entity &) { return std::vector<char>(100, 'x'); },
     UCS_ERR_INVALID_ADDR},
    {"another_version",
     [](entity &, entity &) {
         std::vector<char> all = answer_of({}, 0);
         ++all[4];
         return all;
     },
     UCS_ERR_UNSUPPORTED},
    {"no_address", [](entity &, entity &) { return answer_of({}, 0); }, UCS_ERR_INVALID_ADDR},
    {"too_long", [](entity &, entity &) { return answer_of(std::vector<char>(5000, 'x'), 5000); },
     UCS_ERR_INVALID_ADDR},
    {"damaged",
     [](entity &peer, entity &) {
         std::vector<char> a = peer.address();
         a.back() ^= 1;
         return answer_of(a, a.size());
     },
     UCS_ERR_INVALID_ADDR},
    {"another_worker",
     [](entity &, entity &other) {
         std::vector<char> a = other.address();
         return answer_of(a, a.size());
     },
     UCS_ERR_INVALID_ADDR},
    {"without_networks",
     [](entity &peer, entity &) {
         std::vector<char> a = peer.address();
         return answer_of(a, a.size());
     },
     UCS_ERR_UNREACHABLE},
};

class ucp_door : public testing::TestWithParam<lie> {};

TEST_P(ucp_door, that_lies)
{
    const lie &what = GetParam();
    sockaddr_in any = {};
    any.sin_family = AF_INET;
    socklen_t length = sizeof(any);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ASSERT_EQ(0, bind(fd, reinterpret_cast<sockaddr *>(&any), sizeof(any)));
    ASSERT_EQ(0, listen(fd, 8));
    ASSERT_EQ(0, getsockname(fd, reinterpret_cast<sockaddr *>(&any), &length));
    entity peer(late()), b(over_tcp()), other(over_tcp());
    errors seen;
    ucp_ep_h ba = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(b, with_port(peer, ntohs(any.sin_port)), &ba, &seen));
    void *s = send_nb(ba, "a word", 7, 3);
    int caller = -1;
    auto answer_callers = [&] {
        ucp::door_call call = {};
        caller = caller < 0 ? accept4(fd, nullptr, nullptr, SOCK_CLOEXEC) : caller;
        if (caller >= 0 && recv(caller, &call, sizeof(call), MSG_DONTWAIT) > 0) {
            EXPECT_EQ(sign_of(peer).number, call.number);
            std::vector<char> all = what.answer(peer, other);
            EXPECT_EQ(static_cast<ssize_t>(all.size()),
                      send(caller, all.data(), all.size(), MSG_NOSIGNAL));
            close(std::exchange(caller, -1));
        }
        return seen.count > 0;
    };
    EXPECT_TRUE(run_until({&b}, answer_callers));
    EXPECT_EQ(what.expected, seen.status) << ucs_status_string(seen.status);
    EXPECT_EQ(what.expected, wait({&b}, s));
    EXPECT_EQ(1, seen.count);
    EXPECT_EQ(UCS_OK, wait({&b}, close_nb(ba)));
    close(fd);
}

INSTANTIATE_TEST_SUITE_P(doors, ucp_door, testing::ValuesIn(lies),
                         [](const auto &p) { return std::string(p.param.name); });

// ---- the setting

struct setting {
    const char *name;
    std::vector<std::pair<std::string, std::string>> config; // TLS is all where it is not here
    std::vector<std::pair<const char *, const char *>> environment;
    bool late;
};

const setting settings[] = {
    {"by_default", {}, {}, false},
    {"by_wish", {{"LATE_NETWORKS", "y"}}, {}, true},
    {"not_where_tcp_is_named", {{"LATE_NETWORKS", "y"}, {"TLS", "sm,self,tcp"}}, {}, false},
    {"where_tcp_is_taken_away", {{"LATE_NETWORKS", "y"}, {"TLS", "^tcp"}}, {}, true},
    {"not_without_shared_memory", {{"LATE_NETWORKS", "y"}, {"TLS", "^sm"}}, {}, false},
    {"not_where_a_device_is_named", {{"LATE_NETWORKS", "y"}, {"NET_DEVICES", "lo"}}, {}, false},
    {"not_where_ports_are_chosen",
     {{"LATE_NETWORKS", "y"}},
     {{"UCX_TCP_PORT_RANGE", "20000-29999"}},
     false},
    {"not_where_the_program_chooses_ports",
     {{"LATE_NETWORKS", "y"}, {"TCP_PORT_RANGE", "20000-29999"}},
     {},
     false},
    {"not_when_strict", {{"LATE_NETWORKS", "y"}, {"STRICT", "y"}}, {}, false},
    {"by_hydra", {}, {{"MPI_LOCALNRANKS", "4"}, {"PMI_SIZE", "4"}}, true},
    {"not_by_hydra_on_two_nodes", {}, {{"MPI_LOCALNRANKS", "2"}, {"PMI_SIZE", "4"}}, false},
    {"by_open_mpi", {}, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}, {"OMPI_COMM_WORLD_SIZE", "3"}}, true},
    {"not_by_open_mpi_on_two_nodes",
     {},
     {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}},
     false},
    {"by_slurm", {}, {{"SLURM_STEP_NUM_NODES", "1"}}, true},
    {"by_slurm_with_a_size_alone", {}, {{"PMI_SIZE", "4"}, {"SLURM_STEP_NUM_NODES", "1"}}, true},
    {"not_by_slurm_on_two_nodes", {}, {{"SLURM_STEP_NUM_NODES", "2"}}, false},
    {"not_by_slurm_for_a_job_of_two_parts",
     {},
     {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_HET_SIZE", "2"}},
     false},
    {"not_against_a_wish",
     {{"LATE_NETWORKS", "n"}},
     {{"MPI_LOCALNRANKS", "4"}, {"PMI_SIZE", "4"}},
     false},
};

class ucp_late_setting : public testing::TestWithParam<setting> {};

TEST_P(ucp_late_setting, decides)
{
    for (const char *variable :
         {"MPI_LOCALNRANKS", "PMI_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE",
          "SLURM_STEP_NUM_NODES", "SLURM_HET_SIZE"}) {
        unsetenv(variable);
    }
    for (const auto &[name, value] : GetParam().environment) {
        setenv(name, value, 1);
    }
    options o;
    o.config = GetParam().config;
    for (const auto &[name, value] : o.config) {
        o.tls = name == "TLS" ? value : o.tls;
    }
    entity e(o);
    for (const auto &[name, value] : GetParam().environment) {
        unsetenv(name);
    }
    EXPECT_EQ(GetParam().late, e.context->networks_are_late);
    EXPECT_EQ(GetParam().late, e.worker->door != nullptr);
}

INSTANTIATE_TEST_SUITE_P(settings, ucp_late_setting, testing::ValuesIn(settings),
                         [](const auto &p) { return std::string(p.param.name); });

TEST(ucp_late_networks, are_not_late_for_contexts_of_several_threads)
{
    ucp_config_t *config = nullptr;
    ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config));
    ASSERT_EQ(UCS_OK, ucp_config_modify(config, "LATE_NETWORKS", "y"));
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
    params.features = UCP_FEATURE_TAG;
    params.mt_workers_shared = 1;
    ucp_context_h context = nullptr;
    ASSERT_EQ(UCS_OK, ucp_init(&params, config, &context));
    ucp_config_release(config);
    EXPECT_FALSE(context->networks_are_late);
    ucp_cleanup(context);
}

TEST(ucp_late_networks, are_not_late_for_a_worker_of_several_threads)
{
    options o = late();
    o.thread_mode = UCS_THREAD_MODE_MULTI;
    entity e(o);
    EXPECT_FALSE(e.context->networks_are_late);
    EXPECT_EQ(nullptr, e.worker->door);
    EXPECT_LT(0u, networks_of(e));
}

} // namespace
