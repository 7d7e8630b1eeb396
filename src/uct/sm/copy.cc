// SPDX-License-Identifier: BSD-3-Clause
// process_vm_readv() and process_vm_writev().
#include "uct/sm/copy.h"

#include "ucs/copy.h"
#include "ucs/processor.h"

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

struct part {
    copied result;
    size_t moved; // bytes, some at least when it is done
};

part read_part(const iface_address &peer, void *to, uint64_t remote, size_t length) noexcept
{
    uint64_t proof = 0;
    iovec local[] = {{&proof, sizeof(proof)}, {to, length}};
    iovec theirs[] = {{there(peer.proof_address), sizeof(proof)}, {there(remote), length}};
    size_t count = length > 0 ? 2 : 1;
    ssize_t n = process_vm_readv(static_cast<pid_t>(peer.pid), local, count, theirs, count, 0);
    if (n < 0) {
        return {failure(false), 0};
    }
    if (n < static_cast<ssize_t>(sizeof(proof)) || proof != peer.proof) {
        return {copied::gone, 0};
    }
    size_t moved = static_cast<size_t>(n) - sizeof(proof);
    return {length > 0 && moved == 0 ? copied::fault : copied::done, moved};
}

part write_part(const iface_address &peer, const void *from, uint64_t remote,
                size_t length) noexcept
{
    iovec local{const_cast<void *>(from), length};
    iovec theirs{there(remote), length};
    ssize_t n = process_vm_writev(static_cast<pid_t>(peer.pid), &local, 1, &theirs, 1, 0);
    if (n <= 0) {
        return {n < 0 ? failure(true) : copied::fault, 0};
    }
    return {copied::done, static_cast<size_t>(n)};
}

// The kernel copies with `rep movsb`. Where that is slow from the one process's memory to the
// other's, the bytes go through a buffer that has the same offset in its page as the peer's memory.
// Other processors do without: there the second copy would only take time.
bool wants_detour(uintptr_t to, uintptr_t from, size_t length) noexcept
{
    constexpr size_t least = 4096; // else the second copy takes as long
    return length >= least && ucs::is_slow_for_movsb(to, from) && ucs::has_slow_movsb();
}

class detour {
  public:
    static constexpr size_t size = 32768;

    explicit detour(uint64_t remote) noexcept
        : data_(room_ + (remote - reinterpret_cast<uintptr_t>(room_)) % ucs::movsb_period)
    {
    }

    char *data() noexcept { return data_; }

  private:
    char *const data_;
    char room_[size + ucs::movsb_period];
};

part read_by_detour(const iface_address &peer, void *to, uint64_t remote, size_t length) noexcept
{
    detour by(remote);
    part p = read_part(peer, by.data(), remote, std::min(length, detour::size));
    ucs::copy(to, by.data(), p.moved);
    return p;
}

part write_by_detour(const iface_address &peer, const void *from, uint64_t remote,
                     size_t length) noexcept
{
    detour by(remote);
    length = std::min(length, detour::size);
    ucs::copy(by.data(), from, length);
    return write_part(peer, by.data(), remote, length);
}

} // namespace

copied probe(const iface_address &peer) noexcept
{
    return read_part(peer, nullptr, 0, 0).result;
}

copied read_from(const iface_address &peer, void *to, uint64_t remote, size_t length) noexcept
{
    auto *at = static_cast<char *>(to);
    while (true) {
        bool by_detour = wants_detour(reinterpret_cast<uintptr_t>(at), remote, length);
        part p = by_detour ? read_by_detour(peer, at, remote, length)
                           : read_part(peer, at, remote, std::min(length, at_once));
        if (p.result != copied::done || p.moved == length) {
            return p.result;
        }
        at += p.moved;
        remote += p.moved;
        length -= p.moved;
    }
}

copied write_to(const iface_address &peer, const void *from, uint64_t remote,
                size_t length) noexcept
{
    copied result = probe(peer);
    auto *at = static_cast<const char *>(from);
    while (result == copied::done && length > 0) {
        bool by_detour = wants_detour(remote, reinterpret_cast<uintptr_t>(at), length);
        part p = by_detour ? write_by_detour(peer, at, remote, length)
                           : write_part(peer, at, remote, std::min(length, at_once));
        result = p.result;
        at += p.moved;
        remote += p.moved;
        length -= p.moved;
    }
    return result;
}

} // namespace uct::sm
