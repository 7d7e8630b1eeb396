// SPDX-License-Identifier: BSD-3-Clause
// The memory of an inbox: a sealed memfd. Nothing has a name in a file system, so nothing stays
// when all processes are killed. The pages are allocated before a peer can see them: a sender never
// touches one that the kernel might not have, which would be SIGBUS.
#include "ucs/error.h"
#include "ucs/owned_fd.h"
#include "ucs/sys.h"
#include "uct/shared/foreign_fd.h"
#include "uct/sm/inbox.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace uct::sm {

namespace {

constexpr uint64_t page_magic = 0x3230786f626e6975; // "uinbox02", little-endian
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

off_t file_size()
{
    size_t page_size = ucs::page_size();
    return static_cast<off_t>((sizeof(page) + page_size - 1) / page_size * page_size);
}

void allocate(int fd)
{
    check_file_size(static_cast<size_t>(file_size()));
    int ret;
    do {
        ret = fallocate(fd, 0, 0, file_size());
    } while (ret != 0 && errno == EINTR);
    if (ret != 0) {
        throw ucs::error(UCS_ERR_NO_MEMORY, "no memory for an inbox of %lld bytes: %s",
                         static_cast<long long>(file_size()), strerror(errno));
    }
    if (fcntl(fd, F_ADD_SEALS, seals) != 0) {
        throw ucs::error(UCS_ERR_IO_ERROR, "F_ADD_SEALS: %s", strerror(errno));
    }
}

void *map(int fd)
{
    void *at =
        mmap(nullptr, static_cast<size_t>(file_size()), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        throw ucs::error(UCS_ERR_NO_MEMORY, "mmap of an inbox of %lld bytes: %s",
                         static_cast<long long>(file_size()), strerror(errno));
    }
    // A child that does not exec must not keep the memory alive, nor write to it.
    madvise(at, static_cast<size_t>(file_size()), MADV_DONTFORK);
    return at;
}

} // namespace

inbox_memory::inbox_memory()
{
    uint64_t nonce = ucs::random_u64();
    ucs::owned_fd file(create_memory_file(nonce));
    if (file.get() < 0) {
        throw ucs::error(UCS_ERR_NO_RESOURCE, "memfd_create: %s%s", strerror(errno),
                         errno == EMFILE ? " (limit: RLIMIT_NOFILE)" : "");
    }
    allocate(file.get());
    page_ = new (map(file.get())) page; // leaves the zeros that are there
    page_->nonce = nonce;
    page_->magic = page_magic;
    fd_ = file.take();
}

inbox_memory::inbox_memory(int fd, uint64_t nonce)
{
    check_memory(fd, static_cast<size_t>(file_size()), seals);
    page_ = static_cast<page *>(map(fd));
    if (page_->magic != page_magic || page_->nonce != nonce) {
        munmap(page_, static_cast<size_t>(file_size()));
        throw ucs::error(UCS_ERR_UNREACHABLE,
                         "a peer's memory is not the inbox that its address names");
    }
}

inbox_memory::~inbox_memory()
{
    munmap(page_, static_cast<size_t>(file_size()));
    close_file();
}

void inbox_memory::close_file()
{
    if (fd_ >= 0) {
        close(std::exchange(fd_, -1));
    }
}

} // namespace uct::sm
