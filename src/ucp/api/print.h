// SPDX-License-Identifier: BSD-3-Clause
//
// The text of the *_print_info calls. Programs parse some of it (Open MPI: the "resource" lines),
// so its form is part of the interface.
#pragma once

#include <cstdio>

struct ucp_context;
struct ucp_worker;
struct ucp_ep;

namespace ucp {

void print_context(const ucp_context &context, FILE *stream);
void print_worker(const ucp_worker &worker, FILE *stream);
void print_ep(const ucp_ep &ep, FILE *stream);

} // namespace ucp
