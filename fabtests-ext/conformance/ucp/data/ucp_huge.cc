// SPDX-License-Identifier: BSD-3-Clause
//
// Messages and accesses of more than 2 and of more than 4 GiB. Most of their memory is one block
// that is mapped again and again; the beginning, the end, and what lies around 2 and 4 GiB is
// memory of its own, so that an offset or a length that was cut to 31 or 32 bits is seen.
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/common/ucp_region.h"

#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace ucp_test;

constexpr size_t mib = 1 << 20, gib = size_t(1) << 30;
constexpr size_t block = 64 * mib, own = 2 * mib;
constexpr size_t lengths[] = {2 * gib + 8 * mib + 5, 4 * gib + 8 * mib + 5};

class huge_buffer {
  public:
    explicit huge_buffer(size_t length) : length_(length), mapped_((length + block) / block * block)
    {
        void *all =
            mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        EXPECT_NE(MAP_FAILED, all);
        data_ = static_cast<char *>(all);
        int fd = memfd_create("huge_buffer", MFD_CLOEXEC);
        EXPECT_EQ(0, ftruncate(fd, block));
        for (size_t at = 0; at < mapped_; at += block) {
            map(at, block, MAP_SHARED, fd);
        }
        close(fd);
        for (size_t at : {size_t(0), 2 * gib - own / 2, 4 * gib - own / 2, end()}) {
            if (at + own <= mapped_) {
                map(at, own, MAP_PRIVATE | MAP_ANONYMOUS, -1);
                own_.push_back(at);
            }
        }
    }
    ~huge_buffer() { munmap(data_, mapped_); }
    huge_buffer(const huge_buffer &) = delete;
    huge_buffer &operator=(const huge_buffer &) = delete;

    char *data() { return data_; }

    void fill_with(unsigned seed)
    {
        fill_pattern(data_ + own, block - own, seed);
        for (size_t at : own_) {
            fill_pattern(data_ + at, own, ++seed);
        }
        memset(data_ + length_, 0, mapped_ - length_ < 64 ? mapped_ - length_ : 64);
    }

    // Whether the message is this, and nothing was written behind it.
    void expect(unsigned seed) const
    {
        std::vector<char> wanted(block - own);
        fill_pattern(wanted.data(), wanted.size(), seed);
        EXPECT_EQ(0, memcmp(wanted.data(), data_ + own, wanted.size()));
        for (size_t at : own_) {
            fill_pattern(wanted.data(), own, ++seed);
            EXPECT_EQ(0, memcmp(wanted.data(), data_ + at, std::min(own, length_ - at)))
                << "at " << at;
        }
        for (size_t i = length_; i < length_ + 64 && i < mapped_; ++i) {
            EXPECT_EQ(0, data_[i]) << "behind the end";
        }
    }

  private:
    // Of its own to the last byte.
    size_t end() const { return (length_ - own / 2) / 4096 * 4096; }

    void map(size_t at, size_t size, int flags, int fd)
    {
        EXPECT_NE(MAP_FAILED,
                  mmap(data_ + at, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0));
    }

    size_t length_, mapped_;
    char *data_;
    std::vector<size_t> own_;
};

class ucp_huge : public pair {
  protected:
    ucp_huge()
    {
        opts.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA;
    }

    // Moves it from one to the other, and looks at what came.
    template <class F>
    void moves(F &&move)
    {
        for (size_t length : lengths) {
            SCOPED_TRACE(length);
            huge_buffer from(length), to(length);
            from.fill_with(3);
            to.fill_with(90);
            move(from.data(), to.data(), length);
            to.expect(3);
        }
    }
};

TEST_P(ucp_huge, tagged_messages)
{
    moves([&](char *from, char *to, size_t length) {
        ucp_tag_recv_info_t info = {};
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_RECV_INFO;
        p.recv_info.tag_info = &info;
        ucs_status_ptr_t r = ucp_tag_recv_nbx(b().worker, to, length, 1, 1, &p);
        EXPECT_EQ(UCS_OK, finish(send_nb(ab, from, length, 1)));
        ucs_status_t status = UCS_PTR_IS_PTR(r) ? UCS_INPROGRESS : UCS_PTR_STATUS(r);
        if (UCS_PTR_IS_PTR(r)) {
            EXPECT_TRUE(
                until([&] { return ucp_tag_recv_request_test(r, &info) != UCS_INPROGRESS; }));
            status = ucp_tag_recv_request_test(r, &info);
            ucp_request_free(r);
        }
        EXPECT_EQ(UCS_OK, status);
        EXPECT_EQ(length, info.length);
    });
}

TEST_P(ucp_huge, active_messages)
{
    struct arrival {
        ucp_worker_h worker;
        char *to = nullptr;
        size_t length = 0;
        ucs_status_ptr_t fetch = nullptr;
        bool came = false;
    } got{b().worker};
    auto on_message = [](void *arg, const void *, size_t, void *data, size_t length,
                         const ucp_am_recv_param_t *) {
        auto *g = static_cast<arrival *>(arg);
        ucp_request_param_t p = {};
        g->length = length;
        g->fetch = ucp_am_recv_data_nbx(g->worker, data, g->to, length, &p);
        g->came = true;
        return UCS_INPROGRESS;
    };
    ASSERT_EQ(UCS_OK, set_am_handler(b().worker, 1, on_message, &got));
    moves([&](char *from, char *to, size_t length) {
        got.to = to;
        got.came = false;
        ucp_request_param_t p = {};
        ucs_status_ptr_t s = ucp_am_send_nbx(ab, 1, nullptr, 0, from, length, &p);
        EXPECT_TRUE(until([&] { return got.came; }));
        EXPECT_EQ(UCS_OK, finish(got.fetch));
        EXPECT_EQ(UCS_OK, finish(s));
        EXPECT_EQ(length, got.length);
    });
}

TEST_P(ucp_huge, streams)
{
    moves([&](char *from, char *to, size_t length) {
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        p.flags = UCP_STREAM_RECV_FLAG_WAITALL;
        size_t n = 0;
        ucs_status_ptr_t r = ucp_stream_recv_nbx(ba, to, length, &n, &p);
        ucp_request_param_t q = {};
        ucs_status_ptr_t s = ucp_stream_send_nbx(ab, from, length, &q);
        EXPECT_EQ(UCS_OK, finish(r));
        EXPECT_EQ(UCS_OK, finish(s));
    });
}

TEST_P(ucp_huge, puts)
{
    moves([&](char *from, char *to, size_t length) {
        region target(b(), ab, to, length);
        ucp_request_param_t p = {};
        EXPECT_EQ(UCS_OK, finish(ucp_put_nbx(ab, from, length, target.at(), target.rkey, &p)));
        EXPECT_EQ(UCS_OK, finish(flush_nb(ab)));
    });
}

TEST_P(ucp_huge, gets)
{
    moves([&](char *from, char *to, size_t length) {
        region source(b(), ab, from, length);
        ucp_request_param_t p = {};
        EXPECT_EQ(UCS_OK, finish(ucp_get_nbx(ab, to, length, source.at(), source.rkey, &p)));
    });
}

UCP_TEST_OVER(ucp_huge, "self", "sm", "ofi_shm", "tcp");

} // namespace
