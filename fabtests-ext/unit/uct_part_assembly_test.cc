// SPDX-License-Identifier: BSD-3-Clause
// Messages in parts: what is put together, what is dropped, and that no buffer is lost.
#include "uct/ofi/quirks/parts.h"

#include <cstring>
#include <gtest/gtest.h>
#include <string>

namespace {

using namespace uct::ofi;

class uct_part_assembly : public ::testing::Test {
  protected:
    static constexpr size_t most = 100;

    // The message that it completes; "" if none.
    std::string add(const part_header &header, const std::string &bytes)
    {
        std::string part(reinterpret_cast<const char *>(&header), sizeof(header));
        part_assembly::message m =
            assembly.add((part + bytes).data(), sizeof(header) + bytes.size());
        if (!m.buffer) {
            return "";
        }
        std::string message(m.buffer->payload, m.length);
        buffers.put(m.buffer);
        return message;
    }

    ucs::mpool_base buffers{{.object_size = sizeof(receive_op) + most,
                             .chunk = 4,
                             .max = 4,
                             .object_init = [](void *, void *object) {
                                 auto *r = static_cast<receive_op *>(object);
                                 r->payload = reinterpret_cast<char *>(r + 1);
                             }}};
    part_assembly assembly{buffers, most};
};

TEST_F(uct_part_assembly, messages_of_several_endpoints_come_in_between_each_other)
{
    EXPECT_EQ(add({1, 1, 6, 0}, "ab"), "");
    EXPECT_EQ(add({1, 2, 6, 0}, "AB"), "");
    EXPECT_EQ(add({2, 1, 3, 0}, "1"), "");
    EXPECT_EQ(add({1, 1, 6, 2}, "cd"), "");
    EXPECT_EQ(add({2, 1, 3, 1}, "23"), "123");
    EXPECT_EQ(add({1, 2, 6, 2}, "CDEF"), "ABCDEF");
    EXPECT_EQ(add({1, 1, 6, 4}, "ef"), "abcdef");
    EXPECT_EQ(add({1, 1, 2, 0}, "xy"), "xy");
    EXPECT_EQ(buffers.used(), 0u);
}

TEST_F(uct_part_assembly, one_that_was_never_completed_makes_room_for_the_next)
{
    EXPECT_EQ(add({1, 1, 6, 0}, "ab"), "");
    EXPECT_EQ(add({1, 1, 4, 0}, "cd"), "");
    EXPECT_EQ(add({1, 1, 4, 2}, "ef"), "cdef");
    EXPECT_EQ(buffers.used(), 0u);
}

TEST_F(uct_part_assembly, the_dead_leave_nothing)
{
    EXPECT_EQ(add({1, 7, 6, 0}, "ab"), "");
    EXPECT_EQ(add({2, 0, 6, 0}, "ab"), "");
    EXPECT_EQ(add({2, UINT32_MAX, 6, 0}, "ab"), "");
    EXPECT_EQ(add({3, 0, 6, 0}, "ab"), "");
    assembly.sender_died(2);
    EXPECT_EQ(buffers.used(), 2u);
    EXPECT_EQ(add({2, 0, 6, 2}, "cdef"), "");
    EXPECT_EQ(add({3, 0, 6, 2}, "cdef"), "abcdef");
    EXPECT_EQ(add({1, 7, 6, 2}, "cdef"), "abcdef");
    EXPECT_EQ(buffers.used(), 0u);
}

TEST_F(uct_part_assembly, damaged_ones_are_dropped)
{
    EXPECT_EQ(assembly.add("short", 5).buffer, nullptr);
    EXPECT_EQ(add({1, 1, 6, 0}, ""), "");          // nothing in it
    EXPECT_EQ(add({1, 1, most + 1, 0}, "ab"), ""); // too long a message
    EXPECT_EQ(add({1, 1, 6, 2}, "ab"), "");        // no beginning
    EXPECT_EQ(add({1, 1, 6, 0}, "abcdefg"), "");   // longer than its message
    EXPECT_EQ(buffers.used(), 0u);
    for (part_header second : {part_header{1, 1, 6, 1},
                               {1, 1, 6, 3},
                               {1, 1, 7, 2},
                               {1, 1, 5, 2},
                               {1, 1, 6, UINT64_MAX}}) {
        EXPECT_EQ(add({1, 1, 6, 0}, "ab"), "");
        EXPECT_EQ(add(second, "cdef"), "");
        EXPECT_EQ(buffers.used(), 0u);
        EXPECT_EQ(add({1, 1, 6, 2}, "cdef"), "");
    }
}

TEST_F(uct_part_assembly, who_has_no_memory_drops_whole_messages)
{
    for (uint32_t i = 0; i < 5; ++i) {
        EXPECT_EQ(add({1, i, 4, 0}, "ab"), "");
    }
    for (uint32_t i = 0; i < 5; ++i) {
        EXPECT_EQ(add({1, i, 4, 2}, "cd"), i < 4 ? "abcd" : "");
    }
    EXPECT_EQ(buffers.used(), 0u);
}

} // namespace
