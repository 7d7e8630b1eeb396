// SPDX-License-Identifier: BSD-3-Clause
// Mappings of another's memory: keys of one memory share one, an old key never leads to other
// memory, and what nobody uses goes in the end.
#include "uct/shared/mappings.h"

#include <cstdio>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
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

} // namespace
