// SPDX-License-Identifier: BSD-3-Clause
// What only shared memory of our own has to stand: senders that are stopped or killed in the middle
// of a message, addresses that are forged, a table of senders that is full.
#include "fabtests-ext/conformance/common/uct_entity.h"
#include "fabtests-ext/conformance/common/uct_peer_process.h"

#include "ucs/sys.h"
#include "uct/sm/address.h"
#include "uct/sm/peer.h"

#include <dirent.h>
#include <set>

namespace uct_conformance {
namespace {

using uct::sm::iface_address;

iface_address parse(const entity::address &a)
{
    iface_address about;
    memcpy(&about, a.iface.data(), sizeof(about));
    return about;
}

std::unique_ptr<uct::sm::outbox> attach(const iface_address &to)
{
    int fd = uct::open_memory({to.pid, to.inbox_fd}, to.nonce, uct::sm::inbox::size());
    auto box = std::make_unique<uct::sm::outbox>(
        fd, to.nonce, getpid(), static_cast<uint32_t>(ucs::process_birth(getpid())));
    close(fd);
    return box;
}

// Claims as many slots as it says, each as a sender of its own, and publishes none.
bool claim(const entity::address &us, unsigned count)
{
    static std::vector<std::unique_ptr<uct::sm::outbox>> boxes;
    for (unsigned i = 0; i < count; ++i) {
        boxes.push_back(attach(parse(us)));
        if (!boxes.back()->claim()) {
            return false;
        }
    }
    return true;
}

class uct_sm : public testing::Test {
  protected:
    // Sends until so many more have arrived; false when that takes too long.
    bool pass(entity &from, uct_ep_h ep, entity &to, size_t count)
    {
        size_t before = to.received.size();
        size_t sent = 0;
        auto end = std::chrono::steady_clock::now() + patience;
        while (to.received.size() < before + count && std::chrono::steady_clock::now() < end) {
            if (sent < count &&
                posting([&] { return uct_ep_am_short(ep, 1, sent, nullptr, 0); }) == UCS_OK) {
                ++sent;
            }
            uct_worker_progress(from.worker);
            uct_worker_progress(to.worker);
        }
        return to.received.size() >= before + count;
    }
};

TEST_F(uct_sm, a_sender_killed_in_the_middle_holds_nobody_up)
{
    peer_process dies("sm", {}, [](entity &, const entity::address &us) { return claim(us, 8); });
    entity receiver("sm", {});
    entity sender("sm", {});
    dies.where();
    dies.tell(receiver);
    ASSERT_TRUE(dies.report());
    uct_ep_h ep = sender.connect(receiver);
    EXPECT_TRUE(pass(sender, ep, receiver, 1000)) << "while it lives";
    dies.end();
    EXPECT_TRUE(pass(sender, ep, receiver, 1000));
    EXPECT_TRUE(receiver.errors.empty());
}

// Every slot of the ring is claimed by a process that dies: nothing fits until the deaths are
// noticed.
TEST_F(uct_sm, the_claims_of_the_dead_are_free_again)
{
    peer_process dies("sm", {}, [](entity &, const entity::address &us) {
        return claim(us, uct::sm::slot_count);
    });
    entity receiver("sm", {});
    entity sender("sm", {});
    dies.where();
    dies.tell(receiver);
    ASSERT_TRUE(dies.report());
    uct_ep_h ep = sender.connect(receiver);
    EXPECT_EQ(uct_ep_am_short(ep, 1, 0, nullptr, 0), UCS_ERR_NO_RESOURCE);
    dies.end();
    EXPECT_TRUE(pass(sender, ep, receiver, 1000));
}

TEST_F(uct_sm, a_stopped_sender_is_not_taken_for_dead)
{
    peer_process stops("sm", {}, [](entity &self, const entity::address &) {
        return uct_ep_am_short(self.eps[0], 2, 7, nullptr, 0) == UCS_OK;
    });
    entity receiver("sm", {});
    entity sender("sm", {});
    entity::address where = stops.where();
    uct_ep_h back = receiver.connect(where);
    stops.tell(receiver);
    ASSERT_TRUE(stops.report());
    stops.stop();
    uct_ep_h ep = sender.connect(receiver);
    EXPECT_TRUE(pass(sender, ep, receiver, 1000));
    EXPECT_EQ(uct_ep_check(back, 0, nullptr), UCS_OK);
    uct_worker_progress(receiver.worker);
    EXPECT_TRUE(receiver.errors.empty());
    stops.end();
    auto end = std::chrono::steady_clock::now() + patience;
    while (receiver.errors.empty() && std::chrono::steady_clock::now() < end) {
        uct_worker_progress(receiver.worker);
    }
    ASSERT_EQ(receiver.errors.size(), 1u);
    EXPECT_EQ(receiver.errors[0].first, back);
}

// Its memory lives on for a sender in its own process, and other processes must not be misled.
TEST_F(uct_sm, a_closed_interface_is_gone_though_its_inbox_is_held)
{
    entity sender("sm", {});
    auto receiver = std::make_unique<entity>("sm", entity::options{});
    iface_address about = parse(receiver->where());
    uct_ep_h ep = sender.connect(*receiver);
    EXPECT_TRUE(pass(sender, ep, *receiver, 10));
    EXPECT_TRUE(uct::sm::is_there(about));
    receiver.reset();
    EXPECT_FALSE(uct::sm::is_there(about));
}

TEST_F(uct_sm, a_full_table_of_senders_refuses_the_next)
{
    entity receiver("sm", {});
    entity sender("sm", {});
    std::shared_ptr<uct::sm::inbox> box =
        uct::sm::local_inboxes::find(parse(receiver.where()).nonce);
    ASSERT_NE(box, nullptr);
    std::vector<std::unique_ptr<uct::sm::outbox>> others;
    for (unsigned i = 0; i < uct::sm::max_senders; ++i) {
        others.push_back(std::make_unique<uct::sm::outbox>(*box, getpid(), 1));
    }
    ucs_status_t status = UCS_OK;
    EXPECT_EQ(sender.try_connect(receiver, &status), nullptr);
    EXPECT_EQ(status, UCS_ERR_EXCEEDS_LIMIT);
    others.pop_back();
    uct_ep_h ep = sender.connect(receiver);
    EXPECT_TRUE(pass(sender, ep, receiver, 10));
}

TEST_F(uct_sm, two_hundred_senders_get_through)
{
    entity receiver("sm", {});
    std::vector<std::unique_ptr<entity>> senders;
    std::vector<uct_ep_h> eps;
    for (int i = 0; i < 200; ++i) {
        senders.push_back(std::make_unique<entity>("sm", entity::options{}));
        eps.push_back(senders.back()->connect(receiver));
    }
    constexpr size_t rounds = 20;
    for (size_t r = 0; r < rounds; ++r) {
        for (uct_ep_h ep : eps) {
            while (posting([&] { return uct_ep_am_short(ep, 1, r, nullptr, 0); }) ==
                   UCS_ERR_NO_RESOURCE) {
                uct_worker_progress(receiver.worker);
            }
        }
    }
    auto end = std::chrono::steady_clock::now() + patience;
    while (receiver.received.size() < rounds * eps.size() &&
           std::chrono::steady_clock::now() < end) {
        uct_worker_progress(receiver.worker);
    }
    EXPECT_EQ(receiver.received.size(), rounds * eps.size());
}

// An address is a claim.
TEST_F(uct_sm, forged_addresses_are_refused)
{
    peer_process other("sm", {}, [](entity &, const entity::address &) { return true; });
    entity self("sm", {});
    entity::address real = other.where();
    auto reachable = [&](const entity::address &a) {
        return uct_iface_is_reachable(self.iface,
                                      reinterpret_cast<const uct_device_addr_t *>(a.device.data()),
                                      reinterpret_cast<const uct_iface_addr_t *>(a.iface.data()));
    };
    ASSERT_TRUE(reachable(real));
    std::vector<std::function<void(iface_address &)>> forgeries = {
        [](iface_address &a) { a.version ^= 1; },
        [](iface_address &a) { a.kind ^= 1; },
        [](iface_address &a) { a.pid = 1; },
        [](iface_address &a) { a.pid = static_cast<uint32_t>(getpid()); },
        [](iface_address &a) { a.pid = 0x7fffffff; },
        [](iface_address &a) { a.nonce ^= 1; },
        [](iface_address &a) { a.inbox_fd = 0; },
        [](iface_address &a) { a.inbox_fd = a.bell_fd; },
        [](iface_address &a) { a.inbox_fd = ~0u; },
    };
    for (size_t i = 0; i < forgeries.size(); ++i) {
        iface_address about = parse(real);
        forgeries[i](about);
        entity::address forged = real;
        memcpy(forged.iface.data(), &about, sizeof(about));
        EXPECT_FALSE(reachable(forged)) << i;
        ucs_status_t status = UCS_OK;
        EXPECT_EQ(self.try_connect(forged, &status), nullptr) << i;
        EXPECT_TRUE(status == UCS_ERR_INVALID_ADDR || status == UCS_ERR_UNREACHABLE) << i;
    }
    for (size_t byte = 0; byte < sizeof(uct::sm::device_address); ++byte) {
        entity::address forged = real;
        forged.device[byte] = static_cast<char>(forged.device[byte] ^ 1);
        EXPECT_FALSE(reachable(forged)) << byte;
    }
}

std::set<std::string> names_in(const char *folder)
{
    std::set<std::string> names;
    DIR *dir = opendir(folder);
    while (const dirent *entry = dir ? readdir(dir) : nullptr) {
        names.insert(entry->d_name);
    }
    if (dir) {
        closedir(dir);
    }
    return names;
}

TEST_F(uct_sm, nothing_has_a_name_in_a_file_system)
{
    std::string own = std::to_string(getpid());
    auto of_ours = [&] {
        size_t count = 0;
        for (const char *folder : {"/dev/shm", "/tmp"}) {
            for (const std::string &name : names_in(folder)) {
                count += name.find(own) != std::string::npos;
            }
        }
        return count;
    };
    size_t before = of_ours();
    entity a("sm", {});
    entity b("sm", {});
    uct_ep_h ep = a.connect(b);
    EXPECT_TRUE(pass(a, ep, b, 10));
    EXPECT_EQ(of_ours(), before);
}

} // namespace
} // namespace uct_conformance
