// SPDX-License-Identifier: BSD-3-Clause
//
// The worker address: what a peer needs to reach this worker, in one blob that says its own length
// and checks itself. Addresses arrive without a length and from anywhere, so unpacking trusts
// nothing: it reads the fixed head, and beyond it only what the head's verified length covers.
//
//    0        2   3     4        6        8              12             16
//   +--------+---+-----+--------+--------+--------------+--------------+
//   | magic  |ver|flags| length |  zero  | check(head)  | check(body)  |   head, little-endian
//   +--------+---+-----+--------+--------+--------------+--------------+
//   | uuid u64 | incarnation u32 | name: u8 + bytes |                      body
//   | host: boot u64, pid_ns u64, pid u32 |      when flags has HOST
//   | door: number u64, port u16, count u8 | count times: u8 + IP address |   when flags has DOOR
//   | count u8 | count times: u8 + tl name, u8 md, u32 largest message,
//   |            u8 + device address, u8 + iface address |
#pragma once

#include <ucs/type/status.h>
#include <uct/api/uct.h>

#include <cstdint>
#include <string>
#include <vector>

struct ucp_worker;

namespace ucp {

// Also raised for what stands inside of an address: see docs/wire.md.
constexpr uint8_t address_version = 6;

struct address_resource {
    std::string tl_name;
    uint8_t md_index;
    uint32_t max_message; // largest active message that the worker takes there, bytes
    std::vector<uint8_t> device_addr;
    std::vector<uint8_t> iface_addr;
};

// Where a worker can be asked for an address with networks: see door.h.
struct door_sign {
    uint64_t number = 0;                     // to be shown there; 0: there is no door
    uint16_t port = 0;                       // TCP, host order
    std::vector<std::vector<uint8_t>> hosts; // IP addresses of 4 or 16 bytes, the best first
};

struct unpacked_address {
    uint64_t uuid = 0;
    uint32_t incarnation = 0;
    bool has_host = false;
    uint64_t boot = 0;
    uint64_t pid_ns = 0;
    uint32_t pid = 0;
    std::string name;
    door_sign door;
    bool from_here = true; // false: it came over a connection from another host
    std::vector<address_resource> resources;
};

constexpr size_t ADDRESS_HEAD = 16;
constexpr size_t ADDRESS_MAX = 4096;
// The least that any transport takes as its SEG_SIZE: every header fits.
constexpr uint32_t LEAST_MAX_MESSAGE = 512;

std::vector<uint8_t> pack_address(const ucp_worker &worker, bool net_only);
// Writes the length and both checks of a blob of at least ADDRESS_HEAD bytes.
void seal_address(std::vector<uint8_t> &blob) noexcept;

// The whole length, from the head alone; 0 when it is damaged.
size_t address_length(const void *blob) noexcept;

// UCS_ERR_INVALID_ADDR unless every byte is as it was packed. `limit`: how many bytes there are,
// when that is known.
ucs_status_t unpack_address(const void *blob, size_t limit, unpacked_address *out);

} // namespace ucp
