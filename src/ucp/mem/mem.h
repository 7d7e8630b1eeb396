// SPDX-License-Identifier: BSD-3-Clause
//
// Memory: handles of ucp_mem_map (registered on every md that can), remote keys, and the temporary
// registrations of protocols that do not copy.
//
// Packed rkey (little-endian, no alignment assumed):
//   | magic 1 | version 1 | length 2 | check of the header 4 | check of the list 4 |
//   | denied rights 4 | memh id 8 | base address 8 | length 8 | md list |
//   md list: | md map 2 | { length 1, md's packed key } for each bit of the map |
// The memh id names the mapping at its owner, where software RMA and atomics check address and
// length against it. Memory without all rights is mapped nowhere else, and what is denied is left
// to the owner to refuse. An RTS carries an md list alone. An exported handle has another magic,
// and the keys of those mds alone that other processes of the node can map.
#pragma once

#include "ucp/core/context.h"
#include "ucp/core/request.h"
#include "ucp/endpoint/ep_config.h"
#include "ucs/compiler.h"

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <cstdint>

struct ucp_mem {
    ucp_context *context;
    void *address;
    size_t length;
    uint64_t id;     // in rkeys; random, so that peers without the key do not find it
    uint8_t denied;  // RIGHT_* that peers do not have
    uint16_t md_map; // mds with a registration
    uct_mem_h memh[ucp::MAX_MDS];
    bool allocated; // by us: freed at unmap
    int alloc_md;   // md that allocated it, -1: mmap
    size_t alloc_length;
    uct_mem_h alloc_memh;
    uct_component_h import_cmpt; // of another process: unmapped with import_bundle
    uct_rkey_bundle_t import_bundle;
    ucs_memory_type_t mem_type;
};

namespace ucp {

struct lane; // ep.h

// A lane that can put and get, with the key for it.
struct rkey_rail {
    uint8_t lane;
    uct_component_h cmpt;
    uct_rkey_bundle_t bundle;
};

} // namespace ucp

struct ucp_rkey {
    ucp_ep *ep;
    uint64_t memh_id; // names the mapping at the owner
    uint8_t denied;   // RIGHT_* that its owner refuses
    uint64_t base;
    size_t length;
    void *direct; // where base is mapped here, or nullptr
    bool resolved;
    bool plain;          // resolved, and uses of `direct` are not counted
    uint8_t direct_lane; // the memory domain of this lane has mapped it
    uint8_t more_count;
    uint16_t list_length;
    const void *list;     // md list, behind this struct
    ucp::rkey_rail first; // lane NO_LANE: there is none
    ucp::rkey_rail *more; // of lanes that share the bytes of a large put or get with the first
    uct_component_h direct_cmpt;
    uct_rkey_bundle_t direct_bundle;

    const ucp::rkey_rail &rail(unsigned i) const noexcept { return i == 0 ? first : more[i - 1]; }
};

namespace ucp {

// The mapping that we allocated the buffer in; nullptr: none. Its registrations serve every
// operation on it, and peers on this node may map it.
ucp_mem *find_allocated(ucp_worker *worker, const void *buffer, size_t length) noexcept;

// A registration of the buffer for a zero-copy operation of this md: the user's memh if it covers
// the md, else made for this request and undone by complete(). nullptr with UCS_OK: the md needs
// none.
ucs_status_t request_reg(data_request *req, uint8_t md_index, void *buffer, size_t length,
                         uct_mem_h *memh_p) noexcept;
// The same for memory that the peer is to read: always registered. An error: the md cannot.
ucs_status_t request_reg_remote(data_request *req, uint8_t md_index, void *buffer, size_t length,
                                uct_mem_h *memh_p) noexcept;
void release_memh(data_request *req) noexcept;
// For an operation that ends before the peer has answered: the memory does not stay readable in a
// cache when release_memh() has given it back.
void withdraw_memh(data_request *req) noexcept;

// Packs the keys of registrations, for an RTS: by_md[i] for each bit i of the map. Returns their
// bytes, 0 if no md gives one.
constexpr size_t RTS_RKEY_MAX = 256;
size_t pack_rkeys(ucp_context *context, uint16_t map, const uct_mem_h *by_md, void *dest,
                  size_t room) noexcept;

// The part of such a list that a lane of `ep` reads, or nullptr.
const void *rkey_part(const ucp_ep *ep, const lane &l, const void *packed, size_t length) noexcept;

// Maps what a peer on this node exported into mem (address, length, import_*). INVALID_PARAM: not
// an export, or damaged; UNREACHABLE: of another host, or its owner has gone.
ucs_status_t import_memory(ucp_mem *mem, const void *exported) noexcept;

// Finds a lane of `ep` for which the packed key has a part and whose capabilities include `flags`
// (UCT_IFACE_FLAG_*). On success *key points to the md's part.
uint8_t rkey_lane(const ucp_ep *ep, const void *packed, size_t length, uint64_t flags,
                  const void **key) noexcept;

// Decides how the key's endpoint reaches the memory, once it has lanes.
void rkey_resolve(ucp_rkey *rkey) noexcept;

// [address, address + length) lies in the mapping that an rkey named, and peers have the right.
bool is_mapped(ucp_worker *worker, uint64_t id, uint64_t address, uint64_t length,
               uint8_t right) noexcept;

// The view that is_mapped() looks into.
mem_view &mapped_memory(ucp_worker *worker) noexcept;

// If it is so, calls use(memory), before whose end ucp_mem_unmap() does not return.
template <class Use>
UCS_ALWAYS_INLINE bool access_mapped(ucp_worker *worker, uint64_t id, uint64_t address,
                                     uint64_t length, uint8_t right, Use use) noexcept
{
    mem_view::access lasts(mapped_memory(worker));
    if (UCS_UNLIKELY(!is_mapped(worker, id, address, length, right))) {
        return false;
    }
    use(reinterpret_cast<char *>(address));
    return true;
}

} // namespace ucp
