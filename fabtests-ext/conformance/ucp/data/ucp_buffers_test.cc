// SPDX-License-Identifier: BSD-3-Clause
//
// Buffers as applications have them: used again and again, at odd addresses, around the borders of
// protocols, registered before, read-only; several kinds of communication through one endpoint.
#include "fabtests-ext/common/ucp_pair.h"

#include <sys/mman.h>

namespace {

using namespace ucp_test;

class ucp_buffers : public pair {
  protected:
    ucp_buffers() { opts.features = UCP_FEATURE_TAG | UCP_FEATURE_STREAM | UCP_FEATURE_RMA; }

    ucs_status_ptr_t send(const void *data, size_t n, ucp_mem_h memh = nullptr)
    {
        ucp_request_param_t p = with(memh);
        return ucp_tag_send_nbx(ab, data, n, 1, &p);
    }
    ucs_status_ptr_t recv(void *data, size_t n, ucp_mem_h memh = nullptr)
    {
        ucp_request_param_t p = with(memh);
        return ucp_tag_recv_nbx(b().worker, data, n, 1, ~ucp_tag_t(0), &p);
    }

    // One message in the given order of posting; the receiver must find what was sent.
    void transfer(const char *source, char *target, size_t n, bool expected)
    {
        memset(target, 0, n);
        ucs_status_ptr_t r = expected ? recv(target, n) : nullptr;
        ucs_status_ptr_t s = send(source, n);
        if (!expected) {
            progress_for(0.001);
            r = recv(target, n);
        }
        ASSERT_EQ(UCS_OK, finish(r));
        ASSERT_EQ(UCS_OK, finish(s));
        ASSERT_EQ(0, memcmp(source, target, n)) << n << " bytes";
    }

    static ucp_mem_h map(entity &owner, void *data, size_t n)
    {
        ucp_mem_map_params_t params = {};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = data;
        params.length = n;
        ucp_mem_h memh = nullptr;
        EXPECT_EQ(UCS_OK, ucp_mem_map(owner.context, &params, &memh));
        return memh;
    }

  private:
    static ucp_request_param_t with(ucp_mem_h memh)
    {
        ucp_request_param_t p = {};
        p.op_attr_mask = memh ? UCP_OP_ATTR_FIELD_MEMH : 0;
        p.memh = memh;
        return p;
    }
};

TEST_P(ucp_buffers, b006_the_same_buffers_again_and_again)
{
    std::vector<char> source(50000), target(50000);
    for (unsigned i = 0; i < 50; ++i) {
        fill_pattern(source.data(), source.size(), i);
        transfer(source.data(), target.data(), source.size(), i % 2);
    }
}

TEST_P(ucp_buffers, b020_odd_addresses)
{
    const std::vector<char> source = pattern(140000);
    std::vector<char> target(140000);
    for (size_t offset : {1, 3, 8, 63, 4095}) {
        for (size_t n : {size_t(7), size_t(1000), size_t(9000), size_t(130000)}) {
            transfer(source.data() + offset, target.data() + 4096 - offset, n, n % 2);
        }
    }
}

TEST_P(ucp_buffers, b023_lengths_around_the_borders)
{
    const std::vector<char> source = pattern(70000);
    std::vector<char> target(70000);
    for (size_t border : {8, 64, 1024, 4096, 8192, 16384, 40960, 65536}) {
        for (size_t n = border - 2; n <= border + 2; ++n) {
            transfer(source.data(), target.data(), n, n % 2);
        }
    }
}

TEST_P(ucp_buffers, b027_registered_on_both_sides)
{
    std::vector<char> source(300000), target(300000);
    ucp_mem_h from = map(a(), source.data(), source.size());
    ucp_mem_h to = map(b(), target.data(), target.size());
    for (size_t n : {size_t(8), size_t(5000), size_t(30000), size_t(300000)}) {
        fill_pattern(source.data(), n, static_cast<unsigned>(n));
        ucs_status_ptr_t r = recv(target.data(), n, to);
        ucs_status_ptr_t s = send(source.data(), n, from);
        EXPECT_EQ(UCS_OK, finish(r));
        EXPECT_EQ(UCS_OK, finish(s));
        EXPECT_EQ(0, memcmp(source.data(), target.data(), n)) << n;
    }
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(a().context, from));
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(b().context, to));
}

TEST_P(ucp_buffers, b028_read_only_memory_is_sent)
{
    constexpr size_t n = 300000;
    void *memory = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, memory);
    fill_pattern(memory, n, 5);
    ASSERT_EQ(0, mprotect(memory, n, PROT_READ));
    std::vector<char> target(n);
    for (size_t length : {size_t(8), size_t(9000), n}) {
        transfer(static_cast<char *>(memory), target.data(), length, true);
    }
    munmap(memory, n);
}

TEST_P(ucp_buffers, b029_small_and_large_of_one_tag_match_in_order)
{
    const size_t lengths[] = {100000, 8, 1000000, 0, 20000, 64, 300000, 1};
    std::vector<std::vector<char>> source, target;
    std::vector<ucs_status_ptr_t> requests;
    for (size_t n : lengths) {
        source.push_back(pattern(n, static_cast<unsigned>(n)));
        requests.push_back(send(source.back().data(), n));
    }
    progress_for(0.01);
    for (size_t n : lengths) {
        target.emplace_back(n, '\0');
    }
    for (auto &t : target) {
        requests.push_back(recv(t.data(), t.size()));
    }
    for (ucs_status_ptr_t r : requests) {
        EXPECT_EQ(UCS_OK, finish(r));
    }
    EXPECT_EQ(source, target);
}

TEST_P(ucp_buffers, b042_b044_status_is_there_until_the_request_is_freed)
{
    uint64_t out = 42, in = 0;
    ucs_status_ptr_t r = recv(&in, sizeof(in));
    ASSERT_TRUE(UCS_PTR_IS_PTR(r));
    EXPECT_EQ(UCS_INPROGRESS, ucp_request_check_status(r));
    EXPECT_EQ(UCS_OK, finish(send(&out, sizeof(out))));
    ASSERT_TRUE(until([&] { return ucp_request_check_status(r) != UCS_INPROGRESS; }));
    EXPECT_EQ(UCS_OK, ucp_request_check_status(r));
    EXPECT_EQ(UCS_OK, ucp_request_check_status(r));
    ucp_tag_recv_info_t info;
    EXPECT_EQ(UCS_OK, ucp_tag_recv_request_test(r, &info)) << "b043";
    EXPECT_EQ(sizeof(out), info.length);
    EXPECT_EQ(out, in);
    ucp_request_free(r);
}

TEST_P(ucp_buffers, b100_stream_and_tag_do_not_mix)
{
    std::vector<char> tagged = pattern(5000, 1), streamed = pattern(5000, 2);
    std::vector<char> from_tag(5000), from_stream(5000);
    ucp_request_param_t p = {};
    ucs_status_ptr_t stream = ucp_stream_send_nbx(ab, streamed.data(), streamed.size(), &p);
    ucs_status_ptr_t tag = send(tagged.data(), tagged.size());
    EXPECT_EQ(UCS_OK, finish(recv(from_tag.data(), from_tag.size())));
    p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    p.flags = UCP_STREAM_RECV_FLAG_WAITALL;
    size_t length = 0;
    ucs_status_ptr_t r =
        ucp_stream_recv_nbx(ba, from_stream.data(), from_stream.size(), &length, &p);
    EXPECT_EQ(UCS_OK, finish(r));
    EXPECT_EQ(UCS_OK, finish(stream));
    EXPECT_EQ(UCS_OK, finish(tag));
    EXPECT_EQ(tagged, from_tag);
    EXPECT_EQ(streamed, from_stream);
}

TEST_P(ucp_buffers, b131_flush_of_what_is_idle_completes)
{
    ucp_request_param_t p = {};
    EXPECT_EQ(UCS_OK, finish(ucp_ep_flush_nbx(ab, &p)));
    EXPECT_EQ(UCS_OK, finish(ucp_worker_flush_nbx(a().worker, &p)));
    EXPECT_EQ(UCS_OK, ucp_worker_fence(a().worker)) << "b137";
}

TEST_P(ucp_buffers, b135_flush_covers_messages)
{
    std::vector<char> target(3000);
    const std::vector<char> source = pattern(3000);
    ucs_status_ptr_t r = recv(target.data(), target.size());
    ucs_status_ptr_t s = send(source.data(), source.size());
    ucp_request_param_t p = {};
    EXPECT_EQ(UCS_OK, finish(ucp_ep_flush_nbx(ab, &p)));
    EXPECT_FALSE(pending(s));
    EXPECT_EQ(UCS_OK, finish(s));
    EXPECT_EQ(UCS_OK, finish(r));
    EXPECT_EQ(source, target);
}

TEST_P(ucp_buffers, b139_expected_time_is_linear_in_the_length)
{
    double t[3];
    for (size_t i = 0; i < 3; ++i) {
        ucp_ep_evaluate_perf_param_t param = {};
        ucp_ep_evaluate_perf_attr_t attr = {};
        param.field_mask = UCP_EP_PERF_PARAM_FIELD_MESSAGE_SIZE;
        param.message_size = i * 1000;
        attr.field_mask = UCP_EP_PERF_ATTR_FIELD_ESTIMATED_TIME;
        ASSERT_EQ(UCS_OK, ucp_ep_evaluate_perf(ab, &param, &attr));
        t[i] = attr.estimated_time;
        EXPECT_GE(t[i], 0.0);
        EXPECT_LT(t[i], 10.0);
    }
    EXPECT_NEAR(t[2] - t[1], t[1] - t[0], 1e-12);
}

UCP_TEST_OVER_ALL(ucp_buffers);

} // namespace
