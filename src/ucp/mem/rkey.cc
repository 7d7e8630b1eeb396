// SPDX-License-Identifier: BSD-3-Clause
//
// Remote keys: packing, unpacking, and the choice of how an endpoint reaches the memory. The layout
// is in mem.h; the reader trusts nothing: the check sum covers the lengths before they are
// followed.
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep_control.h"
#include "ucp/mem/mem.h"
#include "ucs/check.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace ucp {

namespace {

struct packed_hdr {
    uint8_t magic;
    uint8_t version;
    uint16_t length;     // of the whole key
    uint32_t check;      // of the other fields of this header
    uint32_t list_check; // of what follows the header
    uint32_t denied;     // RIGHT_*
    uint64_t memh_id;
    uint64_t base;
    uint64_t size;
};
constexpr uint8_t RKEY_MAGIC = 'U';
constexpr uint8_t EXPORT_MAGIC = 'M';
constexpr uint8_t KEY_VERSION = 1;
constexpr size_t RKEY_MAX = 1024;

uint32_t sum(const void *data, size_t length, uint32_t h = 2166136261u) noexcept
{
    auto *p = static_cast<const uint8_t *>(data);
    for (size_t i = 0; i < length; ++i) {
        h = (h ^ p[i]) * 16777619u;
    }
    return h;
}

// The header is checked first and alone: a damaged length must not make us read past the end.
uint32_t header_sum(const packed_hdr &hdr) noexcept
{
    uint32_t h = sum(&hdr.magic, offsetof(packed_hdr, check));
    return sum(&hdr.list_check, sizeof(hdr) - offsetof(packed_hdr, list_check), h);
}

uint32_t list_sum(const packed_hdr &hdr, const void *list) noexcept
{
    return sum(list, hdr.length - sizeof(hdr));
}

bool header_good(const packed_hdr &hdr, uint8_t magic) noexcept
{
    if (hdr.magic == magic && hdr.version != KEY_VERSION) {
        ucs_error("a packed key has version %u, this library reads version %u", hdr.version,
                  KEY_VERSION);
        return false;
    }
    return hdr.magic == magic && hdr.length >= sizeof(hdr) + sizeof(uint16_t) &&
           hdr.length <= RKEY_MAX && header_sum(hdr) == hdr.check;
}

// The part of one md in an md list { map 2, { length 1, key } ... }, for `reader`, an md of ours;
// nullptr: not there, shorter than what the reader unpacks, or the list is damaged.
const void *md_part(const void *list, size_t length, unsigned md, const ucp::md &reader) noexcept
{
    auto *p = static_cast<const uint8_t *>(list);
    if (length < sizeof(uint16_t)) {
        return nullptr;
    }
    uint16_t map;
    memcpy(&map, p, sizeof(map));
    if (md >= MAX_MDS || !(map & (1u << md))) {
        return nullptr;
    }
    size_t at = sizeof(map);
    for (unsigned i = 0; i < MAX_MDS; ++i) {
        if (!(map & (1u << i))) {
            continue;
        }
        if (at >= length || p[at] > length - at - 1) {
            return nullptr;
        }
        if (i == md) {
            return p[at] >= reader.attr.rkey_packed_size ? p + at + 1 : nullptr;
        }
        at += 1 + p[at];
    }
    return nullptr;
}

// Appends one md's part; returns its bytes or 0.
size_t pack_part(ucp_context *context, unsigned md, uct_mem_h memh, uint8_t *dest,
                 size_t room) noexcept
{
    size_t n = context->mds[md].attr.rkey_packed_size;
    if (n > 255 || n + 1 > room ||
        uct_md_mkey_pack(context->mds[md].md, memh, dest + 1) != UCS_OK) {
        return 0;
    }
    dest[0] = static_cast<uint8_t>(n);
    return n + 1;
}

} // namespace

size_t pack_rkeys(ucp_context *context, uint16_t map, const uct_mem_h *by_md, void *dest,
                  size_t room) noexcept
{
    auto *out = static_cast<uint8_t *>(dest);
    size_t at = sizeof(map);
    uint16_t packed = 0;
    for (unsigned i = 0; i < MAX_MDS; ++i) {
        if (!(map & (1u << i))) {
            continue;
        }
        size_t n = pack_part(context, i, by_md[i], out + at, room - at);
        if (n != 0) {
            packed |= static_cast<uint16_t>(1u << i);
        }
        at += n;
    }
    memcpy(out, &packed, sizeof(packed));
    return packed != 0 ? at : 0;
}

const void *rkey_part(const ucp_ep *ep, const lane &l, const void *packed, size_t length) noexcept
{
    return md_part(packed, length, l.dst_md_index, ep->worker->context->mds[l.md_index]);
}

uint8_t rkey_lane(const ucp_ep *ep, const void *packed, size_t length, uint64_t flags,
                  const void **key) noexcept
{
    for (uint8_t i = 0; i < ep->lane_count; ++i) {
        const lane &l = ep->lanes[i];
        if (!l.ep || (l.attr().cap.flags & flags) != flags) {
            continue;
        }
        if (const void *part = rkey_part(ep, l, packed, length)) {
            *key = part;
            return i;
        }
    }
    return NO_LANE;
}

namespace {

// Where [base, base + size) is mapped here: all of it, whatever size the key's header says.
bool mapped_range(uct_component_h cmpt, uct_rkey_bundle_t *bundle, uint64_t base, uint64_t size,
                  void **local_p) noexcept
{
    void *last;
    return uct_rkey_ptr(cmpt, bundle, base, local_p) == UCS_OK &&
           (size == 0 || (size - 1 <= UINT64_MAX - base &&
                          uct_rkey_ptr(cmpt, bundle, base + (size - 1), &last) == UCS_OK &&
                          last == static_cast<char *>(*local_p) + (size - 1)));
}

// Memory of a peer on this node that the md can map.
bool map_direct(ucp_rkey *rkey, const lane &l, const void *part) noexcept
{
    const md &m = rkey->ep->worker->context->mds[l.md_index];
    if (!(m.cmpt_attr.flags & UCT_COMPONENT_FLAG_RKEY_PTR)) {
        return false;
    }
    uct_rkey_bundle_t bundle;
    if (uct_rkey_unpack(m.cmpt, part, &bundle) != UCS_OK) {
        return false;
    }
    void *local;
    if (!mapped_range(m.cmpt, &bundle, rkey->base, rkey->length, &local)) {
        uct_rkey_release(m.cmpt, &bundle);
        return false;
    }
    rkey->direct_cmpt = m.cmpt;
    rkey->direct_bundle = bundle;
    rkey->direct = local;
    return true;
}

constexpr uint64_t PUT_AND_GET = UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_ZCOPY;

bool open_rail(const ucp_ep *ep, uint8_t index, const void *part, rkey_rail *rail) noexcept
{
    uct_component_h cmpt = ep->worker->context->mds[ep->lanes[index].md_index].cmpt;
    if (uct_rkey_unpack(cmpt, part, &rail->bundle) != UCS_OK) {
        return false;
    }
    rail->cmpt = cmpt;
    rail->lane = index;
    return true;
}

void open_more(ucp_rkey *rkey) noexcept
{
    const ucp_ep *ep = rkey->ep;
    rkey->more = new (std::nothrow) rkey_rail[MAX_RAILS - 1];
    for (unsigned i = 1; rkey->more && i < ep->rma_rail_count; ++i) {
        const lane &l = ep->lanes[ep->rails[i]];
        const void *part = rkey_part(ep, l, rkey->list, rkey->list_length);
        if (part && (l.attr().cap.flags & PUT_AND_GET) == PUT_AND_GET &&
            open_rail(ep, ep->rails[i], part, &rkey->more[rkey->more_count])) {
            ++rkey->more_count;
        }
    }
}

} // namespace

void rkey_resolve(ucp_rkey *rkey) noexcept
{
    ucp_ep *ep = rkey->ep;
    if (ep->lane_count == 0) {
        return;
    }
    rkey->resolved = true;
    rkey->plain = !ep->control->counted() && ep->worker->context->config.proto_info != "used";
    const void *part;
    for (uint8_t i = 0; i < ep->lane_count && !rkey->direct && !rkey->denied; ++i) {
        const lane &l = ep->lanes[i];
        if (l.ep && (part = rkey_part(ep, l, rkey->list, rkey->list_length))) {
            rkey->direct_lane = i;
            map_direct(rkey, l, part);
        }
    }
    uint8_t i = rkey_lane(ep, rkey->list, rkey->list_length, PUT_AND_GET, &part);
    if (i != NO_LANE && open_rail(ep, i, part, &rkey->first) && ep->rma_rail_count > 1 &&
        i == ep->rails[0]) {
        open_more(rkey);
    }
}

namespace {

ucs_status_t pack_memh(ucp_mem *memh, uint8_t magic, uint16_t md_map, void **buffer_p,
                       size_t *size_p) noexcept
{
    uint8_t buffer[RKEY_MAX];
    packed_hdr hdr = {.magic = magic,
                      .version = KEY_VERSION,
                      .denied = memh->denied,
                      .memh_id = memh->id,
                      .base = reinterpret_cast<uintptr_t>(memh->address),
                      .size = memh->length};
    size_t list = pack_rkeys(memh->context, md_map, memh->memh, buffer + sizeof(hdr),
                             sizeof(buffer) - sizeof(hdr));
    if (list == 0) { // no md has a part in it
        memset(buffer + sizeof(hdr), 0, sizeof(uint16_t));
        list = sizeof(uint16_t);
    }
    hdr.length = static_cast<uint16_t>(sizeof(hdr) + list);
    hdr.list_check = list_sum(hdr, buffer + sizeof(hdr));
    hdr.check = header_sum(hdr);
    memcpy(buffer, &hdr, sizeof(hdr));
    void *out = malloc(hdr.length);
    if (!out) {
        return UCS_ERR_NO_MEMORY;
    }
    *buffer_p = memcpy(out, buffer, hdr.length);
    *size_p = hdr.length;
    return UCS_OK;
}

// Only memory that the library allocated can be mapped elsewhere, with all rights.
ucs_status_t pack_export(ucp_mem *memh, void **buffer_p, size_t *size_p) noexcept
{
    if (memh->alloc_md < 0 || memh->denied ||
        !(memh->context->mds[memh->alloc_md].cmpt_attr.flags & UCT_COMPONENT_FLAG_RKEY_PTR)) {
        return UCS_ERR_UNSUPPORTED;
    }
    return pack_memh(memh, EXPORT_MAGIC, static_cast<uint16_t>(1u << memh->alloc_md), buffer_p,
                     size_p);
}

// The md indices in the list are the owner's: every md of ours that maps is asked.
bool map_part(ucp_mem *mem, const md &m, const void *part, uint64_t base, uint64_t size) noexcept
{
    if (!(m.cmpt_attr.flags & UCT_COMPONENT_FLAG_RKEY_PTR) ||
        uct_rkey_unpack(m.cmpt, part, &mem->import_bundle) != UCS_OK) {
        return false;
    }
    if (!mapped_range(m.cmpt, &mem->import_bundle, base, size, &mem->address)) {
        uct_rkey_release(m.cmpt, &mem->import_bundle);
        return false;
    }
    mem->import_cmpt = m.cmpt;
    return true;
}

} // namespace

ucs_status_t import_memory(ucp_mem *mem, const void *exported) noexcept
{
    packed_hdr hdr;
    memcpy(&hdr, exported, sizeof(hdr));
    const char *list = static_cast<const char *>(exported) + sizeof(hdr);
    if (!header_good(hdr, EXPORT_MAGIC) || list_sum(hdr, list) != hdr.list_check) {
        return UCS_ERR_INVALID_PARAM;
    }
    for (unsigned i = 0; i < MAX_MDS; ++i) {
        for (const md &m : mem->context->mds) {
            const void *part = md_part(list, hdr.length - sizeof(hdr), i, m);
            if (part && map_part(mem, m, part, hdr.base, hdr.size)) {
                mem->length = hdr.size;
                return UCS_OK;
            }
        }
    }
    return UCS_ERR_UNREACHABLE;
}

} // namespace ucp

extern "C" {

UCS_EXPORT ucs_status_t ucp_rkey_pack(ucp_context_h context, ucp_mem_h memh, void **rkey_buffer_p,
                                      size_t *size_p)
{
    UCS_CHECK_ARG(context, "ucp_rkey_pack: context must not be NULL");
    UCS_CHECK_ARG(memh, "ucp_rkey_pack: memh must not be NULL");
    UCS_CHECK_ARG(rkey_buffer_p && size_p,
                  "ucp_rkey_pack: rkey_buffer_p and size_p must not be NULL");
    return ucp::pack_memh(memh, ucp::RKEY_MAGIC, memh->md_map, rkey_buffer_p, size_p);
}

UCS_EXPORT void ucp_rkey_buffer_release(void *rkey_buffer)
{
    free(rkey_buffer);
}

UCS_EXPORT ucs_status_t ucp_memh_pack(ucp_mem_h memh, const ucp_memh_pack_params_t *params,
                                      void **buffer_p, size_t *buffer_size_p)
{
    UCS_CHECK_ARG(memh, "ucp_memh_pack: memh must not be NULL");
    UCS_CHECK_ARG(params, "ucp_memh_pack: params must not be NULL");
    UCS_CHECK_ARG(buffer_p && buffer_size_p,
                  "ucp_memh_pack: buffer_p and buffer_size_p must not be NULL");
    if (params->field_mask & UCP_MEMH_PACK_PARAM_FIELD_FLAGS &&
        params->flags & UCP_MEMH_PACK_FLAG_EXPORT) {
        return ucp::pack_export(memh, buffer_p, buffer_size_p);
    }
    return ucp_rkey_pack(memh->context, memh, buffer_p, buffer_size_p);
}

UCS_EXPORT void ucp_memh_buffer_release(void *buffer, const ucp_memh_buffer_release_params_t *)
{
    free(buffer);
}

UCS_EXPORT ucs_status_t ucp_ep_rkey_unpack(ucp_ep_h ep, const void *rkey_buffer, ucp_rkey_h *rkey_p)
{
    UCS_CHECK_ARG(ep, "ucp_ep_rkey_unpack: ep must not be NULL");
    UCS_CHECK_ARG(rkey_buffer, "ucp_ep_rkey_unpack: rkey_buffer must not be NULL");
    UCS_CHECK_ARG(rkey_p, "ucp_ep_rkey_unpack: rkey_p must not be NULL");
    ucp::packed_hdr hdr;
    memcpy(&hdr, rkey_buffer, sizeof(hdr));
    UCS_CHECK_ARG(ucp::header_good(hdr, ucp::RKEY_MAGIC),
                  "ucp_ep_rkey_unpack: rkey_buffer is not a packed key or is damaged");
    const char *rest = static_cast<const char *>(rkey_buffer) + sizeof(hdr);
    UCS_CHECK_ARG(ucp::list_sum(hdr, rest) == hdr.list_check,
                  "ucp_ep_rkey_unpack: rkey_buffer is damaged");
    size_t list_length = hdr.length - sizeof(hdr);
    void *memory = malloc(sizeof(ucp_rkey) + list_length);
    if (!memory) {
        return UCS_ERR_NO_MEMORY;
    }
    auto *rkey = new (memory) ucp_rkey{};
    rkey->ep = ep;
    rkey->memh_id = hdr.memh_id;
    rkey->denied = static_cast<uint8_t>(hdr.denied);
    rkey->base = hdr.base;
    rkey->length = hdr.size;
    rkey->first.lane = ucp::NO_LANE;
    rkey->list_length = static_cast<uint16_t>(list_length);
    rkey->list = memcpy(rkey + 1, rest, list_length);
    ucs::opt_guard guard(ep->worker->lock);
    ucp::rkey_resolve(rkey);
    *rkey_p = rkey;
    return UCS_OK;
}

UCS_EXPORT void ucp_rkey_destroy(ucp_rkey_h rkey)
{
    if (!rkey) {
        return;
    }
    if (rkey->direct_cmpt) {
        uct_rkey_release(rkey->direct_cmpt, &rkey->direct_bundle);
    }
    if (rkey->first.lane != ucp::NO_LANE) {
        uct_rkey_release(rkey->first.cmpt, &rkey->first.bundle);
    }
    for (unsigned i = 0; i < rkey->more_count; ++i) {
        uct_rkey_release(rkey->more[i].cmpt, &rkey->more[i].bundle);
    }
    delete[] rkey->more;
    free(rkey);
}

UCS_EXPORT ucs_status_t ucp_rkey_ptr(ucp_rkey_h rkey, uint64_t raddr, void **addr_p)
{
    UCS_CHECK_ARG(rkey, "ucp_rkey_ptr: rkey must not be NULL");
    UCS_CHECK_ARG(addr_p, "ucp_rkey_ptr: addr_p must not be NULL");
    if (!rkey->resolved) {
        ucp::rkey_resolve(rkey);
    }
    if (!rkey->direct) {
        return UCS_ERR_UNREACHABLE;
    }
    if (raddr < rkey->base || raddr - rkey->base >= rkey->length) {
        return UCS_ERR_INVALID_ADDR;
    }
    *addr_p = static_cast<char *>(rkey->direct) + (raddr - rkey->base);
    return UCS_OK;
}

UCS_EXPORT ucs_status_t ucp_rkey_compare(ucp_worker_h worker, ucp_rkey_h rkey1, ucp_rkey_h rkey2,
                                         const ucp_rkey_compare_params_t *params, int *result)
{
    UCS_CHECK_ARG(worker, "ucp_rkey_compare: worker must not be NULL");
    UCS_CHECK_ARG(rkey1 && rkey2, "ucp_rkey_compare: rkey1 and rkey2 must not be NULL");
    UCS_CHECK_ARG(params && params->field_mask == 0,
                  "ucp_rkey_compare: params must not be NULL, and params->field_mask must be 0");
    UCS_CHECK_ARG(result, "ucp_rkey_compare: result must not be NULL");
    auto order = [](auto a, auto b) { return a < b ? -1 : a > b ? 1 : 0; };
    int c = order(rkey1->memh_id, rkey2->memh_id);
    if (c == 0) {
        c = order(rkey1->base, rkey2->base);
    }
    if (c == 0) {
        c = order(rkey1->length, rkey2->length);
    }
    if (c == 0) {
        c = order(rkey1->list_length, rkey2->list_length);
    }
    if (c == 0) {
        c = memcmp(rkey1->list, rkey2->list, rkey1->list_length);
    }
    *result = c < 0 ? -1 : c > 0 ? 1 : 0;
    return UCS_OK;
}

} // extern "C"
