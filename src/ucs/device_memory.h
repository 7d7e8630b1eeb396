// SPDX-License-Identifier: BSD-3-Clause
//
// Memory of accelerators: what the driver's library says of an address. Only libraries that the
// process has loaded are asked (CUDA's libcuda, ROCm's libhsa-runtime64, Level Zero's
// libze_loader), and CUDA's is loaded where its device exists. Where there is none, a question is
// one branch.
#pragma once

#include <ucs/memory/memory_type.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ucs::device_memory {

extern std::atomic<bool> has_driver; // set by look(), never unset

// Whether a pointer may be a device's.
inline bool possible() noexcept
{
    return has_driver.load(std::memory_order_relaxed);
}

// Looks for drivers among the libraries that were loaded since the last look. Cheap enough for
// calls that open something.
void look() noexcept;

// Loads CUDA's library where its device exists, then look().
void load_drivers(const char *cuda_device = "/dev/nvidiactl") noexcept;

// The memory that an address is in; of the host, and of length 0, if no driver knows it.
struct allocation {
    ucs_memory_type_t type = UCS_MEMORY_TYPE_HOST;
    void *base = nullptr;
    size_t length = 0; // 0: not known
};
allocation find(const void *address) noexcept;

// Kinds that find() can return.
uint64_t known_kinds() noexcept;

// Kinds that the processor does not load from and store to: managed memory moves to it on access.
constexpr uint64_t device_kinds = UCS_BIT(UCS_MEMORY_TYPE_CUDA) | UCS_BIT(UCS_MEMORY_TYPE_ROCM) |
                                  UCS_BIT(UCS_MEMORY_TYPE_ZE_DEVICE);

constexpr bool is_host(ucs_memory_type_t type) noexcept
{
    return !(device_kinds & UCS_BIT(type));
}

// "memory of a CUDA device"
const char *name(ucs_memory_type_t type) noexcept;

} // namespace ucs::device_memory
