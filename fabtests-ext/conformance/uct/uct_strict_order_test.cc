// SPDX-License-Identifier: BSD-3-Clause
// Order of messages over cores that keep none, and over one where we are told to supply it.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/conformance/common/uct_entity.h"

#include "uct/ofi/core/iface.h"

#include <random>

namespace uct_conformance {
namespace {

constexpr unsigned workers = 4;
constexpr size_t most_posted = 256; // receives of an interface, by default

// What messages are made of.
struct content {
    std::string bytes;

    content() : bytes(64 << 10, ' ')
    {
        std::mt19937 random(11);
        for (char &c : bytes) {
            c = static_cast<char>(random());
        }
    }
    const char *of(uint32_t number) const { return bytes.data() + number % 1009; }

    static const content &get()
    {
        static const content all;
        return all;
    }
};

// The first 8 bytes of each message.
struct head {
    uint32_t number; // from this sender to this receiver
    uint16_t length; // of what follows
    uint8_t sender;
    uint8_t receiver;
};
static_assert(sizeof(head) == 8);

class group {
  public:
    explicit group(const std::string &transport)
    {
        for (unsigned i = 0; i < workers; ++i) {
            members[i].about = std::make_unique<entity>(transport, entity::options());
            members[i].index = static_cast<uint8_t>(i);
            entity &e = *members[i].about;
            for (uint8_t id = 0; id < 3; ++id) {
                EXPECT_EQ(uct_iface_set_am_handler(e.iface, id, on_message, &members[i], 0),
                          UCS_OK);
            }
            auto *bytes = const_cast<char *>(content::get().bytes.data());
            EXPECT_EQ(uct_md_mem_reg(e.md, bytes, content::get().bytes.size(),
                                     UCT_MD_MEM_ACCESS_LOCAL_READ, &members[i].memh),
                      UCS_OK);
        }
        for (member &from : members) {
            for (unsigned to = 0; to < workers; ++to) {
                from.eps[to] = from.about->connect(*members[to].about);
            }
        }
    }
    ~group()
    {
        for (member &m : members) {
            for (uct_ep_h ep : m.eps) {
                m.about->destroy(ep);
            }
            EXPECT_EQ(uct_md_mem_dereg(m.about->md, m.memh), UCS_OK);
        }
    }

    void send(unsigned from, unsigned to, unsigned kind, size_t length)
    {
        member &m = members[from];
        head h{m.sent[to]++, static_cast<uint16_t>(length), static_cast<uint8_t>(from),
               static_cast<uint8_t>(to)};
        const char *payload = content::get().of(h.number);
        ssize_t ret;
        for (;;) {
            ret = kind == 0   ? send_short(m, to, h, payload, length)
                  : kind == 1 ? send_bcopy(m, to, h, payload)
                              : send_zcopy(m, to, h, payload, length);
            if (ret != UCS_ERR_NO_RESOURCE) {
                break;
            }
            progress();
        }
        ASSERT_GE(ret, 0) << ucs_status_string(static_cast<ucs_status_t>(ret));
    }

    // What is held is less than a window of each sender, and all that a receiver has beside it is
    // posted: what comes is handled or held.
    void progress()
    {
        for (member &m : members) {
            uct_worker_progress(m.about->worker);
            const auto &receiver = *static_cast<const uct::ofi::iface *>(m.about->iface);
            size_t held = receiver.receives_held();
            most_held = std::max(most_held, held);
            ASSERT_LE(held, workers * (uct::ofi::order_window - 1));
            ASSERT_LE(receiver.receives_used(), most_posted + held);
        }
    }
    size_t arrived() const
    {
        size_t count = 0;
        for (const member &m : members) {
            count += m.arrived;
        }
        return count;
    }
    size_t largest(unsigned kind) const
    {
        const uct_iface_attr_t &a = members[0].about->attr;
        return (kind == 0   ? a.cap.am.max_short
                : kind == 1 ? a.cap.am.max_bcopy
                            : a.cap.am.max_zcopy) -
               sizeof(head);
    }

    size_t most_held = 0; // of a receiver

  private:
    struct member {
        std::unique_ptr<entity> about;
        uint8_t index;
        uct_mem_h memh = nullptr;
        uct_ep_h eps[workers];
        uint32_t sent[workers] = {};
        uint32_t next[workers] = {};
        size_t arrived = 0;
    };

    struct source {
        head h;
        const char *payload;
    };

    static ssize_t send_short(member &m, unsigned to, const head &h, const char *payload,
                              size_t length)
    {
        uint64_t first;
        memcpy(&first, &h, sizeof(first));
        return uct_ep_am_short(m.eps[to], 0, first, payload, static_cast<unsigned>(length));
    }
    static ssize_t send_bcopy(member &m, unsigned to, const head &h, const char *payload)
    {
        source s{h, payload};
        auto pack = [](void *dest, void *arg) {
            auto *from = static_cast<source *>(arg);
            memcpy(dest, &from->h, sizeof(head));
            memcpy(static_cast<char *>(dest) + sizeof(head), from->payload, from->h.length);
            return sizeof(head) + from->h.length;
        };
        return uct_ep_am_bcopy(m.eps[to], 1, pack, &s, 0);
    }
    // In two pieces.
    static ssize_t send_zcopy(member &m, unsigned to, const head &h, const char *payload,
                              size_t length)
    {
        auto *at = const_cast<char *>(payload);
        uct_iov_t iov[] = {{at, length / 3, m.memh, 0, 1},
                           {at + length / 3, length - length / 3, m.memh, 0, 1}};
        ucs_status_t status = uct_ep_am_zcopy(m.eps[to], 2, &h, sizeof(h), iov, 2, 0, nullptr);
        return status == UCS_INPROGRESS ? UCS_OK : status;
    }

    static ucs_status_t on_message(void *arg, void *data, size_t length, unsigned)
    {
        auto *self = static_cast<member *>(arg);
        head h;
        EXPECT_GE(length, sizeof(h));
        memcpy(&h, data, sizeof(h));
        EXPECT_EQ(h.receiver, self->index);
        EXPECT_LT(h.sender, workers);
        EXPECT_EQ(h.number, self->next[h.sender]++) << "from " << unsigned(h.sender);
        EXPECT_EQ(length, sizeof(h) + h.length);
        EXPECT_EQ(
            memcmp(static_cast<char *>(data) + sizeof(h), content::get().of(h.number), h.length),
            0);
        ++self->arrived;
        return UCS_OK;
    }

    member members[workers];
};

// Four workers send each other messages of every kind and many sizes: none is lost, doubled,
// overtaken or changed. Returns how many a receiver held at most.
size_t send_and_check(const std::string &transport, size_t count)
{
    group all(transport);
    std::mt19937 random(5);
    for (size_t i = 0; i < count && !testing::Test::HasFailure(); ++i) {
        unsigned kind = random() % 3;
        size_t length = random() % 16 == 0 ? random() % (all.largest(kind) + 1)
                                           : random() % std::min<size_t>(all.largest(kind), 256);
        all.send(random() % workers, random() % workers, kind, length);
    }
    auto end = std::chrono::steady_clock::now() + patience;
    while (all.arrived() < count && !testing::Test::HasFailure() &&
           std::chrono::steady_clock::now() < end) {
        all.progress();
    }
    EXPECT_EQ(all.arrived(), count);
    return all.most_held;
}

class uct_strict_order : public testing::TestWithParam<std::string> {};

TEST_P(uct_strict_order, messages_of_every_kind_between_four_workers)
{
    const char *asked = getenv("UCXLIKE_TEST_MESSAGES");
    const size_t count = asked ? strtoul(asked, nullptr, 10) : sanitized ? 30'000 : 100'000;
    EXPECT_GT(send_and_check(GetParam(), count), 0u);
}

INSTANTIATE_TEST_SUITE_P(over, uct_strict_order, testing::Values("opx", "worst"), core_name);

// Over cores that keep order themselves: one on which a strict one stands, and the one of tcp.
class uct_forced_order : public testing::TestWithParam<std::string> {};

TEST_P(uct_forced_order, messages_of_every_kind_between_four_workers)
{
    if (leaks_by_itself(GetParam())) {
        GTEST_SKIP() << "libfabric before 1.18 does not free its net's endpoints";
    }
    environment forced(GetParam() == "psm3" ? "UCX_PSM3_SEQUENCE" : "UCX_TCPRDM_SEQUENCE", "y");
    send_and_check(GetParam(), 20'000);
}

INSTANTIATE_TEST_SUITE_P(over, uct_forced_order, testing::Values("psm3", "tcprdm"), core_name);

TEST(uct_forced_order_of_one, interfaces_that_differ_in_it_refuse_each_other)
{
    entity plain("psm3", {});
    environment forced("UCX_PSM3_SEQUENCE", "y");
    entity numbered("psm3", {});
    for (auto [from, to] : {std::pair(&plain, &numbered), std::pair(&numbered, &plain)}) {
        auto *device = reinterpret_cast<uct_device_addr_t *>(to->device_address.data());
        auto *address = reinterpret_cast<uct_iface_addr_t *>(to->iface_address.data());
        EXPECT_FALSE(uct_iface_is_reachable(from->iface, device, address));
        ucs_status_t status;
        EXPECT_EQ(from->try_connect(*to, &status), nullptr);
        EXPECT_EQ(status, UCS_ERR_INVALID_ADDR);
    }
}

// Messages to a peer whose last endpoint was destroyed are still on their way when it gets
// another: these do not overtake those, and put none of them out of place.
TEST_P(uct_strict_order, a_peer_that_comes_back_gets_what_was_sent_before)
{
    environment never("FI_STRICT_EAGAIN", "0");
    entity a(GetParam(), {});
    entity b(GetParam(), {});
    constexpr size_t each = 20;
    uint64_t number = 0;
    for (int time = 0; time < 3; ++time) {
        uct_ep_h ep = a.connect(b);
        for (size_t i = 0; i < each; ++i) {
            ASSERT_EQ(uct_ep_am_short(ep, 1, number++, nullptr, 0), UCS_OK);
        }
        a.destroy(ep);
    }
    auto end = std::chrono::steady_clock::now() + patience;
    while (b.received.size() < 3 * each && std::chrono::steady_clock::now() < end) {
        uct_worker_progress(a.worker);
        uct_worker_progress(b.worker);
    }
    ASSERT_EQ(b.received.size(), 3 * each);
    for (uint64_t i = 0; i < 3 * each; ++i) {
        ASSERT_EQ(memcmp(b.received[i].data.data(), &i, sizeof(i)), 0) << i;
    }
}

// The core would match them before they are in order.
TEST_P(uct_strict_order, tagged_messages_are_left_to_the_layers_above)
{
    entity a(GetParam(), {});
    EXPECT_FALSE(a.has(UCT_IFACE_FLAG_TAG_EAGER_BCOPY));
}

} // namespace
} // namespace uct_conformance
