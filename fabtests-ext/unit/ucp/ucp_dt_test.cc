// SPDX-License-Identifier: BSD-3-Clause
//
// The datatype iterator: any chunking of any type gives the same bytes.
#include "ucp/core/dt.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace {

using ucp::dt_iter;

std::vector<char> pattern(size_t n)
{
    std::vector<char> v(n);
    for (size_t i = 0; i < n; ++i) {
        v[i] = static_cast<char>(i * 7 + 3);
    }
    return v;
}

// A generic type over a byte vector that counts its calls.
struct probe {
    int starts = 0, finishes = 0;
    ucs_status_t unpack_status = UCS_OK;
    char *buffer = nullptr;
    size_t length = 0;

    static void *start_pack(void *ctx, const void *buffer, size_t count)
    {
        return start(ctx, const_cast<void *>(buffer), count);
    }
    static void *start(void *ctx, void *buffer, size_t count)
    {
        auto *p = static_cast<probe *>(ctx);
        ++p->starts;
        p->buffer = static_cast<char *>(buffer);
        p->length = count;
        return p;
    }
    static size_t packed_size(void *state) { return static_cast<probe *>(state)->length; }
    static size_t pack(void *state, size_t offset, void *dest, size_t max)
    {
        size_t n = std::min<size_t>(max, 100); // less than asked for
        memcpy(dest, static_cast<probe *>(state)->buffer + offset, n);
        return n;
    }
    static ucs_status_t unpack(void *state, size_t offset, const void *src, size_t length)
    {
        auto *p = static_cast<probe *>(state);
        if (p->unpack_status == UCS_OK) {
            memcpy(p->buffer + offset, src, length);
        }
        return p->unpack_status;
    }
    static void finish(void *state) { ++static_cast<probe *>(state)->finishes; }

    ucp_datatype_t make()
    {
        ucp_generic_dt_ops_t ops = {start_pack, start, packed_size, pack, unpack, finish};
        ucp_datatype_t dt = 0;
        EXPECT_EQ(UCS_OK, ucp_dt_create_generic(&ops, this, &dt));
        return dt;
    }
};

std::vector<char> drain(dt_iter &it, size_t chunk)
{
    std::vector<char> out;
    while (!it.at_end()) {
        size_t at = out.size();
        out.resize(at + chunk);
        out.resize(at + it.pack(out.data() + at, chunk));
    }
    return out;
}

TEST(ucp_dt, contig_packs_in_any_chunking)
{
    auto data = pattern(1000);
    for (size_t chunk : {1, 7, 999, 1000, 5000}) {
        dt_iter it;
        ASSERT_EQ(UCS_OK, it.start_send(data.data(), 125, ucp_dt_make_contig(8)));
        EXPECT_EQ(1000u, it.length());
        EXPECT_EQ(data, drain(it, chunk));
        it.finish();
    }
}

TEST(ucp_dt, iov_with_empty_entries_packs_and_unpacks)
{
    auto data = pattern(1000), back = std::vector<char>(1000);
    ucp_dt_iov_t send[] = {{nullptr, 0},
                           {data.data(), 10},
                           {nullptr, 0},
                           {data.data() + 10, 490},
                           {data.data() + 500, 500},
                           {nullptr, 0}};
    ucp_dt_iov_t recv[] = {{back.data(), 333}, {nullptr, 0}, {back.data() + 333, 667}};
    for (size_t chunk : {1, 9, 10, 11, 490, 2000}) {
        dt_iter in, out;
        ASSERT_EQ(UCS_OK, in.start_send(send, 6, ucp_dt_make_iov()));
        ASSERT_EQ(UCS_OK, out.start_recv(recv, 3, ucp_dt_make_iov()));
        std::fill(back.begin(), back.end(), 0);
        auto packed = drain(in, chunk);
        ASSERT_EQ(data, packed);
        // backwards, as late fragments do
        for (size_t end = packed.size(); end > 0;) {
            size_t n = std::min(chunk, end);
            ASSERT_EQ(UCS_OK, out.unpack(end - n, packed.data() + end - n, n));
            end -= n;
        }
        EXPECT_EQ(data, back);
    }
}

TEST(ucp_dt, iov_rewinds_after_a_piece_that_was_not_sent)
{
    auto data = pattern(100);
    ucp_dt_iov_t v[] = {{data.data(), 30}, {data.data() + 30, 70}};
    dt_iter it;
    ASSERT_EQ(UCS_OK, it.start_send(v, 2, ucp_dt_make_iov()));
    char piece[50];
    EXPECT_EQ(50u, it.pack(piece, 50));
    it.rewind(0);
    EXPECT_EQ(data, drain(it, 40));
}

TEST(ucp_dt, unpack_does_not_write_past_the_end)
{
    char buffer[8] = {};
    dt_iter it;
    ASSERT_EQ(UCS_OK, it.start_recv(buffer, 4, ucp_dt_make_contig(1)));
    EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, it.unpack(2, "abcd", 4));
    EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, it.unpack(SIZE_MAX, "abcd", 2));
    EXPECT_EQ(0, buffer[2]);
}

TEST(ucp_dt, to_iov_describes_without_copying)
{
    auto data = pattern(100);
    ucp_dt_iov_t v[] = {{data.data(), 30}, {nullptr, 0}, {data.data() + 30, 70}};
    dt_iter it;
    ASSERT_EQ(UCS_OK, it.start_send(v, 3, ucp_dt_make_iov()));
    uct_iov_t iov[4];
    size_t count = 4;
    EXPECT_EQ(60u, it.to_iov(iov, &count, 60, nullptr));
    ASSERT_EQ(2u, count);
    EXPECT_EQ(data.data() + 30, iov[1].buffer);
    EXPECT_EQ(30u, iov[1].length);
    it.advance(60);
    count = 4;
    EXPECT_EQ(40u, it.to_iov(iov, &count, 1000, nullptr));
    EXPECT_EQ(data.data() + 60, iov[0].buffer);
}

TEST(ucp_dt, b142_generic_is_started_and_finished_once)
{
    for (size_t n : {size_t(0), size_t(100), size_t(1) << 20}) {
        auto data = pattern(n);
        probe p;
        ucp_datatype_t dt = p.make();
        dt_iter it;
        ASSERT_EQ(UCS_OK, it.start_send(data.data(), n, dt));
        EXPECT_EQ(data, drain(it, 8192));
        it.finish();
        it.finish();
        EXPECT_EQ(1, p.starts);
        EXPECT_EQ(1, p.finishes);
        ucp_dt_destroy(dt);
    }
}

TEST(ucp_dt, b143_generic_unpack_status_is_passed_on)
{
    char buffer[16];
    probe p;
    p.unpack_status = UCS_ERR_NO_MEMORY;
    ucp_datatype_t dt = p.make();
    dt_iter it;
    ASSERT_EQ(UCS_OK, it.start_recv(buffer, sizeof(buffer), dt));
    EXPECT_EQ(UCS_ERR_NO_MEMORY, it.unpack(0, "x", 1));
    it.finish();
    EXPECT_EQ(1, p.finishes);
    ucp_dt_destroy(dt);
}

TEST(ucp_dt, b140_query_gives_the_packed_size)
{
    ucp_datatype_attr_t attr = {};
    attr.field_mask = UCP_DATATYPE_ATTR_FIELD_PACKED_SIZE | UCP_DATATYPE_ATTR_FIELD_COUNT;
    attr.count = 10;
    ASSERT_EQ(UCS_OK, ucp_dt_query(ucp_dt_make_contig(8), &attr));
    EXPECT_EQ(80u, attr.packed_size);
    ucp_dt_iov_t v[] = {{nullptr, 5}, {nullptr, 6}};
    attr.field_mask |= UCP_DATATYPE_ATTR_FIELD_BUFFER;
    attr.buffer = v;
    attr.count = 2;
    ASSERT_EQ(UCS_OK, ucp_dt_query(ucp_dt_make_iov(), &attr));
    EXPECT_EQ(11u, attr.packed_size);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_dt_query(ucp_dt_make_iov(), nullptr));
}

TEST(ucp_dt, null_buffer_with_bytes_is_refused)
{
    dt_iter it;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, it.start_send(nullptr, 1, ucp_dt_make_contig(1)));
    EXPECT_EQ(UCS_OK, it.start_send(nullptr, 0, ucp_dt_make_contig(1)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, it.start_send(&it, 1, UCP_DATATYPE_STRIDED));
}

} // namespace
