// SPDX-License-Identifier: BSD-3-Clause
//
// Buffers stay registered, over cores where that is dear, and data is right when their memory has
// become other memory. The strict cores keep the pages of a region and abort when those are no
// longer the buffer's. The virtual machine runs it over verbs.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/common/ucp_pair.h"
#include "ucp/core/context.h"

#include <sys/mman.h>

namespace {

using namespace ucp_test;

const bool found_by_path = use_strict_cores();

constexpr size_t size = 1 << 20;

ucs::region_cache::counters counts(const entity &e)
{
    ucs::region_cache::counters sum = {};
    for (const auto &regions : e.context->regions) {
        if (regions) {
            ucs::region_cache::counters c = regions->cache.counts();
            sum.hits += c.hits;
            sum.registrations += c.registrations;
            sum.single += c.single;
            sum.gone += c.gone;
            sum.regions += c.regions;
        }
    }
    return sum;
}

struct mapped {
    char *base;

    mapped() : base(map(nullptr, 0)) {}
    ~mapped() { munmap(base, size); }
    mapped(const mapped &) = delete;

    // Other pages at the same place.
    void renew()
    {
        EXPECT_EQ(0, munmap(base, size));
        EXPECT_EQ(base, map(base, MAP_FIXED));
    }

  private:
    static char *map(void *at, int flags)
    {
        void *p =
            mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
        EXPECT_NE(MAP_FAILED, p);
        return static_cast<char *>(p);
    }
};

class ucp_region_cache : public testing::TestWithParam<const char *> {
  protected:
    environment pins{"FI_STRICT_PINS", "1"};
    environment quick{"FI_STRICT_DESCRIPTOR", "0"};
    options o;
    mapped out, in;

    // One device: a buffer is registered with each that carries a part of it.
    ucp_region_cache()
    {
        o.tls = GetParam();
        o.config = {{"MAX_RNDV_RAILS", "1"}};
    }

    void SetUp() override
    {
        std::string why = ucs::memory_watch::why_not();
        if (!why.empty()) {
            GTEST_SKIP() << why;
        }
    }

    void send(entity &a, ucp_ep_h ep, entity &b, unsigned seed)
    {
        fill_pattern(out.base, size, seed);
        memset(in.base, 0, size);
        ucs_status_ptr_t recv = recv_nb(b, in.base, size, seed);
        ucs_status_ptr_t sent = send_nb(ep, out.base, size, seed);
        EXPECT_EQ(UCS_OK, wait({&a, &b}, recv));
        EXPECT_EQ(UCS_OK, wait({&a, &b}, sent));
        EXPECT_EQ(0, memcmp(out.base, in.base, size));
    }

    // With an endpoint from a to b.
    void run(const std::function<void(entity &, ucp_ep_h, entity &)> &body)
    {
        entity a(o), b(o);
        ucp_ep_h ep;
        ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
        body(a, ep, b);
        EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
    }
};

void check_registered_once(const entity &e)
{
    EXPECT_EQ(1u, counts(e).registrations);
    EXPECT_EQ(0u, counts(e).single);
    EXPECT_LE(9u, counts(e).hits);
}

TEST_P(ucp_region_cache, a_buffer_is_registered_once)
{
    run([&](entity &a, ucp_ep_h ep, entity &b) {
        for (unsigned i = 0; i < 10; ++i) {
            send(a, ep, b, i);
        }
        check_registered_once(a);
        if (o.tls != "cxi") { // local memory needs it there as well
            check_registered_once(b);
        }
    });
}

TEST_P(ucp_region_cache, a_buffer_whose_pages_are_others_is_sent_as_it_is)
{
    run([&](entity &a, ucp_ep_h ep, entity &b) {
        for (unsigned i = 0; i < 5; ++i) {
            send(a, ep, b, i);
            out.renew();
            send(a, ep, b, 10 + i);
            in.renew();
            send(a, ep, b, 20 + i);
            madvise(out.base, size, MADV_DONTNEED);
        }
        EXPECT_EQ(10u, counts(a).registrations);
        EXPECT_EQ(10u, counts(a).gone);
    });
}

// Its memory is the program's again when the send has ended, and the peer, which has its key, may
// not read it then.
TEST_P(ucp_region_cache, an_announced_buffer_does_not_stay_registered_when_its_endpoint_is_closed)
{
    entity a(o), b(o);
    errors seen;
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep, &seen));
    send(a, ep, b, 1);
    EXPECT_EQ(1u, counts(a).regions);
    ucs_status_ptr_t sent = send_nb(ep, out.base, size, 2);
    ASSERT_TRUE(UCS_PTR_IS_PTR(sent));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep, true)));
    EXPECT_EQ(UCS_ERR_CANCELED, wait({&a, &b}, sent));
    EXPECT_EQ(0u, counts(a).regions);
}

TEST_P(ucp_region_cache, without_it_each_operation_registers)
{
    o.config.emplace_back("RCACHE_ENABLE", "n");
    run([&](entity &a, ucp_ep_h ep, entity &b) {
        send(a, ep, b, 1);
        send(a, ep, b, 2);
        EXPECT_EQ(0u, counts(a).registrations);
    });
}

TEST_P(ucp_region_cache, a_limit_holds)
{
    o.config.emplace_back("RCACHE_MAX_SIZE", "512k");
    run([&](entity &a, ucp_ep_h ep, entity &b) {
        send(a, ep, b, 1);
        send(a, ep, b, 2);
        EXPECT_EQ(2u, counts(a).single);
    });
}

TEST_P(ucp_region_cache, a_limit_of_regions_holds)
{
    o.config.emplace_back("RCACHE_MAX_REGIONS", "0");
    run([&](entity &a, ucp_ep_h ep, entity &b) {
        send(a, ep, b, 1);
        send(a, ep, b, 2);
        EXPECT_EQ(2u, counts(a).single);
    });
}

UCP_TEST_OVER(ucp_region_cache, "cxi", "efa");

} // namespace
