// SPDX-License-Identifier: BSD-3-Clause
//
// Memory is registered for write protection, which is never switched on: no access traps, and the
// kernel reports the events. Whole mappings are registered, because the kernel splits a mapping at
// the borders of what is registered, and mremap refuses a range of two mappings.
#include "ucs/rcache/memory_watch.h"

#include "ucs/log.h"
#include "ucs/rcache/memory_map.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <system_error>
#include <thread>
#include <unistd.h>

namespace ucs {

namespace {

#ifdef UFFD_USER_MODE_ONLY
constexpr int user_mode_only = UFFD_USER_MODE_ONLY;
#else
constexpr int user_mode_only = 1; // Linux 5.11
#endif

// The memory of a process is one, and so is what watches it. Never destroyed: threads may end after
// the destructors have run.
struct watch_state {
    std::mutex control; // join and leave
    std::mutex mutex;   // lock()
    list<memory_watch::listener, &memory_watch::listener::watch_link> listeners;
    std::atomic<int> fd{-1};
    int stop = -1;
    std::thread thread;
    std::atomic<bool> lost{false};

    // Under the mutex.
    void tell(uintptr_t begin, uintptr_t end) noexcept
    {
        for (memory_watch::listener *l : listeners) {
            l->memory_gone(begin, end);
        }
    }
};

watch_state &the_watch() noexcept
{
    static auto *const watch = new watch_state;
    return *watch;
}

// Returns the descriptor, or -1 with the reason.
int open_userfaultfd(std::string *reason)
{
    int flags = O_CLOEXEC | O_NONBLOCK;
    int fd = static_cast<int>(syscall(SYS_userfaultfd, flags));
    if (fd < 0 && errno == EPERM) { // no access from the kernel traps either: this is enough
        fd = static_cast<int>(syscall(SYS_userfaultfd, flags | user_mode_only));
    }
    if (fd < 0) {
        *reason = std::string("the kernel refuses userfaultfd: ") + strerror(errno);
        return -1;
    }
    uffdio_api api = {.api = UFFD_API,
                      .features = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP |
                                  UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_PAGEFAULT_FLAG_WP,
                      .ioctls = 0};
    if (ioctl(fd, UFFDIO_API, &api) != 0) {
        *reason = std::string("userfaultfd does not report what unmaps memory: ") + strerror(errno);
        close(fd);
        return -1;
    }
    return fd;
}

void read_events(watch_state &watch, int fd) noexcept
{
    uffd_msg events[16];
    std::lock_guard guard(watch.mutex);
    ssize_t bytes = read(fd, events, sizeof(events));
    for (ssize_t at = 0; at + ssize_t(sizeof(uffd_msg)) <= bytes; at += sizeof(uffd_msg)) {
        const uffd_msg &event = events[size_t(at) / sizeof(uffd_msg)];
        if (event.event == UFFD_EVENT_REMAP) {
            watch.tell(event.arg.remap.from, event.arg.remap.from + event.arg.remap.len);
        } else if (event.event == UFFD_EVENT_UNMAP || event.event == UFFD_EVENT_REMOVE) {
            watch.tell(event.arg.remove.start, event.arg.remove.end);
        }
    }
}

// The stack of this thread may lie in memory that is registered, and is given back when it ends:
// the thread itself closes the descriptor before.
void run_watch(watch_state &watch, int fd, int stop) noexcept
{
    pollfd fds[2] = {{fd, POLLIN, 0}, {stop, POLLIN, 0}};
    while (!fds[1].revents) {
        if (poll(fds, 2, -1) > 0 && fds[0].revents) {
            read_events(watch, fd);
        }
    }
    close(fd);
}

// A child gets copies of pages, and a page that the parent writes afterwards may be another one
// than the device has.
void before_fork() noexcept
{
    watch_state &watch = the_watch();
    if (watch.fd >= 0) {
        std::lock_guard guard(watch.mutex);
        watch.tell(0, UINTPTR_MAX);
    }
}

// The descriptor is the parent's. While we keep it open, its memory stays registered.
void in_child() noexcept
{
    watch_state &watch = the_watch();
    int fd = watch.fd.exchange(-1);
    if (fd >= 0) {
        watch.lost = true;
        close(fd);
        close(watch.stop);
    }
}

// Signals are for the program's threads.
void start_thread(watch_state &watch, int fd)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        watch.thread = std::thread([&watch, fd, stop = watch.stop] { run_watch(watch, fd, stop); });
    } catch (...) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Under control.
bool start(watch_state &watch)
{
    static const bool follows_forks = pthread_atfork(before_fork, nullptr, in_child) == 0;
    std::string reason;
    int fd = follows_forks ? open_userfaultfd(&reason) : -1;
    if (fd < 0) {
        ucs_debug("memory is not watched: %s", reason.c_str());
        return false;
    }
    watch.stop = eventfd(0, EFD_CLOEXEC);
    try {
        if (watch.stop < 0) {
            throw std::system_error(errno, std::generic_category());
        }
        start_thread(watch, fd);
    } catch (const std::exception &e) {
        ucs_debug("memory is not watched: %s", e.what());
        close(watch.stop);
        close(fd);
        return false;
    }
    watch.fd = fd;
    return true;
}

// Under control.
void end(watch_state &watch) noexcept
{
    watch.fd = -1;
    (void)eventfd_write(watch.stop, 1);
    watch.thread.join();
    close(watch.stop);
}

} // namespace

bool memory_watch::join(listener *l)
{
    watch_state &watch = the_watch();
    if (watch.lost) {
        return false;
    }
    std::lock_guard control(watch.control);
    if (watch.fd < 0 && !start(watch)) {
        return false;
    }
    std::lock_guard guard(watch.mutex);
    watch.listeners.push_back(l);
    return true;
}

void memory_watch::leave(listener *l) noexcept
{
    watch_state &watch = the_watch();
    if (watch.lost) {
        return;
    }
    std::lock_guard control(watch.control);
    bool last;
    {
        std::lock_guard guard(watch.mutex);
        watch.listeners.erase(l);
        last = watch.listeners.empty();
    }
    if (last) {
        end(watch);
    }
}

bool memory_watch::cover(uintptr_t begin, uintptr_t end) noexcept
{
    int fd = the_watch().fd;
    if (fd < 0 || !widen_to_anonymous_mappings(&begin, &end)) {
        return false;
    }
    uffdio_register range = {
        .range = {begin, end - begin}, .mode = UFFDIO_REGISTER_MODE_WP, .ioctls = 0};
    return ioctl(fd, UFFDIO_REGISTER, &range) == 0;
}

std::mutex &memory_watch::lock() noexcept
{
    return the_watch().mutex;
}

bool memory_watch::is_lost() noexcept
{
    return the_watch().lost.load(std::memory_order_relaxed);
}

std::string memory_watch::why_not()
{
    watch_state &watch = the_watch();
    if (watch.lost) {
        return "the process was forked from one that watched its memory";
    }
    if (watch.fd >= 0) {
        return "";
    }
    std::string reason;
    int fd = open_userfaultfd(&reason);
    if (fd >= 0) {
        close(fd);
    }
    return reason;
}

} // namespace ucs
