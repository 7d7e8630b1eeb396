// SPDX-License-Identifier: BSD-3-Clause
//
// What a second thread does with the two workers of a schedule (ucp_model.h) beside the thread that
// carries it out: active messages, puts and gets between each of them and a third worker, over
// endpoints of its own, some of which come and go. Not between the two: endpoints to one worker are
// paired with its own ones in the order in which they are made.
#pragma once

#include "fabtests-ext/common/ucp_region.h"
#include "fabtests-ext/conformance/common/matching_model.h"
#include "fabtests-ext/conformance/common/ucp_model_calls.h"

#include <optional>

namespace ucp_model {

class beside {
  public:
    // Before the second thread begins.
    beside(const options &o, entity &a, entity &b)
        : third_(o), all_{&a, &b, &third_}, come_{{{a.worker, visits},
                                                   {b.worker, visits},
                                                   {third_.worker, visits}}}
    {
        for (way &w : ways_) {
            w.ep = meet(w);
            w.open.emplace(*all_[w.to], w.ep, nullptr, schedule::longest);
        }
    }
    // After it has ended.
    ~beside()
    {
        for (way &w : ways_) {
            w.open.reset();
            leave(w.ep);
        }
    }
    beside(const beside &) = delete;

    void turn()
    {
        way &w = ways_[++turns_ % ways_.size()];
        say(w, w.ep, schedule::length_of(turns_ * 37 % 1000));
        access(w, schedule::length_of(turns_ * 71 % 1000));
        if (turns_ % 9 == 0) {
            ucp_ep_h visitor = meet(w);
            say(w, visitor, 8);
            leave(visitor);
        }
    }

  private:
    // From one of the workers to another.
    struct way {
        size_t from, to;
        ucp_ep_h ep = nullptr;
        std::optional<region> open = std::nullopt; // of `to`
    };

    ucp_ep_h meet(const way &w)
    {
        ucp_ep_h ep = nullptr;
        REQUIRE(create_ep(*all_[w.from], all_[w.to]->address(), &ep) == UCS_OK);
        return ep;
    }
    void leave(ucp_ep_h ep) { finish(close_nb(ep)); }

    void say(const way &w, ucp_ep_h ep, size_t length)
    {
        am_header h = {static_cast<uint32_t>(length), ++seeds_};
        std::vector<char> data = pattern(length, h.seed);
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        p.flags = turns_ % 3 == 0   ? UCP_AM_SEND_FLAG_EAGER
                  : turns_ % 3 == 1 ? UCP_AM_SEND_FLAG_RNDV
                                    : 0;
        active_messages &there = come_[w.to];
        there.expect(h);
        finish(ucp_am_send_nbx(ep, visits, &h, sizeof(h), data.data(), length, &p));
        REQUIRE(progress_until([&] {
            there.sweep();
            return there.all_came();
        }));
    }

    void access(const way &w, size_t length)
    {
        std::vector<char> there = pattern(length, turns_), here(length);
        ucp_request_param_t p = {};
        finish(ucp_put_nbx(w.ep, there.data(), length, w.open->at(), w.open->rkey, &p));
        finish(flush_nb(w.ep));
        finish(ucp_get_nbx(w.ep, here.data(), length, w.open->at(), w.open->rkey, &p));
        REQUIRE(schedule::same(here.data(), there.data(), length));
    }

    bool progress_until(const std::function<bool()> &done)
    {
        return run_until({all_[0], all_[1], all_[2]}, done, seconds);
    }
    void finish(ucs_status_ptr_t request)
    {
        REQUIRE(wait({all_[0], all_[1], all_[2]}, request, seconds) == UCS_OK);
    }

    entity third_;
    const std::array<entity *, 3> all_;
    std::array<active_messages, 3> come_;
    std::array<way, 4> ways_ = {{{0, 2}, {2, 0}, {1, 2}, {2, 1}}};
    unsigned turns_ = 0;
    uint32_t seeds_ = 0;
};

} // namespace ucp_model
