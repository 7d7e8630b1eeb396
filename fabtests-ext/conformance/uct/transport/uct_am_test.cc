// SPDX-License-Identifier: BSD-3-Clause
// Active messages: the forms, the limits, descriptors, order, and what a full queue does.
#include "fabtests-ext/conformance/common/uct_entity.h"

#include <atomic>
#include <ctime>
#include <dlfcn.h>
#include <sys/socket.h>
#include <thread>

namespace {

thread_local unsigned sends; // calls of the core that send over a socket

// While there is one, the monotonic clock of its thread stands still.
class still_clock {
  public:
    still_clock()
    {
        clock_gettime(CLOCK_MONOTONIC, &at_);
        stands = &at_;
    }
    ~still_clock() { stands = nullptr; }
    still_clock(const still_clock &) = delete;
    still_clock &operator=(const still_clock &) = delete;

    static thread_local const timespec *stands;

  private:
    timespec at_{};
};

thread_local const timespec *still_clock::stands = nullptr;

} // namespace

extern "C" __attribute__((visibility("default"))) int clock_gettime(clockid_t clock,
                                                                    timespec *now) noexcept
{
    static constinit std::atomic<int (*)(clockid_t, timespec *)> known = nullptr;
    if (clock == CLOCK_MONOTONIC && still_clock::stands) {
        *now = *still_clock::stands;
        return 0;
    }
    auto next = known.load();
    if (!next) {
        next = reinterpret_cast<decltype(next)>(dlsym(RTLD_NEXT, "clock_gettime"));
        known.store(next);
    }
    return next(clock, now);
}

extern "C" __attribute__((visibility("default"))) ssize_t send(int fd, const void *data,
                                                               size_t length, int flags)
{
    static auto *next = reinterpret_cast<decltype(&send)>(dlsym(RTLD_NEXT, "send"));
    ++sends;
    return next(fd, data, length, flags);
}

extern "C" __attribute__((visibility("default"))) ssize_t sendmsg(int fd, const msghdr *message,
                                                                  int flags)
{
    static auto *next = reinterpret_cast<decltype(&sendmsg)>(dlsym(RTLD_NEXT, "sendmsg"));
    ++sends;
    return next(fd, message, flags);
}

namespace uct_conformance {
namespace {

class uct_am : public uct_test {
  protected:
    std::vector<size_t> sizes(size_t limit) const
    {
        std::vector<size_t> s;
        for (size_t n : {0ul, 1ul, 7ul, 8ul, 56ul, 100ul, 128ul, 1000ul, 4096ul, 8000ul, limit}) {
            if (n <= limit) {
                s.push_back(n);
            }
        }
        return s;
    }

    uct_mem_h reg(entity &e, const std::string &s)
    {
        uct_mem_h memh = UCT_MEM_HANDLE_NULL;
        if (e.md_attr.cap.flags & UCT_MD_FLAG_NEED_MEMH) {
            EXPECT_EQ(uct_md_mem_reg(e.md, const_cast<char *>(s.data()), s.size(),
                                     UCT_MD_MEM_ACCESS_ALL, &memh),
                      UCS_OK);
        }
        return memh;
    }

    void dereg(entity &e, uct_mem_h memh)
    {
        if (memh != UCT_MEM_HANDLE_NULL) {
            EXPECT_EQ(uct_md_mem_dereg(e.md, memh), UCS_OK);
        }
    }
};

TEST_P(uct_am, 197_short_arrives_whole)
{
    uct_ep_h ep = a().connect(b());
    size_t n = 0;
    for (size_t size : sizes(a().attr.cap.am.max_short - 8)) {
        uint64_t header = 0x0102030405060708 + size;
        std::string data = pattern(size, 1);
        ASSERT_EQ(post([&] {
                      return uct_ep_am_short(ep, 5, header, data.data(),
                                             static_cast<unsigned>(size));
                  }),
                  UCS_OK);
        ASSERT_TRUE(until([&] { return b().received.size() > n; })) << size;
        const message &m = b().received[n++];
        EXPECT_EQ(m.id, 5);
        EXPECT_EQ(m.data, std::string(reinterpret_cast<char *>(&header), 8) + data);
    }
}

TEST_P(uct_am, 197_short_iov_arrives_whole)
{
    uct_ep_h ep = a().connect(b());
    std::string one = pattern(13, 1);
    std::string two = pattern(40, 2);
    uct_iov_t iov[2] = {{one.data(), one.size(), UCT_MEM_HANDLE_NULL, 0, 1},
                        {two.data(), two.size(), UCT_MEM_HANDLE_NULL, 0, 1}};
    ASSERT_EQ(post([&] { return uct_ep_am_short_iov(ep, 31, iov, 2); }), UCS_OK);
    ASSERT_TRUE(until([&] { return !b().received.empty(); }));
    EXPECT_EQ(b().received[0].id, 31);
    EXPECT_EQ(b().received[0].data, one + two);
}

TEST_P(uct_am, 197_bcopy_arrives_whole)
{
    uct_ep_h ep = a().connect(b());
    size_t n = 0;
    for (size_t size : sizes(a().attr.cap.am.max_bcopy)) {
        packed p{pattern(size, 3)};
        ASSERT_EQ(post([&] { return uct_ep_am_bcopy(ep, 0, pack, &p, 0); }),
                  static_cast<ssize_t>(size));
        EXPECT_EQ(p.calls, 1) << "packed twice";
        ASSERT_TRUE(until([&] { return b().received.size() > n; })) << size;
        EXPECT_TRUE(b().received[n++].data == p.data);
    }
}

TEST_P(uct_am, 197_zcopy_arrives_whole_and_completes_once)
{
    uct_ep_h ep = a().connect(b());
    size_t n = 0;
    for (size_t size : sizes(a().attr.cap.am.max_zcopy - 24)) {
        std::string data = pattern(size, 4);
        std::string header = pattern(24, 5);
        uct_mem_h memh = size ? reg(a(), data) : UCT_MEM_HANDLE_NULL;
        uct_iov_t iov{data.data(), size, memh, 0, 1};
        guard g;
        ucs_status_t status = post(
            [&] { return uct_ep_am_zcopy(ep, 7, header.data(), 24, &iov, 1, 0, &g.completion); });
        ASSERT_TRUE(status == UCS_OK || status == UCS_INPROGRESS) << ucs_status_string(status);
        std::string sent_header = header;
        header.assign(24, 'x'); // the caller's again
        ASSERT_TRUE(until([&] {
            return b().received.size() > n && (status == UCS_OK || g.calls == 1);
        })) << size;
        EXPECT_EQ(g.completion.status, UCS_OK);
        EXPECT_EQ(g.calls, status == UCS_INPROGRESS);
        EXPECT_TRUE(b().received[n++].data == sent_header + data);
        dereg(a(), memh);
    }
}

TEST_P(uct_am, zcopy_may_go_without_a_completion)
{
    uct_ep_h ep = a().connect(b());
    std::string data = pattern(std::min<size_t>(a().attr.cap.am.max_zcopy, 1000), 4);
    uct_mem_h memh = reg(a(), data);
    uct_iov_t iov{data.data(), data.size(), memh, 0, 1};
    for (size_t i = 0; i < 300; ++i) {
        ucs_status_t status =
            post([&] { return uct_ep_am_zcopy(ep, 7, nullptr, 0, &iov, 1, 0, nullptr); });
        ASSERT_TRUE(status == UCS_OK || status == UCS_INPROGRESS) << ucs_status_string(status);
        ASSERT_TRUE(until([&] { return b().received.size() == i + 1; }));
    }
    auto pack = [](void *to, void *arg) {
        memcpy(to, arg, 500);
        return size_t{500};
    };
    EXPECT_EQ(post([&] { return uct_ep_am_bcopy(ep, 7, pack, data.data(), 0); }), 500);
    EXPECT_TRUE(until([&] { return b().received.size() == 301; }));
    dereg(a(), memh);
}

TEST_P(uct_am, zcopy_sends_the_blocks_of_an_entry_and_nothing_between_them)
{
    if (a().attr.cap.am.max_iov < 3) {
        GTEST_SKIP() << "gathers nothing";
    }
    uct_ep_h ep = a().connect(b());
    std::string data = pattern(1000, 6);
    uct_mem_h memh = reg(a(), data);
    uct_iov_t iov[] = {{data.data(), 50, memh, 200, 2}, {data.data() + 800, 30, memh, 30, 3}};
    guard g;
    ucs_status_t status =
        post([&] { return uct_ep_am_zcopy(ep, 7, nullptr, 0, iov, 2, 0, &g.completion); });
    ASSERT_TRUE(status == UCS_OK || status == UCS_INPROGRESS) << ucs_status_string(status);
    ASSERT_TRUE(until([&] { return !b().received.empty() && (status == UCS_OK || g.calls == 1); }));
    EXPECT_TRUE(b().received[0].data ==
                data.substr(0, 50) + data.substr(200, 50) + data.substr(800, 90));
    dereg(a(), memh);
}

TEST_P(uct_am, 198_descriptor_can_be_kept)
{
    open({.rx_headroom = 40});
    uct_ep_h ep = a().connect(b());
    b().keep = true;
    constexpr size_t count = 600;  // more than there are receive buffers
    constexpr size_t length = 300; // small ones are copied
    size_t sent = 0;
    for (size_t i = 0; i < count; ++i) {
        packed p{pattern(length, static_cast<unsigned>(i))};
        if (alone() && b().kept.size() > 100) {
            for (void *desc : b().kept) {
                uct_iface_release_desc(desc);
            }
            b().kept.clear();
        }
        ASSERT_EQ(post([&] { return uct_ep_am_bcopy(ep, 1, pack, &p, 0); }), ssize_t(length));
        ++sent;
        progress();
    }
    ASSERT_TRUE(until([&] { return b().received.size() == sent; }));
    size_t first = count - b().kept.size();
    for (size_t i = 0; i < b().kept.size(); ++i) {
        EXPECT_EQ(std::string(static_cast<char *>(b().kept[i]) + 40, length),
                  pattern(length, static_cast<unsigned>(first + i)));
    }
}

// Small and large ones may take different ways.
TEST_P(uct_am, order_is_that_of_sending_whatever_the_size)
{
    uct_ep_h ep = a().connect(b());
    size_t largest = std::min<size_t>(a().attr.cap.am.max_bcopy, 8000);
    const size_t all[] = {8, 9, 60, 112, 113, 120, 121, 200, 1000, largest / 2, largest};
    const uint64_t count = GetParam() == std::string("shm") ? 5000 : 1000;
    uint64_t next = 0, sent = 0;
    auto check = [&] {
        for (const message &m : b().received) {
            uint64_t number;
            memcpy(&number, m.data.data(), sizeof(number));
            ASSERT_EQ(number, next);
            ASSERT_EQ(m.data.size(), all[next * 2654435761u % std::size(all)]);
            ++next;
        }
        b().received.clear();
    };
    for (; sent < count; ++sent) {
        std::string data(all[sent * 2654435761u % std::size(all)], 'x');
        memcpy(data.data(), &sent, sizeof(sent));
        packed p{data};
        if (sent % 3 == 0 && data.size() <= a().attr.cap.am.max_short) {
            ASSERT_EQ(post([&] {
                          return uct_ep_am_short(ep, 1, sent, data.data() + 8,
                                                 static_cast<unsigned>(data.size() - 8));
                      }),
                      UCS_OK);
        } else {
            ASSERT_EQ(post([&] { return uct_ep_am_bcopy(ep, 1, pack, &p, 0); }),
                      ssize_t(data.size()));
        }
        if (sent % 7 == 0) {
            progress();
            ASSERT_NO_FATAL_FAILURE(check());
        }
    }
    ASSERT_TRUE(until([&] { return next + b().received.size() == count; }));
    ASSERT_NO_FATAL_FAILURE(check());
}

TEST_P(uct_am, progress_is_enabled_by_another_thread)
{
    constexpr unsigned both = UCT_PROGRESS_SEND | UCT_PROGRESS_RECV;
    uct_ep_h ep = a().connect(b());
    for (int round = 0; round < 300; ++round) {
        uct_iface_progress_disable(b().iface, both);
        std::atomic<bool> asked = false;
        std::thread other([&] {
            uct_iface_progress_enable(b().iface, both | UCT_PROGRESS_THREAD_SAFE);
            asked = true;
        });
        while (!asked) {
            progress();
        }
        other.join();
        packed p{"a message"};
        size_t n = b().received.size();
        ASSERT_EQ(post([&] { return uct_ep_am_bcopy(ep, 1, pack, &p, 0); }), ssize_t(9));
        ASSERT_TRUE(until([&] { return b().received.size() > n; }));
    }
    uct_iface_progress_disable(b().iface, both);
    uct_iface_progress_enable(b().iface, both | UCT_PROGRESS_THREAD_SAFE);
    uct_iface_progress_disable(b().iface, both); // before it was done
    uct_iface_progress_enable(b().iface, both);
}

// A large one that comes right behind a small one while the receiver looks.
TEST_P(uct_am, order_is_that_of_sending_between_threads)
{
    if (alone()) {
        GTEST_SKIP() << "self has one thread";
    }
    uct_ep_h ep = a().connect(b());
    const uint64_t count = GetParam() == std::string("shm") ? 200000 : 1000;
    std::atomic<bool> stop = false;
    std::thread sender([&] {
        for (uint64_t number = 0; number < count && !stop; ++number) {
            // Small ones until the receiver has counted the large one before.
            packed p{std::string(number % 20 ? 16 : 500, 'x')};
            memcpy(p.data.data(), &number, sizeof(number));
            while (uct_ep_am_bcopy(ep, 1, pack, &p, 0) == UCS_ERR_NO_RESOURCE && !stop) {
                uct_worker_progress(a().worker);
            }
            uct_worker_progress(a().worker);
        }
        while (!stop) { // some cores send only when they are polled
            uct_worker_progress(a().worker);
        }
    });
    uint64_t next = 0;
    bool in_order = true;
    auto end = std::chrono::steady_clock::now() + patience;
    while (in_order && next < count && std::chrono::steady_clock::now() < end) {
        uct_worker_progress(b().worker); // a's is the thread's
        for (const message &m : b().received) {
            uint64_t number;
            memcpy(&number, m.data.data(), sizeof(number));
            in_order = in_order && number == next++;
        }
        b().received.clear();
    }
    EXPECT_TRUE(in_order) << "message " << next;
    EXPECT_EQ(next, count);
    stop = true;
    sender.join();
}

TEST_P(uct_am, 200_alignment_is_kept)
{
    for (size_t align : {16ul, 64ul, 512ul}) {
        for (size_t offset : {0ul, 8ul}) {
            open({.rx_headroom = 24, .am_alignment = align, .am_align_offset = offset});
            uct_ep_h ep = a().connect(b());
            for (int i = 0; i < 60; ++i) {
                size_t length = i % 2 ? 200 : 50;
                packed p{pattern(length, 1)};
                ASSERT_EQ(post([&] { return uct_ep_am_bcopy(ep, 1, pack, &p, 0); }),
                          ssize_t(length));
                size_t n = b().received.size();
                ASSERT_TRUE(until([&] { return b().received.size() > n; }));
                EXPECT_EQ((reinterpret_cast<uintptr_t>(b().last_data) + offset) % align, 0u);
            }
        }
    }
}

TEST_P(uct_am, 200_wrong_alignment_is_refused)
{
    EXPECT_THROW(open({.am_alignment = 65}), std::exception);
    EXPECT_THROW(open({.am_alignment = 64, .am_align_offset = 64}), std::exception);
    open({});
}

TEST_P(uct_am, 201_handler_id_beyond_the_limit_is_refused)
{
    EXPECT_EQ(uct_iface_set_am_handler(a().iface, UCT_AM_ID_MAX, entity::on_message, nullptr, 0),
              UCS_ERR_INVALID_PARAM);
}

TEST_P(uct_am, 201_arguments_beyond_the_limits_are_refused)
{
    uct_ep_h ep = a().connect(b());
    constexpr size_t count = 30; // on-node the last ones go through a queue
    for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
        ASSERT_TRUE(until([&] { return b().received.size() == i + 1; }));
    }
    const auto &am = a().attr.cap.am;
    std::string data(am.max_zcopy + am.max_short + 1, 'x');
    auto too_long = static_cast<unsigned>(am.max_short - 7);
    EXPECT_EQ(uct_ep_am_short(ep, 1, 0, data.data(), too_long), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(uct_ep_am_short(ep, UCT_AM_ID_MAX, 0, nullptr, 0), UCS_ERR_INVALID_PARAM);
    packed p{"x"};
    EXPECT_EQ(uct_ep_am_bcopy(ep, UCT_AM_ID_MAX, pack, &p, 0), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(p.calls, 0);
    uct_iov_t iov{data.data(), am.max_zcopy + 1, UCT_MEM_HANDLE_NULL, 0, 1};
    EXPECT_EQ(uct_ep_am_zcopy(ep, 1, nullptr, 0, &iov, 1, 0, nullptr), UCS_ERR_INVALID_PARAM);
    iov.length = 1;
    auto header_length = static_cast<unsigned>(am.max_hdr + 1);
    EXPECT_EQ(uct_ep_am_zcopy(ep, 1, data.data(), header_length, &iov, 1, 0, nullptr),
              UCS_ERR_INVALID_PARAM);
    std::vector<uct_iov_t> many(am.max_iov + 1, iov);
    EXPECT_EQ(uct_ep_am_zcopy(ep, 1, nullptr, 0, many.data(), many.size(), 0, nullptr),
              UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(b().received.size(), count);
}

TEST_P(uct_am, 203_forms_do_not_overtake_each_other)
{
    uct_ep_h ep = a().connect(b());
    std::vector<std::unique_ptr<guard>> guards;
    std::string big = pattern(3000, 9);
    uct_mem_h memh = reg(a(), big);
    constexpr size_t count = 3000;
    for (uint64_t i = 0; i < count; ++i) {
        if (i % 3 == 0) {
            ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, i, nullptr, 0); }), UCS_OK);
        } else if (i % 3 == 1) {
            packed p{std::string(reinterpret_cast<char *>(&i), 8) + pattern(i % 6000, 1)};
            ASSERT_EQ(post([&] { return uct_ep_am_bcopy(ep, 1, pack, &p, 0); }),
                      static_cast<ssize_t>(p.data.size()));
        } else {
            auto g = std::make_unique<guard>();
            uct_iov_t iov{big.data(), big.size(), memh, 0, 1};
            ucs_status_t status =
                post([&] { return uct_ep_am_zcopy(ep, 1, &i, 8, &iov, 1, 0, &g->completion); });
            ASSERT_TRUE(status == UCS_OK || status == UCS_INPROGRESS);
            if (status == UCS_INPROGRESS) {
                guards.push_back(std::move(g));
            }
        }
    }
    ASSERT_TRUE(until([&] { return b().received.size() == count; })) << b().received.size();
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t header;
        memcpy(&header, b().received[i].data.data(), 8);
        ASSERT_EQ(header, i);
    }
    for (auto &g : guards) {
        ASSERT_TRUE(until([&] { return g->calls == 1; }));
        EXPECT_EQ(g->completion.status, UCS_OK);
    }
    dereg(a(), memh);
}

// Whatever an interface gathers must leave without another call of its user.
TEST_P(uct_am, a_burst_arrives_though_its_sender_does_nothing_more)
{
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return b().received.size() == 1; }));
    constexpr uint64_t count = 100;
    for (uint64_t i = 1; i < count; ++i) {
        if (i % 2) {
            ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, i, "payload", i % 8); }), UCS_OK);
        } else {
            packed p{std::string(reinterpret_cast<char *>(&i), 8) + pattern(i % 8, 1)};
            ASSERT_EQ(post([&] { return uct_ep_am_bcopy(ep, 2, pack, &p, 0); }),
                      static_cast<ssize_t>(p.data.size()));
        }
    }
    auto end = std::chrono::steady_clock::now() + patience;
    while (b().received.size() < count && std::chrono::steady_clock::now() < end) {
        uct_worker_progress(b().worker);
    }
    ASSERT_EQ(b().received.size(), count);
    for (uint64_t i = 1; i < count; ++i) {
        const message &m = b().received[i];
        std::string header(reinterpret_cast<char *>(&i), 8);
        EXPECT_EQ(m.id, i % 2 ? 1 : 2);
        EXPECT_EQ(m.data, header + (i % 2 ? std::string("payload", i % 8) : pattern(i % 8, 1)));
    }
}

// What announces what takes long may go with what follows it. The clock decides what follows: it
// stands still here, so none comes late.
TEST_P(uct_am, announcements_leave_together)
{
    if (std::string(GetParam()) != "tcp") {
        GTEST_SKIP() << "gathers nothing";
    }
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return b().received.size() == 1; }));
    packed p{"announcement"};
    constexpr unsigned count = 8;
    unsigned before = sends;
    {
        still_clock clock;
        for (unsigned i = 0; i < count; ++i) {
            ASSERT_EQ(uct_ep_am_bcopy(ep, 1, pack, &p, UCT_SEND_FLAG_BATCH),
                      static_cast<ssize_t>(p.data.size()));
        }
    }
    EXPECT_EQ(sends - before, 1u) << "the first goes at once, so that the receiver can begin";
    ASSERT_TRUE(until([&] { return b().received.size() == 1 + count; }));
    EXPECT_EQ(b().received.back().data, p.data);
}

// Another message takes those before it along at once.
TEST_P(uct_am, announcements_keep_nothing_back)
{
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return b().received.size() == 1; }));
    packed p{"announcement"};
    unsigned before = sends;
    for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(post([&] { return uct_ep_am_bcopy(ep, 2, pack, &p, UCT_SEND_FLAG_BATCH); }),
                  static_cast<ssize_t>(p.data.size()));
    }
    unsigned announced = sends - before;
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    if (std::string(GetParam()) == "tcp") {
        EXPECT_GT(sends - before, announced);
    }
    ASSERT_TRUE(until([&] { return b().received.size() == 5; }));
    for (size_t i = 1; i < 5; ++i) {
        EXPECT_EQ(b().received[i].id, i < 4 ? 2 : 1);
    }
}

TEST_P(uct_am, a_burst_of_empty_messages_arrives)
{
    uct_ep_h ep = a().connect(b());
    packed nothing{""};
    constexpr size_t count = 100;
    for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(post([&] { return uct_ep_am_bcopy(ep, 1, pack, &nothing, 0); }), 0);
    }
    EXPECT_TRUE(until([&] { return b().received.size() == count; })) << b().received.size();
}

TEST_P(uct_am, 217_both_ways_at_once)
{
    uct_ep_h there = a().connect(b());
    uct_ep_h back = alone() ? there : b().connect(a());
    constexpr size_t count = 2000;
    size_t sent[2] = {};
    auto end = std::chrono::steady_clock::now() + patience;
    while ((sent[0] < count || sent[1] < count) && std::chrono::steady_clock::now() < end) {
        int k = 0;
        for (uct_ep_h ep : {there, back}) {
            uint64_t header = sent[k];
            if (sent[k] < count &&
                posting([&] { return uct_ep_am_short(ep, 3, header, "x", 1); }) == UCS_OK) {
                ++sent[k];
            }
            ++k;
        }
        progress();
    }
    size_t expected = alone() ? 2 * count : count;
    EXPECT_TRUE(until([&] {
        return a().received.size() == expected && b().received.size() == expected;
    })) << a().received.size()
        << " " << b().received.size();
}

UCT_INSTANTIATE(uct_am);

} // namespace
} // namespace uct_conformance
