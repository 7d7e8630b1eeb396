// SPDX-License-Identifier: BSD-3-Clause
// The buffers and the shares of the interfaces in them.
#include "uct/ofi/core/receive_pool.h"

#include <cstring>

namespace uct::ofi {

namespace {

constexpr size_t at_a_time = 32; // buffers

// Offset of a receive buffer's payload: room for the headroom and the pointer before it, or for
// what comes before a tagged message, and the alignment that was asked for.
size_t payload_offset(const receive_pool::shape &s)
{
    size_t align = std::max<size_t>(s.align, 16);
    size_t least = sizeof(receive_op) + std::max(sizeof(void *) + s.headroom, sizeof(tag_prefix));
    size_t payload = (least + s.align_offset + align - 1) / align * align - s.align_offset;
    // The pointer and the user's headroom want the alignment of a pointer.
    return payload < least ? payload + align : payload;
}

// The part of a worker that matches; nullptr: there is none.
template <class Part, class Match>
std::shared_ptr<Part> find_part(uct::worker &worker, Match &&match)
{
    for (const std::weak_ptr<worker_part> &weak : worker.parts) {
        auto part = std::dynamic_pointer_cast<Part>(weak.lock());
        if (part && match(*part)) {
            return part;
        }
    }
    return nullptr;
}

template <class Part>
std::shared_ptr<Part> add_part(uct::worker &worker, std::shared_ptr<Part> part)
{
    std::erase_if(worker.parts, [](const auto &weak) { return weak.expired(); });
    worker.parts.push_back(part);
    return part;
}

} // namespace

std::shared_ptr<receive_pool> receive_pool::of(uct::worker &worker, const shape &s)
{
    auto found = find_part<receive_pool>(worker, [&](receive_pool &p) { return p.shape_ == s; });
    return found ? found : add_part(worker, std::make_shared<receive_pool>(s));
}

receive_pool::receive_pool(const shape &s)
    : shape_(s),
      all_({.object_size = payload_offset(s) + s.length - s.prefix,
            .align = std::max<size_t>(64, s.align),
            .chunk = at_a_time,
            .arg = this,
            .object_init =
                [](void *arg, void *object) {
                    auto *r = static_cast<receive_op *>(object);
                    r->user = nullptr;
                    static_cast<receive_pool *>(arg)->init(r);
                },
            .chunk_alloc =
                [](void *arg, size_t size, size_t align, void **cookie) {
                    return alloc_registered(static_cast<receive_pool *>(arg)->shape_.domain, size,
                                            align, cookie);
                },
            .chunk_free = free_registered,
            .object_cookie =
                [](void *, void *object, void *cookie) {
                    static_cast<receive_op *>(object)->desc =
                        cookie ? static_cast<memory *>(cookie)->desc : nullptr;
                }})
{
}

void receive_pool::init(receive_op *r)
{
    r->what = op::kind::receive;
    r->has_buffer = false;
    r->owner = nullptr;
    r->completion = nullptr;
    r->release.cb = release_desc;
    r->release.owner = r;
    r->home = this;
    r->payload = reinterpret_cast<char *>(r) + payload_offset(shape_);
    restore_release(r);
}

void receive_pool::restore_release(receive_op *r)
{
    uct_recv_desc_t *release = &r->release;
    memcpy(r->payload - shape_.headroom - sizeof(void *), &release, sizeof(void *));
}

void receive_pool::take_back(iface &user)
{
    all_.for_each([&](void *object) {
        auto *r = static_cast<receive_op *>(object);
        if (r->user == &user) {
            init(r); // as a tagged message it may have been something else
            put(r);
        }
    });
}

void receive_pool::release_desc(uct_recv_desc_t *self, void *)
{
    receive_op *r = static_cast<receive_op::back_pointer *>(self)->owner;
    r->home->put(r);
}

std::shared_ptr<receive_budget> receive_budget::of(uct::worker &worker)
{
    auto found = find_part<receive_budget>(worker, [](receive_budget &) { return true; });
    return found ? found : add_part(worker, std::make_shared<receive_budget>());
}

void receive_budget::join(receive_share &s)
{
    shares_.push_back(&s);
    s.kept = std::min(first, s.most);
    kept_ += s.kept;
    find_surplus();
}

void receive_budget::leave(receive_share &s)
{
    std::erase(shares_, &s);
    s.has_surplus = false;
    kept_ -= s.kept;
}

unsigned receive_budget::more(receive_share &s)
{
    unsigned left = total > kept_ ? total - kept_ : 0;
    unsigned own = part() > s.kept ? part() - s.kept : 0;
    unsigned n = std::min({s.kept, s.most - s.kept, std::max(left, own)});
    s.kept += n;
    kept_ += n;
    find_surplus();
    return n;
}

void receive_budget::find_surplus()
{
    for (receive_share *s : shares_) {
        s->has_surplus = kept_ > total && s->kept > part();
    }
}

bool receive_budget::shrink(receive_share &s)
{
    s.has_surplus = kept_ > total && s.kept > part();
    s.kept -= s.has_surplus;
    kept_ -= s.has_surplus;
    return s.has_surplus;
}

} // namespace uct::ofi
