// SPDX-License-Identifier: BSD-3-Clause
// Mappings of another's memory: keys of one memory share one, an old key never leads to other
// memory, what is not used goes in the end, and many mappings cost no more for each than a few.
#include "uct/shared/mapping_table.h"
#include "uct/shared/mappings.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <vector>

namespace {

using namespace uct;

constexpr size_t size = 65536;

std::unique_ptr<shared_memory> make()
{
    return std::make_unique<shared_memory>(size, nullptr, false, true);
}

// How often memory of that nonce is mapped in this process.
unsigned mapped(const shared_memory_key &key)
{
    char name[64];
    snprintf(name, sizeof(name), "/memfd:ucxlike-%016llx (deleted)",
             static_cast<unsigned long long>(key.nonce));
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned count = 0;
    for (char line[512]; maps && fgets(line, sizeof(line), maps);) {
        count += strstr(line, name) != nullptr;
    }
    if (maps) {
        fclose(maps);
    }
    return count;
}

TEST(uct_mappings, keys_of_one_memory_share_a_mapping)
{
    auto memory = make();
    void *first = acquire_mapping(memory->key(), 0);
    ASSERT_NE(nullptr, first);
    EXPECT_NE(memory->address, first);
    EXPECT_EQ(first, acquire_mapping(memory->key(), 0));
    memset(memory->address, 'x', size);
    EXPECT_EQ(0, memcmp(memory->address, first, size));
    release_mapping(memory->key());
    release_mapping(memory->key());
    EXPECT_EQ(first, acquire_mapping(memory->key(), 0)) << "it should have stayed";
    release_mapping(memory->key());
}

TEST(uct_mappings, an_old_key_never_leads_to_other_memory)
{
    auto memory = make();
    shared_memory_key old = memory->key();
    memory.reset();
    auto next = make();
    ASSERT_EQ(old.fd, next->key().fd) << "the descriptor's number should come again";
    EXPECT_EQ(nullptr, acquire_mapping(old, 0));

    memset(next->address, 'n', size);
    void *mine = acquire_mapping(next->key(), 0);
    shared_memory_key kept = next->key();
    next.reset();
    auto other = make();
    memset(other->address, 'o', size);
    EXPECT_EQ('n', *static_cast<char *>(mine));
    EXPECT_EQ(mine, acquire_mapping(kept, 0));
    release_mapping(kept);
    release_mapping(kept);
}

TEST(uct_mappings, no_memory_has_no_mapping)
{
    EXPECT_EQ(nullptr, acquire_mapping(shared_memory_key{}, 0));
    auto memory = make();
    shared_memory_key wrong = memory->key();
    wrong.length *= 2; // more than there is
    EXPECT_EQ(nullptr, acquire_mapping(wrong, 0));
    wrong = memory->key();
    ++wrong.nonce;
    EXPECT_EQ(nullptr, acquire_mapping(wrong, 0));
}

TEST(uct_mappings, what_nobody_uses_goes)
{
    auto used = make();
    auto idle = make();
    ASSERT_NE(nullptr, acquire_mapping(used->key(), 0));
    ASSERT_NE(nullptr, acquire_mapping(idle->key(), 0));
    EXPECT_EQ(2u, mapped(idle->key()));
    release_mapping(idle->key());
    for (unsigned i = 0; i < 100; ++i) {
        auto memory = make();
        ASSERT_NE(nullptr, acquire_mapping(memory->key(), 0));
        release_mapping(memory->key());
    }
    EXPECT_EQ(1u, mapped(idle->key()));
    EXPECT_EQ(2u, mapped(used->key()));
    release_mapping(used->key());
}

// ---- The table alone, with memory that is none

struct counted_key {
    uint64_t nonce;
    uint64_t length;

    bool operator==(const counted_key &other) const
    {
        ++compared;
        return nonce == other.nonce && length == other.length;
    }

    static inline size_t compared = 0;
    static inline size_t maps = 0;
    static inline size_t unmaps = 0;
};

void *map_shared(const counted_key &key, uint64_t)
{
    ++counted_key::maps;
    return key.length ? reinterpret_cast<void *>(key.nonce) : nullptr;
}

void unmap_shared(void *address, const counted_key &key)
{
    ++counted_key::unmaps;
    EXPECT_EQ(reinterpret_cast<void *>(key.nonce), address);
}

std::vector<counted_key> keys(size_t count, size_t length)
{
    std::mt19937_64 random(1);
    std::vector<counted_key> all;
    for (size_t i = 0; i < count; ++i) {
        all.push_back({random(), length});
    }
    return all;
}

class uct_mapping_table : public testing::Test {
  protected:
    void SetUp() override { counted_key::compared = counted_key::maps = counted_key::unmaps = 0; }

    mapping_table<counted_key> table_;
};

TEST_F(uct_mapping_table, cost_does_not_grow_with_the_mappings)
{
    for (size_t count : {10u, 100u, 1000u, 10000u}) {
        std::vector<counted_key> all = keys(count, 4096);
        mapping_table<counted_key> table;
        SetUp();
        for (int round = 0; round < 2; ++round) {
            for (const counted_key &key : all) {
                ASSERT_EQ(reinterpret_cast<void *>(key.nonce), table.acquire(key, 0));
            }
        }
        EXPECT_EQ(count, counted_key::maps);
        for (int round = 0; round < 2; ++round) {
            for (const counted_key &key : all) {
                table.release(key);
            }
        }
        EXPECT_EQ(count - std::min(count, table.idle_count_max), counted_key::unmaps);
        EXPECT_LE(counted_key::compared, 10 * count) << "five calls for each of " << count;
    }
}

TEST_F(uct_mapping_table, the_longest_unused_goes_first)
{
    std::vector<counted_key> all = keys(table_.idle_count_max + 1, 4096);
    for (const counted_key &key : all) {
        table_.acquire(key, 0);
    }
    for (const counted_key &key : all) {
        table_.release(key);
    }
    EXPECT_EQ(1u, counted_key::unmaps);
    counted_key::maps = 0;
    for (size_t i = 1; i < all.size(); ++i) {
        table_.acquire(all[i], 0);
    }
    EXPECT_EQ(0u, counted_key::maps);
    table_.acquire(all[0], 0);
    EXPECT_EQ(1u, counted_key::maps);
    for (const counted_key &key : all) {
        table_.release(key);
    }
}

TEST_F(uct_mapping_table, idle_bytes_are_bounded)
{
    std::vector<counted_key> all = keys(3, table_.idle_bytes_max / 2);
    all.push_back({1, table_.idle_bytes_max + 1});
    size_t unmaps[] = {0, 0, 1, 4}; // the last one has room neither beside others nor alone
    for (size_t i = 0; i < all.size(); ++i) {
        table_.acquire(all[i], 0);
        table_.release(all[i]);
        EXPECT_EQ(unmaps[i], counted_key::unmaps);
    }
}

TEST_F(uct_mapping_table, what_cannot_be_mapped_is_not_kept)
{
    counted_key none{5, 0};
    EXPECT_EQ(nullptr, table_.acquire(none, 0));
    EXPECT_EQ(nullptr, table_.acquire(none, 0));
    EXPECT_EQ(2u, counted_key::maps);
}

} // namespace
