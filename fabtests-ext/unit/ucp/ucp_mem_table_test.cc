// SPDX-License-Identifier: BSD-3-Clause
//
// Lists of mappings and the views of them.
#include "ucp/core/mem_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>

namespace {

using ucp::mapping;

ucp_mem *mem(uintptr_t n)
{
    return reinterpret_cast<ucp_mem *>(n * 64);
}

TEST(mem_table, a_view_finds_the_last_entry_not_above)
{
    ucp::mem_table table;
    ucp::mem_views views(table);
    EXPECT_EQ(nullptr, views.allocated.find(5000).mem);
    table.allocated.add({2, 8000, 100, mem(2)});
    table.allocated.add({1, 4000, 1000, mem(1)});
    EXPECT_EQ(nullptr, views.allocated.find(3999).mem);
    EXPECT_EQ(mem(1), views.allocated.find(4000).mem);
    EXPECT_EQ(mem(1), views.allocated.find(7999).mem);
    EXPECT_EQ(mem(2), views.allocated.find(UINT64_MAX).mem);
}

TEST(mem_table, every_view_sees_what_comes_and_goes)
{
    ucp::mem_table table;
    ucp::mem_views one(table), other(table);
    for (uint64_t id = 1; id <= 3; ++id) {
        table.by_id.add({id, id * 1000, 10, mem(id)});
    }
    EXPECT_EQ(mem(2), one.by_id.find(2).mem);
    table.by_id.remove(2);
    table.by_id.remove(7); // never was
    EXPECT_EQ(1u, one.by_id.find(2).id);
    EXPECT_EQ(1u, other.by_id.find(2).id);
    EXPECT_EQ(3u, other.by_id.find(3).id);
}

// However many there are: a view that looks after each change repeats that change.
TEST(mem_table, a_change_costs_a_view_the_change_alone)
{
    ucp::mem_table table;
    ucp::mem_views views(table);
    constexpr uint64_t count = 5000;
    for (uint64_t id = 1; id <= count; ++id) {
        table.by_id.add({id, id * 4096, 100, mem(id)});
        ASSERT_EQ(mem(id), views.by_id.find(id).mem);
    }
    for (uint64_t id = 1; id <= count; ++id) {
        table.by_id.remove(id);
        ASSERT_EQ(nullptr, views.by_id.find(id).mem);
    }
    EXPECT_EQ(2 * count, views.by_id.renewed());
}

// What a view has not seen costs it what is there at most.
TEST(mem_table, a_view_that_looks_seldom_copies_what_there_is)
{
    ucp::mem_table table;
    for (uint64_t id = 1; id <= 10; ++id) {
        table.by_id.add({id, id * 4096, 100, mem(id)});
    }
    ucp::mem_views views(table);
    EXPECT_EQ(mem(10), views.by_id.find(10).mem);
    for (uint64_t id = 11; id <= 5000; ++id) {
        table.by_id.add({id, id * 4096, 100, mem(id)});
        table.by_id.remove(id);
    }
    table.by_id.remove(10);
    uint64_t before = views.by_id.renewed();
    EXPECT_EQ(mem(9), views.by_id.find(UINT64_MAX).mem);
    EXPECT_LE(views.by_id.renewed() - before, 100u);
    for (uint64_t id = 1; id <= 9; ++id) {
        EXPECT_EQ(mem(id), views.by_id.find(id).mem);
    }
}

// A random history, against a list that is obviously right.
TEST(mem_table, views_of_any_age_agree_with_the_list)
{
    std::mt19937_64 random(7);
    std::map<uint64_t, uint64_t> right;
    ucp::mem_table table;
    ucp::mem_views often(table), seldom(table);
    auto check = [&](ucp::mem_view &view, uint64_t key) {
        auto it = right.upper_bound(key);
        ucp_mem *expected = it == right.begin() ? nullptr : mem((--it)->second);
        ASSERT_EQ(expected, view.find(key).mem);
    };
    for (uint64_t step = 1; step <= 20000; ++step) {
        uint64_t id = random() % 300 + 1;
        if (right.erase(id)) {
            table.by_id.remove(id);
        } else {
            right[id] = step;
            table.by_id.add({id, id * 4096, 100, mem(step)});
        }
        check(often.by_id, random() % 302);
        if (random() % 200 == 0) {
            check(seldom.by_id, random() % 302);
        }
    }
}

TEST(mem_table, a_mapping_holds_what_lies_in_it)
{
    const mapping m = {1, 4096, 100, mem(1)};
    EXPECT_TRUE(m.holds(4096, 100));
    EXPECT_TRUE(m.holds(4196, 0));
    EXPECT_FALSE(m.holds(4095, 1));
    EXPECT_FALSE(m.holds(4097, 100));
    EXPECT_FALSE(m.holds(4196, 1));
    EXPECT_FALSE(m.holds(4100, UINT64_MAX));
    EXPECT_FALSE(mapping().holds(0, 0));
}

TEST(mem_table, a_list_changes_while_threads_look)
{
    ucp::mem_table table;
    table.by_id.add({1, 4096, 100, mem(1)});
    std::atomic<bool> stop{false};
    std::thread changes([&] {
        for (uint64_t id = 2; !stop; ++id) {
            table.by_id.add({id, id * 4096, 100, mem(id)});
            table.by_id.remove(id);
        }
    });
    ucp::mem_views views(table);
    for (int i = 0; i < 20000; ++i) {
        ASSERT_EQ(mem(1), views.by_id.find(1).mem);
        mapping last = views.by_id.find(UINT64_MAX);
        ASSERT_EQ(mem(last.id), last.mem);
    }
    stop = true;
    changes.join();
}

TEST(mem_table, a_mapping_is_not_removed_while_an_access_lasts)
{
    ucp::mem_table table;
    table.by_id.add({1, 4096, 100, mem(1)});
    table.by_id.add({2, 8192, 100, mem(2)});
    ucp::mem_views views(table), idle(table);
    std::atomic<bool> removing{false}, removed{false};
    std::thread other;
    {
        ucp::mem_view::access lasts(views.by_id);
        ASSERT_EQ(mem(1), views.by_id.find(1).mem);
        other = std::thread([&] {
            removing = true;
            table.by_id.remove(1);
            removed = true;
        });
        for (int turns = 0; (!removing || turns < 10000) && !removed; ++turns) {
            std::this_thread::yield();
        }
        EXPECT_FALSE(removed);
        EXPECT_EQ(mem(2), views.by_id.find(2).mem); // the list is not locked meanwhile
    }
    other.join();
    EXPECT_NE(1u, views.by_id.find(1).id);
    table.by_id.remove(2); // waits for nothing
}

TEST(mem_table, views_come_and_go_while_mappings_are_removed)
{
    ucp::mem_table table;
    std::atomic<bool> stop{false};
    std::thread changes([&] {
        for (uint64_t id = 2; !stop; ++id) {
            table.by_id.add({id, id * 4096, 100, mem(id)});
            table.by_id.remove(id);
        }
    });
    for (int i = 0; i < 2000; ++i) {
        ucp::mem_views views(table);
        ucp::mem_view::access lasts(views.by_id);
        mapping last = views.by_id.find(UINT64_MAX);
        ASSERT_EQ(mem(last.id), last.mem);
    }
    stop = true;
    changes.join();
}

} // namespace
