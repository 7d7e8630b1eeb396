// SPDX-License-Identifier: BSD-3-Clause
// Page, pipe and barrier of the doorbell.
#include "uct/sm/doorbell.h"

#include "ucs/error.h"
#include "ucs/sys.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace uct::ofi {

namespace {

// Registers this process once, so that others' barriers reach it, and tells whether that worked.
bool barrier_registered()
{
    static const bool done =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    return done;
}

int open_through(const bell_address &address, uint32_t fd, int flags)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%u/fd/%u", address.pid, fd);
    int opened = open(path, flags | O_CLOEXEC);
    if (opened < 0) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "cannot open %s of a peer: %s", path,
                         strerror(errno));
    }
    return opened;
}

std::atomic<uint32_t> *map_word(int fd, size_t size)
{
    void *page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        throw ucs::error(UCS_ERR_NO_MEMORY, "cannot map a doorbell: %s", strerror(errno));
    }
    return static_cast<std::atomic<uint32_t> *>(page);
}

void write_byte(int fd)
{
    char byte = 1;
    // A full pipe is readable already. All who write can read, too, so that no pipe is ever broken,
    // which would cost the program a SIGPIPE.
    [[maybe_unused]] ssize_t n = write(fd, &byte, 1);
}

} // namespace

doorbell::doorbell(size_t room) : size_(ucs::page_size() + room)
{
    static_assert(std::atomic<uint32_t>::is_always_lock_free);
    barrier_registered();
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        throw ucs::error(UCS_ERR_IO_ERROR, "pipe: %s", strerror(errno));
    }
    read_fd_ = pipe_fds[0];
    write_fd_ = pipe_fds[1];
    page_fd_ = memfd_create("ucxlike-doorbell", MFD_CLOEXEC);
    if (page_fd_ < 0 || ftruncate(page_fd_, static_cast<off_t>(size_)) != 0) {
        int error = errno;
        close(read_fd_);
        close(write_fd_);
        close(page_fd_);
        throw ucs::error(UCS_ERR_NO_MEMORY, "memfd: %s", strerror(error));
    }
    word_ = map_word(page_fd_, size_);
}

doorbell::~doorbell()
{
    munmap(word_, size_);
    close(page_fd_);
    close(read_fd_);
    close(write_fd_);
}

bell_address doorbell::address() const
{
    return {static_cast<uint32_t>(getpid()), static_cast<uint32_t>(page_fd_),
            static_cast<uint32_t>(write_fd_), barrier_registered() ? 0u : 1u};
}

void doorbell::arm()
{
    char bytes[64];
    while (read(read_fd_, bytes, sizeof(bytes)) == sizeof(bytes)) {
    }
    word_->store(1, std::memory_order_relaxed);
    if (!barrier_registered() ||
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0) {
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }
}

void doorbell::disarm()
{
    word_->store(0, std::memory_order_relaxed);
}

void doorbell::ring_self()
{
    write_byte(write_fd_);
}

void *doorbell::room() const
{
    return reinterpret_cast<char *>(word_) + ucs::page_size();
}

int open_room(const bell_address &address)
{
    return open_through(address, address.page_fd, O_RDWR);
}

off_t room_offset()
{
    return static_cast<off_t>(ucs::page_size());
}

remote_bell::remote_bell(const bell_address &address)
{
    int page_fd = open_through(address, address.page_fd, O_RDWR);
    try {
        word = map_word(page_fd, ucs::page_size());
        pipe_fd_ = open_through(address, address.pipe_fd, O_RDWR | O_NONBLOCK);
    } catch (...) {
        close(page_fd);
        if (word) {
            munmap(word, ucs::page_size());
        }
        throw;
    }
    close(page_fd);
    fence = address.fence != 0 || !barrier_registered();
}

remote_bell::~remote_bell()
{
    if (word) {
        munmap(word, ucs::page_size());
        close(pipe_fd_);
    }
}

void remote_bell::ring()
{
    if (word->exchange(0, std::memory_order_relaxed) != 0) {
        write_byte(pipe_fd_);
    }
}

} // namespace uct::ofi
