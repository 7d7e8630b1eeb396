// SPDX-License-Identifier: BSD-3-Clause
// The reader of the connection manager's messages: what was written comes back, everything else is
// refused without a look beyond its end.
#include "uct/ofi/cm/wire.h"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>

namespace {

using namespace uct::ofi::cm_wire;

struct wire_message {
    char bytes[message_max];
    size_t length;
};

wire_message make(type t, uint32_t total, uint32_t arg, const std::string &chunk)
{
    wire_message w{};
    w.length = write(w.bytes, {t, total, arg, chunk.data(), chunk.size()});
    return w;
}

TEST(uct_cm_wire, what_was_written_comes_back)
{
    std::string chunk(chunk_max, 'x');
    for (type t : {type::connect, type::accept, type::reply, type::data}) {
        wire_message w = make(t, 5000, 7, chunk);
        EXPECT_EQ(message_max, w.length);
        message m;
        ASSERT_TRUE(parse(w.bytes, w.length, m));
        EXPECT_EQ(t, m.type);
        EXPECT_EQ(5000u, m.total_len);
        EXPECT_EQ(7u, m.arg);
        EXPECT_EQ(chunk, std::string(static_cast<const char *>(m.chunk), m.chunk_len));
    }
    for (type t : {type::proceed, type::reject, type::notify, type::disconnect}) {
        wire_message w = make(t, 0, 0, "");
        message m;
        ASSERT_TRUE(parse(w.bytes, w.length, m));
        EXPECT_EQ(t, m.type);
    }
}

TEST(uct_cm_wire, padding_behind_the_chunk_is_ignored)
{
    wire_message w = make(type::accept, 3, 0, "abc");
    message m;
    ASSERT_TRUE(parse(w.bytes, 56, m));
    EXPECT_EQ(3u, m.chunk_len);
}

TEST(uct_cm_wire, every_shorter_message_is_refused)
{
    wire_message w = make(type::connect, 20, 0, "what the client says");
    for (size_t length = 0; length < w.length; ++length) {
        // Allocated, so that a sanitizer sees a read beyond the end.
        auto bytes = std::make_unique<char[]>(length);
        memcpy(bytes.get(), w.bytes, length);
        message m;
        EXPECT_FALSE(parse(bytes.get(), length, m)) << length;
    }
}

TEST(uct_cm_wire, contradictions_are_refused)
{
    message m;
    wire_message w = make(type::connect, 2, 0, "abc");
    EXPECT_FALSE(parse(w.bytes, w.length, m)) << "a part longer than the whole";
    w = make(type::data, 10, 8, "abc");
    EXPECT_FALSE(parse(w.bytes, w.length, m)) << "a part beyond the end";
    w = make(type::data, 10, UINT32_MAX, "abc");
    EXPECT_FALSE(parse(w.bytes, w.length, m)) << "an offset that wraps";
    w = make(type::data, 10, 5, "");
    EXPECT_FALSE(parse(w.bytes, w.length, m)) << "an empty part";
    w = make(type::notify, 1, 0, "");
    EXPECT_FALSE(parse(w.bytes, w.length, m)) << "data where none belongs";
}

TEST(uct_cm_wire, damaged_messages_never_lead_outside)
{
    std::mt19937 random(1);
    wire_message good = make(type::data, 4096, 100, std::string(200, 'x'));
    for (int i = 0; i < 100000; ++i) {
        size_t length = random() % (good.length + 1);
        auto bytes = std::make_unique<char[]>(length);
        memcpy(bytes.get(), good.bytes, length);
        for (unsigned flips = random() % 4; flips > 0 && length > 0; --flips) {
            bytes[random() % std::min<size_t>(length, 20)] ^= static_cast<char>(random());
        }
        message m;
        if (parse(bytes.get(), length, m)) {
            ASSERT_LE(static_cast<const char *>(m.chunk) + m.chunk_len, bytes.get() + length);
            ASSERT_LE(m.chunk_len, m.total_len);
        }
    }
}

} // namespace
