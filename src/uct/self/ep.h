// SPDX-License-Identifier: BSD-3-Clause
// Endpoints of `self`. They reach only the interface on which they were made; remote memory is
// memory.
#pragma once

#include "uct/self/iface.h"

namespace uct::self {

class ep final : public uct::ep {
  public:
    explicit ep(self::iface &home) : uct::ep(home) {}

    ucs_status_t am_short(uint8_t id, uint64_t header, const void *payload, unsigned length);
    ucs_status_t am_short_iov(uint8_t id, const uct_iov_t *iov, size_t count);
    ssize_t am_bcopy(uint8_t id, uct_pack_callback_t pack, void *arg, unsigned flags);
    ucs_status_t am_zcopy(uint8_t id, const void *header, unsigned header_length,
                          const uct_iov_t *iov, size_t count, unsigned flags,
                          uct_completion_t *completion);
    ucs_status_t put_short(const void *buffer, unsigned length, uint64_t remote, uct_rkey_t);
    ssize_t put_bcopy(uct_pack_callback_t pack, void *arg, uint64_t remote, uct_rkey_t);
    ucs_status_t put_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t,
                           uct_completion_t *);
    ucs_status_t get_short(void *buffer, unsigned length, uint64_t remote, uct_rkey_t);
    ucs_status_t get_bcopy(uct_unpack_callback_t unpack, void *arg, size_t length, uint64_t remote,
                           uct_rkey_t, uct_completion_t *);
    ucs_status_t get_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t,
                           uct_completion_t *);
    ucs_status_t atomic32_post(unsigned op, uint32_t value, uint64_t remote, uct_rkey_t);
    ucs_status_t atomic64_post(unsigned op, uint64_t value, uint64_t remote, uct_rkey_t);
    ucs_status_t atomic32_fetch(unsigned op, uint32_t value, uint32_t *result, uint64_t remote,
                                uct_rkey_t, uct_completion_t *);
    ucs_status_t atomic64_fetch(unsigned op, uint64_t value, uint64_t *result, uint64_t remote,
                                uct_rkey_t, uct_completion_t *);
    ucs_status_t atomic_cswap32(uint32_t compare, uint32_t swap, uint64_t remote, uct_rkey_t,
                                uint32_t *result, uct_completion_t *);
    ucs_status_t atomic_cswap64(uint64_t compare, uint64_t swap, uint64_t remote, uct_rkey_t,
                                uint64_t *result, uct_completion_t *);
    ucs_status_t flush(unsigned flags, uct_completion_t *);
    ucs_status_t fence(unsigned) { return status(); }
    ucs_status_t check(unsigned, uct_completion_t *) { return status(); }
    ucs_status_t get_address(uct_ep_addr_t *address);
    ucs_status_t connect_to_ep(const uct_device_addr_t *, const uct_ep_addr_t *address);
    void destroy() { delete this; }

  private:
    ~ep() = default;

    self::iface &home() { return static_cast<self::iface &>(interface()); }
};

const uct_iface_ops_t &operations();

inline char *memory_at(uint64_t address)
{
    return reinterpret_cast<char *>(address);
}

} // namespace uct::self
