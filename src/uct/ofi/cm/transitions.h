// SPDX-License-Identifier: BSD-3-Clause
// A state machine as data: rows (from, event -> to, action). A cell that has no row is an event
// that is not allowed in that state; the caller refuses it.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <stdexcept>

namespace uct::ofi {

template <class State, class Event, class Action>
struct transition {
    State from;
    Event event;
    State to;
    Action action;
};

// Both enums end with `count`.
template <class State, class Event, class Action>
class transition_table {
  public:
    using row = transition<State, Event, Action>;
    static constexpr auto states = static_cast<size_t>(State::count);
    static constexpr auto events = static_cast<size_t>(Event::count);

    // Two rows for one cell do not compile.
    template <size_t N>
    consteval explicit transition_table(const row (&rows)[N])
    {
        for (const row &r : rows) {
            std::optional<row> &cell = cell_of(r.from, r.event);
            if (cell) {
                throw std::logic_error("two rows for one state and event");
            }
            cell = r;
        }
    }

    // nullptr: not allowed.
    constexpr const row *find(State from, Event event) const noexcept
    {
        const std::optional<row> &cell =
            cells_[static_cast<size_t>(from) * events + static_cast<size_t>(event)];
        return cell ? &*cell : nullptr;
    }

  private:
    constexpr std::optional<row> &cell_of(State from, Event event)
    {
        return cells_[static_cast<size_t>(from) * events + static_cast<size_t>(event)];
    }

    std::array<std::optional<row>, states * events> cells_{};
};

} // namespace uct::ofi
