// SPDX-License-Identifier: BSD-3-Clause
//
// Packing and checking worker addresses.
#include "ucp/connect/address.h"

#include "ucp/connect/door.h"
#include "ucp/core/worker.h"
#include "ucs/log.h"
#include "ucs/sys.h"

#include <algorithm>
#include <cstring>
#include <unistd.h>

namespace ucp {

namespace {

constexpr uint16_t MAGIC = 0x7875; // "ux"
constexpr uint8_t FLAG_HOST = 1;
constexpr uint8_t FLAG_DOOR = 2;

// FNV-1a with a final mix: every single changed byte changes it.
uint32_t checksum(const uint8_t *data, size_t length, uint32_t seed)
{
    uint64_t h = 0xcbf29ce484222325ull ^ seed;
    for (size_t i = 0; i < length; ++i) {
        h = (h ^ data[i]) * 0x100000001b3ull;
    }
    h ^= h >> 29;
    return static_cast<uint32_t>(h ^ (h >> 32));
}

class writer {
  public:
    template <class T>
    void put(T value)
    {
        for (size_t i = 0; i < sizeof(T); ++i) {
            bytes.push_back(static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i)));
        }
    }

    void put_bytes(const void *data, size_t length)
    {
        put(static_cast<uint8_t>(length));
        const auto *p = static_cast<const uint8_t *>(data);
        bytes.insert(bytes.end(), p, p + length);
    }

    template <class T>
    void set(size_t offset, T value)
    {
        for (size_t i = 0; i < sizeof(T); ++i) {
            bytes[offset + i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
        }
    }

    std::vector<uint8_t> bytes;
};

// Reads that would pass the end set `bad` and give zeros.
class reader {
  public:
    reader(const uint8_t *data, size_t length) : p_(data), left_(length) {}

    template <class T>
    T get()
    {
        uint64_t value = 0;
        if (left_ < sizeof(T)) {
            bad = true;
            return 0;
        }
        for (size_t i = 0; i < sizeof(T); ++i) {
            value |= static_cast<uint64_t>(p_[i]) << (8 * i);
        }
        p_ += sizeof(T);
        left_ -= sizeof(T);
        return static_cast<T>(value);
    }

    template <class C>
    C get_bytes()
    {
        size_t length = get<uint8_t>();
        if (bad || left_ < length) {
            bad = true;
            return C();
        }
        C out(p_, p_ + length);
        p_ += length;
        left_ -= length;
        return out;
    }

    size_t left() const { return left_; }
    bool bad = false;

  private:
    const uint8_t *p_;
    size_t left_;
};

void pack_door(writer &w, const door_sign &door)
{
    w.put(door.number);
    w.put(door.port);
    w.put(static_cast<uint8_t>(door.hosts.size()));
    for (const std::vector<uint8_t> &host : door.hosts) {
        w.put_bytes(host.data(), host.size());
    }
}

void unpack_door(reader &r, door_sign *door)
{
    constexpr size_t ipv4 = 4, ipv6 = 16;
    door->number = r.get<uint64_t>();
    door->port = r.get<uint16_t>();
    unsigned count = r.get<uint8_t>();
    r.bad = r.bad || door->number == 0 || door->port == 0 || count == 0;
    for (unsigned i = 0; i < count && !r.bad; ++i) {
        auto host = r.get_bytes<std::vector<uint8_t>>();
        r.bad = r.bad || (host.size() != ipv4 && host.size() != ipv6);
        door->hosts.push_back(std::move(host));
    }
}

void pack_resources(writer &w, const ucp_worker &worker, bool net_only)
{
    size_t count_at = w.bytes.size();
    uint8_t count = 0;
    w.put(count);
    for (const auto &iface : worker.ifaces) {
        const tl_resource &rsc = worker.context->resources[iface->resource];
        if (net_only && on_node(rsc.cls)) {
            continue;
        }
        w.put_bytes(rsc.desc.tl_name, strnlen(rsc.desc.tl_name, sizeof(rsc.desc.tl_name)));
        w.put(rsc.md_index);
        w.put(static_cast<uint32_t>(std::min<size_t>(iface->attr.cap.am.max_bcopy, UINT32_MAX)));
        w.put_bytes(iface->device_addr.data(), iface->device_addr.size());
        w.put_bytes(iface->iface_addr.data(), iface->iface_addr.size());
        ++count;
    }
    w.set(count_at, count);
}

bool has_networks(const ucp_worker &worker)
{
    return std::any_of(worker.ifaces.begin(), worker.ifaces.end(), [&](const auto &iface) {
        return !on_node(worker.context->resources[iface->resource].cls);
    });
}

} // namespace

std::vector<uint8_t> pack_address(const ucp_worker &worker, bool net_only)
{
    writer w;
    w.put(MAGIC);
    w.put(address_version);
    const bool has_door = worker.door && (!net_only || !has_networks(worker));
    w.put(static_cast<uint8_t>((net_only ? 0 : FLAG_HOST) | (has_door ? FLAG_DOOR : 0)));
    w.bytes.resize(ADDRESS_HEAD);
    w.put(worker.uuid);
    w.put(worker.incarnation);
    if (net_only) {
        w.put(uint8_t(0));
    } else {
        w.put_bytes(worker.name.data(), worker.name.size());
        w.put(ucs::this_host().boot);
        w.put(ucs::this_host().pid_ns);
        w.put(static_cast<uint32_t>(getpid()));
    }
    if (has_door) {
        pack_door(w, worker.door->sign());
    }
    pack_resources(w, worker, net_only);
    seal_address(w.bytes);
    return std::move(w.bytes);
}

void seal_address(std::vector<uint8_t> &blob) noexcept
{
    auto length = static_cast<uint16_t>(blob.size());
    memcpy(blob.data() + 4, &length, sizeof(length));
    uint32_t head = checksum(blob.data(), 8, 1);
    memcpy(blob.data() + 8, &head, sizeof(head));
    uint32_t body = checksum(blob.data() + ADDRESS_HEAD, blob.size() - ADDRESS_HEAD, 2);
    memcpy(blob.data() + 12, &body, sizeof(body));
}

size_t address_length(const void *blob) noexcept
{
    reader r(static_cast<const uint8_t *>(blob), ADDRESS_HEAD);
    if (r.get<uint16_t>() != MAGIC || r.get<uint8_t>() != address_version) {
        return 0;
    }
    r.get<uint8_t>();
    size_t length = r.get<uint16_t>();
    r.get<uint16_t>();
    bool intact = r.get<uint32_t>() == checksum(static_cast<const uint8_t *>(blob), 8, 1);
    return intact && length >= ADDRESS_HEAD && length <= ADDRESS_MAX ? length : 0;
}

ucs_status_t unpack_address(const void *blob, size_t limit, unpacked_address *out)
{
    const auto *bytes = static_cast<const uint8_t *>(blob);
    if (limit >= ADDRESS_HEAD && memcmp(bytes, &MAGIC, sizeof(MAGIC)) == 0 &&
        bytes[2] != address_version) {
        ucs_error("a worker's address has version %u, this library reads version %u", bytes[2],
                  address_version);
        return UCS_ERR_INVALID_ADDR;
    }
    size_t length = limit < ADDRESS_HEAD ? 0 : address_length(blob);
    if (length == 0 || length > limit) {
        return UCS_ERR_INVALID_ADDR;
    }
    reader head(bytes + 12, 4);
    if (head.get<uint32_t>() != checksum(bytes + ADDRESS_HEAD, length - ADDRESS_HEAD, 2)) {
        return UCS_ERR_INVALID_ADDR;
    }
    reader r(bytes + ADDRESS_HEAD, length - ADDRESS_HEAD);
    out->uuid = r.get<uint64_t>();
    out->incarnation = r.get<uint32_t>();
    out->name = r.get_bytes<std::string>();
    out->has_host = (bytes[3] & FLAG_HOST) != 0;
    if (out->has_host) {
        out->boot = r.get<uint64_t>();
        out->pid_ns = r.get<uint64_t>();
        out->pid = r.get<uint32_t>();
    }
    out->door = {};
    if (bytes[3] & FLAG_DOOR) {
        unpack_door(r, &out->door);
    }
    unsigned count = r.get<uint8_t>();
    out->resources.clear();
    for (unsigned i = 0; i < count && !r.bad; ++i) {
        address_resource rsc;
        rsc.tl_name = r.get_bytes<std::string>();
        rsc.md_index = r.get<uint8_t>();
        rsc.max_message = r.get<uint32_t>();
        r.bad = r.bad || rsc.max_message < LEAST_MAX_MESSAGE;
        rsc.device_addr = r.get_bytes<std::vector<uint8_t>>();
        rsc.iface_addr = r.get_bytes<std::vector<uint8_t>>();
        rsc.device_addr.reserve(1); // data() is never null
        rsc.iface_addr.reserve(1);
        out->resources.push_back(std::move(rsc));
    }
    if (r.bad || r.left() != 0 || out->uuid == 0) {
        return UCS_ERR_INVALID_ADDR;
    }
    return UCS_OK;
}

} // namespace ucp
