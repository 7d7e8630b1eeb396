// SPDX-License-Identifier: BSD-3-Clause
//
// Two UCP workers that carry out a schedule, and the model that says which receive each tagged
// message completes and what it brings, which bytes a stream gives, and which active messages come.
// What fails ends the process with a line that says where.
#pragma once

#include "fabtests-ext/common/schedule.h"
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/common/ucp_region.h"
#include "fabtests-ext/conformance/common/matching_model.h"
#include "fabtests-ext/conformance/common/ucp_model_am.h"
#include "fabtests-ext/conformance/common/ucp_model_calls.h"

#include <atomic>
#include <list>
#include <optional>

namespace ucp_model {

using namespace ucp_test;
using schedule::length_of, schedule::longest, schedule::slot, schedule::slots;

class side {
  public:
    explicit side(const options &o) : self_(o), active_(self_.worker, messages)
    {
        auto on_message = [](void *arg, const void *, size_t, void *, size_t,
                             const ucp_am_recv_param_t *) {
            static_cast<side *>(arg)->close();
            return UCS_OK;
        };
        REQUIRE(set_am_handler(self_.worker, farewell, on_message, this) == UCS_OK);
    }

    static void meet(side &a, side &b)
    {
        a.know(b);
        b.know(a);
        a.open_.emplace(b.self_, a.ep_, nullptr, slot * slots + longest);
        b.open_.emplace(a.self_, b.ep_, nullptr, slot * slots + longest);
    }

    // The two leave together: an endpoint that closes waits for what its peer has to say.
    static void leave(side &a, side &b)
    {
        a.open_.reset();
        b.open_.reset();
        if (a.parting_ == 2) {
            b.parting_ %= 2; // one of the two goes first
        }
        a.say_farewell();
        b.say_farewell();
        a.begin_to_leave();
        b.begin_to_leave();
        for (side *s : {&a, &b}) {
            a.await([s] { return s->leaves_.exchange(false); });
            a.finish_one(s->closing_);
            s->written_ = s->read_ = s->parting_ = 0;
        }
        a.finish(); // the farewells
        b.finish();
    }

    entity &self() { return self_; }

    void carry_out(const schedule::step &s)
    {
        unsigned a = s.with[0], b = s.with[1], c = s.with[2];
        size_t length = length_of(b);
        switch (s.what) {
        case send:
            return send_one(a % tags, length, c);
        case receive:
            return receive_one(a % tags, b % 3 ? one_tag : all_tags, c % 6 ? longest : length,
                               c % 3);
        case settle:
            return settle_all();
        case probe:
            return probe_one(a % tags, b % 2 ? all_tags : one_tag, c % 3);
        case take:
            return take_held(c);
        case cancel:
            return cancel_one(a);
        case put:
        case get:
            return access(s.what, a % slots, 1 + b * 40, c);
        case active:
            return send_active(length, c);
        case stream:
            return a % 2 ? write_stream(length + 1) : read_stream(b); // UCX 1.13 ends at 0 bytes
        case flush:
            return flush_all();
        case part:
            parting_ = a % 3;
            return;
        default:
            REQUIRE(!"a step of a kind that is none");
        }
    }

    // ---- the end of a schedule: first both sides receive what is left, then nothing is under way

    void drain()
    {
        settle_all();
        while (!held_.empty()) {
            take_held(1);
        }
        while (!matching_.posted.empty()) {
            cancel_one(0);
        }
        while (!matching_.unexpected.empty()) {
            receive_one(matching_.unexpected.front().tag, one_tag, longest, 1);
            settle_all();
        }
        read_stream(1000);
    }

    void finish()
    {
        await([this] { return matching_.calls.empty() && active_.all_came(); });
    }

  private:
    void know(side &other)
    {
        other_ = &other;
        REQUIRE(create_ep(self_, other.self_.address(), &ep_) == UCS_OK);
    }

    // ---- the end of an endpoint: closed by the program, or by a callback while the worker's
    // progress runs

    // The other side closes when this comes.
    void say_farewell()
    {
        if (other_->parting_ == 2) {
            call *c = matching_.begin();
            ucp_request_param_t p = {};
            p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
            p.flags = UCP_AM_SEND_FLAG_EAGER; // a close does not wait for a rendezvous
            c->request = ucp_am_send_nbx(ep_, farewell, nullptr, 0, nullptr, 0, &p);
            REQUIRE(!UCS_PTR_IS_ERR(c->request));
        }
    }

    void begin_to_leave()
    {
        ucp_request_param_t p = {};
        p.op_attr_mask =
            UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        p.user_data = this;
        if (parting_ == 1) {
            call *c = matching_.begin();
            p.cb.send = [](void *, ucs_status_t status, void *arg) {
                REQUIRE(status == UCS_OK);
                static_cast<side *>(arg)->close();
            };
            c->request = ucp_ep_flush_nbx(ep_, &p);
            REQUIRE(UCS_PTR_IS_PTR(c->request));
        } else if (parting_ == 0) {
            close();
        }
    }

    void close()
    {
        closing_ = close_nb(ep_);
        REQUIRE(!UCS_PTR_IS_ERR(closing_));
        leaves_ = true;
    }

    template <class Condition>
    void await(Condition &&condition)
    {
        REQUIRE(run_until(
            {&self_, &other_->self_},
            [&] {
                sweep();
                other_->sweep();
                return condition();
            },
            seconds));
    }

    // ---- tagged messages

    void send_one(ucp_tag_t tag, size_t length, unsigned how)
    {
        message m = {tag, length, how + 1000 * ++seeds_};
        call *c = matching_.begin();
        c->data = pattern(length, m.seed);
        ucp_request_param_t p = {};
        const void *from = c->data.data();
        size_t count = length;
        if (how % 4 == 1) {
            from = cut(c, c->data.data(), length, &p);
            count = c->pieces.size();
        }
        c->request = how % 4 == 2 ? ucp_tag_send_sync_nbx(ep_, from, count, tag, &p)
                                  : ucp_tag_send_nbx(ep_, from, count, tag, &p);
        REQUIRE(!UCS_PTR_IS_ERR(c->request));
        other_->matching_.arrives(m);
    }

    static const void *cut(call *c, char *data, size_t length, ucp_request_param_t *p)
    {
        size_t first = length / 3;
        c->pieces = {{{data, first}, {data + first, 0}, {data + first, length - first}}};
        p->op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        p->datatype = ucp_dt_make_iov();
        return c->pieces.data();
    }

    ucp_request_param_t completes(call *c)
    {
        ucp_request_param_t p = {};
        p.op_attr_mask =
            UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        p.cb.recv = [](void *, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg) {
            auto *r = static_cast<receiving *>(arg);
            REQUIRE(!r->over);
            r->status = status;
            r->info = *info;
            r->over = true;
        };
        p.user_data = c->receive.get();
        return p;
    }

    call *expect(ucp_tag_t tag, ucp_tag_t mask, size_t room)
    {
        call *c = matching_.begin();
        c->receive.reset(new receiving{tag, mask, std::vector<char>(room), {}});
        return c;
    }

    void receive_one(ucp_tag_t tag, ucp_tag_t mask, size_t room, unsigned how)
    {
        call *c = expect(tag, mask, room);
        ucp_request_param_t p = completes(c);
        void *to = c->receive->buffer.data();
        size_t count = room;
        if (how == 0) {
            to = const_cast<void *>(cut(c, c->receive->buffer.data(), room, &p));
            count = c->pieces.size();
        }
        c->request = ucp_tag_recv_nbx(self_.worker, to, count, tag, mask, &p);
        REQUIRE(UCS_PTR_IS_PTR(c->request));
        matching_.post(c);
    }

    // All that was sent to this side has arrived, and what the model says has come has come.
    void settle_all()
    {
        receive_one(marker, one_tag, 0, 1);
        call *c = other_->matching_.begin();
        c->request = send_nb(other_->ep_, nullptr, 0, marker);
        REQUIRE(!UCS_PTR_IS_ERR(c->request));
        matching_.arrives({marker, 0, 0});
        await([this] { return matching_.settled(); });
    }

    // how: 0 looks, else takes the message away, for a receive later.
    void probe_one(ucp_tag_t tag, ucp_tag_t mask, unsigned how)
    {
        settle_all();
        receiving wanted = {tag, mask, {}, {}};
        auto at = matching_.first_for(wanted);
        ucp_tag_recv_info_t info = {};
        ucp_tag_message_h found = ucp_tag_probe_nb(self_.worker, tag, mask, how != 0, &info);
        REQUIRE((found != nullptr) == (at != matching_.unexpected.end()));
        if (!found) {
            return;
        }
        REQUIRE(info.length == at->length);
        REQUIRE(info.sender_tag == at->tag);
        if (how != 0) {
            held_.emplace_back(found, *at);
            matching_.unexpected.erase(at);
        }
    }

    void take_held(unsigned how)
    {
        if (held_.empty()) {
            return;
        }
        auto [handle, m] = held_.front();
        held_.pop_front();
        call *c = expect(m.tag, one_tag, how % 5 ? longest : m.length / 2);
        c->receive->bring(m);
        ucp_request_param_t p = completes(c);
        c->request = ucp_tag_msg_recv_nbx(self_.worker, c->receive->buffer.data(),
                                          c->receive->buffer.size(), handle, &p);
        REQUIRE(UCS_PTR_IS_PTR(c->request));
    }

    void cancel_one(unsigned which)
    {
        settle_all();
        if (matching_.posted.empty()) {
            return;
        }
        call *c = matching_.withdraw(which);
        ucp_request_cancel(self_.worker, c->request);
        await([&] { return !matching_.under_way(c); });
    }

    // ---- memory: one access at a time, beside the messages

    void access(unsigned what, unsigned number, size_t length, unsigned seed)
    {
        char *there = open_->data + number * slot;
        std::vector<char> bytes = pattern(length, seed), here(length);
        ucp_request_param_t p = {};
        ucs_status_ptr_t r;
        if (what == put) {
            r = ucp_put_nbx(ep_, bytes.data(), length, open_->at(number * slot), open_->rkey, &p);
        } else {
            memcpy(there, bytes.data(), length);
            r = ucp_get_nbx(ep_, here.data(), length, open_->at(number * slot), open_->rkey, &p);
        }
        finish_one(r);
        if (what == put) {
            flush_all();
        }
        REQUIRE(schedule::same(what == put ? there : here.data(), bytes.data(), length));
    }

    void flush_all() { finish_one(flush_nb(ep_)); }

    void finish_one(ucs_status_ptr_t request)
    {
        call c;
        c.request = request;
        await([&] { return sent(c); });
    }

    // ---- streams: the bytes of a side are numbered

    void write_stream(size_t length)
    {
        call *c = matching_.begin();
        c->data.resize(length);
        for (char &byte : c->data) {
            byte = static_cast<char>(written_++ * 7);
        }
        ucp_request_param_t p = {};
        c->request = ucp_stream_send_nbx(ep_, c->data.data(), length, &p);
        REQUIRE(!UCS_PTR_IS_ERR(c->request));
    }

    // A part of what the other side has written, in thousandths.
    void read_stream(unsigned part)
    {
        size_t length = (other_->written_ - read_) * part / 1000;
        std::vector<char> bytes(length);
        for (size_t have = 0; have < length;) {
            size_t got = 0;
            ucp_request_param_t p = {};
            p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
            p.flags = part % 2 ? UCP_STREAM_RECV_FLAG_WAITALL : 0;
            ucs_status_ptr_t r =
                ucp_stream_recv_nbx(ep_, bytes.data() + have, length - have, &got, &p);
            if (UCS_PTR_IS_PTR(r)) {
                ucs_status_t status = UCS_INPROGRESS;
                await([&] {
                    status = ucp_stream_recv_request_test(r, &got);
                    return status != UCS_INPROGRESS;
                });
                ucp_request_free(r);
                REQUIRE(status == UCS_OK);
            } else {
                REQUIRE(r == nullptr);
            }
            have += got;
        }
        for (char byte : bytes) {
            REQUIRE(byte == static_cast<char>(read_++ * 7));
        }
    }

    void send_active(size_t length, unsigned how)
    {
        call *c = matching_.begin();
        am_header h = {static_cast<uint32_t>(length), how + 1000 * ++seeds_};
        c->data = pattern(length, h.seed);
        c->header = h;
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        p.flags = how % 3 == 0 ? UCP_AM_SEND_FLAG_EAGER : how % 3 == 1 ? UCP_AM_SEND_FLAG_RNDV : 0;
        other_->active_.expect(h);
        c->request = ucp_am_send_nbx(ep_, messages, &c->header, sizeof(c->header), c->data.data(),
                                     length, &p);
        REQUIRE(!UCS_PTR_IS_ERR(c->request));
    }

    // ---- completions

    void sweep()
    {
        std::erase_if(matching_.calls, [](call &c) { return c.receive ? received(c) : sent(c); });
        active_.sweep();
    }

    static bool sent(const call &c)
    {
        if (!UCS_PTR_IS_PTR(c.request)) {
            return true;
        }
        ucs_status_t status = ucp_request_check_status(c.request);
        if (status == UCS_INPROGRESS) {
            return false;
        }
        REQUIRE(status == UCS_OK);
        ucp_request_free(c.request);
        return true;
    }

    static bool received(const call &c)
    {
        const receiving &r = *c.receive;
        if (!r.over) {
            return false;
        }
        ucp_request_free(c.request);
        if (r.cancelled) {
            REQUIRE(r.status == UCS_ERR_CANCELED);
            return true;
        }
        REQUIRE(r.brings.has_value());
        if (r.brings->length > r.buffer.size()) {
            REQUIRE(r.status == UCS_ERR_MESSAGE_TRUNCATED);
            return true;
        }
        REQUIRE(r.status == UCS_OK);
        REQUIRE(r.info.length == r.brings->length);
        REQUIRE(r.info.sender_tag == r.brings->tag);
        std::vector<char> bytes = pattern(r.brings->length, r.brings->seed);
        REQUIRE(schedule::same(r.buffer.data(), bytes.data(), bytes.size()));
        return true;
    }

    entity self_;
    side *other_ = nullptr;
    ucp_ep_h ep_ = nullptr;
    std::optional<region> open_;         // of the other side
    ucs_status_ptr_t closing_ = nullptr; // when leaves_ is true
    std::atomic<bool> leaves_ = false;
    unsigned parting_ = 0; // how the schedule wants the endpoint closed
    schedule::matching<call, message> matching_;
    std::list<std::pair<ucp_tag_message_h, message>> held_;
    active_messages active_; // that come
    size_t written_ = 0, read_ = 0;
    unsigned seeds_ = 0;
};

} // namespace ucp_model
