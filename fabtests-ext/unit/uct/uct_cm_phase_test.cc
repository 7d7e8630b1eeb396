// SPDX-License-Identifier: BSD-3-Clause
// The tables of a connection's phases: each cell has the result that is written here, and no order
// of events tells the program anything twice, too early or to the wrong side.
#include "uct/ofi/cm/phase.h"

#include <gtest/gtest.h>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace {

using namespace uct::ofi;

template <class E>
std::vector<E> all_of()
{
    std::vector<E> all;
    for (size_t i = 0; i < static_cast<size_t>(E::count); ++i) {
        all.push_back(static_cast<E>(i));
    }
    return all;
}

// What is allowed in each phase: "event>phase"; everything else is refused. Each phase but gone has
// "retire>gone" as well.
const std::map<std::string, std::string> allowed = {
    {"resolving", "route>resolved prepare>prepared give_up>over broken>over"},
    {"prepared", "route>ready give_up>over broken>over"},
    {"resolved", "prepare>connecting give_up>over broken>over"},
    {"ready", "go>connecting give_up>over broken>over"},
    {"connecting", "ACCEPT>answering CONTINUE>continuing REJECT>over give_up>over broken>over"},
    {"continuing", "REPLY>answering REJECT>over give_up>over broken>over"},
    {"answering", "DATA>answering complete>established give_up>over broken>over"},
    {"established", "confirm>open DISCONNECT>left give_up>over broken>over"},
    {"arrived", "CONNECT>collecting refuse>lingering broken>over"},
    {"collecting", "DATA>collecting complete>requested refuse>lingering broken>over late>over"},
    {"requested", "offer>offered refuse>lingering broken>over"},
    {"offered", "accepted>accepting refuse>lingering broken>over"},
    {"accepting", "NOTIFY>open broken>over late>over"},
    {"open", "DISCONNECT>left part>lingering broken>over"},
    {"left", "DISCONNECT>left broken>over"},
    {"over", "broken>over"},
    {"lingering", "broken>over late>over"},
    {"gone", "broken>gone"},
};

std::map<std::string, std::string> cells_of(const std::string &phase)
{
    std::map<std::string, std::string> cells;
    std::istringstream words(allowed.at(phase) + (phase == "gone" ? "" : " retire>gone"));
    for (std::string word; words >> word;) {
        size_t arrow = word.find('>');
        cells[word.substr(0, arrow)] = word.substr(arrow + 1);
    }
    return cells;
}

TEST(uct_cm_phase, each_event_has_its_result_in_each_phase)
{
    for (cm_phase p : all_of<cm_phase>()) {
        auto cells = cells_of(name_of(p));
        for (cm_event e : all_of<cm_event>()) {
            const auto *row = cm_phases.find(p, e);
            auto expected = cells.find(name_of(e));
            EXPECT_EQ(expected == cells.end() ? "refused" : expected->second,
                      row ? name_of(row->to) : "refused")
                << name_of(e) << " while " << name_of(p);
            cells.erase(name_of(e));
        }
        EXPECT_TRUE(cells.empty()) << "unknown event " << cells.begin()->first;
    }
}

// What a program was told on the way to a phase.
struct told {
    cm_phase phase;
    bool request = false;
    bool result = false; // CONNECT or NOTIFY
    bool good = false;   // that the connection is open
    bool end = false;    // DISCONNECT
    auto operator<=>(const told &) const = default;
};

void tell(told &t, const cm_phase_table::row &row, bool server)
{
    switch (row.action) {
    case cm_action::tell_request:
        EXPECT_TRUE(server);
        EXPECT_FALSE(t.request);
        t.request = true;
        return;
    case cm_action::tell_connect:
    case cm_action::tell_notify:
        EXPECT_EQ(server, row.action == cm_action::tell_notify);
        EXPECT_FALSE(t.result);
        t.result = true;
        t.good = row.to != cm_phase::over;
        return;
    case cm_action::tell_disconnect:
        EXPECT_TRUE(t.good);
        EXPECT_FALSE(t.end);
        t.end = true;
        return;
    case cm_action::drop: // only what no program waits for
        EXPECT_TRUE(row.from == cm_phase::lingering || (server && !t.result));
        return;
    default:
        return;
    }
}

std::set<told> follow(cm_phase first)
{
    bool server = !is_connecting(first);
    std::set<told> seen{{first}};
    std::vector<told> open{{first}};
    while (!open.empty()) {
        told from = open.back();
        open.pop_back();
        for (cm_event e : all_of<cm_event>()) {
            const auto *row = cm_phases.find(from.phase, e);
            if (!row) {
                continue;
            }
            SCOPED_TRACE(std::string(name_of(e)) + " while " + name_of(from.phase));
            told next = from;
            next.phase = row->to;
            tell(next, *row, server);
            if (seen.insert(next).second) {
                open.push_back(next);
            }
        }
    }
    return seen;
}

TEST(uct_cm_phase, no_order_of_events_tells_anything_twice_or_too_early)
{
    std::set<cm_phase> reached;
    for (cm_phase first : {cm_phase::resolving, cm_phase::arrived, cm_phase::offered}) {
        for (const told &t : follow(first)) {
            reached.insert(t.phase);
            if (t.phase == cm_phase::established || t.phase == cm_phase::open) {
                EXPECT_TRUE(t.good && !t.end) << name_of(t.phase);
            }
            if (t.phase == cm_phase::left) {
                EXPECT_TRUE(t.good && t.end);
            }
        }
    }
    EXPECT_EQ(all_of<cm_phase>().size(), reached.size());
}

// Whatever is refused ends in fail(), so that must be possible, and from everywhere to the end.
TEST(uct_cm_phase, everything_can_break_and_everything_ends)
{
    for (cm_phase p : all_of<cm_phase>()) {
        const auto *row = cm_phases.find(p, cm_event::broken);
        ASSERT_TRUE(row) << name_of(p);
        EXPECT_TRUE(row->to == cm_phase::over || row->to == cm_phase::gone) << name_of(p);
        EXPECT_EQ(p != cm_phase::gone, cm_phases.find(p, cm_event::retire) != nullptr)
            << name_of(p);
    }
}

// A peer can say nothing once its connection is over, and has one message to say at each step of
// the handshake, or two where it may refuse.
TEST(uct_cm_phase, a_peer_that_speaks_out_of_turn_is_refused)
{
    for (cm_phase p : all_of<cm_phase>()) {
        int accepted = 0;
        for (auto type = cm_wire::type::connect; type <= cm_wire::type::disconnect;
             type = static_cast<cm_wire::type>(static_cast<int>(type) + 1)) {
            accepted += cm_phases.find(p, event_of(type)) != nullptr;
        }
        bool silent = p < cm_phase::connecting || p == cm_phase::requested ||
                      p == cm_phase::offered || p >= cm_phase::over;
        EXPECT_EQ(silent, accepted == 0) << name_of(p);
        EXPECT_LE(accepted, p == cm_phase::connecting ? 3 : 2) << name_of(p);
    }
}

TEST(uct_cm_phase, the_program_hears_of_an_end_and_leaves_once_each)
{
    using v = cm_view;
    using e = cm_view_event;
    const std::map<std::pair<v, e>, v> expected = {
        {{v::waiting, e::told_open}, v::open}, {{v::open, e::told_end}, v::ended},
        {{v::open, e::leave}, v::leaving},     {{v::leaving, e::told_end}, v::parted},
        {{v::ended, e::leave}, v::parted},
    };
    for (v from : all_of<v>()) {
        for (e event : all_of<e>()) {
            const auto *row = cm_views.find(from, event);
            auto cell = expected.find({from, event});
            ASSERT_EQ(cell != expected.end(), row != nullptr)
                << static_cast<int>(from) << ' ' << static_cast<int>(event);
            EXPECT_TRUE(!row || row->to == cell->second);
        }
    }
}

} // namespace
