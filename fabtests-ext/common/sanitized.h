// SPDX-License-Identifier: BSD-3-Clause
//
// Which sanitizer a test was built with, and what it must leave alone for that.
#pragma once

#include <rdma/fabric.h>
#include <string>

#ifndef __has_feature
#define __has_feature(feature) 0 // clang's
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
constexpr bool address_sanitized = true;
#else
constexpr bool address_sanitized = false;
#endif

// A program that was not built so cannot load the provider then.
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = address_sanitized;
#endif

// libfabric before 1.18 does not free the info and the index of its net's native RDM endpoints.
inline bool leaks_by_itself(const std::string &transport)
{
    return address_sanitized && transport == "tcprdm" &&
           FI_VERSION_LT(fi_version(), FI_VERSION(1, 18));
}
