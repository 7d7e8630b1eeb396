// SPDX-License-Identifier: BSD-3-Clause
// The tables of phase.h.
#include "uct/ofi/cm/phase.h"

namespace uct::ofi {

namespace {

using p = cm_phase;
using e = cm_event;
using a = cm_action;

constexpr cm_phase_table::row phase_rows[] = {
    // Client.
    {p::resolving, e::route, p::resolved, a::none},
    {p::resolving, e::prepare, p::prepared, a::none},
    {p::resolving, e::give_up, p::over, a::none},
    {p::resolving, e::broken, p::over, a::tell_connect},
    {p::prepared, e::route, p::ready, a::none},
    {p::prepared, e::give_up, p::over, a::none},
    {p::prepared, e::broken, p::over, a::tell_connect},
    {p::resolved, e::prepare, p::connecting, a::connect},
    {p::resolved, e::give_up, p::over, a::none},
    {p::resolved, e::broken, p::over, a::tell_connect},
    {p::ready, e::go, p::connecting, a::connect},
    {p::ready, e::give_up, p::over, a::none},
    {p::ready, e::broken, p::over, a::tell_connect},
    {p::connecting, e::accept, p::answering, a::none},
    {p::connecting, e::proceed, p::continuing, a::send_rest},
    {p::connecting, e::reject, p::over, a::tell_connect},
    {p::connecting, e::broken, p::over, a::tell_connect},
    {p::continuing, e::reply, p::answering, a::none},
    {p::continuing, e::reject, p::over, a::tell_connect},
    {p::continuing, e::broken, p::over, a::tell_connect},
    {p::answering, e::data, p::answering, a::none},
    {p::answering, e::complete, p::established, a::tell_connect},
    {p::answering, e::broken, p::over, a::tell_connect},
    {p::established, e::confirm, p::open, a::none},
    {p::established, e::disconnect, p::left, a::tell_disconnect},
    {p::established, e::broken, p::over, a::tell_disconnect},
    // The program objects while it is told of the way: what it began meanwhile ends.
    {p::connecting, e::give_up, p::over, a::none},
    {p::continuing, e::give_up, p::over, a::none},
    {p::answering, e::give_up, p::over, a::none},
    {p::established, e::give_up, p::over, a::none},
    {p::open, e::part, p::lingering, a::none},
    // Server.
    {p::arrived, e::connect, p::collecting, a::none},
    {p::arrived, e::refuse, p::lingering, a::none},
    {p::arrived, e::broken, p::over, a::drop},
    {p::collecting, e::data, p::collecting, a::none},
    {p::collecting, e::complete, p::requested, a::tell_request},
    {p::collecting, e::refuse, p::lingering, a::none},
    {p::collecting, e::broken, p::over, a::drop},
    {p::collecting, e::late, p::over, a::drop},
    {p::requested, e::offer, p::offered, a::none},
    {p::requested, e::refuse, p::lingering, a::none},
    {p::requested, e::broken, p::over, a::drop},
    {p::offered, e::accepted, p::accepting, a::none},
    {p::offered, e::refuse, p::lingering, a::none},
    {p::offered, e::broken, p::over, a::none}, // the program will answer, and hears of it then
    {p::accepting, e::notify, p::open, a::tell_notify},
    {p::accepting, e::broken, p::over, a::tell_notify},
    {p::accepting, e::late, p::over, a::tell_notify},
    {p::lingering, e::broken, p::over, a::drop},
    {p::lingering, e::late, p::over, a::drop},
    // Both.
    {p::open, e::disconnect, p::left, a::tell_disconnect},
    {p::open, e::broken, p::over, a::tell_disconnect},
    {p::left, e::disconnect, p::left, a::none},
    {p::left, e::broken, p::over, a::none},
    // What broke may be found broken again, also on the way out of the function that found it.
    {p::over, e::broken, p::over, a::none},
    {p::gone, e::broken, p::gone, a::none},
    // From everywhere.
    {p::resolving, e::retire, p::gone, a::none},
    {p::prepared, e::retire, p::gone, a::none},
    {p::resolved, e::retire, p::gone, a::none},
    {p::ready, e::retire, p::gone, a::none},
    {p::connecting, e::retire, p::gone, a::none},
    {p::continuing, e::retire, p::gone, a::none},
    {p::answering, e::retire, p::gone, a::none},
    {p::established, e::retire, p::gone, a::none},
    {p::arrived, e::retire, p::gone, a::none},
    {p::collecting, e::retire, p::gone, a::none},
    {p::requested, e::retire, p::gone, a::none},
    {p::offered, e::retire, p::gone, a::none},
    {p::accepting, e::retire, p::gone, a::none},
    {p::open, e::retire, p::gone, a::none},
    {p::left, e::retire, p::gone, a::none},
    {p::over, e::retire, p::gone, a::none},
    {p::lingering, e::retire, p::gone, a::none},
};

using v = cm_view;
using ve = cm_view_event;

constexpr cm_view_table::row view_rows[] = {
    {v::waiting, ve::told_open, v::open, a::none}, {v::open, ve::leave, v::leaving, a::none},
    {v::open, ve::told_end, v::ended, a::none},    {v::leaving, ve::told_end, v::parted, a::none},
    {v::ended, ve::leave, v::parted, a::none},
};

constexpr const char *phase_names[] = {
    "resolving", "prepared",    "resolved", "ready",      "connecting", "continuing",
    "answering", "established", "arrived",  "collecting", "requested",  "offered",
    "accepting", "open",        "left",     "over",       "lingering",  "gone"};
static_assert(std::size(phase_names) == cm_phase_table::states);

constexpr const char *event_names[] = {
    "CONNECT",    "ACCEPT",   "CONTINUE", "REJECT", "REPLY",    "DATA",    "NOTIFY",
    "DISCONNECT", "complete", "route",    "broken", "late",     "prepare", "go",
    "give_up",    "confirm",  "part",     "offer",  "accepted", "refuse",  "retire"};
static_assert(std::size(event_names) == cm_phase_table::events);

} // namespace

constinit const cm_phase_table cm_phases(phase_rows);
constinit const cm_view_table cm_views(view_rows);

const char *name_of(cm_phase phase)
{
    return phase_names[static_cast<size_t>(phase)];
}

const char *name_of(cm_event event)
{
    return event_names[static_cast<size_t>(event)];
}

} // namespace uct::ofi
