// SPDX-License-Identifier: BSD-3-Clause
// Opaque addresses, and address vectors that remember what was removed from them.
#include "strict/strict.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace strict {

namespace {

constexpr uint16_t magic = 0x57c1;

// The 8 bytes that every opaque address begins with.
struct opaque {
    uint32_t ip;
    uint16_t port;
    uint16_t mark;
};
static_assert(sizeof(opaque) == 8);

uint16_t mark_of(const profile &p)
{
    return static_cast<uint16_t>(magic ^ p.addr_format);
}

// In a map an address is a word of the core's, in a table a number from 0 on.
constexpr fi_addr_t map_mark = 0xfab0'0000'0000'0000;
constexpr fi_addr_t map_step = 0x1'0000;

fi_addr_t outer_address(const profile &p, size_t index)
{
    return p.av_type == FI_AV_MAP ? map_mark + index * map_step : index;
}

size_t index_of(const profile &p, fi_addr_t address)
{
    if (p.av_type != FI_AV_MAP) {
        return address;
    }
    fi_addr_t number = address - map_mark;
    return number % map_step == 0 ? number / map_step : SIZE_MAX;
}

int close_av(fid_t fid)
{
    auto *names = self<av>(fid);
    if (names->eps > 0) {
        forbid(*names->home->about, "an address vector is closed before its endpoints");
    }
    delete names;
    return 0;
}

int insert(fid_av *fid, const void *addresses, size_t count, fi_addr_t *out, uint64_t, void *)
{
    auto *names = self<av>(fid);
    const profile &p = *names->home->about;
    std::lock_guard guard(names->mutex);
    int done = 0;
    for (size_t i = 0; i < count; ++i) {
        sockaddr_in a = read_address(p, static_cast<const char *>(addresses) + i * p.addr_length);
        fi_addr_t inner = FI_ADDR_NOTAVAIL;
        bool inserted = fi_av_insert(names->inner.get(), &a, 1, &inner, 0, nullptr) == 1;
        if (inserted) {
            names->entries.push_back({inner, ntohs(a.sin_port), false});
            ++done;
        }
        if (out) {
            out[i] = inserted ? outer_address(p, names->entries.size() - 1) : FI_ADDR_NOTAVAIL;
        }
    }
    return done;
}

int remove(fid_av *fid, fi_addr_t *addresses, size_t count, uint64_t flags)
{
    auto *names = self<av>(fid);
    for (size_t i = 0; i < count; ++i) {
        av::entry found = names->find(addresses[i]);
        fi_av_remove(names->inner.get(), &found.inner, 1, flags);
        std::lock_guard guard(names->mutex);
        names->entries[index_of(*names->home->about, addresses[i])].removed = true;
    }
    return 0;
}

int lookup(fid_av *fid, fi_addr_t address, void *out, size_t *length)
{
    auto *names = self<av>(fid);
    const profile &p = *names->home->about;
    sockaddr_in a{};
    size_t room = sizeof(a);
    int ret = fi_av_lookup(names->inner.get(), names->find(address).inner, &a, &room);
    if (ret == 0) {
        std::vector<char> whole(p.addr_length);
        write_address(p, a, whole.data());
        memcpy(out, whole.data(), std::min(*length, whole.size()));
        *length = whole.size();
    }
    return ret;
}

const char *straddr(fid_av *, const void *address, char *buffer, size_t *length)
{
    opaque o;
    memcpy(&o, address, sizeof(o));
    int n = snprintf(buffer, *length, "strict://%08x:%04x", o.ip, o.port);
    *length = static_cast<size_t>(n) + 1;
    return buffer;
}

fi_ops av_fid_ops = {sizeof(fi_ops), close_av, no_op, no_op, no_op, no_op, no_op};
fi_ops_av av_ops = {sizeof(fi_ops_av), insert, no_op, no_op, remove, lookup, straddr, no_op};

} // namespace

void write_address(const profile &p, const sockaddr_in &from, void *to)
{
    opaque o{from.sin_addr.s_addr ^ 0xa5a5a5a5u, from.sin_port, mark_of(p)};
    memset(to, 0xee, p.addr_length);
    memcpy(to, &o, sizeof(o));
}

sockaddr_in read_address(const profile &p, const void *from)
{
    opaque o;
    memcpy(&o, from, sizeof(o));
    if (o.mark != mark_of(p)) {
        forbid(p, "an address is inserted that no endpoint of this fabric has");
    }
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = o.ip ^ 0xa5a5a5a5u;
    a.sin_port = o.port;
    return a;
}

av::entry av::find(fi_addr_t address)
{
    std::lock_guard guard(mutex);
    size_t index = index_of(*home->about, address);
    if (index >= entries.size()) {
        forbid(*home->about, "address %llu was never inserted",
               static_cast<unsigned long long>(address));
    }
    if (entries[index].removed) {
        forbid(*home->about, "address %llu was removed", static_cast<unsigned long long>(address));
    }
    return entries[index];
}

int open_av(fid_domain *d, fi_av_attr *attr, fid_av **out, void *context)
{
    auto *home = self<domain>(d);
    if (attr->type != FI_AV_UNSPEC && attr->type != home->about->av_type) {
        return -FI_EINVAL;
    }
    fi_av_attr wanted{};
    wanted.type = FI_AV_TABLE;
    wanted.count = attr->count;
    fid_av *inner = nullptr;
    int ret = fi_av_open(home->inner.get(), &wanted, &inner, nullptr);
    if (ret != 0) {
        return ret;
    }
    attr->type = home->about->av_type;
    auto made = std::make_unique<av>();
    made->where.take(home, &domain::vectors, SIZE_MAX);
    made->outer = {{FI_CLASS_AV, context, &av_fid_ops}, &av_ops};
    made->home = home;
    made->inner.reset(inner);
    *out = &made.release()->outer;
    return 0;
}

} // namespace strict
