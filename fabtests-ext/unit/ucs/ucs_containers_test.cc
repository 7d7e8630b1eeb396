// SPDX-License-Identifier: BSD-3-Clause
// ucs containers: intrusive list, queue and timeline, pool, id map.
#include "ucs/list.h"
#include "ucs/mpool.h"
#include "ucs/ptr_map.h"
#include "ucs/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace {

struct item {
    int value = 0;
    ucs::list_node node;
    item *next = nullptr;
};
using item_list = ucs::list<item, &item::node>;
using item_queue = ucs::queue<item, &item::next>;

std::vector<int> values(item_list &list)
{
    std::vector<int> result;
    for (item *i : list) {
        result.push_back(i->value);
    }
    return result;
}

TEST(list, keeps_order_and_erases_while_iterating)
{
    item items[4];
    item_list list;
    for (int i = 0; i < 4; ++i) {
        items[i].value = i;
        list.push_back(&items[i]);
    }
    for (item *i : list) {
        if (i->value % 2) {
            list.erase(i);
        }
    }
    EXPECT_EQ(values(list), (std::vector<int>{0, 2}));
    list.push_front(&items[3]);
    EXPECT_EQ(list.front(), &items[3]);
    EXPECT_EQ(list.back(), &items[2]);
    EXPECT_FALSE(items[1].node.linked());
    while (list.pop_front()) {
    }
    EXPECT_TRUE(list.empty());
    EXPECT_EQ(list.pop_front(), nullptr);
}

TEST(list, splice_empties_the_other)
{
    item items[3];
    item_list a, b;
    for (int i = 0; i < 3; ++i) {
        items[i].value = i;
        (i ? b : a).push_back(&items[i]);
    }
    a.splice_back(b);
    EXPECT_EQ(values(a), (std::vector<int>{0, 1, 2}));
    EXPECT_TRUE(b.empty());
    a.splice_back(b);
    EXPECT_EQ(values(a).size(), 3u);
}

TEST(queue, is_first_in_first_out_across_empty)
{
    item items[3];
    item_queue queue;
    EXPECT_EQ(queue.pop(), nullptr);
    for (int round = 0; round < 2; ++round) {
        for (item &i : items) {
            queue.push(&i);
        }
        for (item &i : items) {
            EXPECT_EQ(queue.pop(), &i);
        }
        EXPECT_TRUE(queue.empty());
    }
}

TEST(mpool, reuses_objects_and_keeps_their_content)
{
    ucs::mpool<item> pool(4);
    std::set<item *> seen;
    for (int i = 0; i < 10; ++i) {
        item *object = pool.get();
        ASSERT_NE(object, nullptr);
        object->value = i;
        EXPECT_TRUE(seen.insert(object).second);
    }
    EXPECT_EQ(pool.used(), 10u);
    item *kept = *seen.begin();
    int value = kept->value;
    pool.put(kept);
    EXPECT_EQ(pool.get(), kept);
    EXPECT_EQ(kept->value, value);
    for (item *object : seen) {
        pool.put(object);
    }
    EXPECT_EQ(pool.used(), 0u);
}

TEST(mpool, stops_at_its_limit_and_runs_hooks_once_per_object)
{
    struct counts {
        int init = 0;
        int fini = 0;
    } c;
    {
        ucs::mpool_base pool(
            {.object_size = 24,
             .align = 64,
             .chunk = 3,
             .max = 5,
             .arg = &c,
             .object_init = [](void *arg, void *) { ++static_cast<counts *>(arg)->init; },
             .object_fini = [](void *arg, void *) { ++static_cast<counts *>(arg)->fini; }});
        std::vector<void *> objects;
        while (void *object = pool.get()) {
            EXPECT_EQ(c.init, static_cast<int>(objects.size() + 1)) << "no memory before its use";
            EXPECT_EQ(pool.available(), objects.size() < 4);
            EXPECT_EQ(reinterpret_cast<uintptr_t>(object) % 64, 0u);
            objects.push_back(object);
        }
        EXPECT_EQ(objects.size(), 5u);
        for (void *object : objects) {
            pool.put(object);
        }
        EXPECT_EQ(c.init, 5);
    }
    EXPECT_EQ(c.fini, 5);
}

TEST(ptr_map, stale_ids_are_not_found)
{
    ucs::ptr_map<int> map;
    int a = 1, b = 2;
    uint64_t id_a = map.add(&a);
    EXPECT_NE(id_a, 0u);
    EXPECT_EQ(map.find(id_a), &a);
    map.erase(id_a);
    EXPECT_EQ(map.find(id_a), nullptr);
    uint64_t id_b = map.add(&b);
    EXPECT_NE(id_b, id_a);
    EXPECT_EQ(map.find(id_a), nullptr);
    EXPECT_EQ(map.find(id_b), &b);
    map.erase(id_a);
    EXPECT_EQ(map.size(), 1u);
}

TEST(ptr_map, ids_do_not_follow_from_earlier_ones)
{
    ucs::ptr_map<int> map, other;
    int a = 1;
    std::set<uint64_t> ids;
    for (int i = 0; i < 100; ++i) {
        for (auto *m : {&map, &other}) {
            uint64_t id = m->add(&a);
            m->erase(id);
            EXPECT_TRUE(ids.insert(id >> 32).second);
            EXPECT_EQ(ids.count((id >> 32) - 1), 0u);
        }
    }
}

TEST(ptr_map, foreign_ids_are_not_found)
{
    ucs::ptr_map<int> map;
    int a = 1;
    uint64_t id = map.add(&a);
    std::mt19937_64 random(1);
    for (int i = 0; i < 10000; ++i) {
        uint64_t other = random();
        if (other != id) {
            EXPECT_EQ(map.find(other), nullptr);
        }
    }
    EXPECT_EQ(map.find(0), nullptr);
    EXPECT_EQ(map.find(UINT64_MAX), nullptr);
}

// ---- timeline

// A time that counts how often it is looked at.
struct counted_time {
    uint64_t value = 0;

    operator uint64_t() const
    {
        ++looks;
        return value;
    }

    static inline size_t looks = 0;
};

struct timed {
    counted_time when;
    ucs::list_node link;
};
using timed_line = ucs::timeline<timed, &timed::link, &timed::when>;

TEST(timeline, a_look_does_not_grow_with_what_waits)
{
    for (size_t count : {1u, 10u, 100u, 1000u, 10000u}) {
        std::vector<timed> items(count);
        timed_line line;
        counted_time::looks = 0;
        for (size_t i = 0; i < count; ++i) {
            items[i].when.value = 100 + i;
            line.add(&items[i]);
        }
        EXPECT_LE(counted_time::looks, 4 * count) << "adding in order of time takes one step";
        counted_time::looks = 0;
        EXPECT_EQ(nullptr, line.due(100));
        EXPECT_EQ(counted_time::looks, 1u) << count;
        for (size_t i = 0; i < count; ++i) {
            ASSERT_EQ(&items[i], line.due(UINT64_MAX));
            line.remove(&items[i]);
        }
        EXPECT_EQ(counted_time::looks, 1 + count);
        EXPECT_TRUE(line.empty());
    }
}

TEST(timeline, what_is_due_at_once_is_first)
{
    std::vector<timed> items(1000);
    timed_line line;
    for (timed &t : items) {
        t.when.value = 100;
        line.add(&t);
    }
    timed now[2];
    counted_time::looks = 0;
    for (timed &t : now) {
        line.add(&t);
        EXPECT_EQ(&t, line.due(1));
    }
    EXPECT_LE(counted_time::looks, 6u);
}

TEST(timeline, sorts_by_time)
{
    std::mt19937 random(1);
    std::vector<timed> items(200);
    timed_line line;
    for (timed &t : items) {
        t.when.value = 1 + random() % 50;
        line.add(&t);
    }
    for (size_t i = 0; i < items.size(); i += 3) {
        line.remove(&items[i]);
        line.remove(&items[i]); // does nothing
    }
    size_t count = 0;
    for (uint64_t last = 0; timed *t = line.due(UINT64_MAX); ++count) {
        EXPECT_LE(last, t->when.value);
        last = t->when.value;
        EXPECT_EQ(nullptr, line.due(last));
        line.remove(t);
    }
    EXPECT_EQ(count, items.size() - 67);
}

} // namespace
