// SPDX-License-Identifier: BSD-3-Clause
// The inbox of sm: order and content with any number of senders, senders that stop or die between
// claim and publication, sleeping without a lost wake-up, and memory that another process has
// written to.
#include "ucs/error.h"
#include "ucs/sys.h"
#include "uct/sm/inbox.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <memory>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#ifdef __SANITIZE_THREAD__
constexpr unsigned rounds = 20000;
#else
constexpr unsigned rounds = 1000000;
#endif

namespace uct::sm {
namespace {

struct text {
    uint8_t id;
    std::string data;
};

// Takes one message, as an interface does.
bool take(inbox &from, text *to)
{
    inbox::message m;
    if (!from.next(&m)) {
        return false;
    }
    to->id = m.id;
    to->data.assign(m.data, m.length);
    from.release(m);
    from.publish_position();
    return true;
}

// Claims passed over by patience alone count as looks.
bool take_soon(inbox &from, text *to)
{
    for (unsigned n = 0; n <= 2 * claim_patience; ++n) {
        if (take(from, to)) {
            return true;
        }
    }
    return false;
}

// An open claim keeps a receiver awake for as long.
bool arm_soon(inbox &in)
{
    for (unsigned n = 0; n <= 2 * claim_patience; ++n) {
        if (in.arm()) {
            return true;
        }
    }
    return false;
}

bool send(outbox &to, uint8_t id, const std::string &data, bool *sleeps = nullptr)
{
    if (!to.claim()) {
        return false;
    }
    bool in_frame = data.size() > inline_size;
    memcpy(in_frame ? to.frame() : to.small(), data.data(), data.size());
    bool rings = to.publish(id, static_cast<uint32_t>(data.size()), in_frame);
    if (sleeps) {
        *sleeps = rings;
    }
    return true;
}

constexpr auto nobody_is_alive = [](pid_t, uint32_t) { return false; };
constexpr auto alive = [](pid_t pid, uint32_t) { return kill(pid, 0) == 0; };

TEST(uct_inbox, carries_small_and_large_messages_in_order)
{
    inbox in;
    outbox out(in, getpid(), 1);
    text got;
    EXPECT_FALSE(take(in, &got));
    for (unsigned n = 0; n < 3 * slot_count; ++n) {
        std::string data((n * 977) % (segment_size + 1), static_cast<char>('a' + n % 26));
        ASSERT_TRUE(send(out, static_cast<uint8_t>(n % 32), data));
        ASSERT_TRUE(take(in, &got));
        EXPECT_EQ(got.id, n % 32);
        EXPECT_EQ(got.data, data);
    }
    EXPECT_FALSE(take(in, &got));
    EXPECT_EQ(in.damaged(), 0u);
}

TEST(uct_inbox, refuses_a_message_when_full_and_takes_it_when_there_is_room)
{
    inbox in;
    outbox one(in, getpid(), 1), two(in, getpid(), 1);
    for (unsigned n = 0; n < slot_count; ++n) {
        ASSERT_TRUE(send(n % 2 ? one : two, 1, std::to_string(n)));
    }
    EXPECT_FALSE(send(one, 1, "x"));
    EXPECT_FALSE(send(two, 1, "x"));
    text got;
    ASSERT_TRUE(take(in, &got));
    EXPECT_EQ(got.data, "0");
    EXPECT_TRUE(send(one, 1, "last"));
    EXPECT_FALSE(send(two, 1, "x"));
    for (unsigned n = 1; n < slot_count; ++n) {
        ASSERT_TRUE(take(in, &got));
        EXPECT_EQ(got.data, std::to_string(n));
    }
    ASSERT_TRUE(take(in, &got));
    EXPECT_EQ(got.data, "last");
}

// As when the processor changes between receiver and sender: so often the sender tries, and all
// that it sends is taken. Returns how much that was.
unsigned send_to_a_busy_receiver(inbox &in, outbox &from, unsigned tries)
{
    unsigned sent = 0;
    text got;
    for (unsigned n = 0; n < tries; ++n) {
        sent += send(from, 1, "x");
        while (take(in, &got)) {
        }
    }
    return sent;
}

// Senders that wait for room, since others have filled the inbox.
void find_no_room(inbox &in, outbox &first, const std::vector<outbox *> &waiting)
{
    while (send(first, 1, "x")) {
    }
    for (outbox *one : waiting) {
        for (unsigned n = 0; n < share::vain_tries; ++n) {
            ASSERT_FALSE(send(*one, 1, "x"));
        }
    }
    text got;
    while (take(in, &got)) {
    }
}

// One of them runs in every second slice, the others share the rest.
TEST(uct_inbox, a_sender_that_runs_more_often_gets_no_more_than_its_share_while_others_wait)
{
    inbox in;
    std::vector<std::unique_ptr<outbox>> senders;
    std::vector<outbox *> others;
    for (unsigned i = 0; i < 20; ++i) {
        senders.push_back(std::make_unique<outbox>(in, getpid(), 1));
        if (i > 0) {
            others.push_back(senders.back().get());
        }
    }
    find_no_room(in, *senders[0], others);
    std::vector<unsigned> sent(senders.size());
    constexpr unsigned slice = share::patience / 2;
    for (unsigned turn = 0; turn < 10; ++turn) {
        for (unsigned i = 1; i < senders.size(); ++i) {
            sent[0] += send_to_a_busy_receiver(in, *senders[0], slice);
            sent[i] += send_to_a_busy_receiver(in, *senders[i], slice);
        }
    }
    for (unsigned i = 0; i < senders.size(); ++i) {
        EXPECT_GE(sent[i], 9 * share::quota) << i;
        EXPECT_LE(sent[i], 12 * share::quota) << i;
    }
}

// It may be stopped or dead, or its program may have something better to do.
TEST(uct_inbox, a_sender_that_waits_and_does_not_come_costs_the_others_one_stop)
{
    inbox in;
    outbox busy(in, getpid(), 1), stopped(in, getpid(), 1), other(in, getpid(), 1);
    find_no_room(in, busy, {&stopped, &other});
    unsigned sent[2] = {};
    unsigned refused = 0;
    text got;
    for (unsigned n = 0; n < 10 * slot_count; ++n) {
        for (outbox *one : {&busy, &other}) {
            bool room = send(*one, 1, "x");
            sent[one == &other] += room;
            refused += !room;
            while (take(in, &got)) {
            }
        }
    }
    EXPECT_LE(refused, 2 * share::patience + 2 * slot_count);
    EXPECT_LE(sent[0], sent[1] + share::quota);
    EXPECT_LE(sent[1], sent[0] + share::quota);
    EXPECT_EQ(send_to_a_busy_receiver(in, busy, slot_count), slot_count);
    EXPECT_TRUE(send(stopped, 1, "it runs again"));
    ASSERT_TRUE(take(in, &got));
    EXPECT_EQ(got.data, "it runs again");
}

TEST(uct_inbox, a_sender_that_waits_and_closes_is_not_waited_for)
{
    constexpr unsigned tries = share::patience / 2;
    for (bool closes : {false, true}) {
        inbox in;
        outbox busy(in, getpid(), 1);
        auto other = std::make_unique<outbox>(in, getpid(), 1);
        find_no_room(in, busy, {other.get()});
        if (closes) {
            other.reset();
        }
        EXPECT_EQ(send_to_a_busy_receiver(in, busy, tries), closes ? tries : share::quota);
    }
}

// A sender that is faster than its receiver waits for room all the time.
TEST(uct_inbox, a_sender_alone_has_no_quota)
{
    inbox in;
    outbox one(in, getpid(), 1), silent(in, getpid(), 1);
    find_no_room(in, one, {&one});
    EXPECT_EQ(send_to_a_busy_receiver(in, one, 4 * slot_count), 4 * slot_count);
}

// What other processes write there lets a sender wait for a while at most.
TEST(uct_inbox, a_forged_count_of_waiting_senders_is_not_believed_for_long)
{
    inbox in;
    outbox one(in, getpid(), 1), two(in, getpid(), 1);
    void *memory = mmap(nullptr, inbox::size(), PROT_READ | PROT_WRITE, MAP_SHARED, in.fd(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    for (uint64_t forged : {UINT64_MAX, uint64_t(0xffff), uint64_t(0xffff0000), uint64_t(0)}) {
        find_no_room(in, one, {&two});
        static_cast<page *>(memory)->rounds.store(forged);
        unsigned sent = send_to_a_busy_receiver(in, one, 4 * share::patience);
        EXPECT_GE(sent, share::patience) << forged;
        EXPECT_GE(send_to_a_busy_receiver(in, two, 4 * share::patience), share::patience) << forged;
    }
    munmap(memory, inbox::size());
}

TEST(uct_inbox, an_open_claim_holds_nobody_up)
{
    inbox in;
    outbox slow(in, getpid(), 1), quick(in, getpid(), 1);
    ASSERT_TRUE(send(slow, 1, "slow 0"));
    ASSERT_TRUE(slow.claim());
    // Three turns of the ring pass by.
    text got;
    ASSERT_TRUE(take(in, &got));
    for (unsigned n = 0; n < 3 * slot_count; ++n) {
        ASSERT_TRUE(send(quick, 2, std::to_string(n))) << n;
        ASSERT_TRUE(take_soon(in, &got)) << n;
        EXPECT_EQ(got.data, std::to_string(n));
    }
    EXPECT_TRUE(in.has_holes());
    memcpy(slow.small(), "slow 1", 6);
    slow.publish(1, 6, false);
    ASSERT_TRUE(take(in, &got));
    EXPECT_EQ(got.data, "slow 1");
    EXPECT_FALSE(in.has_holes());
    // The slot comes back: after one more turn all of them can be claimed at once.
    for (unsigned n = 0; n < 2 * slot_count; ++n) {
        ASSERT_TRUE(send(quick, 2, "x"));
        ASSERT_TRUE(take_soon(in, &got));
    }
    for (unsigned n = 0; n < slot_count; ++n) {
        EXPECT_TRUE(send(n % 2 ? slow : quick, 2, std::to_string(n))) << n;
    }
    for (unsigned n = 0; n < slot_count; ++n) {
        ASSERT_TRUE(take(in, &got));
        EXPECT_EQ(got.data, std::to_string(n));
    }
}

// With a hole in each slot the receiver goes round with every look, and no sender comes along.
TEST(uct_inbox, a_sender_finds_its_receiver_however_far_that_has_gone)
{
    inbox in;
    outbox out(in, getpid(), 1);
    std::vector<std::unique_ptr<outbox>> stopped;
    for (unsigned n = 0; n < slot_count; ++n) {
        stopped.push_back(std::make_unique<outbox>(in, getpid(), 1));
        ASSERT_TRUE(stopped.back()->claim());
    }
    text got;
    inbox_memory seen(in.fd(), in.nonce());
    while (seen->position.load() < 1 << 23) {
        ASSERT_FALSE(take(in, &got));
        in.publish_position();
    }
    EXPECT_FALSE(out.claim());
    for (auto &sender : stopped) {
        (void)sender->publish(1, 0, false);
        ASSERT_TRUE(take(in, &got));
    }
    bool sent = false;
    for (unsigned n = 0; n < 2 * slot_count && !sent; ++n) {
        sent = send(out, 2, "after them");
        (void)take(in, &got);
        in.publish_position();
    }
    EXPECT_TRUE(sent);
    EXPECT_TRUE(got.id == 2 || take_soon(in, &got));
    EXPECT_EQ(got.data, "after them");
}

TEST(uct_inbox, what_was_passed_over_comes_before_later_messages_of_its_sender)
{
    inbox in;
    outbox slow(in, getpid(), 1), quick(in, getpid(), 1);
    ASSERT_TRUE(slow.claim());
    ASSERT_TRUE(send(quick, 2, "a"));
    text got;
    ASSERT_TRUE(take_soon(in, &got));
    EXPECT_EQ(got.data, "a");
    memcpy(slow.small(), "first", 5);
    slow.publish(1, 5, false);
    ASSERT_TRUE(send(slow, 1, "second"));
    ASSERT_TRUE(take(in, &got));
    EXPECT_EQ(got.data, "first");
    ASSERT_TRUE(take(in, &got));
    EXPECT_EQ(got.data, "second");
}

// A child that does `what` with an outbox of its own and then waits to be killed.
class child {
  public:
    template <class What>
    child(inbox &to, What what)
    {
        int ready[2];
        EXPECT_EQ(pipe(ready), 0);
        pid_ = fork();
        if (pid_ == 0) {
            // The parent's mapping does not come along: MADV_DONTFORK.
            int status = 0;
            try {
                // Never destroyed: a process that is killed gives nothing back.
                what(*new outbox(to.fd(), nonce_of(), getpid(), 1));
            } catch (const ucs::error &) {
                status = 1;
            }
            char byte = static_cast<char>(status);
            if (write(ready[1], &byte, 1) != 1) {
                _exit(2);
            }
            for (;;) {
                pause();
            }
        }
        char byte = 2;
        EXPECT_EQ(read(ready[0], &byte, 1), 1);
        EXPECT_EQ(byte, 0);
        close(ready[0]);
        close(ready[1]);
    }
    ~child() { end(); }
    void end()
    {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
            pid_ = 0;
        }
    }
    static uint64_t &nonce_of()
    {
        static uint64_t nonce = 0;
        return nonce;
    }

  private:
    pid_t pid_ = 0;
};

TEST(uct_inbox, the_claim_of_a_killed_process_is_buried)
{
    inbox in;
    child::nonce_of() = in.nonce();
    outbox quick(in, getpid(), 1);
    text got;
    child first(in, [](outbox &out) {
        ASSERT_TRUE(send(out, 3, "sent"));
        ASSERT_TRUE(out.claim());
    });
    child second(in, [](outbox &out) { ASSERT_TRUE(out.claim()); });
    ASSERT_TRUE(send(quick, 2, "after"));
    ASSERT_TRUE(take_soon(in, &got));
    EXPECT_EQ(got.data, "sent");
    while (in.has_holes() || got.data != "after") {
        take(in, &got);
        if (got.data == "after") {
            break;
        }
    }
    EXPECT_TRUE(in.has_holes());
    EXPECT_EQ(in.bury(false, alive), 0u);
    first.end();
    EXPECT_EQ(in.bury(false, alive), 1u);
    EXPECT_FALSE(take(in, &got));
    EXPECT_TRUE(in.has_holes()); // of the second, which lives
    second.end();
    EXPECT_EQ(in.bury(true, alive), 1u);
    EXPECT_FALSE(take(in, &got));
    EXPECT_FALSE(in.has_holes());
    EXPECT_EQ(in.damaged(), 0u);
    for (unsigned n = 0; n < 2 * slot_count; ++n) {
        ASSERT_TRUE(send(quick, 2, "x"));
        ASSERT_TRUE(take_soon(in, &got));
    }
}

TEST(uct_inbox, a_claim_that_is_not_reached_yet_can_be_buried)
{
    inbox in;
    child::nonce_of() = in.nonce();
    outbox quick(in, getpid(), 1);
    ASSERT_TRUE(send(quick, 2, "before"));
    child dead(in, [](outbox &out) { ASSERT_TRUE(out.claim()); });
    dead.end();
    ASSERT_TRUE(send(quick, 2, "after"));
    EXPECT_EQ(in.bury(true, alive), 1u);
    text got;
    ASSERT_TRUE(take(in, &got));
    EXPECT_EQ(got.data, "before");
    ASSERT_TRUE(take(in, &got));
    EXPECT_EQ(got.data, "after");
}

TEST(uct_inbox, messages_of_many_threads_arrive_in_order_and_whole)
{
    constexpr unsigned senders = 4, each = rounds / 20;
    inbox in;
    std::vector<std::thread> threads;
    for (unsigned s = 0; s < senders; ++s) {
        threads.emplace_back([&, s] {
            outbox out(in, getpid(), 1);
            for (uint32_t n = 0; n < each;) {
                size_t size = n % 7 == 0 ? 4000 : 8;
                std::string data(size, static_cast<char>(n));
                memcpy(data.data(), &n, sizeof(n));
                if (send(out, static_cast<uint8_t>(s), data)) {
                    ++n;
                } else {
                    std::this_thread::yield();
                }
            }
        });
    }
    uint32_t expected[senders] = {};
    for (unsigned left = senders * each; left > 0;) {
        text got;
        if (!take(in, &got)) {
            std::this_thread::yield();
            continue;
        }
        ASSERT_LT(got.id, senders);
        uint32_t n;
        ASSERT_GE(got.data.size(), sizeof(n));
        memcpy(&n, got.data.data(), sizeof(n));
        ASSERT_EQ(n, expected[got.id]);
        ASSERT_EQ(got.data.size(), n % 7 == 0 ? 4000u : 8u);
        ASSERT_EQ(got.data.back(),
                  got.data.size() == 8 ? static_cast<char>(n) : static_cast<char>(n));
        ++expected[got.id];
        --left;
    }
    for (std::thread &t : threads) {
        t.join();
    }
    EXPECT_EQ(in.damaged(), 0u);
}

TEST(uct_inbox, no_wake_up_is_lost)
{
    inbox in;
    int bell[2];
    ASSERT_EQ(pipe2(bell, O_NONBLOCK | O_CLOEXEC), 0);
    constexpr unsigned senders = 2;
    const char *asked = getenv("UCXLIKE_TEST_MESSAGES");
    const unsigned each =
        (asked ? static_cast<unsigned>(strtoul(asked, nullptr, 10)) : rounds / 10) / senders;
    std::atomic<unsigned> seen = 0;
    std::vector<std::thread> threads;
    // Each sender waits until its message was seen, so that the receiver sleeps again and again.
    for (unsigned s = 0; s < senders; ++s) {
        threads.emplace_back([&] {
            outbox out(in, getpid(), 1);
            for (unsigned n = 0; n < each; ++n) {
                unsigned before = seen.load();
                bool sleeps = false;
                while (!send(out, 1, "x", &sleeps)) {
                    std::this_thread::yield();
                }
                if (sleeps) {
                    ASSERT_EQ(write(bell[1], "", 1), 1);
                    out.rung();
                }
                while (seen.load() == before) {
                    std::this_thread::yield();
                }
            }
        });
    }
    text got;
    unsigned slept = 0;
    for (unsigned left = senders * each; left > 0;) {
        if (take(in, &got)) {
            seen.fetch_add(1);
            --left;
        } else if (in.arm()) {
            pollfd p{bell[0], POLLIN, 0};
            ASSERT_EQ(poll(&p, 1, 60000), 1)
                << "a wake-up was lost, " << left << " messages before the end";
            char bytes[64];
            ASSERT_GT(read(bell[0], bytes, sizeof(bytes)), 0);
            ++slept;
        }
    }
    for (std::thread &t : threads) {
        t.join();
    }
    EXPECT_GT(slept, 0u);
    close(bell[0]);
    close(bell[1]);
}

TEST(uct_inbox, the_next_message_rings_when_a_sender_stops_between_claim_and_publication)
{
    inbox in;
    outbox stopped(in, getpid(), 1), other(in, getpid(), 1);
    text got;
    bool sleeps = false;
    ASSERT_TRUE(in.arm());
    ASSERT_TRUE(stopped.claim()); // takes the armed slot, and stops
    ASSERT_TRUE(send(other, 1, "a", &sleeps));
    EXPECT_TRUE(sleeps);
    other.rung();
    ASSERT_TRUE(send(other, 1, "b", &sleeps));
    EXPECT_FALSE(sleeps) << "rings once";
    ASSERT_TRUE(take_soon(in, &got));
    EXPECT_EQ(got.data, "a");
    ASSERT_TRUE(take(in, &got));
    EXPECT_EQ(got.data, "b");
    // The receiver sleeps behind the open claim, too, and its publication rings.
    ASSERT_TRUE(in.arm());
    EXPECT_TRUE(stopped.publish(1, 0, false));
    ASSERT_TRUE(take(in, &got));
    EXPECT_EQ(got.data, "");
}

// Looking for a message costs the same for any number of senders: their table is not touched. It is
// taken away meanwhile, so that a look there would end the test.
TEST(uct_inbox, looks_for_messages_without_the_table_of_senders)
{
    inbox in;
    std::vector<std::unique_ptr<outbox>> senders;
    for (unsigned i = 0; i < 1000; ++i) {
        senders.push_back(std::make_unique<outbox>(in, getpid(), 1));
    }
    ASSERT_TRUE(send(*senders[0], 1, "where"));
    inbox::message m;
    ASSERT_TRUE(in.next(&m));
    char *page_at = const_cast<char *>(m.data) - offsetof(page, slots) - m.index * sizeof(slot) -
                    offsetof(slot, data);
    in.release(m);
    in.publish_position();
    ASSERT_TRUE(send(*senders[1], 2, "then"));

    size_t unit = ucs::page_size();
    size_t first = (offsetof(page, senders) + unit - 1) / unit * unit;
    size_t end = (offsetof(page, senders) + sizeof(page::senders)) / unit * unit;
    ASSERT_GT(end, first);
    ASSERT_EQ(mprotect(page_at + first, end - first, PROT_NONE), 0);
    text t;
    EXPECT_TRUE(take(in, &t));
    EXPECT_EQ(t.data, "then");
    EXPECT_FALSE(take(in, &t));
    EXPECT_TRUE(in.arm());
    ASSERT_EQ(mprotect(page_at + first, end - first, PROT_READ | PROT_WRITE), 0);
}

TEST(uct_inbox, does_not_sleep_while_there_is_something)
{
    inbox in;
    outbox out(in, getpid(), 1), other(in, getpid(), 1);
    text got;
    ASSERT_TRUE(send(out, 1, "x"));
    EXPECT_FALSE(in.arm());
    ASSERT_TRUE(take(in, &got));
    EXPECT_TRUE(in.arm());
    EXPECT_TRUE(in.arm()) << "twice is once";
    ASSERT_TRUE(out.claim());
    EXPECT_FALSE(in.arm()) << "the message may come soon";
    EXPECT_TRUE(arm_soon(in));
    EXPECT_FALSE(in.hole_is_ready());
    EXPECT_TRUE(out.publish(1, 0, false));
    EXPECT_TRUE(in.hole_is_ready());
    EXPECT_FALSE(in.arm());
    ASSERT_TRUE(take(in, &got));
    bool sleeps = true;
    ASSERT_TRUE(send(other, 1, "y", &sleeps));
    ASSERT_TRUE(take(in, &got));
    EXPECT_EQ(got.data, "y");
}

TEST(uct_inbox, has_a_stated_number_of_senders)
{
    inbox in;
    std::vector<std::unique_ptr<outbox>> all;
    for (unsigned n = 0; n < max_senders; ++n) {
        all.push_back(std::make_unique<outbox>(in, getpid(), 1));
    }
    try {
        outbox one_more(in, getpid(), 1);
        FAIL() << "there was room";
    } catch (const ucs::error &e) {
        EXPECT_EQ(e.status(), UCS_ERR_EXCEEDS_LIMIT);
    }
    text got;
    for (unsigned n = 0; n < max_senders; n += 97) {
        ASSERT_TRUE(send(*all[n], 1, std::to_string(n)));
        ASSERT_TRUE(take(in, &got));
        EXPECT_EQ(got.data, std::to_string(n));
    }
    all.pop_back();
    EXPECT_NO_THROW(outbox(in, getpid(), 1));
    // Places of dead processes are given out again.
    EXPECT_EQ(in.bury(true, nobody_is_alive), max_senders - 1);
}

TEST(uct_inbox, whatever_stands_in_the_memory_is_dropped_and_counted)
{
    inbox in;
    inbox_memory memory(in.fd(), in.nonce());
    outbox out(in, getpid(), 1);
    ASSERT_TRUE(out.claim());
    out.publish(1, inline_size + 1, false);
    ASSERT_TRUE(out.claim());
    out.publish(1, segment_size + 1, true);
    ASSERT_TRUE(out.claim());
    out.publish(1, UINT32_MAX, true);
    ASSERT_TRUE(send(out, 1, "good"));
    text got;
    ASSERT_TRUE(take(in, &got));
    EXPECT_EQ(got.data, "good");
    EXPECT_EQ(in.damaged(), 3u);

    uint64_t random = ucs::random_u64();
    for (unsigned n = 0; n < 2000; ++n) {
        for (unsigned i = 0; i < slot_count; ++i) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            // Turns that fit half of the time.
            uint64_t turn = random >> 63 ? n : random >> 20;
            memory->claims[i].store(claim::make(turn, 0) | (random >> 32 & 0xffffff),
                                    std::memory_order_relaxed);
            memory->slots[i].mark.store(mark::make(turn + (random >> 62 & 1), 0, random & 0x3fff) |
                                            (random * 31 >> 40 & 0xffff) << mark::length_shift,
                                        std::memory_order_relaxed);
        }
        for (unsigned k = 0; k < slot_count; ++k) {
            take(in, &got);
        }
        in.arm();
        in.hole_is_ready();
        in.bury(false, nobody_is_alive);
        send(out, 1, "x");
    }
}

void expect_unreachable(int fd, uint64_t nonce)
{
    try {
        inbox_memory memory(fd, nonce);
        FAIL() << "was taken for an inbox";
    } catch (const ucs::error &e) {
        EXPECT_EQ(e.status(), UCS_ERR_UNREACHABLE) << e.what();
    }
}

TEST(uct_inbox, a_sender_comes_back_whatever_the_claims_say)
{
    inbox in;
    inbox_memory liars(in.fd(), in.nonce());
    outbox out(in.fd(), in.nonce(), getpid(), 1);
    liars->position.store(uint64_t(1) << 63); // room without end
    for (auto &c : liars->claims) {
        c.store(claim::make(0, 0) | claim::hole); // given to no sender
    }
    EXPECT_FALSE(out.claim());
    liars->claims[0].store(claim::make(0, 1) |
                           claim::armed); // the next to be armed is none of these
    EXPECT_TRUE(out.claim());
    (void)out.publish(1, 0, false);
}

TEST(uct_inbox, memory_that_does_not_prove_itself_is_refused)
{
    inbox in;
    expect_unreachable(in.fd(), in.nonce() + 1);
    int unsealed = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(ftruncate(unsealed, inbox::size()), 0);
    expect_unreachable(unsealed, 0);
    ASSERT_EQ(fcntl(unsealed, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    expect_unreachable(unsealed, 0);
    close(unsealed);
    int small = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(fcntl(small, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    expect_unreachable(small, 0);
    close(small);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    expect_unreachable(null, 0);
    close(null);
}

TEST(uct_inbox, a_file_size_limit_is_named)
{
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    rlimit little = {4096, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &little), 0);
    try {
        inbox in;
        ADD_FAILURE() << "the limit was not met";
    } catch (const ucs::error &e) {
        EXPECT_EQ(e.status(), UCS_ERR_NO_MEMORY);
        EXPECT_NE(strstr(e.what(), "RLIMIT_FSIZE"), nullptr) << e.what();
    }
    setrlimit(RLIMIT_FSIZE, &before);
}

} // namespace
} // namespace uct::sm
