// SPDX-License-Identifier: BSD-3-Clause
//
// Headers of the provider's messages, and announcements of multicast members, that are damaged or
// made up. Nothing may be read beyond what arrived (the address sanitizer sees it: each input is a
// heap block of its exact size), and what is accepted must be what a sender could have built. The
// seed is printed; UCXLIKE_FUZZ_SEED repeats a run and UCXLIKE_FUZZ_ROUNDS makes it longer.
#include "prov/ucxlike/wire.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

namespace {

namespace wire = ucxlike::wire;
using bytes = std::vector<uint8_t>;

class prov_wire_fuzz : public testing::Test {
  protected:
    void SetUp() override
    {
        const char *seed = getenv("UCXLIKE_FUZZ_SEED");
        const char *rounds = getenv("UCXLIKE_FUZZ_ROUNDS");
        seed_ = seed ? static_cast<unsigned>(atoi(seed)) : std::random_device()();
        rounds_ = rounds ? atoi(rounds) : 200000;
        random_.seed(seed_);
        printf("UCXLIKE_FUZZ_SEED=%u\n", seed_);
    }

    size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
    uint64_t word() { return random_(); }
    bool coin() { return below(2); }

    bytes any(size_t n)
    {
        bytes b(n);
        for (uint8_t &c : b) {
            c = static_cast<uint8_t>(below(256));
        }
        return b;
    }

    wire::hello hello()
    {
        wire::hello h = {};
        bytes b = any(sizeof(h));
        memcpy(&h, b.data(), sizeof(h));
        h.version = wire::version;
        h.family = coin() ? 4 : 6;
        h.id &= (uint64_t(1) << wire::id_bits) - 1;
        return h;
    }

    bytes message()
    {
        uint8_t to[wire::max_header];
        wire::builder b(to);
        if (coin()) {
            b.tag(word());
        }
        if (coin()) {
            b.data(word());
        }
        if (coin()) {
            b.ack(word());
        }
        if (coin()) {
            b.ack_on_arrival();
        }
        if (coin()) {
            b.group(word());
        }
        if (coin()) {
            b.rma({word(), word(), word()});
        }
        if (coin()) {
            b.say_hello(hello());
        }
        size_t n = b.finish(static_cast<uint32_t>(word()), static_cast<uint16_t>(below(20)));
        EXPECT_LE(n, sizeof(to));
        return bytes(to, to + n);
    }

    // The same again, from what was understood.
    static bytes rebuild(const wire::message &m)
    {
        uint8_t to[wire::max_header];
        wire::builder b(to);
        if (m.flags & wire::has_tag) {
            b.tag(m.tag);
        }
        if (m.flags & wire::has_data) {
            b.data(m.data);
        }
        if (m.flags & wire::has_ack) {
            b.ack(m.ack);
        }
        if (m.flags & wire::on_arrival) {
            b.ack_on_arrival();
        }
        if (m.flags & wire::has_group) {
            b.group(m.group);
        }
        if (m.flags & wire::has_rma) {
            b.rma(m.rma);
        }
        if (m.hello) {
            wire::hello h;
            memcpy(&h, m.hello, sizeof(h));
            ucxlike::address a = wire::name_of(h);
            EXPECT_EQ(a.sa.sa_family, h.family == 4 ? AF_INET : AF_INET6);
            b.say_hello(h);
        }
        return bytes(to, to + b.finish(m.id, m.kind));
    }

    void damage(bytes &b)
    {
        switch (below(4)) {
        case 0:
            b.resize(below(b.size() + 1));
            break;
        case 1: {
            bytes more = any(1 + below(40));
            b.insert(b.end(), more.begin(), more.end());
            break;
        }
        case 2: // the lengths and flags are at the beginning
            b[below(std::min<size_t>(b.size(), 8))] = static_cast<uint8_t>(below(256));
            break;
        default:
            for (size_t i = 1 + below(8); i > 0; --i) {
                b[below(b.size())] ^= static_cast<uint8_t>(1u << below(8));
            }
        }
    }

    // True when it was accepted, and then as something that can be built.
    static bool accepted(const bytes &b)
    {
        std::unique_ptr<uint8_t[]> exact(new uint8_t[b.size()]);
        std::copy(b.begin(), b.end(), exact.get());
        wire::message m;
        if (!wire::parse(exact.get(), b.size(), m)) {
            return false;
        }
        EXPECT_EQ(rebuild(m), b);
        return true;
    }

    unsigned seed_;
    int rounds_;
    std::mt19937_64 random_;
};

TEST_F(prov_wire_fuzz, messages_that_were_built_are_understood)
{
    for (int i = 0; i < rounds_ / 10; ++i) {
        ASSERT_TRUE(accepted(message()));
    }
}

TEST_F(prov_wire_fuzz, damaged_messages_are_refused_or_are_other_messages)
{
    int refused = 0;
    for (int i = 0; i < rounds_; ++i) {
        bytes b = message();
        damage(b);
        refused += !accepted(b);
        ASSERT_FALSE(HasFailure());
    }
    EXPECT_GT(refused, 0);
}

TEST_F(prov_wire_fuzz, noise_is_harmless)
{
    for (int i = 0; i < rounds_; ++i) {
        accepted(any(below(2 * wire::max_header)));
        ASSERT_FALSE(HasFailure());
    }
}

TEST_F(prov_wire_fuzz, announcements_are_whole_or_refused)
{
    auto ok = [](const bytes &b) {
        std::unique_ptr<uint8_t[]> exact(new uint8_t[b.size()]);
        std::copy(b.begin(), b.end(), exact.get());
        wire::notice n;
        if (!wire::parse(exact.get(), b.size(), n)) {
            return false;
        }
        EXPECT_EQ(b.size(), sizeof(n));
        EXPECT_EQ(n.magic, wire::notice::right_magic);
        EXPECT_TRUE(n.sender.family == 4 || n.sender.family == 6);
        EXPECT_NE(wire::name_of(n.sender).port(), 0);
        EXPECT_NE(n.sender.id, 0u);
        return true;
    };
    for (int i = 0; i < rounds_; ++i) {
        wire::notice n = {};
        n.magic = wire::notice::right_magic;
        n.kind = coin() ? wire::notice::here : wire::notice::leaves;
        n.roles = static_cast<uint8_t>(1 + below(3));
        n.members = static_cast<uint16_t>(word());
        n.sender = hello();
        n.sender.port |= 1;
        n.sender.id |= 1;
        bytes b(sizeof(n));
        memcpy(b.data(), &n, sizeof(n));
        ASSERT_TRUE(ok(b));
        size_t whole = b.size();
        damage(b);
        bool understood = ok(b);
        ASSERT_FALSE(understood && b.size() != whole);
        ASSERT_FALSE(HasFailure());
    }
}

} // namespace
