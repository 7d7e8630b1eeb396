// SPDX-License-Identifier: BSD-3-Clause
// The memory of an inbox: a sealed memfd. Nothing has a name in a file system, so nothing stays
// when all processes are killed. The pages are allocated before a peer can see them: a sender never
// touches one that the kernel might not have, which would be SIGBUS.
#include "ucs/error.h"
#include "ucs/sys.h"
#include "uct/sm/inbox.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <linux/memfd.h>
#include <new>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace uct::sm {

namespace {

constexpr uint64_t page_magic = 0x3130786f626e6975; // "uinbox01", little-endian
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

off_t file_size()
{
    size_t page_size = ucs::page_size();
    return static_cast<off_t>((sizeof(page) + page_size - 1) / page_size * page_size);
}

class descriptor {
  public:
    explicit descriptor(int fd) : fd_(fd) {}
    descriptor(const descriptor &) = delete;
    descriptor &operator=(const descriptor &) = delete;
    ~descriptor()
    {
        if (fd_ >= 0) {
            close(fd_);
        }
    }
    int get() const { return fd_; }
    int release()
    {
        int fd = fd_;
        fd_ = -1;
        return fd;
    }

  private:
    int fd_;
};

// The name has the nonce, by which open_memory() knows the file before it opens it.
int create_file(uint64_t nonce)
{
    char name[32];
    snprintf(name, sizeof(name), "ucxlike-%016" PRIx64, nonce);
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) { // kernels before 6.3 do not know the flag
        fd = memfd_create(name, flags);
    }
    if (fd < 0) {
        throw ucs::error(UCS_ERR_NO_RESOURCE, "memfd_create: %s%s", strerror(errno),
                         errno == EMFILE ? " (limit: RLIMIT_NOFILE)" : "");
    }
    return fd;
}

void allocate(int fd)
{
    // Beyond this limit the kernel would send SIGXFSZ.
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < static_cast<rlim_t>(file_size())) {
        throw ucs::error(UCS_ERR_NO_MEMORY, "an inbox of %lld bytes is above RLIMIT_FSIZE, %llu",
                         static_cast<long long>(file_size()),
                         static_cast<unsigned long long>(limit.rlim_cur));
    }
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

void check_file(int fd)
{
    struct stat file {};
    int have = fcntl(fd, F_GET_SEALS); // fails on whatever is no memfd
    if (have < 0 || (have & seals) != seals) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "a peer's inbox is no sealed memory file");
    }
    if (fstat(fd, &file) != 0 || file.st_uid != geteuid() || file.st_size != file_size()) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "a peer's inbox has another owner, or not %lld bytes",
                         static_cast<long long>(file_size()));
    }
}

} // namespace

inbox_memory::inbox_memory()
{
    uint64_t nonce = ucs::random_u64();
    descriptor file(create_file(nonce));
    allocate(file.get());
    page_ = new (map(file.get())) page; // leaves the zeros that are there
    page_->nonce = nonce;
    page_->magic = page_magic;
    fd_ = file.release();
}

inbox_memory::inbox_memory(int fd, uint64_t nonce)
{
    check_file(fd);
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
