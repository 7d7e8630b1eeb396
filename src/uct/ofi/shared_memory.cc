// SPDX-License-Identifier: BSD-3-Clause
// memfd, mapped by its owner and by peers.
#include "uct/ofi/shared_memory.h"

#include "ucs/error.h"
#include "ucs/sys.h"
#include "uct/ofi/address.h"
#include "uct/ofi/shm_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace uct::ofi {

shared_memory::shared_memory(size_t wanted, void *hint, bool fixed)
    : length((wanted + ucs::page_size() - 1) / ucs::page_size() * ucs::page_size()),
      fd_(memfd_create("ucxlike-memory", MFD_CLOEXEC))
{
    if (fd_ < 0) {
        throw ucs::error(UCS_ERR_NO_MEMORY, "memfd_create: %s", strerror(errno));
    }
    address = MAP_FAILED;
    if (ftruncate(fd_, static_cast<off_t>(length)) == 0) {
        address = mmap(hint, length, PROT_READ | PROT_WRITE,
                       MAP_SHARED | (fixed ? MAP_FIXED_NOREPLACE : 0), fd_, 0);
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

shared_memory_key shared_memory::key() const
{
    return {.host = shared_memory_identity(),
            .birth = shm_file::process_birth(getpid()),
            .length = length,
            .pid = static_cast<uint32_t>(getpid()),
            .fd = static_cast<uint32_t>(fd_)};
}

void *map_shared(const shared_memory_key &key) noexcept
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
    if (fstat(fd, &about) == 0 && static_cast<uint64_t>(about.st_size) >= key.length) {
        address = mmap(nullptr, key.length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    return address == MAP_FAILED ? nullptr : address;
}

void unmap_shared(void *address, const shared_memory_key &key) noexcept
{
    munmap(address, key.length);
}

} // namespace uct::ofi
