// SPDX-License-Identifier: BSD-3-Clause
//
// What peers may do with memory: the rights of ucp_mem_map() hold on every way to it.
#include "fabtests-ext/common/ucp_pair.h"
#include "ucp/mem/mem.h"

#include <set>

namespace {

using namespace ucp_test;

struct rights_case {
    unsigned prot;
    bool allocated;
};

class ucp_rights : public pair {
  protected:
    static constexpr size_t length = 100000;

    ucp_rights() { opts.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO64; }

    void map(const rights_case &c)
    {
        ucp_mem_map_params_t p = {};
        p.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                       UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_PROT;
        p.address = c.allocated ? nullptr : own.data();
        p.length = length;
        p.flags = c.allocated ? UCP_MEM_MAP_ALLOCATE : 0;
        p.prot = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE | c.prot;
        ASSERT_EQ(UCS_OK, ucp_mem_map(b().context, &p, &memh));
        memory = static_cast<char *>(memh->address);
        fill_pattern(memory, length, 1);
        void *packed = nullptr;
        size_t size = 0;
        ASSERT_EQ(UCS_OK, ucp_rkey_pack(b().context, memh, &packed, &size));
        ASSERT_EQ(UCS_OK, ucp_ep_rkey_unpack(ab, packed, &rkey));
        ucp_rkey_buffer_release(packed);
    }

    void unmap()
    {
        ucp_rkey_destroy(rkey);
        ASSERT_EQ(UCS_OK, ucp_mem_unmap(b().context, memh));
    }

    uint64_t target(size_t offset) const { return reinterpret_cast<uintptr_t>(memory + offset); }

    std::vector<char> own = std::vector<char>(length);
    ucp_mem_h memh = nullptr;
    ucp_rkey_h rkey = nullptr;
    char *memory = nullptr;
};

TEST_P(ucp_rights, peers_do_what_they_may_and_no_more)
{
    const std::vector<char> before = pattern(length, 1);
    ucp_request_param_t none = {}, amo = {};
    amo.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
    amo.datatype = ucp_dt_make_contig(8);
    for (unsigned prot :
         {0u, unsigned(UCP_MEM_MAP_PROT_REMOTE_READ), unsigned(UCP_MEM_MAP_PROT_REMOTE_WRITE),
          unsigned(UCP_MEM_MAP_PROT_REMOTE_READ | UCP_MEM_MAP_PROT_REMOTE_WRITE)}) {
        const bool reads = prot & UCP_MEM_MAP_PROT_REMOTE_READ;
        const bool writes = prot & UCP_MEM_MAP_PROT_REMOTE_WRITE;
        for (bool allocated : {false, true}) {
            map({prot, allocated});
            for (size_t n : {size_t(8), size_t(3000), length}) {
                std::vector<char> got(n), out = pattern(n, 2);
                EXPECT_EQ(reads ? UCS_OK : UCS_ERR_INVALID_ADDR,
                          finish(ucp_get_nbx(ab, got.data(), n, target(0), rkey, &none)));
                EXPECT_EQ(reads, std::equal(got.begin(), got.end(), before.begin())) << n;
                (void)finish(ucp_put_nbx(ab, out.data(), n, target(0), rkey, &none));
                EXPECT_EQ(UCS_OK, finish(flush_nb(ab)));
                EXPECT_EQ(writes, !std::equal(before.begin(), before.end(), memory)) << n;
                fill_pattern(memory, length, 1);
            }
            uint64_t value = 5, old = 0;
            amo.reply_buffer = &old;
            EXPECT_EQ(writes ? UCS_OK : UCS_ERR_INVALID_ADDR,
                      finish(ucp_atomic_op_nbx(ab, UCP_ATOMIC_OP_SWAP, &value, 1, target(8), rkey,
                                               &amo)));
            EXPECT_EQ(writes, !std::equal(before.begin(), before.end(), memory));
            void *here = nullptr;
            if (!reads || !writes) {
                EXPECT_EQ(UCS_ERR_UNREACHABLE, ucp_rkey_ptr(rkey, target(0), &here));
            }
            unmap();
        }
    }
}

TEST_P(ucp_rights, names_of_mappings_do_not_follow_each_other)
{
    std::set<uint64_t> ids;
    for (int i = 0; i < 8; ++i) {
        map({UCP_MEM_MAP_PROT_REMOTE_READ, false});
        for (uint64_t known : ids) {
            EXPECT_GT(memh->id > known ? memh->id - known : known - memh->id, 1u << 20);
        }
        ids.insert(memh->id);
        unmap();
    }
}

UCP_TEST_OVER_ALL(ucp_rights);

} // namespace
