// SPDX-License-Identifier: BSD-3-Clause
// UCT over cores that are as strict as the fabrics of large machines (fabtests-ext/strict): that a
// case comes to its end says that nothing was done which the fabric forbids.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/conformance/common/uct_entity.h"

namespace uct_conformance {
namespace {

const bool found_by_path = use_strict_cores();

class uct_strict : public testing::TestWithParam<std::string> {
  protected:
    uct_strict() : a(GetParam(), {}), b(GetParam(), {}), ep(a.connect(b)) {}

    void progress()
    {
        uct_worker_progress(a.worker);
        uct_worker_progress(b.worker);
    }
    template <class Call>
    auto until_posted(Call &&call)
    {
        auto ret = call();
        while (ret == UCS_ERR_NO_RESOURCE) {
            progress();
            ret = call();
        }
        return ret;
    }
    void send_bcopy(std::string text)
    {
        auto pack = [](void *to, void *arg) {
            auto *from = static_cast<std::string *>(arg);
            memcpy(to, from->data(), from->size());
            return from->size();
        };
        ssize_t sent = until_posted([&] { return uct_ep_am_bcopy(ep, 1, pack, &text, 0); });
        EXPECT_EQ(sent, static_cast<ssize_t>(text.size()));
    }
    void wait_for(size_t messages)
    {
        auto end = std::chrono::steady_clock::now() + patience;
        while (b.received.size() < messages && std::chrono::steady_clock::now() < end) {
            progress();
        }
        ASSERT_EQ(b.received.size(), messages);
    }

    entity a;
    entity b;
    uct_ep_h ep;
};

TEST_P(uct_strict, messages_arrive_in_order)
{
    constexpr size_t count = 2000;
    auto text = [](size_t i) {
        return std::to_string(i) + std::string(i % 3 == 0 ? 2000 : i % 50, '.');
    };
    for (size_t i = 0; i < count; ++i) {
        send_bcopy(text(i));
    }
    wait_for(count);
    for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(b.received[i].data, text(i));
    }
}

class uct_strict_efa : public uct_strict {};

// The bare device, which stands first in the list, has neither.
TEST_P(uct_strict_efa, the_device_is_opened_by_what_it_can_do)
{
    EXPECT_TRUE(a.has(UCT_IFACE_FLAG_TAG_EAGER_BCOPY));
    EXPECT_TRUE(a.has(UCT_IFACE_FLAG_ATOMIC_DEVICE));
}

auto name = [](const auto &info) { return info.param; };
INSTANTIATE_TEST_SUITE_P(over, uct_strict, testing::Values("cxi", "efa", "psm3"), name);
INSTANTIATE_TEST_SUITE_P(over, uct_strict_efa, testing::Values("efa"), name);

} // namespace
} // namespace uct_conformance
