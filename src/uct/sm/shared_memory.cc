// SPDX-License-Identifier: BSD-3-Clause
// memfd, mapped by its owner and by peers.
#include "uct/sm/shared_memory.h"

#include "ucs/error.h"
#include "ucs/sys.h"
#include "uct/ofi/core/address.h"
#include "uct/ofi/quirks/shm_file.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace uct::ofi {

namespace {

std::atomic<uint64_t> next_serial = 1;

// A descriptor's number is used again; the name tells which memory it is.
struct memory_name {
    explicit memory_name(uint64_t serial)
    {
        snprintf(text, sizeof(text), "ucxlike-%llx", static_cast<unsigned long long>(serial));
    }
    char text[32];
};

bool is_memory(int fd, uint64_t serial)
{
    char path[32];
    char expected[64];
    char found[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    snprintf(expected, sizeof(expected), "/memfd:%s (deleted)", memory_name(serial).text);
    ssize_t length = readlink(path, found, sizeof(found));
    return length == static_cast<ssize_t>(strlen(expected)) &&
           memcmp(found, expected, static_cast<size_t>(length)) == 0;
}

} // namespace

shared_memory::shared_memory(size_t wanted, void *hint, bool fixed, bool populated)
    : length((wanted + ucs::page_size() - 1) / ucs::page_size() * ucs::page_size()),
      key_{.host = shared_memory_identity(),
           .birth = shm_file::process_birth(getpid()),
           .length = length,
           .serial = next_serial.fetch_add(1, std::memory_order_relaxed),
           .pid = static_cast<uint32_t>(getpid()),
           .fd = 0}
{
    fd_ = memfd_create(memory_name(key_.serial).text, MFD_CLOEXEC);
    if (fd_ < 0) {
        throw ucs::error(UCS_ERR_NO_MEMORY, "memfd_create: %s", strerror(errno));
    }
    key_.fd = static_cast<uint32_t>(fd_);
    address = MAP_FAILED;
    if (ftruncate(fd_, static_cast<off_t>(length)) == 0) {
        address =
            mmap(hint, length, PROT_READ | PROT_WRITE,
                 MAP_SHARED | (fixed ? MAP_FIXED : 0) | (populated ? MAP_POPULATE : 0), fd_, 0);
    }
    if (address == MAP_FAILED || (fixed && address != hint)) {
        int error = errno;
        if (address != MAP_FAILED) {
            munmap(address, length);
        }
        close(fd_);
        throw ucs::error(UCS_ERR_NO_MEMORY, "cannot map %zu bytes of shared memory: %s", length,
                         strerror(error));
    }
}

shared_memory::~shared_memory()
{
    munmap(address, length);
    close(fd_);
}

void *map_shared(const shared_memory_key &key, uint64_t hint) noexcept
{
    if (key.pid == 0 || key.host != shared_memory_identity() ||
        shm_file::process_birth(static_cast<pid_t>(key.pid)) != key.birth) {
        return nullptr;
    }
    char path[64];
    snprintf(path, sizeof(path), "/proc/%u/fd/%u", key.pid, key.fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return nullptr;
    }
    struct stat about;
    void *address = MAP_FAILED;
    if (is_memory(fd, key.serial) && fstat(fd, &about) == 0 &&
        static_cast<uint64_t>(about.st_size) >= key.length) {
        address = mmap(reinterpret_cast<void *>(hint), key.length, PROT_READ | PROT_WRITE,
                       MAP_SHARED, fd, 0);
    }
    close(fd);
    return address == MAP_FAILED ? nullptr : address;
}

void unmap_shared(void *address, const shared_memory_key &key) noexcept
{
    munmap(address, key.length);
}

} // namespace uct::ofi
