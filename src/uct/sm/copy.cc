// SPDX-License-Identifier: BSD-3-Clause
// process_vm_readv() and process_vm_writev().
#include "uct/sm/copy.h"

#include <algorithm>
#include <cerrno>

namespace uct::sm {

namespace {

constexpr size_t at_once = 1ul << 30; // the kernel copies less than 2 GiB in a call

void *there(uint64_t address)
{
    return reinterpret_cast<void *>(address);
}

copied failure(bool proven) noexcept
{
    switch (errno) {
    case EPERM:
    case EACCES:
    case ENOSYS:
        return copied::forbidden;
    case EFAULT:
        return proven ? copied::fault : copied::gone;
    default:
        return copied::gone;
    }
}

} // namespace

copied probe(const iface_address &peer) noexcept
{
    return read_from(peer, nullptr, 0, 0);
}

copied read_from(const iface_address &peer, void *to, uint64_t remote, size_t length) noexcept
{
    auto *at = static_cast<char *>(to);
    do {
        uint64_t proof = 0;
        size_t part = std::min(length, at_once);
        iovec local[] = {{&proof, sizeof(proof)}, {at, part}};
        iovec theirs[] = {{there(peer.proof_address), sizeof(proof)}, {there(remote), part}};
        size_t count = part > 0 ? 2 : 1;
        ssize_t n = process_vm_readv(static_cast<pid_t>(peer.pid), local, count, theirs, count, 0);
        if (n < 0) {
            return failure(false);
        }
        if (n < static_cast<ssize_t>(sizeof(proof)) || proof != peer.proof) {
            return copied::gone;
        }
        size_t moved = static_cast<size_t>(n) - sizeof(proof);
        if (part > 0 && moved == 0) {
            return copied::fault;
        }
        at += moved;
        remote += moved;
        length -= moved;
    } while (length > 0);
    return copied::done;
}

copied write_to(const iface_address &peer, const void *from, uint64_t remote,
                size_t length) noexcept
{
    copied proof = probe(peer);
    auto *at = const_cast<char *>(static_cast<const char *>(from));
    while (proof == copied::done && length > 0) {
        size_t part = std::min(length, at_once);
        iovec local{at, part};
        iovec theirs{there(remote), part};
        ssize_t n = process_vm_writev(static_cast<pid_t>(peer.pid), &local, 1, &theirs, 1, 0);
        if (n <= 0) {
            return n < 0 ? failure(true) : copied::fault;
        }
        at += n;
        remote += static_cast<size_t>(n);
        length -= static_cast<size_t>(n);
    }
    return proof;
}

} // namespace uct::sm
