// SPDX-License-Identifier: BSD-3-Clause
// Addresses, and whether an interface is still there.
#include "uct/sm/address.h"

#include "ucs/sys.h"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace uct::sm {

device_address own_device_address()
{
    const ucs::host_identity &h = ucs::this_host();
    return {.version = address_version,
            .kind = 'd',
            .reserved = 0,
            .uid = h.uid,
            .boot = h.boot,
            .pid_ns = h.pid_ns,
            .user_ns = h.user_ns};
}

bool same_device(const uct_device_addr_t *theirs)
{
    device_address own = own_device_address();
    return theirs && memcmp(theirs, &own, sizeof(own)) == 0;
}

bool read_address(const void *from, iface_address *to)
{
    memcpy(to, from, sizeof(*to));
    return to->version == address_version && to->kind == 'i' && to->pid != 0 && to->nonce != 0;
}

namespace {

// It keeps its descriptors until the core file is written, which can take minutes.
bool dumps_core(uint32_t pid)
{
    char path[32];
    char status[8192]; // long lists of groups come before
    snprintf(path, sizeof(path), "/proc/%u/status", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t length = read(fd, status, sizeof(status) - 1);
    close(fd);
    status[length > 0 ? length : 0] = '\0';
    return strstr(status, "\nCoreDumping:\t1") != nullptr;
}

} // namespace

// The inbox's descriptor is closed on exec and at exit, even if the parent has not waited for the
// process, and the memory's name has the nonce.
bool is_there(const iface_address &peer) noexcept
{
    char path[64];
    char expected[64];
    char found[64];
    snprintf(path, sizeof(path), "/proc/%u/fd/%u", peer.pid, peer.inbox_fd);
    snprintf(expected, sizeof(expected), "/memfd:ucxlike-%016" PRIx64 " (deleted)", peer.nonce);
    ssize_t length = readlink(path, found, sizeof(found));
    if (length < 0) {
        return errno != ENOENT && errno != ESRCH; // rights can change meanwhile
    }
    return length == static_cast<ssize_t>(strlen(expected)) &&
           memcmp(found, expected, static_cast<size_t>(length)) == 0 && !dumps_core(peer.pid);
}

} // namespace uct::sm
