// SPDX-License-Identifier: BSD-3-Clause
// Socket addresses of the two internet families: length, port, comparison, text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/socket.h>

namespace ucs {

// 0 for a family that is neither AF_INET nor AF_INET6.
size_t sockaddr_length(const sockaddr *address);
uint16_t sockaddr_port(const sockaddr *address); // host order; 0 for other families
void sockaddr_set_port(sockaddr *address, uint16_t port);
bool sockaddr_is_any(const sockaddr *address);
bool sockaddr_is_loopback(const sockaddr *address);
bool sockaddr_equal(const sockaddr *a, const sockaddr *b);     // family, address and port
bool sockaddr_same_host(const sockaddr *a, const sockaddr *b); // family and address
// The address of this host, with port 0, from which the kernel reaches another. Nothing is sent.
// False: errno says why it does not.
bool sockaddr_source(const sockaddr *to, sockaddr_storage *from);
std::string sockaddr_string(const sockaddr *address); // 127.0.0.1:1234, [::1]:1234

} // namespace ucs
