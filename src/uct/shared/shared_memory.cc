// SPDX-License-Identifier: BSD-3-Clause
// memfd, mapped by its owner and by peers.
#include "uct/shared/shared_memory.h"

#include "ucs/error.h"
#include "ucs/sys.h"
#include "uct/shared/foreign_fd.h"
#include "uct/shared/identity.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace uct {

shared_memory::shared_memory(size_t wanted, void *hint, bool fixed, bool populated)
    : length((wanted + ucs::page_size() - 1) / ucs::page_size() * ucs::page_size()),
      key_{.host = shared_memory_identity(),
           .birth = ucs::process_birth(getpid()),
           .length = length,
           .nonce = ucs::random_u64(),
           .pid = static_cast<uint32_t>(getpid()),
           .fd = 0}
{
    fd_ = create_memory(key_.nonce, length);
    key_.fd = static_cast<uint32_t>(fd_);
    address = mmap(hint, length, PROT_READ | PROT_WRITE,
                   MAP_SHARED | (fixed ? MAP_FIXED : 0) | (populated ? MAP_POPULATE : 0), fd_, 0);
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
        ucs::process_birth(static_cast<pid_t>(key.pid)) != key.birth) {
        return nullptr;
    }
    int fd = -1;
    ucs_status_t status = ucs::guard_quietly([&] {
        fd = open_memory({key.pid, key.fd}, key.nonce, key.length);
    });
    if (status != UCS_OK) {
        return nullptr;
    }
    void *address =
        mmap(reinterpret_cast<void *>(hint), key.length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return address == MAP_FAILED ? nullptr : address;
}

void unmap_shared(void *address, const shared_memory_key &key) noexcept
{
    munmap(address, key.length);
}

} // namespace uct
