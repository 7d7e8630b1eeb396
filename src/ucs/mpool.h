// SPDX-License-Identifier: BSD-3-Clause
// A pool of equal objects, grown by chunks and never shrunk before it is destroyed. get() and put()
// are a pop and a push of a free list: no lock, so a pool belongs to one worker. An object is set
// up once, when it is taken for the first time, and keeps its content between uses: memory of a
// chunk that nothing needed yet is not touched.
#pragma once

#include "ucs/compiler.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace ucs {

class mpool_base {
  public:
    struct params {
        size_t object_size;    // bytes
        size_t align = 64;     // of every object, a power of two
        size_t chunk = 128;    // objects that memory is allocated for at a time
        size_t max = SIZE_MAX; // objects in all; get() gives nullptr beyond
        void *arg = nullptr;   // for the hooks below
        void (*object_init)(void *arg, void *object) = nullptr; // once per object
        void (*object_fini)(void *arg, void *object) = nullptr; // once per object
        void *(*chunk_alloc)(void *arg, size_t size, size_t align, void **cookie) = nullptr;
        void (*chunk_free)(void *arg, void *chunk, size_t size, void *cookie) = nullptr;
        // Called before object_init for the objects of a chunk that chunk_alloc made with a cookie.
        void (*object_cookie)(void *arg, void *object, void *cookie) = nullptr;
    };

    explicit mpool_base(const params &p) : params_(p)
    {
        size_t least =
            params_.object_size < sizeof(free_node) ? sizeof(free_node) : params_.object_size;
        // The free list's link stands in front of the object: the content survives between uses.
        stride_ = round_up(least, params_.align) + round_up(sizeof(free_node), params_.align);
    }

    mpool_base(const mpool_base &) = delete;
    mpool_base &operator=(const mpool_base &) = delete;

    ~mpool_base()
    {
        for (const chunk &c : chunks_) {
            for (size_t i = 0; params_.object_fini && i < c.made; ++i) {
                params_.object_fini(params_.arg, object_at(c, i));
            }
            if (params_.chunk_free) {
                params_.chunk_free(params_.arg, c.memory, c.size, c.cookie);
            } else {
                ::operator delete(c.memory, std::align_val_t(params_.align));
            }
        }
    }

    void *get()
    {
        if (UCS_UNLIKELY(!free_)) {
            return make();
        }
        free_node *node = free_;
        free_ = node->next;
        ++used_;
        return reinterpret_cast<char *>(node) + round_up(sizeof(free_node), params_.align);
    }

    void put(void *object)
    {
        auto *node = reinterpret_cast<free_node *>(static_cast<char *>(object) -
                                                   round_up(sizeof(free_node), params_.align));
        node->next = free_;
        free_ = node;
        --used_;
    }

    size_t used() const { return used_; }
    // get() gives an object, or fails for want of memory alone.
    bool available() const { return free_ || unmade() || total_ < params_.max; }

    // Of every object that was taken at least once, whether it is in use or not.
    template <class Call>
    void for_each(Call &&call)
    {
        for (const chunk &c : chunks_) {
            for (size_t i = 0; i < c.made; ++i) {
                call(object_at(c, i));
            }
        }
    }

  private:
    struct free_node {
        free_node *next;
    };
    struct chunk {
        void *memory;
        size_t size;
        size_t count;
        size_t made; // objects that are set up: the first ones
        void *cookie;
    };

    bool unmade() const { return !chunks_.empty() && chunks_.back().made < chunks_.back().count; }

    // Sets the next object up, of one more chunk if need be, and takes it.
    UCS_NOINLINE void *make()
    {
        if (!unmade() && !add_chunk()) {
            return nullptr;
        }
        chunk &c = chunks_.back();
        void *object = object_at(c, c.made);
        if (params_.object_cookie) {
            params_.object_cookie(params_.arg, object, c.cookie);
        }
        if (params_.object_init) {
            params_.object_init(params_.arg, object);
        }
        ++c.made;
        ++used_;
        return object;
    }

    bool add_chunk()
    {
        size_t count = params_.chunk < params_.max - total_ ? params_.chunk : params_.max - total_;
        if (count == 0) {
            return false;
        }
        try {
            chunks_.reserve(chunks_.size() + 1);
        } catch (const std::bad_alloc &) {
            return false;
        }
        chunk c{nullptr, count * stride_, count, 0, nullptr};
        if (params_.chunk_alloc) {
            c.memory = params_.chunk_alloc(params_.arg, c.size, params_.align, &c.cookie);
        } else {
            c.memory = ::operator new(c.size, std::align_val_t(params_.align), std::nothrow);
        }
        if (!c.memory) {
            return false;
        }
        chunks_.push_back(c);
        total_ += count;
        return true;
    }

    static size_t round_up(size_t n, size_t align) { return (n + align - 1) & ~(align - 1); }

    void *object_at(const chunk &c, size_t i) const
    {
        return static_cast<char *>(c.memory) + i * stride_ +
               round_up(sizeof(free_node), params_.align);
    }

    params params_;
    size_t stride_;
    free_node *free_ = nullptr;
    size_t used_ = 0;
    size_t total_ = 0;
    std::vector<chunk> chunks_;
};

// Objects of one type, default constructed once.
template <class T>
class mpool {
  public:
    explicit mpool(size_t chunk = 128, size_t max = SIZE_MAX)
        : base_({.object_size = sizeof(T),
                 .align = alignof(T) > 16 ? alignof(T) : 16,
                 .chunk = chunk,
                 .max = max,
                 .object_init = [](void *, void *object) { new (object) T(); },
                 .object_fini = [](void *, void *object) { static_cast<T *>(object)->~T(); }})
    {
    }

    T *get() { return static_cast<T *>(base_.get()); }
    void put(T *object) { base_.put(object); }
    size_t used() const { return base_.used(); }

  private:
    mpool_base base_;
};

} // namespace ucs
