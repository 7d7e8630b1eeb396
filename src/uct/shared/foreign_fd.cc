// SPDX-License-Identifier: BSD-3-Clause
// Looks at a peer's descriptor before it opens it.
#include "uct/shared/foreign_fd.h"

#include "ucs/error.h"
#include "ucs/owned_fd.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace uct {

namespace {

struct memory_name {
    explicit memory_name(uint64_t nonce)
    {
        snprintf(text, sizeof(text), "ucxlike-%016" PRIx64, nonce);
    }
    char text[32];
};

[[noreturn]] void refuse(const foreign_fd &claim, const char *why)
{
    throw ucs::error(UCS_ERR_UNREACHABLE, "descriptor %u of process %u, named by a peer: %s",
                     claim.fd, claim.pid, why);
}

int look(const foreign_fd &claim, struct stat *about)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%u/fd/%u", claim.pid, claim.fd);
    ucs::owned_fd seen(open(path, O_PATH | O_CLOEXEC));
    if (seen.get() < 0 || fstat(seen.get(), about) != 0) {
        refuse(claim, strerror(errno));
    }
    if (about->st_uid != geteuid()) {
        refuse(claim, "it belongs to another user");
    }
    return seen.take();
}

// What was looked at, and not what stands at the number by now.
int open_seen(const foreign_fd &claim, int seen, int flags)
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", seen);
    int fd = open(path, flags | O_CLOEXEC);
    if (fd < 0) {
        refuse(claim, strerror(errno));
    }
    return fd;
}

bool has_name(int seen, uint64_t nonce)
{
    char path[32];
    char expected[64];
    char found[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", seen);
    snprintf(expected, sizeof(expected), "/memfd:%s (deleted)", memory_name(nonce).text);
    ssize_t length = readlink(path, found, sizeof(found));
    return length == static_cast<ssize_t>(strlen(expected)) &&
           memcmp(found, expected, static_cast<size_t>(length)) == 0;
}

bool is_unnamed_pipe(int seen)
{
    struct statfs where;
    return fstatfs(seen, &where) == 0 && where.f_type == PIPEFS_MAGIC;
}

} // namespace

int create_memory_file(uint64_t nonce) noexcept
{
    memory_name name(nonce);
    // Where the kernel demands that memory says whether it may be executed, that it may not.
    int fd = memfd_create(name.text, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) { // kernels before 6.3 do not know the flag
        fd = memfd_create(name.text, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    }
    return fd;
}

void check_file_size(size_t length)
{
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < length) {
        throw ucs::error(UCS_ERR_NO_MEMORY,
                         "%zu bytes of shared memory are above RLIMIT_FSIZE, %llu", length,
                         static_cast<unsigned long long>(limit.rlim_cur));
    }
}

int create_memory(uint64_t nonce, size_t length)
{
    check_file_size(length);
    ucs::owned_fd memory(create_memory_file(nonce));
    if (memory.get() < 0 || ftruncate(memory.get(), static_cast<off_t>(length)) != 0 ||
        fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
        throw ucs::error(UCS_ERR_NO_MEMORY, "cannot make %zu bytes of shared memory: %s", length,
                         strerror(errno));
    }
    return memory.take();
}

void check_memory(int fd, size_t least, int seals)
{
    struct stat about;
    int have = fcntl(fd, F_GET_SEALS); // fails on whatever is no memfd
    if (have < 0 || (have & seals) != seals) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "a peer's memory is no memory file or could shrink");
    }
    if (fstat(fd, &about) != 0 || about.st_uid != geteuid() ||
        static_cast<uint64_t>(about.st_size) < least) {
        throw ucs::error(UCS_ERR_UNREACHABLE,
                         "a peer's memory has another owner or less than %zu bytes", least);
    }
}

int open_memory(const foreign_fd &claim, uint64_t nonce, size_t least)
{
    struct stat about;
    ucs::owned_fd seen(look(claim, &about));
    if (!S_ISREG(about.st_mode) || !has_name(seen.get(), nonce)) {
        refuse(claim, "it is not the memory that was claimed");
    }
    ucs::owned_fd memory(open_seen(claim, seen.get(), O_RDWR));
    check_memory(memory.get(), least, F_SEAL_SHRINK);
    return memory.take();
}

int open_pipe(const foreign_fd &claim, uint64_t inode)
{
    struct stat about;
    ucs::owned_fd seen(look(claim, &about));
    if (!S_ISFIFO(about.st_mode) || about.st_ino != inode || !is_unnamed_pipe(seen.get())) {
        refuse(claim, "it is not the pipe that was claimed");
    }
    return open_seen(claim, seen.get(), O_RDWR | O_NONBLOCK);
}

uint64_t inode_of(int fd)
{
    struct stat about;
    return fstat(fd, &about) == 0 ? about.st_ino : 0;
}

} // namespace uct
