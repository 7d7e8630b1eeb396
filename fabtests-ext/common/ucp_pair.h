// SPDX-License-Identifier: BSD-3-Clause
//
// Fixture of the communication tests: two entities with an endpoint each way, over every set of
// transports. Over "self" both are one entity with a loopback endpoint. Names of cases start with
// the number of the behaviour they hold (bNNN).
#pragma once

#include "fabtests-ext/common/pattern.h"
#include "fabtests-ext/common/ucp_entity.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace ucp_test {

inline std::vector<char> pattern(size_t length, unsigned seed = 1)
{
    std::vector<char> v(length);
    fill_pattern(v.data(), length, seed);
    return v;
}

class pair : public testing::TestWithParam<const char *> {
  protected:
    options opts;

    pair() { opts.tls = GetParam(); }

    bool is_self() const { return opts.tls == "self"; }

    void SetUp() override { start(); }

    void start()
    {
        a_ = std::make_unique<entity>(opts);
        if (!is_self()) {
            b_ = std::make_unique<entity>(opts);
        }
        ASSERT_NE(nullptr, a().worker);
        ASSERT_NE(nullptr, b().worker);
        ASSERT_EQ(UCS_OK, create_ep(a(), b().address(), &ab));
        if (is_self()) {
            ba = ab;
        } else {
            ASSERT_EQ(UCS_OK, create_ep(b(), a().address(), &ba));
        }
    }

    void TearDown() override { stop(); }

    void stop()
    {
        // Both at once: a flush-close ends when the peer has seen it.
        ucs_status_ptr_t x = ab ? close_nb(ab) : nullptr;
        ucs_status_ptr_t y = ba && ba != ab ? close_nb(ba) : nullptr;
        ab = ba = nullptr;
        if (a_) {
            EXPECT_EQ(UCS_OK, finish(x));
            EXPECT_EQ(UCS_OK, finish(y));
        }
        b_.reset();
        a_.reset();
    }

    entity &a() { return *a_; }
    entity &b() { return b_ ? *b_ : *a_; }

    void progress()
    {
        a_->progress();
        if (b_) {
            b_->progress();
        }
    }

    bool until(const std::function<bool()> &done, double seconds = patience)
    {
        return run_until({a_.get(), b_.get()}, done, seconds);
    }

    void progress_for(double seconds) { run_for({a_.get(), b_.get()}, seconds); }

    // The final status of an operation.
    ucs_status_t finish(ucs_status_ptr_t ptr, double seconds = patience)
    {
        return wait({a_.get(), b_.get()}, ptr, seconds);
    }

    static bool pending(ucs_status_ptr_t ptr)
    {
        return UCS_PTR_IS_PTR(ptr) && ucp_request_check_status(ptr) == UCS_INPROGRESS;
    }

    ucp_ep_h ab = nullptr, ba = nullptr;

  private:
    std::unique_ptr<entity> a_, b_;
};

// A generic datatype over contiguous bytes that counts its calls.
struct generic_type {
    int starts = 0, finishes = 0;
    int foreign_calls = 0; // from another thread than the one that made it
    ucs_status_t unpack_status = UCS_OK;
    size_t pack_limit = SIZE_MAX; // of the whole message
    ucp_datatype_t dt = 0;

    generic_type()
    {
        ucp_generic_dt_ops_t ops = {start_pack, start_unpack, packed_size, pack, unpack, finish};
        EXPECT_EQ(UCS_OK, ucp_dt_create_generic(&ops, this, &dt));
    }
    ~generic_type() { ucp_dt_destroy(dt); }
    generic_type(const generic_type &) = delete;
    generic_type &operator=(const generic_type &) = delete;

  private:
    struct state {
        generic_type *type;
        char *buffer;
        size_t length;
    };
    static void *start_pack(void *ctx, const void *buffer, size_t count)
    {
        return start_unpack(ctx, const_cast<void *>(buffer), count);
    }
    static void *start_unpack(void *ctx, void *buffer, size_t count)
    {
        auto *type = static_cast<generic_type *>(ctx);
        type->note_thread();
        ++type->starts;
        return new state{type, static_cast<char *>(buffer), count};
    }
    void note_thread() { foreign_calls += std::this_thread::get_id() != maker; }
    const std::thread::id maker = std::this_thread::get_id();

    static size_t packed_size(void *s) { return static_cast<state *>(s)->length; }
    static size_t pack(void *s, size_t offset, void *dest, size_t max)
    {
        auto *st = static_cast<state *>(s);
        st->type->note_thread();
        size_t end = std::min(st->length, st->type->pack_limit);
        size_t n = std::min(max, end > offset ? end - offset : 0);
        memcpy(dest, st->buffer + offset, n);
        return n;
    }
    static ucs_status_t unpack(void *s, size_t offset, const void *src, size_t length)
    {
        auto *st = static_cast<state *>(s);
        st->type->note_thread();
        if (st->type->unpack_status != UCS_OK) {
            return st->type->unpack_status;
        }
        memcpy(st->buffer + offset, src, length);
        return UCS_OK;
    }
    static void finish(void *s)
    {
        auto *st = static_cast<state *>(s);
        st->type->note_thread();
        ++st->type->finishes;
        delete st;
    }
};

} // namespace ucp_test
