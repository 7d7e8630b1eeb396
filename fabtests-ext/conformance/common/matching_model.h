// SPDX-License-Identifier: BSD-3-Clause
//
// What the models of schedules (rdm_model.h, ucp_model.h) share: the sizes that steps choose from,
// and which receive a message meets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <list>

namespace schedule {

constexpr size_t lengths[] = {0, 8, 300, 5000, 40'000, 130'000};
constexpr size_t longest = 130'000;
constexpr size_t slot = 40'000, slots = 4; // of the memory that puts and gets reach

inline size_t length_of(unsigned number)
{
    return lengths[number % std::size(lengths)];
}

// The calls of one side, and the messages that have come to it before their receives. A call that
// is a receive has `receive`, which takes(message) or not, and bring(message)s one when they have
// met.
template <class Call, class Message>
struct matching {
    std::list<Call> calls;    // under way
    std::list<Call *> posted; // those of them that wait for a message
    std::list<Message> unexpected;

    Call *begin()
    {
        calls.emplace_back();
        return &calls.back();
    }

    bool under_way(const Call *call) const
    {
        return std::any_of(calls.begin(), calls.end(), [&](const Call &i) { return &i == call; });
    }

    void arrives(const Message &m)
    {
        auto r = std::find_if(posted.begin(), posted.end(),
                              [&](Call *c) { return c->receive->takes(m); });
        if (r == posted.end()) {
            unexpected.push_back(m);
        } else {
            (*r)->receive->bring(m);
            posted.erase(r);
        }
    }

    void post(Call *c)
    {
        auto m = first_for(*c->receive);
        if (m == unexpected.end()) {
            posted.push_back(c);
        } else {
            c->receive->bring(*m);
            unexpected.erase(m);
        }
    }

    template <class Receive>
    typename std::list<Message>::iterator first_for(const Receive &r)
    {
        return std::find_if(unexpected.begin(), unexpected.end(),
                            [&](const Message &m) { return r.takes(m); });
    }

    // What has met a message has ended.
    bool settled() const
    {
        return std::none_of(calls.begin(), calls.end(),
                            [](const Call &c) { return c.receive && c.receive->brings; });
    }

    // For a receive that is to be cancelled: one of those posted, of which there are some.
    Call *withdraw(unsigned which)
    {
        auto at = std::next(posted.begin(), static_cast<long>(which % posted.size()));
        Call *c = *at;
        posted.erase(at);
        c->receive->cancelled = true;
        return c;
    }
};

} // namespace schedule
