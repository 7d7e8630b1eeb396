// SPDX-License-Identifier: BSD-3-Clause
// Strict cores: what a domain has room for, addresses, the longest operation, and the order of
// closing.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/unit/strict_pair.h"

using namespace strict_test;

namespace {

// A domain that nothing was opened of.
struct bare_domain {
    info_list list;
    fid_fabric *fabric = nullptr;
    fid_domain *domain = nullptr;

    explicit bare_domain(const std::string &core)
    {
        ask(core, &list);
        EXPECT_EQ(0, fi_fabric(list.first->fabric_attr, &fabric, nullptr));
        EXPECT_EQ(0, fi_domain(fabric, list.first, &domain, nullptr));
    }
    bare_domain(const bare_domain &) = delete;
    ~bare_domain()
    {
        EXPECT_EQ(0, fi_close(&domain->fid));
        EXPECT_EQ(0, fi_close(&fabric->fid));
    }
};

// Opens until there is no room, closes one and opens another. Returns how many were open.
template <class Fid, class Open>
size_t fill(Open &&open)
{
    std::vector<Fid *> all;
    Fid *one = nullptr;
    int ret;
    while ((ret = open(&one)) == 0) {
        all.push_back(one);
    }
    EXPECT_EQ(-FI_ENOSPC, ret);
    EXPECT_EQ(0, fi_close(&all.back()->fid));
    EXPECT_EQ(0, open(&all.back()));
    for (Fid *each : all) {
        EXPECT_EQ(0, fi_close(&each->fid));
    }
    return all.size();
}

} // namespace

TEST(strict_core_room, is_as_on_the_fabric)
{
    const struct {
        const char *core;
        size_t eps, queues;
    } all[] = {{"cxi", 128, 32}, {"efa", 256, 512}, {"opx", 160, SIZE_MAX}, {"psm3", 65535, 65535}};
    for (const auto &is : all) {
        info_list list;
        ask(is.core, &list);
        ASSERT_TRUE(list.first) << is.core;
        EXPECT_EQ(is.eps, list.first->domain_attr->ep_cnt) << is.core;
        EXPECT_EQ(is.queues, list.first->domain_attr->cq_cnt) << is.core;
    }
}

TEST(strict_core_room, a_domain_has_so_many_endpoints)
{
    environment few("FI_STRICT_EPS", "3");
    bare_domain d("opx");
    EXPECT_EQ(3u, d.list.first->domain_attr->ep_cnt);
    EXPECT_EQ(3u, fill<fid_ep>([&](fid_ep **ep) {
                  return fi_endpoint(d.domain, d.list.first, ep, nullptr);
              }));
}

TEST(strict_core_room, a_domain_has_so_many_queues)
{
    environment few("FI_STRICT_QUEUES", "2");
    bare_domain d("psm3");
    EXPECT_EQ(2u, d.list.first->domain_attr->cq_cnt);
    EXPECT_EQ(2u, fill<fid_cq>([&](fid_cq **cq) {
                  fi_cq_attr attr{};
                  attr.wait_obj = FI_WAIT_NONE;
                  return fi_cq_open(d.domain, &attr, cq, nullptr);
              }));
}

TEST(strict_core_room, a_domain_has_so_many_regions)
{
    environment few("FI_STRICT_REGIONS", "2");
    bare_domain d("efa");
    char memory[64];
    EXPECT_EQ(2u, d.list.first->domain_attr->mr_cnt);
    EXPECT_EQ(2u, fill<fid_mr>([&](fid_mr **mr) {
                  return fi_mr_reg(d.domain, memory, sizeof(memory), FI_SEND, 0, 0, 0, mr, nullptr);
              }));
}

// The core has threads, so each death has a process of its own.
class strict_core_room_death_test : public testing::Test {
  protected:
    strict_core_room_death_test() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(strict_core_room_death_test, an_operation_that_is_too_long)
{
    environment shorter("FI_STRICT_LONGEST", "4096");
    pair p("psm3");
    EXPECT_EQ(4096u, p.list.first->ep_attr->max_msg_size);
    std::string bytes(4097, 'x');
    EXPECT_EQ(0, fi_recv(p.b->ep, bytes.data(), 4097, nullptr, FI_ADDR_UNSPEC, nullptr));
    EXPECT_DEATH(fi_send(p.a->ep, bytes.data(), 4097, nullptr, p.to_b, nullptr),
                 "an operation of 4097 bytes where 4096 are allowed");
}

TEST_F(strict_core_room_death_test, a_queue_before_its_endpoints)
{
    pair p("psm3");
    EXPECT_DEATH(fi_close(&p.a->cq->fid), "a completion queue is closed before its endpoints");
}

TEST_F(strict_core_room_death_test, an_address_vector_before_its_endpoints)
{
    pair p("opx");
    EXPECT_DEATH(fi_close(&p.a->av->fid), "an address vector is closed before its endpoints");
}

TEST_F(strict_core_room_death_test, an_endpoint_before_its_regions)
{
    pair p("cxi");
    char memory[64];
    p.region(*p.a, memory, sizeof(memory));
    EXPECT_DEATH(fi_close(&p.a->ep->fid), "closed before the regions that are bound to it");
}

TEST_F(strict_core_room_death_test, a_domain_before_what_was_opened_of_it)
{
    pair p("efa");
    EXPECT_DEATH(fi_close(&p.a->domain->fid), "a domain is closed before its endpoints");
    bare_domain d("efa");
    char memory[64];
    fid_mr *region = nullptr;
    ASSERT_EQ(0, fi_mr_reg(d.domain, memory, 64, FI_SEND, 0, 0, 0, &region, nullptr));
    EXPECT_DEATH(fi_close(&d.domain->fid), "a domain is closed before its endpoints");
    EXPECT_EQ(0, fi_close(&region->fid));
}

TEST(strict_core_addresses, are_numbers_in_a_table_and_words_of_the_core_in_a_map)
{
    EXPECT_EQ(0u, pair("cxi").to_b);
    for (const char *core : {"opx", "worst"}) {
        pair p(core);
        EXPECT_EQ(FI_AV_MAP, p.list.first->domain_attr->av_type);
        EXPECT_GT(p.to_b, 1ull << 32);
        fi_av_attr table{};
        table.type = FI_AV_TABLE;
        fid_av *av = nullptr;
        EXPECT_EQ(-FI_EINVAL, fi_av_open(p.a->domain, &table, &av, nullptr));
    }
}

TEST_F(strict_core_room_death_test, a_number_in_place_of_an_address_of_a_map)
{
    pair p("opx");
    char memory[8] = {};
    EXPECT_DEATH(fi_inject(p.a->ep, memory, 8, 0), "address 0 was never inserted");
}
