// SPDX-License-Identifier: BSD-3-Clause
// Page, pipe and barrier of the doorbell.
#include "uct/ofi/shm/doorbell.h"

#include "ucs/error.h"
#include "ucs/owned_fd.h"
#include "ucs/sys.h"
#include "uct/shared/foreign_fd.h"

#include <cerrno>
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

bell_page *map_page(int fd)
{
    void *page = mmap(nullptr, sizeof(bell_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        throw ucs::error(UCS_ERR_NO_MEMORY, "cannot map a doorbell: %s", strerror(errno));
    }
    return static_cast<bell_page *>(page);
}

void write_byte(int fd)
{
    char byte = 1;
    // A full pipe is readable already. All writers can read, too, so that no pipe is ever broken,
    // which would cost the program a SIGPIPE.
    [[maybe_unused]] ssize_t n = write(fd, &byte, 1);
}

} // namespace

doorbell::doorbell() : nonce_(ucs::random_u64())
{
    static_assert(std::atomic<uint32_t>::is_always_lock_free);
    barrier_registered();
    int pipe_fds[2];
    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) != 0) {
        throw ucs::error(UCS_ERR_IO_ERROR, "pipe: %s", strerror(errno));
    }
    read_fd_ = pipe_fds[0];
    write_fd_ = pipe_fds[1];
    try {
        page_fd_ = create_memory(nonce_, sizeof(bell_page));
        page_ = map_page(page_fd_);
    } catch (...) {
        close_all();
        throw;
    }
    page_->pipe = inode_of(write_fd_);
}

doorbell::~doorbell()
{
    munmap(page_, sizeof(bell_page));
    close_all();
}

void doorbell::close_all()
{
    for (int fd : {page_fd_, read_fd_, write_fd_}) {
        if (fd >= 0) {
            close(fd);
        }
    }
}

bell_address doorbell::address() const
{
    return {static_cast<uint32_t>(getpid()), static_cast<uint32_t>(page_fd_),
            static_cast<uint32_t>(write_fd_), barrier_registered() ? 0u : 1u, nonce_};
}

void doorbell::arm()
{
    char bytes[64];
    while (read(read_fd_, bytes, sizeof(bytes)) == sizeof(bytes)) {
    }
    page_->word.store(1, std::memory_order_relaxed);
    if (!barrier_registered() ||
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0) {
        std::atomic_thread_fence(std::memory_order_seq_cst);
    }
}

void doorbell::disarm()
{
    page_->word.store(0, std::memory_order_relaxed);
}

void doorbell::ring_self()
{
    write_byte(write_fd_);
}

remote_bell::remote_bell(const bell_address &address)
{
    int page_fd = open_memory({address.pid, address.page_fd}, address.nonce, sizeof(bell_page));
    try {
        page_ = map_page(page_fd);
        pipe_fd_ = open_pipe({address.pid, address.pipe_fd}, page_->pipe);
    } catch (...) {
        close(page_fd);
        if (page_) {
            munmap(page_, sizeof(bell_page));
        }
        throw;
    }
    close(page_fd);
    word_ = &page_->word;
    fence_ = address.fence != 0 || !barrier_registered();
}

remote_bell::~remote_bell()
{
    if (page_) {
        munmap(page_, sizeof(bell_page));
        close(pipe_fd_);
    }
}

void remote_bell::wake()
{
    if (word_->exchange(0, std::memory_order_relaxed) != 0) {
        write_byte(pipe_fd_);
    }
}

remote_entries::remote_entries(const bell_address &address)
{
    ucs::owned_fd memory(
        open_memory({address.pid, address.page_fd}, address.nonce, sizeof(bell_page)));
    page_ = map_page(memory.get());
}

remote_entries::~remote_entries()
{
    munmap(page_, sizeof(bell_page));
}

} // namespace uct::ofi
