// SPDX-License-Identifier: BSD-3-Clause
// Memory stays registered for its next use, until its place is needed, or the memory is unmapped,
// moved or given back.
#include "ucs/rcache/region_cache.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using ucs::memory_watch;
using ucs::region_cache;

constexpr size_t page = 4096;

// Counts, and knows what is registered.
struct ledger final : region_cache::registrar {
    struct entry {
        char *base;
        size_t length;
    };

    std::atomic<int> made{0};
    std::atomic<int> alive{0};
    std::atomic<int> most{INT_MAX}; // refuses more at a time

    void *reg(void *address, size_t length) noexcept override
    {
        if (alive >= most) {
            return nullptr;
        }
        ++made;
        ++alive;
        return new entry{static_cast<char *>(address), length};
    }
    void dereg(void *handle) noexcept override
    {
        --alive;
        delete static_cast<entry *>(handle);
    }
};

struct memory {
    char *base;
    size_t length;

    explicit memory(size_t pages, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1)
        : base(static_cast<char *>(
              mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, flags, fd, 0))),
          length(pages * page)
    {
        EXPECT_NE(MAP_FAILED, base);
        memset(base, 'x', length);
    }
    ~memory() { munmap(base, length); }
    memory(const memory &) = delete;
};

struct ucs_region_cache : testing::Test {
    ledger how;

    void SetUp() override
    {
        std::string reason = memory_watch::why_not();
        if (!reason.empty()) {
            GTEST_SKIP() << reason;
        }
    }

    static void use(region_cache &cache, const void *address, size_t length)
    {
        region_cache::region *r = cache.acquire(address, length);
        ASSERT_NE(nullptr, r);
        auto *e = static_cast<ledger::entry *>(r->handle);
        EXPECT_LE(e->base, static_cast<const char *>(address));
        EXPECT_GE(e->base + e->length, static_cast<const char *>(address) + length);
        cache.release(r);
    }
};

TEST_F(ucs_region_cache, the_next_use_finds_the_region)
{
    region_cache cache(how, {});
    memory m(4);
    use(cache, m.base, m.length);
    use(cache, m.base, m.length);
    use(cache, m.base + 10, 100);
    EXPECT_EQ(1, how.made);
    EXPECT_EQ(2u, cache.counts().hits);
    EXPECT_EQ(0u, cache.counts().single);
}

TEST_F(ucs_region_cache, everything_is_deregistered_with_the_cache)
{
    memory m(4);
    {
        region_cache cache(how, {});
        use(cache, m.base, page);
        use(cache, m.base + 2 * page, page);
        EXPECT_EQ(2, how.alive);
    }
    EXPECT_EQ(0, how.alive);
}

TEST_F(ucs_region_cache, regions_that_overlap_become_one)
{
    region_cache cache(how, {});
    memory m(8);
    use(cache, m.base, 3 * page);
    use(cache, m.base + 4 * page, 2 * page);
    use(cache, m.base + 2 * page, 3 * page); // a piece of both
    EXPECT_EQ(3, how.made);
    EXPECT_EQ(1, how.alive);
    use(cache, m.base, 6 * page);
    EXPECT_EQ(3, how.made);
}

TEST_F(ucs_region_cache, one_in_use_is_replaced_and_stays_until_its_end)
{
    region_cache cache(how, {});
    memory m(8);
    region_cache::region *small = cache.acquire(m.base, 2 * page);
    use(cache, m.base + page, 3 * page);
    EXPECT_EQ(2, how.alive);
    cache.release(small);
    EXPECT_EQ(1, how.alive);
    use(cache, m.base, 4 * page);
    EXPECT_EQ(2, how.made);
}

TEST_F(ucs_region_cache, the_least_recently_used_goes_when_there_are_too_many)
{
    region_cache cache(how, {.regions = 2});
    memory m(8);
    use(cache, m.base, page);
    use(cache, m.base + 2 * page, page);
    use(cache, m.base, page);
    use(cache, m.base + 4 * page, page); // in place of the second
    EXPECT_EQ(2, how.alive);
    EXPECT_EQ(1u, cache.counts().evicted);
    use(cache, m.base, page);
    EXPECT_EQ(3, how.made);
    use(cache, m.base + 2 * page, page);
    EXPECT_EQ(4, how.made);
}

TEST_F(ucs_region_cache, idle_ones_go_when_they_have_too_many_bytes)
{
    region_cache cache(how, {.bytes = 4 * page});
    memory m(16);
    use(cache, m.base, 2 * page);
    use(cache, m.base + 4 * page, 2 * page);
    use(cache, m.base + 8 * page, 3 * page);
    EXPECT_EQ(1, how.alive);
    use(cache, m.base, 5 * page); // never fits
    use(cache, m.base + 1, 4 * page);
    EXPECT_EQ(1, how.alive);
    EXPECT_EQ(2u, cache.counts().single);
}

TEST_F(ucs_region_cache, with_all_in_use_a_further_one_is_for_one_use)
{
    region_cache cache(how, {.regions = 1});
    memory m(4);
    region_cache::region *held = cache.acquire(m.base, page);
    use(cache, m.base + 2 * page, page);
    EXPECT_EQ(1, how.alive);
    cache.release(held);
    EXPECT_EQ(1, how.alive);
}

TEST_F(ucs_region_cache, a_refused_registration_gives_idle_ones_back_and_tries_again)
{
    region_cache cache(how, {});
    memory m(8);
    how.most = 2;
    use(cache, m.base, page);
    region_cache::region *held = cache.acquire(m.base + 2 * page, page);
    use(cache, m.base + 4 * page, page);
    EXPECT_EQ(1u, cache.counts().evicted);
    how.most = 1;
    EXPECT_EQ(nullptr, cache.acquire(m.base + 6 * page, page));
    cache.release(held);
}

// Does something to the memory that a region is in; the next use then registers anew.
template <class F>
void expect_gone(ledger &how, region_cache &cache, const char *base, F change)
{
    int before = how.made;
    ucs_region_cache::use(cache, base, page);
    ASSERT_EQ(before + 1, how.made) << "it was there before";
    uint64_t gone = cache.counts().gone;
    change();
    EXPECT_EQ(gone + 1, cache.counts().gone);
}

TEST_F(ucs_region_cache, memory_that_is_unmapped_is_forgotten)
{
    region_cache cache(how, {});
    memory m(4);
    for (int i = 0; i < 100; ++i) {
        expect_gone(how, cache, m.base + page, [&] {
            EXPECT_EQ(0, munmap(m.base, m.length));
            EXPECT_EQ(m.base, mmap(m.base, m.length, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
        });
        EXPECT_GE(1, how.alive);
    }
}

TEST_F(ucs_region_cache, memory_that_something_else_is_mapped_over_is_forgotten)
{
    region_cache cache(how, {});
    memory m(4);
    expect_gone(how, cache, m.base + page, [&] {
        EXPECT_EQ(m.base + page, mmap(m.base + page, page, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    });
}

TEST_F(ucs_region_cache, memory_that_is_given_back_is_forgotten)
{
    region_cache cache(how, {});
    memory m(4);
    expect_gone(how, cache, m.base + page, [&] { madvise(m.base, 2 * page, MADV_DONTNEED); });
    expect_gone(how, cache, m.base + page, [&] { madvise(m.base + page, page, MADV_FREE); });
}

TEST_F(ucs_region_cache, memory_that_is_moved_is_forgotten)
{
    region_cache cache(how, {});
    memory m(4), place(4);
    expect_gone(how, cache, m.base + page, [&] {
        EXPECT_EQ(place.base,
                  mremap(m.base, m.length, m.length, MREMAP_MAYMOVE | MREMAP_FIXED, place.base));
    });
    expect_gone(how, cache, place.base + page,
                [&] { EXPECT_EQ(place.base, mremap(place.base, 4 * page, page, 0)); });
}

TEST_F(ucs_region_cache, the_heap_that_shrinks_is_forgotten)
{
    region_cache cache(how, {});
    auto *old = static_cast<char *>(sbrk(0));
    char *base = old + (page - reinterpret_cast<uintptr_t>(old) % page);
    ASSERT_EQ(0, brk(base + 4 * page));
    memset(base, 'x', 4 * page);
    expect_gone(how, cache, base + page, [&] { EXPECT_EQ(0, brk(old)); });
}

TEST_F(ucs_region_cache, memory_that_goes_in_use_stays_registered_until_the_end)
{
    region_cache cache(how, {});
    memory m(4);
    region_cache::region *held = cache.acquire(m.base, m.length);
    madvise(m.base, m.length, MADV_DONTNEED);
    EXPECT_EQ(1, how.alive);
    use(cache, m.base, m.length);
    EXPECT_EQ(2, how.made);
    EXPECT_EQ(2, how.alive);
    cache.release(held);
    EXPECT_EQ(1, how.alive);
}

TEST_F(ucs_region_cache, what_is_forgotten_in_use_goes_with_its_last_use)
{
    region_cache cache(how, {});
    memory m(4);
    region_cache::region *first = cache.acquire(m.base, m.length);
    region_cache::region *second = cache.acquire(m.base, m.length);
    cache.forget(first);
    cache.forget(second);
    EXPECT_EQ(0u, cache.counts().regions);
    EXPECT_EQ(0u, cache.counts().bytes);
    cache.release(first);
    EXPECT_EQ(1, how.alive);
    cache.release(second);
    EXPECT_EQ(0, how.alive);
    use(cache, m.base, m.length);
    EXPECT_EQ(2, how.made);
}

// The kernel moves a range of one mapping only.
TEST_F(ucs_region_cache, a_mapping_with_a_region_in_the_middle_is_still_one)
{
    region_cache cache(how, {});
    memory m(16);
    use(cache, m.base + 4 * page, page);
    void *moved = mremap(m.base, m.length, 2 * m.length, MREMAP_MAYMOVE);
    ASSERT_NE(MAP_FAILED, moved) << strerror(errno);
    m.base = static_cast<char *>(moved);
    m.length *= 2;
    EXPECT_EQ(1u, cache.counts().gone);
}

// The file may be cut or punched, of which the kernel tells nothing.
TEST_F(ucs_region_cache, shared_memory_is_registered_for_one_use)
{
    region_cache cache(how, {});
    int fd = memfd_create("region_cache_test", MFD_CLOEXEC);
    ASSERT_EQ(0, ftruncate(fd, 4 * page));
    memory m(4, MAP_SHARED, fd), anonymous(4, MAP_SHARED | MAP_ANONYMOUS);
    close(fd);
    use(cache, m.base, page);
    use(cache, anonymous.base, page);
    EXPECT_EQ(0, how.alive);
    EXPECT_EQ(2u, cache.counts().single);
}

TEST_F(ucs_region_cache, a_fork_empties_it_and_the_child_has_none)
{
    region_cache cache(how, {});
    memory m(4);
    use(cache, m.base, page);
    pid_t child = fork();
    if (child == 0) {
        int before = how.alive;
        use(cache, m.base, page);
        use(cache, m.base, page);
        munmap(m.base, m.length); // a report would not be read
        bool good = how.alive == before && !memory_watch::why_not().empty() && !HasFailure();
        _exit(good ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
    EXPECT_EQ(1u, cache.counts().gone);
    use(cache, m.base, page);
    EXPECT_EQ(2, how.made);
    expect_gone(how, cache, m.base + 2 * page, [&] { munmap(m.base + 2 * page, page); });
}

TEST_F(ucs_region_cache, memory_goes_under_threads_that_use_it)
{
    region_cache cache(how, {.bytes = 256 * page, .regions = 8});
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            memory m(16);
            for (size_t i = 0; i < 200; ++i) {
                char *at = m.base + i * 7 % 12 * page;
                use(cache, at, (1 + i % 4) * page);
                std::vector<char> heap(1 << 18); // mapped by malloc
                use(cache, heap.data(), heap.size());
                if (i % 4 == 0) {
                    madvise(at, page, MADV_DONTNEED);
                }
            }
        });
    }
    for (std::thread &t : threads) {
        t.join();
    }
    EXPECT_GE(8, how.alive);
    EXPECT_LT(0u, cache.counts().gone);
}

void refuse_userfaultfd()
{
    sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    sock_fprog program = {std::size(code), code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

// The filter stays: in a process of its own.
TEST_F(ucs_region_cache, without_userfaultfd_everything_is_for_one_use)
{
    pid_t child = fork();
    if (child == 0) {
        refuse_userfaultfd();
        std::string reason = memory_watch::why_not();
        {
            region_cache cache(how, {});
            memory m(4);
            use(cache, m.base, page);
            use(cache, m.base, page);
        }
        bool good = reason.find("userfaultfd") != std::string::npos && how.made == 2 &&
                    how.alive == 0 && !HasFailure();
        _exit(good ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(0, status);
}

} // namespace
