// SPDX-License-Identifier: BSD-3-Clause
//
// Names and addresses: what fi_getinfo resolves, and which local address an endpoint gets.
#pragma once

#include "prov/ucxlike/address.h"

#include <cstddef>

namespace ucxlike {

// The first internet address of node and service; 0 or -FI_ENODATA.
int resolve(const char *node, const char *service, uint64_t flags, int family, address *out);
// The local address (port 0) from which `to` is reached.
address source_for(const address &to);
// The local address (port 0) for endpoints that name none.
address default_source(int family);
bool is_any(const address &a);

// Copies as much as fits; -FI_ETOOSMALL when that is not all and `strict`.
int copy_address(const address &a, void *to, size_t *length, bool strict);
void set_address(void **to, size_t *length, const address &a); // malloc'd, as fi_info has it

} // namespace ucxlike
