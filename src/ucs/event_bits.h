// SPDX-License-Identifier: BSD-3-Clause
// The event bits of the public interface and those of epoll, either way.
#pragma once

#include <ucs/sys/event_set.h>

#include <cstdint>
#include <sys/epoll.h>

namespace ucs {

inline constexpr struct {
    unsigned set;
    uint32_t epoll;
} event_bits[] = {{UCS_EVENT_SET_EVREAD, EPOLLIN},
                  {UCS_EVENT_SET_EVWRITE, EPOLLOUT},
                  {UCS_EVENT_SET_EVERR, EPOLLERR},
                  {UCS_EVENT_SET_EDGE_TRIGGERED, EPOLLET}};

constexpr uint32_t to_epoll(unsigned events)
{
    uint32_t bits = 0;
    for (const auto &bit : event_bits) {
        bits |= events & bit.set ? bit.epoll : 0;
    }
    return bits;
}

constexpr ucs_event_set_types_t from_epoll(uint32_t events)
{
    unsigned bits = 0;
    for (const auto &bit : event_bits) {
        bits |= events & bit.epoll ? bit.set : 0;
    }
    return static_cast<ucs_event_set_types_t>(bits);
}

} // namespace ucs
