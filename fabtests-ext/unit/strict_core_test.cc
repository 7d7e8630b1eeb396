// SPDX-License-Identifier: BSD-3-Clause
// The strict cores: what they list, that a program which does as it should gets its data, and for
// each check a misuse that it stops.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/unit/strict_pair.h"

#include <algorithm>
#include <chrono>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <sys/mman.h>

using namespace strict_test;

namespace {

const bool found_by_path = use_strict_cores();

const std::vector<std::string> cores = {"cxi", "efa", "opx", "psm3", "worst"};

std::vector<uint64_t> numbers(uint64_t count)
{
    std::vector<uint64_t> all(count);
    for (uint64_t i = 0; i < count; ++i) {
        all[i] = i;
    }
    return all;
}

} // namespace

TEST(strict_core, efa_lists_the_bare_device_first)
{
    info_list list;
    ask("efa", &list);
    ASSERT_TRUE(list.first && list.first->next);
    EXPECT_STREQ("efa-direct", list.first->fabric_attr->name);
    EXPECT_STREQ("efa", list.first->next->fabric_attr->name);
    EXPECT_STREQ(list.first->domain_attr->name, list.first->next->domain_attr->name);
    EXPECT_FALSE(list.first->caps & (FI_TAGGED | FI_ATOMIC));
}

TEST(strict_core, efa_grants_the_order_that_is_asked_for_and_no_other)
{
    info_list none;
    ask("efa", &none);
    ASSERT_TRUE(none.first);
    EXPECT_EQ(0u, none.first->next->tx_attr->msg_order);
    info_list asked;
    ask("efa", &asked, FI_ORDER_SAS);
    ASSERT_TRUE(asked.first);
    EXPECT_STREQ("efa", asked.first->fabric_attr->name); // the bare device has no order
    EXPECT_EQ(FI_ORDER_SAS, asked.first->tx_attr->msg_order);
}

TEST(strict_core, a_core_is_not_listed_without_the_modes_of_registration_that_it_needs)
{
    for (const char *name : {"cxi", "efa", "opx", "worst"}) {
        info_list list;
        ask(name, &list, 0, [](fi_info *hints) { hints->domain_attr->mr_mode = 0; });
        EXPECT_FALSE(list.first) << name;
    }
}

TEST(strict_core, opx_and_psm3_give_no_descriptor)
{
    for (const char *name : {"opx", "psm3"}) {
        pair p(name);
        fi_cq_attr attr{};
        attr.wait_obj = FI_WAIT_FD;
        fid_cq *cq = nullptr;
        EXPECT_NE(0, fi_cq_open(p.a->domain, &attr, &cq, nullptr)) << name;
    }
}

TEST(strict_core, addresses_are_opaque)
{
    EXPECT_EQ(8u, pair("cxi").a->name().size());
    EXPECT_EQ(32u, pair("efa").a->name().size());
}

TEST(strict_core, messages_keep_their_order_where_it_was_granted)
{
    EXPECT_EQ(numbers(64), pair("cxi", FI_ORDER_SAS).run(64));
    EXPECT_EQ(numbers(64), pair("psm3").run(64));
}

TEST(strict_core, messages_overtake_each_other_where_no_order_was_granted)
{
    for (const char *name : {"cxi", "efa", "opx", "worst"}) {
        std::vector<uint64_t> arrived = pair(name).run(64);
        EXPECT_NE(numbers(64), arrived) << name;
        std::sort(arrived.begin(), arrived.end());
        EXPECT_EQ(numbers(64), arrived) << name;
    }
}

// The sender is quicker than the receiver, so that their connection gets full. Every second message
// is long. Returns how many messages arrive.
size_t outrun(const pair &both, size_t count, size_t length)
{
    std::vector<char> out(length, 'x');
    std::vector<char> in(length);
    for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(0, fi_recv(both.b->ep, in.data(), length, nullptr, FI_ADDR_UNSPEC, &in));
    }
    size_t sent = 0;
    size_t received = 0;
    fi_cq_data_entry entry;
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(300);
    while (received < count && std::chrono::steady_clock::now() < end) {
        for (int quicker = 0; quicker < 40; ++quicker) {
            size_t size = sent % 2 == 0 ? length : 8 + sent % 100;
            sent += sent < count &&
                    fi_send(both.a->ep, out.data(), size, nullptr, both.to_b, nullptr) == 0;
            both.a->poll(&entry);
        }
        received += both.b->poll(&entry) && entry.op_context == &in;
    }
    return received;
}

// Headers of messages that are cut by the end of a packet do not stop the connection.
TEST(strict_core, a_full_connection_goes_on)
{
    constexpr size_t count = 500;
    for (size_t length = 12'000; length < 16'000; length += 333) {
        ASSERT_EQ(count, outrun(pair("psm3"), count, length)) << length << " bytes";
    }
}

// A message on its way from one station to the other; the first or the second alone is polled.
struct message_alone {
    pair both;
    uint64_t out = 7;
    uint64_t in = 0;

    explicit message_alone(const std::string &core) : both(core)
    {
        fid_mr *from = both.region(*both.a, &out, sizeof(out));
        fid_mr *to = both.region(*both.b, &in, sizeof(in));
        EXPECT_EQ(0, fi_recv(both.b->ep, &in, sizeof(in), fi_mr_desc(to), FI_ADDR_UNSPEC, &in));
        iovec piece{&out, sizeof(out)};
        void *desc = fi_mr_desc(from);
        fi_msg message{&piece, &desc, 1, both.to_b, &out, 0};
        EXPECT_EQ(0, fi_sendmsg(both.a->ep, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE));
    }
    // Whether its end is seen in the time.
    static bool ends(const station &polled, std::chrono::milliseconds time)
    {
        fi_cq_data_entry entry;
        auto end = std::chrono::steady_clock::now() + time;
        bool seen = false;
        while (!seen && std::chrono::steady_clock::now() < end) {
            seen = polled.poll(&entry);
        }
        return seen;
    }
};

constexpr std::chrono::seconds long_enough(30);
constexpr std::chrono::milliseconds several_pauses(50);

TEST(strict_core, a_message_leaves_by_itself)
{
    for (const char *core : {"cxi", "efa", "opx", "psm3"}) {
        message_alone m(core);
        EXPECT_TRUE(m.ends(*m.both.b, long_enough)) << core;
    }
    message_alone m("worst");
    EXPECT_FALSE(m.ends(*m.both.b, several_pauses));
}

TEST(strict_core, a_message_is_acknowledged_by_hardware_and_threads_alone)
{
    for (const char *core : {"cxi", "efa", "psm3"}) {
        message_alone m(core);
        EXPECT_TRUE(m.ends(*m.both.a, long_enough)) << core;
    }
    for (const char *core : {"opx", "worst"}) {
        message_alone m(core);
        EXPECT_FALSE(m.ends(*m.both.a, several_pauses)) << core;
    }
}

TEST(strict_core, a_write_arrives)
{
    for (const std::string &name : cores) {
        pair p(name);
        uint64_t from = 4711;
        uint64_t to = 0;
        fid_mr *source = p.region(*p.a, &from, sizeof(from));
        fid_mr *target = p.region(*p.b, &to, sizeof(to));
        bool is_virtual = p.list.first->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
        ASSERT_EQ(0, fi_write(p.a->ep, &from, sizeof(from), fi_mr_desc(source), p.to_b,
                              is_virtual ? reinterpret_cast<uintptr_t>(&to) : 0, fi_mr_key(target),
                              &from))
            << name;
        fi_cq_data_entry entry;
        while (!p.a->poll(&entry)) {
            p.b->poll(&entry);
        }
        EXPECT_EQ(&from, entry.op_context);
        while (*const_cast<volatile uint64_t *>(&to) != 4711) {
            p.b->poll(&entry);
        }
    }
}

TEST(strict_core, posts_are_refused_at_random)
{
    pair p("psm3");
    setenv("FI_STRICT_EAGAIN", "2", 1);
    station refusing(p.list.first);
    setenv("FI_STRICT_EAGAIN", "0", 1);
    fi_addr_t to = refusing.insert(p.b->name());
    unsigned refused = 0;
    for (unsigned i = 0; i < 64; ++i) {
        refused += fi_inject(refusing.ep, &i, sizeof(i), to) == -FI_EAGAIN;
    }
    EXPECT_GT(refused, 8u);
    EXPECT_LT(refused, 56u);
}

TEST(strict_core, a_domain_and_an_endpoint_without_the_key_are_refused)
{
    environment demanded("FI_STRICT_AUTH_KEY", "00112233445566778899aabbccddeeff");
    info_list list;
    ask("psm3", &list);
    ASSERT_TRUE(list.first);
    fid_fabric *fabric = nullptr;
    fid_domain *domain = nullptr;
    fid_ep *ep = nullptr;
    ASSERT_EQ(0, fi_fabric(list.first->fabric_attr, &fabric, nullptr));
    EXPECT_EQ(-FI_EINVAL, fi_domain(fabric, list.first, &domain, nullptr));
    auto *key = static_cast<uint8_t *>(malloc(16));
    for (int i = 0; i < 16; ++i) {
        key[i] = static_cast<uint8_t>(0x11 * i);
    }
    list.first->domain_attr->auth_key = key;
    list.first->domain_attr->auth_key_size = 16;
    ASSERT_EQ(0, fi_domain(fabric, list.first, &domain, nullptr));
    EXPECT_EQ(-FI_EINVAL, fi_endpoint(domain, list.first, &ep, nullptr));
    EXPECT_EQ(0, fi_close(&domain->fid));
    EXPECT_EQ(0, fi_close(&fabric->fid));
}

// A buffer that has room for two messages of 16 bytes, and for a third of less than that.
struct shared_buffer {
    pair both;
    char room[40] = {};
    iovec piece{room, sizeof(room)};

    explicit shared_buffer(const std::string &core) : both(core)
    {
        size_t least = 16;
        fid_ep *ep = both.b->ep;
        EXPECT_EQ(
            0, fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)));
        void *desc = fi_mr_desc(both.region(*both.b, room, sizeof(room)));
        fi_msg message{&piece, &desc, 1, FI_ADDR_UNSPEC, this, 0};
        EXPECT_EQ(0, fi_recvmsg(ep, &message, FI_MULTI_RECV | FI_COMPLETION));
    }
    void send(const std::string &bytes) const
    {
        EXPECT_EQ(0, fi_inject(both.a->ep, bytes.data(), bytes.size(), both.to_b));
    }
    // What a completion says of the buffer; 0: the message was longer than what was left.
    uint64_t next() const
    {
        fi_cq_data_entry entry, sent;
        ssize_t n;
        while ((n = fi_cq_read(both.b->cq, &entry, 1)) == -FI_EAGAIN) {
            both.a->poll(&sent);
        }
        fi_cq_err_entry error{};
        if (n == -FI_EAVAIL && fi_cq_readerr(both.b->cq, &error, 0) == 1) {
            EXPECT_EQ(FI_ETRUNC, error.err);
        }
        EXPECT_EQ(this, n == 1 ? entry.op_context : error.op_context);
        return n == 1 ? entry.flags & (FI_RECV | FI_MULTI_RECV) : 0;
    }
};

TEST(strict_core, a_shared_buffer_is_released_with_its_last_message_or_alone)
{
    for (const char *core : {"cxi", "efa", "opx", "psm3"}) {
        shared_buffer b(core);
        b.send(std::string(16, 'x'));
        b.send(std::string(16, 'x'));
        EXPECT_EQ(FI_RECV, b.next()) << core;
        if (std::string(core) == "efa") {
            EXPECT_EQ(FI_RECV, b.next());
            EXPECT_EQ(FI_MULTI_RECV, b.next());
        } else {
            EXPECT_EQ(FI_RECV | FI_MULTI_RECV, b.next()) << core;
        }
        EXPECT_EQ(std::string(32, 'x'), std::string(b.room, 32)) << core;
    }
}

TEST(strict_core, a_message_that_is_longer_than_what_is_left_of_its_buffer_is_an_error)
{
    for (const char *core : {"cxi", "psm3"}) {
        shared_buffer b(core);
        b.send(std::string(16, 'x'));
        EXPECT_EQ(FI_RECV, b.next()) << core;
        b.send(std::string(32, 'y'));
        EXPECT_EQ(0u, b.next()) << core;
    }
}

// What a fabric forbids. The core has threads, so each death has a process of its own.
class strict_core_death_test : public testing::Test {
  protected:
    strict_core_death_test() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(strict_core_death_test, a_region_that_is_bound_to_nothing)
{
    pair p("cxi");
    char memory[64];
    fid_mr *region = p.a->reg(memory, sizeof(memory));
    EXPECT_EQ(FI_KEY_NOTAVAIL, fi_mr_key(region));
    EXPECT_DEATH(fi_mr_enable(region),
                 "strict cxi: a region is enabled that is bound to no endpoint");
}

TEST_F(strict_core_death_test, a_region_enabled_before_its_endpoint)
{
    pair p("cxi");
    station closed(p.list.first, false);
    char memory[64];
    fid_mr *region = closed.reg(memory, sizeof(memory));
    ASSERT_EQ(0, fi_mr_bind(region, &closed.ep->fid, 0));
    EXPECT_DEATH(fi_mr_enable(region), "a region is enabled before its endpoint");
}

TEST_F(strict_core_death_test, a_region_bound_twice)
{
    pair p("cxi");
    char memory[64];
    fid_mr *region = p.region(*p.a, memory, sizeof(memory));
    EXPECT_DEATH(fi_mr_bind(region, &p.a->ep->fid, 0), "bound to a second endpoint");
}

TEST_F(strict_core_death_test, the_key_of_a_region_that_is_not_enabled)
{
    pair p("cxi");
    char memory[64];
    fid_mr *region = p.b->reg(memory, sizeof(memory));
    EXPECT_DEATH(fi_write(p.a->ep, memory, 8, nullptr, p.to_b, 0, fi_mr_key(region), nullptr),
                 "the key FI_KEY_NOTAVAIL");
}

TEST_F(strict_core_death_test, the_key_of_another_endpoints_region)
{
    pair p("cxi");
    char memory[64];
    fid_mr *region = p.region(*p.a, memory, sizeof(memory));
    EXPECT_DEATH(fi_write(p.a->ep, memory, 8, nullptr, p.to_b, 0, fi_mr_key(region), nullptr),
                 "bound to another endpoint");
}

TEST_F(strict_core_death_test, more_pieces_than_allowed)
{
    pair p("cxi");
    char memory[64];
    iovec pieces[] = {{memory, 8}, {memory + 8, 8}};
    EXPECT_DEATH(fi_sendv(p.a->ep, pieces, nullptr, 2, p.to_b, nullptr),
                 "2 pieces where 1 are allowed");
}

TEST_F(strict_core_death_test, memory_without_descriptor)
{
    pair p("efa");
    char memory[64];
    EXPECT_DEATH(fi_send(p.a->ep, memory, 8, nullptr, p.to_b, nullptr),
                 "strict efa: 8 bytes of memory without descriptor");
    EXPECT_DEATH(fi_recv(p.a->ep, memory, 8, nullptr, FI_ADDR_UNSPEC, nullptr),
                 "8 bytes of memory without descriptor");
    fi_ioc operand{memory, 1};
    fi_rma_ioc where{0, 1, 1};
    fi_msg_atomic message{&operand, nullptr, 1, p.to_b, &where, 1, FI_UINT64, FI_SUM, nullptr, 0};
    EXPECT_DEATH(fi_atomicmsg(p.a->ep, &message, 0), "8 bytes of memory without descriptor");
}

TEST_F(strict_core_death_test, a_descriptor_after_its_region_was_closed)
{
    pair p("efa");
    char memory[64];
    void *desc = fi_mr_desc(p.a->reg(memory, sizeof(memory)));
    fi_close(&p.a->regions.back()->fid);
    p.a->regions.pop_back();
    EXPECT_DEATH(fi_send(p.a->ep, memory, 8, desc, p.to_b, nullptr), "a descriptor of no region");
}

TEST_F(strict_core_death_test, memory_outside_of_its_region)
{
    pair p("efa");
    char memory[64];
    void *desc = fi_mr_desc(p.a->reg(memory, 32));
    EXPECT_DEATH(fi_send(p.a->ep, memory + 28, 8, desc, p.to_b, nullptr),
                 "8 bytes of memory outside of their region");
}

TEST_F(strict_core_death_test, a_region_whose_pages_were_given_back)
{
    environment pins("FI_STRICT_PINS", "1");
    pair p("efa");
    alignas(4096) char memory[4096];
    void *desc = fi_mr_desc(p.a->reg(memory, sizeof(memory)));
    EXPECT_EQ(0, fi_send(p.a->ep, memory, 8, desc, p.to_b, nullptr));
    madvise(memory, sizeof(memory), MADV_DONTNEED);
    memory[0] = 'x';
    EXPECT_DEATH(fi_send(p.a->ep, memory, 8, desc, p.to_b, nullptr), "unmapped or given back");
}

TEST_F(strict_core_death_test, a_region_used_before_it_is_enabled)
{
    pair p("worst");
    char memory[64];
    void *desc = fi_mr_desc(p.a->reg(memory, sizeof(memory)));
    EXPECT_DEATH(fi_send(p.a->ep, memory, 8, desc, p.to_b, nullptr),
                 "a region is used before it is enabled");
}

TEST_F(strict_core_death_test, more_injected_than_allowed)
{
    pair p("opx");
    char memory[64] = {};
    EXPECT_DEATH(fi_inject(p.a->ep, memory, 17, p.to_b), "17 bytes are injected where 16 are");
}

TEST_F(strict_core_death_test, completion_data_that_does_not_fit)
{
    pair p("opx");
    char memory[8] = {};
    EXPECT_DEATH(fi_injectdata(p.a->ep, memory, 8, 1ull << 32, p.to_b),
                 "completion data of more than 4 bytes");
}

TEST_F(strict_core_death_test, an_address_after_its_removal)
{
    pair p("psm3");
    char memory[8] = {};
    ASSERT_EQ(0, fi_inject(p.a->ep, memory, 8, p.to_b));
    ASSERT_EQ(0, fi_av_remove(p.a->av, &p.to_b, 1, 0));
    EXPECT_DEATH(fi_inject(p.a->ep, memory, 8, p.to_b), "address 0 was removed");
}

TEST_F(strict_core_death_test, an_address_of_another_fabric)
{
    pair p("cxi");
    std::string other = pair("efa").a->name();
    EXPECT_DEATH(p.a->insert(other), "no endpoint of this fabric has");
}

TEST_F(strict_core_death_test, an_endpoint_that_is_not_enabled)
{
    pair p("psm3");
    station closed(p.list.first, false);
    char memory[8] = {};
    EXPECT_DEATH(fi_inject(closed.ep, memory, 8, 0), "an endpoint that is not enabled");
}

TEST_F(strict_core_death_test, an_iovec_changed_before_its_operation_is_over)
{
    pair p("opx");
    char memory[64] = {};
    iovec piece{memory, 8};
    auto use_early = [&] {
        fi_sendv(p.a->ep, &piece, nullptr, 1, p.to_b, nullptr);
        piece = {memory + 8, 8};
        fi_cq_data_entry entry;
        fid_mr *region = p.b->reg(memory, sizeof(memory));
        fi_recv(p.b->ep, memory, 8, fi_mr_desc(region), FI_ADDR_UNSPEC, nullptr);
        while (!p.a->poll(&entry)) {
            p.b->poll(&entry);
        }
    };
    EXPECT_DEATH(use_early(), "an iovec was changed before its operation was over");
}

TEST_F(strict_core_death_test, an_iovec_is_given_back_when_its_operation_is_over)
{
    pair p("opx");
    char memory[64] = {};
    iovec piece{memory, 8};
    ASSERT_EQ(0, fi_sendv(p.a->ep, &piece, nullptr, 1, p.to_b, nullptr));
    EXPECT_NE(memory, piece.iov_base);
    fid_mr *region = p.b->reg(memory, sizeof(memory));
    ASSERT_EQ(0, fi_recv(p.b->ep, memory + 8, 8, fi_mr_desc(region), FI_ADDR_UNSPEC, nullptr));
    fi_cq_data_entry entry;
    while (!p.a->poll(&entry)) {
        p.b->poll(&entry);
    }
    EXPECT_EQ(memory, piece.iov_base);
}
