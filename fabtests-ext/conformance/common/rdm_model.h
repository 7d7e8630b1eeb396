// SPDX-License-Identifier: BSD-3-Clause
//
// Two RDM endpoints that carry out a schedule, and the model that says which receive each message
// completes and what it brings. The model is exact because messages of one endpoint arrive in
// order, and what depends on the moment waits until all that was sent has arrived.
#pragma once

#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/schedule.h"
#include "fabtests-ext/conformance/common/matching_model.h"
#include "fabtests-ext/conformance/common/rdm_model_calls.h"

#include <atomic>
#include <memory>
#include <netinet/in.h>
#include <optional>

namespace rdm_model {

using namespace app;
using schedule::length_of, schedule::longest, schedule::slot, schedule::slots;

class side {
  public:
    explicit side(bool shared) : app_(make_options(shared))
    {
        app_.open_active(app_.info);
        open_at_ = app_.expose(memory_.data(), memory_.size(), FI_REMOTE_READ | FI_REMOTE_WRITE);
    }

    ~side()
    {
        leave();
        app_.close_active();
        if (srx_) {
            REQUIRE_EQ(fi_close(&srx_->fid), 0);
        }
    }

    void know(side &other)
    {
        other_ = &other;
        char name[64];
        size_t length = sizeof(name);
        REQUIRE_EQ(fi_getname(&other.app_.ep->fid, name, &length), 0);
        REQUIRE_EQ(fi_av_insert(app_.av, name, 1, &app_.peer, 0, nullptr), 1);
    }

    // Both join one group.
    static void meet(side &a, side &b)
    {
        for (side *s : {&a, &b}) {
            s->join();
        }
        a.await_joined();
        b.await_joined();
    }

    fabric_side &app() { return app_; }

    // Of the access of another thread; its context.
    std::atomic<bool> other_thread_over = true;

    void carry_out(const schedule::step &s)
    {
        unsigned a = s.with[0], b = s.with[1], c = s.with[2];
        switch (s.what) {
        case send:
            return send_one(a % tags, length_of(b), c);
        case receive:
            return receive_one(a % tags, b, c);
        case settle:
            return settle_all();
        case peek:
            return peek_one(a % tags, b % 2 ? all_tags : 0, c);
        case take:
            return take_claimed(c % 4 == 0);
        case cancel:
            return cancel_one(a);
        case put:
        case get:
            return access(s.what, a % slots, 1 + b * 40, c);
        case tell:
            return tell_group(a % tags, length_of(b), c);
        case rejoin:
            return c % 100 == 0 ? leave_and_join() : void(); // it takes a while
        default:
            REQUIRE(!"a step of a kind that is none");
        }
    }

    // ---- the end of a schedule: first both sides receive what is left, then nothing is under way

    void drain()
    {
        settle_all();
        if (claimed_) {
            take_claimed(false);
        }
        while (!matching_.posted.empty()) {
            cancel_one(0);
        }
        while (!matching_.unexpected.empty()) {
            message m = matching_.unexpected.front();
            post(m.tagged, m.tag, 0, longest);
            settle_all();
        }
    }

    void finish()
    {
        await([this] { return matching_.calls.empty(); });
    }

    template <class Condition>
    void await(Condition &&condition)
    {
        auto limit = std::chrono::steady_clock::now() + schedule::waiting;
        while (!condition()) {
            REQUIRE(std::chrono::steady_clock::now() < limit);
            progress();
        }
    }

    // A put completes when it has been delivered.
    ssize_t post_access(unsigned what, char *data, fi_rma_iov at, void *context)
    {
        iovec iov = {data, at.len};
        fi_msg_rma m = {};
        m.msg_iov = &iov;
        m.iov_count = 1;
        m.rma_iov = &at;
        m.rma_iov_count = 1;
        m.addr = app_.peer;
        m.context = context;
        return what == put ? fi_writemsg(app_.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE)
                           : fi_readmsg(app_.ep, &m, FI_COMPLETION);
    }

  private:
    options make_options(bool shared)
    {
        options o;
        o.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_MULTICAST;
        o.with_eq = true;
        if (shared) {
            o.before_enable = [this](fabric_side &f) {
                REQUIRE_EQ(fi_srx_context(f.domain, nullptr, &srx_, nullptr), 0);
                REQUIRE_EQ(fi_ep_bind(f.ep, &srx_->fid, 0), 0);
            };
        }
        return o;
    }

    fid_ep *receiver() { return srx_ ? srx_ : app_.ep; }

    void progress()
    {
        for (side *s : {this, other_}) {
            s->read(s->app_.txcq);
            s->read(s->app_.rxcq);
        }
        sched_yield();
    }

    template <class Call>
    void start(Call &&begin)
    {
        await([&] {
            ssize_t r = begin();
            REQUIRE(r == 0 || r == -FI_EAGAIN);
            return r == 0;
        });
    }

    // ---- messages

    void send_one(uint64_t tag, size_t length, unsigned how)
    {
        message m = {how % 5 != 4, tag, length, how * 7 + ++seeds_, how % 5 == 2, nullptr};
        std::vector<char> bytes = pattern(length, m.seed);
        bool inject = how % 5 == 1 && length <= app_.info->tx_attr->inject_size;
        call *c = inject ? nullptr : matching_.begin();
        m.delivered = how % 5 == 1 || how % 5 == 3 ? c : nullptr;
        if (c) {
            c->data = std::move(bytes);
        }
        const char *data = c ? c->data.data() : bytes.data();
        start([&] {
            if (!c) {
                return fi_tinject(app_.ep, data, length, app_.peer, tag);
            }
            return post_send(m, data, c);
        });
        other_->matching_.arrives(m);
    }

    ssize_t post_send(const message &m, const char *data, call *c)
    {
        if (!m.tagged) {
            return fi_send(app_.ep, data, m.length, nullptr, app_.peer, c);
        }
        if (m.with_data) {
            return fi_tsenddata(app_.ep, data, m.length, nullptr, m.seed, app_.peer, m.tag, c);
        }
        if (!m.delivered) {
            return fi_tsend(app_.ep, data, m.length, nullptr, app_.peer, m.tag, c);
        }
        iovec iov = {const_cast<char *>(data), m.length};
        fi_msg_tagged t = {};
        t.msg_iov = &iov;
        t.iov_count = 1;
        t.addr = app_.peer;
        t.tag = m.tag;
        t.context = c;
        return fi_tsendmsg(app_.ep, &t, FI_COMPLETION | FI_DELIVERY_COMPLETE);
    }

    // ---- the group

    void join()
    {
        sockaddr_in at = group_address();
        REQUIRE_EQ(fi_join(app_.ep, &at, 0, &group_, nullptr), 0);
    }

    void await_joined()
    {
        uint32_t type = 0;
        fi_eq_entry e = {};
        await([&] {
            ssize_t n = fi_eq_read(app_.eq, &type, &e, sizeof(e), 0);
            REQUIRE(n == -FI_EAGAIN || n == static_cast<ssize_t>(sizeof(e)));
            return n > 0;
        });
        REQUIRE_EQ(type, static_cast<uint32_t>(FI_JOIN_COMPLETE));
        REQUIRE(e.fid == &group_->fid);
    }

    void leave()
    {
        if (fid_mc *group = std::exchange(group_, nullptr)) {
            REQUIRE_EQ(fi_close(&group->fid), 0);
        }
    }

    void leave_and_join()
    {
        settle_all();
        other_->settle_all();
        leave();
        join();
        await_joined();
    }

    // To the other side, in order with what it gets from this one alone.
    void tell_group(uint64_t tag, size_t length, unsigned how)
    {
        message m = {how % 3 != 2, tag, length, how * 7 + ++seeds_, how % 5 == 2, nullptr};
        call *c = matching_.begin();
        c->data = pattern(length, m.seed);
        iovec iov = {c->data.data(), length};
        uint64_t flags = FI_MULTICAST | FI_COMPLETION | (m.with_data ? FI_REMOTE_CQ_DATA : 0);
        fi_msg plain = {&iov, nullptr, 1, fi_mc_addr(group_), c, m.seed};
        fi_msg_tagged tagged = {&iov, nullptr, 1, fi_mc_addr(group_), tag, 0, c, m.seed};
        start([&] {
            return m.tagged ? fi_tsendmsg(app_.ep, &tagged, flags)
                            : fi_sendmsg(app_.ep, &plain, flags);
        });
        other_->matching_.arrives(m);
    }

    void receive_one(uint64_t tag, unsigned b, unsigned how)
    {
        size_t room = how % 6 ? longest : length_of(b);
        post(how % 5 != 4, tag, b % 3 ? 0 : all_tags, room);
    }

    void post(bool tagged, uint64_t tag, uint64_t ignore, size_t room)
    {
        call *c = matching_.begin();
        c->receive.reset(new receiving{tagged, tag, ignore, std::vector<char>(room), {}});
        char *buffer = c->receive->buffer.data();
        start([&] {
            return tagged
                       ? fi_trecv(receiver(), buffer, room, nullptr, FI_ADDR_UNSPEC, tag, ignore, c)
                       : fi_recv(receiver(), buffer, room, nullptr, FI_ADDR_UNSPEC, c);
        });
        matching_.post(c);
    }

    // All that was sent to this side has arrived, and what the model says has come has come.
    void settle_all()
    {
        post(true, marker, 0, 0);
        start([&] { return fi_tinject(other_->app_.ep, nullptr, 0, other_->app_.peer, marker); });
        matching_.arrives({true, marker, 0, 0, false, nullptr});
        await([this] { return matching_.settled(); });
    }

    // ---- what looks at messages that have arrived

    fi_msg_tagged about(uint64_t tag, uint64_t ignore, void *context)
    {
        fi_msg_tagged m = {};
        m.addr = FI_ADDR_UNSPEC;
        m.tag = tag;
        m.ignore = ignore;
        m.context = context;
        return m;
    }

    void peek_one(uint64_t tag, uint64_t ignore, unsigned how)
    {
        uint64_t flags = how % 3 == 0 ? 0 : how % 3 == 1 ? FI_DISCARD : FI_CLAIM;
        if (flags == FI_CLAIM && claimed_) {
            return;
        }
        settle_all();
        receiving wanted = {true, tag, ignore, {}, {}};
        auto at = matching_.first_for(wanted);
        call *c = matching_.begin();
        c->peeks = true;
        fi_msg_tagged m = about(tag, ignore, c);
        start([&] { return fi_trecvmsg(receiver(), &m, FI_PEEK | flags); });
        await([&] { return c->over; });
        REQUIRE_EQ(c->found.has_value(), at != matching_.unexpected.end());
        if (c->found) {
            REQUIRE_EQ(*c->found, at->length);
        }
        if (c->found && flags == FI_CLAIM) {
            claimed_ = c;
            claimed_message_ = *at;
        } else {
            forget(c);
        }
        if (at != matching_.unexpected.end() && flags != 0) {
            matching_.unexpected.erase(at);
        }
    }

    void take_claimed(bool discard)
    {
        if (!claimed_) {
            return;
        }
        call *c = std::exchange(claimed_, nullptr);
        c->peeks = c->over = false;
        c->receive.reset(new receiving{true, claimed_message_.tag, 0, std::vector<char>(longest),
                                       claimed_message_});
        c->receive->discarded = discard;
        iovec iov = {c->receive->buffer.data(), longest};
        fi_msg_tagged m = about(claimed_message_.tag, 0, c);
        m.msg_iov = &iov;
        m.iov_count = 1;
        start([&] { return fi_trecvmsg(receiver(), &m, FI_CLAIM | (discard ? FI_DISCARD : 0)); });
    }

    void cancel_one(unsigned which)
    {
        settle_all();
        if (matching_.posted.empty()) {
            return;
        }
        call *c = matching_.withdraw(which);
        REQUIRE_EQ(fi_cancel(&receiver()->fid, c), 0);
        await([&] { return !matching_.under_way(c); });
    }

    // ---- memory: one access at a time, beside the messages

    void access(unsigned what, unsigned number, size_t length, unsigned seed)
    {
        char *there = other_->memory_.data() + number * slot;
        std::vector<char> bytes = pattern(length, seed);
        call *c = matching_.begin();
        c->data = what == put ? bytes : std::vector<char>(length);
        if (what == get) {
            memcpy(there, bytes.data(), length);
        }
        fi_rma_iov at = {other_->open_at_.address + number * slot, length, other_->open_at_.key};
        c->peeks = true; // it stays after its completion
        start([&] { return post_access(what, c->data.data(), at, c); });
        await([&] { return c->over; });
        REQUIRE(schedule::same(what == put ? there : c->data.data(), bytes.data(), length));
        forget(c);
    }

    // ---- completions

    void read(fid_cq *q)
    {
        fi_cq_tagged_entry entry = {};
        ssize_t n = fi_cq_read(q, &entry, 1);
        if (n == -FI_EAGAIN) {
            return;
        }
        fi_cq_err_entry error = {};
        if (n == -FI_EAVAIL) {
            REQUIRE_EQ(fi_cq_readerr(q, &error, 0), 1);
            entry.op_context = error.op_context;
        } else {
            REQUIRE_EQ(n, 1);
        }
        if (entry.op_context == &other_thread_over) {
            REQUIRE_EQ(error.err, 0);
            other_thread_over = true;
            return;
        }
        auto *c = static_cast<call *>(entry.op_context);
        REQUIRE(matching_.under_way(c));
        REQUIRE(!c->over);
        if (c->receive) {
            check_received(*c->receive, entry, error);
        } else if (c->peeks) {
            REQUIRE(error.err == 0 || error.err == FI_ENOMSG);
            c->over = true;
            if (error.err == 0) {
                c->found = entry.len;
            }
            return;
        } else {
            REQUIRE_EQ(error.err, c->error);
        }
        forget(c);
    }

    static void check_received(const receiving &r, const fi_cq_tagged_entry &entry,
                               const fi_cq_err_entry &error)
    {
        if (r.cancelled) {
            REQUIRE_EQ(error.err, FI_ECANCELED);
            return;
        }
        REQUIRE(r.brings.has_value());
        size_t room = r.buffer.size(), length = r.brings->length;
        if (r.discarded) {
            REQUIRE_EQ(error.err, 0);
            return;
        }
        if (length > room) {
            REQUIRE_EQ(error.err, FI_ETRUNC);
            REQUIRE_EQ(error.olen, length - room);
            return;
        }
        REQUIRE_EQ(error.err, 0);
        REQUIRE_EQ(entry.len, length);
        REQUIRE(schedule::same(r.buffer.data(), pattern(length, r.brings->seed).data(), length));
        REQUIRE(!r.tagged || entry.tag == r.brings->tag);
        REQUIRE_EQ((entry.flags & FI_REMOTE_CQ_DATA) != 0, r.brings->with_data);
        REQUIRE(!r.brings->with_data || entry.data == r.brings->seed);
    }

    void forget(call *c)
    {
        matching_.calls.remove_if([c](const call &i) { return &i == c; });
    }

    fid_ep *srx_ = nullptr;
    fid_mc *group_ = nullptr;
    fabric_side app_;
    side *other_ = nullptr;
    std::vector<char> memory_ = std::vector<char>(slot * slots + longest);
    remote open_at_ = {};
    schedule::matching<call, message> matching_;
    call *claimed_ = nullptr;
    message claimed_message_;
    unsigned seeds_ = 0;
};

} // namespace rdm_model
