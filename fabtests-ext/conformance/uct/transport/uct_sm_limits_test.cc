// SPDX-License-Identifier: BSD-3-Clause
// Shared memory of our own where the system refuses something: the copy from and to the memory of
// another process, more descriptors. And a process that forks.
#include "fabtests-ext/common/forbid_copies.h"
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/conformance/common/uct_entity.h"
#include "fabtests-ext/conformance/common/uct_peer_process.h"

#include "uct/sm/address.h"

#include <cstddef>
#include <sys/syscall.h>

namespace uct_conformance {
namespace {

constexpr size_t large = 100000;
constexpr uint8_t tells_key = 1;
constexpr uint8_t tells_verdict = 2;
constexpr size_t number_at = large; // behind what is put and got

// The same place in a process and in its children.
alignas(64) char memory[large + 64];

// What a child does to the memory of the test.
class actor {
  public:
    explicit actor(entity &self) : self_(self), ep_(self.eps[0])
    {
        while (self_.received.empty()) {
            uct_worker_progress(self_.worker);
        }
        std::string packed_key = self_.received.back().data;
        if (uct_rkey_unpack(self_.component, packed_key.data(), &key_) != UCS_OK) {
            abort();
        }
    }

    // Which step fails, or 0.
    int put_packed(unsigned seed)
    {
        packed p{pattern(1000, seed)};
        ssize_t n = uct_ep_put_bcopy(ep_, pack, &p, at(0), key_.rkey);
        if (n != 1000 || p.calls != 1) {
            return 1;
        }
        flush();
        return get(1000) == p.data ? 0 : 2;
    }
    int move_all()
    {
        std::string data = pattern(large, 3);
        uct_iov_t iov = {data.data(), data.size(), nullptr, 0, 1};
        if (!ends([&](uct_completion_t *c) {
                return uct_ep_put_zcopy(ep_, &iov, 1, at(0), key_.rkey, c);
            })) {
            return 3;
        }
        if (get(large) != data) {
            return 4;
        }
        uint64_t before = 1;
        if (!ends([&](uct_completion_t *c) {
                return uct_ep_atomic64_fetch(ep_, UCT_ATOMIC_OP_ADD, 5, &before, at(number_at),
                                             key_.rkey, c);
            })) {
            return 5;
        }
        return before == 0 ? 0 : 6;
    }
    void tell(int step)
    {
        while (uct_ep_am_short(ep_, tells_verdict, static_cast<uint64_t>(step), nullptr, 0) ==
               UCS_ERR_NO_RESOURCE) {
            uct_worker_progress(self_.worker);
        }
    }

  private:
    static uint64_t at(size_t offset) { return reinterpret_cast<uint64_t>(memory + offset); }
    std::string get(size_t length)
    {
        std::string data(length, 0);
        uct_iov_t iov = {data.data(), data.size(), nullptr, 0, 1};
        bool good = ends([&](uct_completion_t *c) {
            return uct_ep_get_zcopy(ep_, &iov, 1, at(0), key_.rkey, c);
        });
        return good ? data : "";
    }
    template <class Post>
    bool ends(Post &&post_it)
    {
        guard g;
        ucs_status_t status;
        while ((status = post_it(&g.completion)) == UCS_ERR_NO_RESOURCE) {
            uct_worker_progress(self_.worker);
        }
        while (status == UCS_INPROGRESS && g.calls == 0) {
            uct_worker_progress(self_.worker);
        }
        flush();
        return status == UCS_OK || (status == UCS_INPROGRESS && g.completion.status == UCS_OK);
    }
    void flush()
    {
        while (uct_ep_flush(ep_, 0, nullptr) != UCS_OK) {
            uct_worker_progress(self_.worker);
        }
    }

    entity &self_;
    uct_ep_h ep_;
    uct_rkey_bundle_t key_{};
};

class uct_sm_limits : public testing::Test {
  protected:
    // The step that failed in the child; -1: it did not say.
    int verdict(peer_process &child)
    {
        memset(memory, 0, sizeof(memory));
        entity self("sm", {});
        entity::address where = child.where();
        child.tell(self);
        uct_ep_h ep = self.connect(where);
        uct_mem_h memh;
        std::string key(self.md_attr.rkey_packed_size, 0);
        EXPECT_EQ(uct_md_mem_reg(self.md, memory, sizeof(memory), UCT_MD_MEM_ACCESS_ALL, &memh),
                  UCS_OK);
        EXPECT_EQ(uct_md_mkey_pack(self.md, memh, key.data()), UCS_OK);
        packed p{key};
        EXPECT_EQ(uct_ep_am_bcopy(ep, tells_key, pack, &p, 0), static_cast<ssize_t>(key.size()));
        auto end = std::chrono::steady_clock::now() + patience;
        while (self.received.empty() && std::chrono::steady_clock::now() < end) {
            uct_worker_progress(self.worker);
        }
        int64_t step = -1;
        if (!self.received.empty()) {
            memcpy(&step, self.received[0].data.data(), sizeof(step));
        }
        child.end();
        EXPECT_EQ(uct_md_mem_dereg(self.md, memh), UCS_OK);
        return static_cast<int>(step);
    }
};

TEST_F(uct_sm_limits, memory_is_reached_where_copies_are_forbidden)
{
    peer_process child("sm", {}, [](entity &self, const entity::address &) {
        bool forbidden = forbid_copies();
        actor acts(self);
        int failed = forbidden ? acts.put_packed(1) : 9;
        acts.tell(failed != 0 ? failed : acts.move_all());
        return true;
    });
    EXPECT_EQ(verdict(child), 0);
}

TEST_F(uct_sm_limits, a_put_is_packed_once_though_copies_become_forbidden)
{
    peer_process child("sm", {}, [](entity &self, const entity::address &) {
        actor acts(self);
        int failed = acts.put_packed(1);
        failed = failed == 0 && !forbid_copies() ? 9 : failed;
        acts.tell(failed != 0 ? failed : acts.put_packed(2));
        return true;
    });
    EXPECT_EQ(verdict(child), 0);
}

// Peers that sleep cost a bell each, of which so many are kept, others nothing.
TEST_F(uct_sm_limits, peers_take_no_descriptors)
{
    constexpr size_t peers_of_a_process = 100;
    constexpr size_t most_bells = 64;
    std::vector<int> ready;
    std::vector<std::unique_ptr<peer_process>> processes;
    int pipes[3][2];
    for (auto &ends : pipes) {
        ASSERT_EQ(pipe(ends), 0);
        processes.push_back(std::make_unique<peer_process>(
            "sm", entity::options{}, [&ends](entity &, const entity::address &) {
                std::vector<std::unique_ptr<entity>> all;
                for (size_t i = 0; i < peers_of_a_process; ++i) {
                    all.push_back(std::make_unique<entity>("sm", entity::options{}));
                    entity::address a = all.back()->where();
                    for (const auto *part : {&a.device, &a.iface}) {
                        if (write(ends[1], part->data(), part->size()) !=
                            static_cast<ssize_t>(part->size())) {
                            return false;
                        }
                    }
                    uct_iface_event_arm(all.back()->iface, UCT_EVENT_RECV);
                }
                for (;;) {
                    pause();
                }
            }));
    }
    entity self("sm", {});
    entity::address format = self.where();
    std::vector<uct_ep_h> eps;
    size_t before = 0;
    for (size_t i = 0; i < processes.size(); ++i) {
        processes[i]->where();
        processes[i]->tell(self);
        for (size_t n = 0; n < peers_of_a_process; ++n) {
            for (auto *part : {&format.device, &format.iface}) {
                ASSERT_EQ(read(pipes[i][0], part->data(), part->size()),
                          static_cast<ssize_t>(part->size()));
            }
            before = before ? before : open_files();
            eps.push_back(self.connect(format));
            ASSERT_NE(eps.back(), nullptr);
        }
    }
    EXPECT_EQ(open_files(), before) << "attached";
    for (uct_ep_h ep : eps) {
        EXPECT_EQ(uct_ep_am_short(ep, 1, 0, nullptr, 0), UCS_OK);
    }
    EXPECT_LE(open_files(), before + most_bells) << "having sent to each";
    for (auto &p : processes) {
        p->end();
    }
    for (auto &ends : pipes) {
        close(ends[0]);
        close(ends[1]);
    }
}

// A child that does not exec leaves everything of its parent's as it is, also in exit().
TEST_F(uct_sm_limits, a_child_that_does_not_exec_disturbs_nothing)
{
    entity sender("sm", {});
    entity receiver("sm", {});
    uct_ep_h ep = sender.connect(receiver);
    uct::sm::iface_address about;
    memcpy(&about, receiver.iface_address.data(), sizeof(about));
    ASSERT_EQ(uct_ep_am_short(ep, 1, 1, nullptr, 0), UCS_OK);
    pid_t child = fork();
    if (child == 0) {
        exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_TRUE(uct::sm::is_there(about));
    for (uint64_t n = 2; n <= 1000; ++n) {
        ASSERT_EQ(uct_ep_am_short(ep, 1, n, nullptr, 0), UCS_OK) << n;
        uct_worker_progress(receiver.worker);
    }
    uct_worker_progress(receiver.worker);
    EXPECT_EQ(receiver.received.size(), 1000u);
    EXPECT_TRUE(receiver.errors.empty());
    EXPECT_TRUE(sender.errors.empty());
}

} // namespace
} // namespace uct_conformance
