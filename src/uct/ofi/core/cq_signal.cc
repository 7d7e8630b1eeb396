// SPDX-License-Identifier: BSD-3-Clause
// Finds the descriptor that the core signals through what the kernel tells of the epoll set.
#include "uct/ofi/core/cq_signal.h"

#include "ucs/epoll_set.h"
#include "ucs/log.h"

#include <cerrno>
#include <cstring>
#include <sys/epoll.h>

namespace uct::ofi {

void cq_signal::mute(fid_cq *cq)
{
    int set = -1;
    if (fi_control(&cq->fid, FI_GETWAIT, &set) != 0) {
        return;
    }
    std::vector<ucs::epoll_member> members = ucs::members_of(set);
    if (members.size() != 1 || epoll_ctl(set, EPOLL_CTL_DEL, members[0].fd, nullptr) != 0) {
        return;
    }
    set_ = set;
    signal_ = members[0].fd;
    tag_ = reinterpret_cast<void *>(members[0].data);
}

ucs_status_t cq_signal::unmute()
{
    if (signal_ < 0) {
        return UCS_OK;
    }
    epoll_event event{.events = EPOLLIN, .data = {.ptr = tag_}};
    if (epoll_ctl(set_, EPOLL_CTL_ADD, signal_, &event) != 0 && errno != EEXIST) {
        ucs_error("a queue's descriptor %d cannot be waited on: %s", signal_, strerror(errno));
        return UCS_ERR_IO_ERROR;
    }
    return UCS_OK;
}

void cq_signal::mute_again()
{
    if (signal_ >= 0) {
        epoll_ctl(set_, EPOLL_CTL_DEL, signal_, nullptr);
    }
}

} // namespace uct::ofi
