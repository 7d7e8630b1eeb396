// SPDX-License-Identifier: BSD-3-Clause
// The queues of messages, with a core that is a plain list: what goes which way, in which order it
// is handled, and what becomes of a queue whose owner has gone.
#include "uct/ofi/shm/fifo.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace uct::ofi;

struct message {
    uint64_t sender;
    uint64_t number;
    char byte(size_t i) const { return static_cast<char>(i * 7 + number); } // what follows
};

struct receiver {
    doorbell bell{sizeof(fifo_pages)};
    receive_fifos fifos{bell.room()};
    std::deque<std::pair<uint64_t, message>> core; // with their data
    std::vector<message> handled;
    size_t length = 0; // of the last one
    bool starved = false;
    bool reads_on = false; // from inside

    unsigned read() { return fifos.read(*this); }
    void small(uint8_t, const char *data, size_t n)
    {
        if (reads_on) {
            read();
        }
        length = n;
        message m{};
        memcpy(&m, data, std::min(n, sizeof(m)));
        for (size_t i = sizeof(m); i < n; ++i) {
            ASSERT_EQ(data[i], m.byte(i));
        }
        handled.push_back(m);
    }
    std::string *keep(const char *data, size_t n)
    {
        return starved ? nullptr : new std::string(data, n);
    }
    void kept(uint8_t id, std::string *copy, size_t n)
    {
        small(id, copy->data(), n);
        delete copy;
    }
    void read_core()
    {
        auto found = std::exchange(core, {});
        if (!found.empty()) {
            read();
        }
        for (auto &[data, m] : found) {
            handled.push_back(m);
            fifos.passed(fifo_mark::of(data));
        }
    }
    void read_all()
    {
        read_core();
        read();
    }
    fifo_pages &pages() { return *static_cast<fifo_pages *>(bell.room()); }
};

struct sender {
    receiver &to;
    uint64_t id;
    send_fifo fifo;
    uint64_t sent = 0;
    uint64_t queued = 0; // of them through the queue

    sender(receiver &to, uint64_t id) : to(to), id(id), fifo(to.bell.address(), id) {}

    void through_core()
    {
        to.core.push_back({fifo.mark(), {id, sent++}});
        fifo.posted_message();
    }
    void write(char *data, size_t length)
    {
        message m{id, sent};
        memcpy(data, &m, sizeof(m));
        for (size_t i = sizeof(m); i < length; ++i) {
            data[i] = m.byte(i);
        }
    }
    // They take what way they can.
    void small(size_t length = sizeof(message))
    {
        char data[fifo_frame_size + 1];
        write(data, length);
        went(fifo.send(1, data, 8, data + 8, length - 8));
    }
    void in_place(size_t length)
    {
        char *data;
        auto outcome = fifo.frame(&data);
        if (outcome == send_fifo::outcome::done) {
            write(data, length);
            fifo.send_frame(1, length);
        }
        went(outcome);
    }
    void went(send_fifo::outcome outcome)
    {
        switch (outcome) {
        case send_fifo::outcome::done:
            ++sent;
            ++queued;
            break;
        case send_fifo::outcome::not_mine:
            through_core();
            break;
        case send_fifo::outcome::full:
            break; // comes again
        }
    }
    bool has_queue() const { return fifo.mark() != 0; }
    void claim()
    {
        for (int i = 0; i < 100 && !has_queue(); ++i) {
            small();
        }
        to.read_all();
        small(); // through the core, with the mark
        to.read_all();
    }
};

void expect_order(const receiver &r, uint64_t sender, uint64_t count)
{
    uint64_t next = 0;
    for (const message &m : r.handled) {
        if (m.sender == sender) {
            ASSERT_EQ(m.number, next++);
        }
    }
    EXPECT_EQ(next, count);
}

TEST(uct_fifo, order_is_that_of_sending_whichever_way)
{
    receiver r;
    sender a(r, 11), b(r, 22);
    std::minstd_rand random(1);
    for (int i = 0; i < 200000; ++i) {
        sender &s = random() % 2 ? a : b;
        if (unsigned what = random() % 64; what == 0) {
            s.through_core();
        } else if (what == 1) {
            s.fifo.posted_other();
        } else if (what < 10) {
            r.read();
        } else if (what < 13) {
            r.read_core();
        } else if (what < 20) {
            s.small(sizeof(message) + random() % 500);
        } else if (what < 27) {
            s.in_place(sizeof(message) + random() % 500);
        } else {
            s.small();
        }
    }
    r.read_all();
    expect_order(r, 11, a.sent);
    expect_order(r, 22, b.sent);
    EXPECT_LT(a.sent / 4, a.queued);
    EXPECT_LT(a.queued, a.sent);
}

TEST(uct_fifo, what_is_not_a_message_closes_the_queue)
{
    receiver r;
    sender s(r, 11);
    s.claim();
    s.small();
    EXPECT_EQ(s.queued, 1u);
    s.fifo.posted_other();
    s.small();
    EXPECT_EQ(s.queued, 1u);
    EXPECT_EQ(r.core.size(), 1u);
    s.small(); // not handled yet
    EXPECT_EQ(s.queued, 1u);
    r.read_all();
    s.small();
    EXPECT_EQ(s.queued, 2u);
    r.read_all();
    expect_order(r, 11, s.sent);
}

TEST(uct_fifo, a_full_queue_takes_more_when_it_was_read)
{
    receiver r;
    sender s(r, 11);
    s.claim();
    for (unsigned round = 0; round < 10; ++round) {
        uint64_t before = s.queued;
        for (unsigned i = 0; i < 2 * fifo_slots; ++i) {
            s.small();
        }
        EXPECT_LE(s.queued - before, fifo_slots);
        EXPECT_LE(3 * fifo_slots / 4, s.queued - before);
        EXPECT_TRUE(r.core.empty());
        EXPECT_TRUE(r.fifos.has_messages());
        EXPECT_EQ(r.read(), s.queued - before);
        EXPECT_FALSE(r.fifos.has_messages());
    }
    expect_order(r, 11, s.sent);
}

TEST(uct_fifo, full_frames_take_more_when_they_were_read)
{
    receiver r;
    sender s(r, 11);
    s.claim();
    for (unsigned round = 0; round < 10; ++round) {
        uint64_t before = s.queued;
        for (unsigned i = 0; i < 2 * fifo_frames; ++i) {
            s.in_place(fifo_frame_size);
            s.small(fifo_payload + 1);
        }
        EXPECT_LE(s.queued - before, fifo_frames);
        EXPECT_LE(3 * fifo_frames / 4, s.queued - before);
        s.small(); // which takes none
        EXPECT_TRUE(r.core.empty());
        EXPECT_EQ(r.read(), s.queued - before);
    }
    expect_order(r, 11, s.sent);
}

TEST(uct_fifo, messages_have_the_length_that_fits)
{
    receiver r;
    sender s(r, 11);
    s.claim();
    uint64_t count = 0;
    for (size_t length : {size_t{16}, size_t{17}, fifo_payload - 1, fifo_payload, fifo_payload + 1,
                          size_t{4096}, fifo_frame_size - 1, fifo_frame_size}) {
        for (auto way : {&sender::small, &sender::in_place}) {
            (s.*way)(length);
            EXPECT_EQ(r.read(), 1u);
            EXPECT_EQ(r.length, length);
            EXPECT_EQ(s.queued, ++count);
        }
    }
    s.small(fifo_frame_size + 1);
    EXPECT_EQ(s.queued, count);
}

TEST(uct_fifo, what_is_handled_may_read_on)
{
    receiver r;
    sender s(r, 11);
    s.claim();
    r.reads_on = true;
    for (unsigned round = 0; round < 10; ++round) {
        uint64_t before = s.queued;
        size_t handled = r.handled.size();
        for (unsigned i = 0; i < fifo_frames / 2; ++i) {
            s.in_place(fifo_frame_size);
            s.small();
        }
        r.read();
        EXPECT_EQ(r.handled.size() - handled, s.queued - before);
        EXPECT_EQ(s.queued - before, fifo_frames);
    }
}

TEST(uct_fifo, who_has_no_memory_gets_all_the_same)
{
    receiver r;
    sender s(r, 11);
    s.claim();
    r.starved = true;
    for (unsigned i = 0; i < 3 * fifo_frames; ++i) {
        s.in_place(fifo_frame_size);
        EXPECT_EQ(r.read(), 1u);
        EXPECT_EQ(r.length, fifo_frame_size);
    }
    expect_order(r, 11, s.sent);
}

TEST(uct_fifo, queues_of_those_who_leave_are_claimed_again)
{
    receiver r;
    std::vector<std::unique_ptr<sender>> all;
    for (unsigned i = 0; i < fifo_queues; ++i) {
        all.push_back(std::make_unique<sender>(r, 100 + i));
        all.back()->claim();
        EXPECT_TRUE(all.back()->has_queue());
    }
    sender late(r, 11);
    late.claim();
    EXPECT_FALSE(late.has_queue());

    for (unsigned i = 0; i <= fifo_frames / 4; ++i) {
        all[7]->in_place(1000);
    }
    uint64_t sent = all[7]->sent;
    all.erase(all.begin() + 7);
    r.read();
    late.claim();
    EXPECT_TRUE(late.has_queue());
    expect_order(r, 107, sent);
    uint64_t before = late.queued;
    late.small();
    for (unsigned i = 0; i <= fifo_frames; ++i) { // all of them, and one that has no room
        late.in_place(1000);
    }
    EXPECT_EQ(late.queued, before + 1 + fifo_frames);
    r.read_all();
    expect_order(r, 11, late.sent);
}

// Whoever was killed says nothing. What it had written is read, and messages of it that the core
// has yet to give do not count for who has its queue next.
TEST(uct_fifo, queues_of_the_dead_are_claimed_again)
{
    receiver r;
    auto dead = std::make_unique<sender>(r, 22);
    dead->claim();
    dead->small();
    r.fifos.owner_died(22);
    EXPECT_EQ(r.read(), 1u);
    expect_order(r, 22, dead->sent);

    uint64_t stale = dead->fifo.mark();
    sender next(r, 11);
    next.claim();
    EXPECT_NE(next.fifo.mark(), stale);
    EXPECT_EQ(fifo_mark::of(next.fifo.mark()).queue, fifo_mark::of(stale).queue);
    next.through_core();
    r.core.push_front({stale, {22, dead->sent}});
    std::pair<uint64_t, message> later = r.core.back();
    r.core.pop_back();
    r.read_core(); // the stale one alone
    uint64_t before = next.queued;
    next.small(); // so this one waits for the other one
    EXPECT_EQ(next.queued, before);
    r.core.push_front(later);
    r.read_all();
    expect_order(r, 11, next.sent);
}

TEST(uct_fifo, a_damaged_slot_is_not_read_beyond_its_end)
{
    receiver r;
    sender s(r, 11);
    s.claim();
    s.small();
    r.pages().queues[0].slots[0].length = 60000;
    r.pages().used = 4000000000;
    EXPECT_EQ(r.read(), 1u);
    EXPECT_EQ(r.length, 0u);
    r.fifos.passed(fifo_mark{.queue = 255, .owner = 0});
}

TEST(uct_fifo, nobody_there_is_an_error)
{
    bell_address nowhere{};
    {
        doorbell bell(sizeof(fifo_pages));
        nowhere = bell.address();
    }
    EXPECT_ANY_THROW(send_fifo(nowhere, 1));
}

} // namespace
