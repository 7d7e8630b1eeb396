// SPDX-License-Identifier: BSD-3-Clause
//
// Registered memory with a key of it, for tests of remote memory.
#pragma once

#include "fabtests-ext/common/ucp_entity.h"

namespace ucp_test {

// Memory of one entity that the other has a key of.
class region {
  public:
    // Over memory of the caller; allocated by the library when that is null.
    region(entity &owner, ucp_ep_h ep, void *memory, size_t length, unsigned flags = 0)
        : owner_(owner)
    {
        ucp_mem_map_params_t params = {};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                            UCP_MEM_MAP_PARAM_FIELD_FLAGS;
        params.address = memory;
        params.length = length;
        params.flags = flags | (memory ? 0 : UCP_MEM_MAP_ALLOCATE);
        EXPECT_EQ(UCS_OK, ucp_mem_map(owner.context, &params, &memh));
        ucp_mem_attr_t attr = {};
        attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
        EXPECT_EQ(UCS_OK, ucp_mem_query(memh, &attr));
        EXPECT_GE(attr.length, length);
        // UCX may round the address of what is registered down.
        data = memory ? static_cast<char *>(memory) : static_cast<char *>(attr.address);
        // Keys travel through any channel and arrive at any alignment.
        std::vector<char> wire = packed();
        wire.insert(wire.begin(), '\0');
        EXPECT_EQ(UCS_OK, ucp_ep_rkey_unpack(ep, wire.data() + 1, &rkey));
    }
    ~region()
    {
        ucp_rkey_destroy(rkey);
        if (memh) { // a test may have unmapped it
            EXPECT_EQ(UCS_OK, ucp_mem_unmap(owner_.context, memh));
        }
    }
    region(const region &) = delete;
    region &operator=(const region &) = delete;

    // The key, to be unpacked for other endpoints.
    std::vector<char> packed() const
    {
        void *buffer;
        size_t length;
        EXPECT_EQ(UCS_OK, ucp_rkey_pack(owner_.context, memh, &buffer, &length));
        const char *p = static_cast<const char *>(buffer);
        std::vector<char> copy(p, p + length);
        ucp_rkey_buffer_release(buffer);
        return copy;
    }

    uint64_t at(size_t offset = 0) const { return reinterpret_cast<uint64_t>(data) + offset; }

    ucp_mem_h memh = nullptr;
    ucp_rkey_h rkey = nullptr;
    char *data = nullptr;

  private:
    entity &owner_;
};

} // namespace ucp_test
