// SPDX-License-Identifier: BSD-3-Clause
//
// One pidfd for each watched process.
#include "ucp/endpoint/process_watch.h"

#include "ucp/core/worker.h"

#include <atomic>
#include <cerrno>
#include <map>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace ucp {

namespace {

std::atomic<unsigned> watched = 0;

// A child process has its parent's entries, and not its helper thread.
struct watch_table {
    static watch_table &get()
    {
        static auto *all = new watch_table; // outlives every worker
        return *all;
    }

    std::mutex mutex;
    std::map<std::pair<pid_t, pid_t>, std::weak_ptr<process_watch>> processes; // ours, the other
};

} // namespace

process_watch::user::user(std::shared_ptr<process_watch> watch, ucp_worker *worker, uint64_t ep_id)
    : watch_(std::move(watch)), worker_(worker), promise_(worker, 1), ep_id_(ep_id)
{
    std::lock_guard guard(watch_->mutex_);
    watch_->users_.push_back(this);
    if (watch_->ended_) {
        tell(*this);
    }
}

process_watch::user::~user()
{
    std::lock_guard guard(watch_->mutex_);
    std::erase(watch_->users_, this);
}

std::shared_ptr<process_watch> process_watch::of(pid_t pid, bool *ended)
{
    *ended = false;
    watch_table &table = watch_table::get();
    std::lock_guard guard(table.mutex);
    std::erase_if(table.processes, [](const auto &entry) { return entry.second.expired(); });
    std::weak_ptr<process_watch> &known = table.processes[{getpid(), pid}];
    std::shared_ptr<process_watch> watch = known.lock();
    if (watch) {
        std::lock_guard inner(watch->mutex_);
        if (!watch->ended_) {
            return watch;
        }
    }
    if (watched.load(std::memory_order_relaxed) >= most) {
        return nullptr;
    }
    int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (pidfd < 0) {
        *ended = errno == ESRCH;
        return nullptr;
    }
    try {
        watch = std::make_shared<process_watch>(pidfd);
    } catch (...) {
        close(pidfd);
        throw;
    }
    known = watch;
    return watch;
}

process_watch::process_watch(int pidfd)
    : pidfd_(pidfd),
      watch_(ucs::async_watch::fd(
          pidfd, EPOLLIN | EPOLLONESHOT,
          [](void *arg, uint32_t) { static_cast<process_watch *>(arg)->tell_all(); }, this))
{
    watched.fetch_add(1, std::memory_order_relaxed);
}

process_watch::~process_watch()
{
    watch_.reset();
    close(pidfd_);
    watched.fetch_sub(1, std::memory_order_relaxed);
}

void process_watch::tell_all()
{
    std::lock_guard guard(mutex_);
    ended_ = true;
    for (const user *u : users_) {
        tell(*u);
    }
}

void process_watch::tell(const user &u) noexcept
{
    u.worker_->post_event({event::kind::disconnected, UCS_OK, u.ep_id_});
}

} // namespace ucp
