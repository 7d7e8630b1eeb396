/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Debugging aids that other headers refer to.
 */
#ifndef UCS_DEBUG_H_
#define UCS_DEBUG_H_

#include <stddef.h>
#include <ucs/sys/compiler_def.h>

/** Where a check of a pointer may stand; the address sanitizer itself does it well enough. */
#define UCS_ASAN_ADDRESS_IS_VALID(_ptr, _size)

UCS_BEGIN_API

/** Give the handling of a signal back to what handled it before. This library handles no signal:
 * nothing happens. */
void ucs_debug_disable_signal(int signum);

/**
 * @brief Check that memory may be accessed; a build with the address sanitizer ends the process
 * when not.
 *
 * @param ptr_name  Name for the message.
 * @param address   Start.
 * @param size      Bytes.
 */
void ucs_debug_asan_validate_address(const char *ptr_name, void *address, size_t size);

UCS_END_API

#endif
