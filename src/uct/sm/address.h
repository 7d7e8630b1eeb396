// SPDX-License-Identifier: BSD-3-Clause
// How interfaces of `sm` find each other. All of it is a claim of the peer: nothing is opened on
// its word alone (see foreign_fd.h).
#pragma once

#include "uct/shared/foreign_fd.h"

#include <uct/api/uct.h>

#include <cstdint>

namespace uct::sm {

constexpr uint8_t address_version = 1;

// Where the memory of processes can be seen: equal on both sides.
//
//   0       1    2        4    8     16      24
//   version kind reserved uid  boot  pid_ns  user_ns
struct device_address {
    uint8_t version;
    uint8_t kind; // 'd'
    uint16_t reserved;
    uint32_t uid;
    uint64_t boot;
    uint64_t pid_ns;
    uint64_t user_ns;
};
static_assert(sizeof(device_address) == 32);

//   0       1    2        4    8      16     20        24       28        32          40
//   version kind reserved pid  nonce  birth  inbox_fd  bell_fd  reserved  bell_inode  proof_address
//   48
//   proof
struct iface_address {
    uint8_t version;
    uint8_t kind; // 'i'
    uint16_t reserved;
    uint32_t pid;
    uint64_t nonce; // of the inbox; names the interface
    uint32_t birth; // low bits of ucs::process_birth()
    uint32_t inbox_fd;
    uint32_t bell_fd;
    uint32_t reserved2;
    uint64_t bell_inode;
    uint64_t proof_address; // in the peer's process, where
    uint64_t proof;         // this random number stands while the interface is open
};
static_assert(sizeof(iface_address) == 56);

device_address own_device_address();
bool same_device(const uct_device_addr_t *theirs);
// False: not an address of this version.
bool read_address(const void *from, iface_address *to);

// The process and the interface are there, for all that one can see. A stopped process is; one that
// exits, is killed, dumps core, executes another program or closes the interface is not.
bool is_there(const iface_address &peer) noexcept;

} // namespace uct::sm
