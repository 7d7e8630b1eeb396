// SPDX-License-Identifier: BSD-3-Clause
#include "uct/ofi/core/wait_set.h"

#include "ucs/epoll_set.h"
#include "ucs/error.h"
#include "ucs/log.h"

#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

namespace uct::ofi {

wait_set::~wait_set()
{
    if (fd_ >= 0) {
        close(fd_);
    }
}

// Two queues may have the same descriptor.
bool wait_set::add(int fd)
{
    epoll_event event{.events = EPOLLIN, .data = {}};
    return epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) == 0 || errno == EEXIST;
}

bool wait_set::open(const std::vector<fid_t> &queues, int always)
{
    std::vector<int> found;
    for (fid_t queue : queues) {
        int fd = -1;
        if (fi_control(queue, FI_GETWAIT, &fd) != 0) {
            return false;
        }
        for (int inner : ucs::without_a_level(fd)) {
            found.push_back(inner);
        }
    }
    fd_ = epoll_create1(EPOLL_CLOEXEC);
    if (fd_ < 0) {
        throw ucs::error(UCS_ERR_IO_ERROR, "epoll_create1: %s", strerror(errno));
    }
    queues_ = std::move(found);
    armed_ = false;
    if ((always < 0 || add(always)) && arm() == UCS_OK) {
        return true;
    }
    disarm();
    close(fd_);
    fd_ = -1;
    queues_.clear();
    return false;
}

ucs_status_t wait_set::arm()
{
    polls_ = 0;
    met_ = false;
    if (armed_) {
        return UCS_OK;
    }
    ucs_status_t status = signal_.unmute();
    if (status != UCS_OK) {
        return status;
    }
    for (int fd : queues_) {
        if (!add(fd)) {
            ucs_error("a queue's descriptor %d cannot be waited on: %s", fd, strerror(errno));
            return UCS_ERR_IO_ERROR;
        }
    }
    armed_ = true;
    return UCS_OK;
}

void wait_set::count_poll(unsigned found)
{
    met_ = met_ || found > 0;
    if (++polls_ >= awake_after && met_) {
        disarm();
    }
}

void wait_set::disarm()
{
    for (int fd : queues_) {
        epoll_ctl(fd_, EPOLL_CTL_DEL, fd, nullptr);
    }
    signal_.mute_again();
    armed_ = false;
}

} // namespace uct::ofi
