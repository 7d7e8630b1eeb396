// SPDX-License-Identifier: BSD-3-Clause
//
// What all files of the provider share: the provider itself, its limits, logging and argument
// checks, and the way from a fid back to its object.
#pragma once

#include "prov/ucxlike/stubs.h"

#include "ucs/compiler.h"
#include "ucs/list.h"
#include "ucs/lock.h"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

#include <ucp/api/ucp.h>

#include <string>

namespace ucxlike {

extern fi_provider provider;

// The limits that fi_getinfo reports.
namespace limit {
constexpr size_t inject = 1024;
constexpr size_t iov = 4;
constexpr size_t cm_data = 1024;
constexpr size_t tx_size = 1024;
constexpr size_t rx_size = 1024;
constexpr size_t cq_size = 1024;
constexpr size_t max_msg = size_t(1) << 40;
constexpr size_t min_multi_recv = 256;
constexpr int backlog = 1024;
constexpr int peer_timeout = 60000; // milliseconds
constexpr size_t atomic_bytes = inject / 2;
constexpr size_t err_data = 1024;
constexpr size_t regions = 65536;
constexpr size_t objects = 256;       // of a kind in a domain; hints may ask for more,
constexpr size_t most_objects = 4096; // up to so many,
constexpr size_t most_queued = 65536; // and for so many operations in flight
} // namespace limit

// Administrator's choices, FI_UCXLIKE_*; read when a fabric is opened or an address is chosen.
std::string param_string(const char *name);
int param_int(const char *name, int fallback);
// How long closing waits for a silent peer to take what was sent completely.
inline int linger_ms()
{
    return param_int("linger", 10000);
}
bool param_bool(const char *name);
void define_params();

int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
            const fi_info *hints, fi_info **info);
int open_fabric(fi_fabric_attr *attr, fid_fabric **fabric, void *context);

// ucs_status_t -> positive fabric errno.
int errno_of(ucs_status_t status);
const char *strerror_of(int prov_errno, char *buf, size_t len);

// Runs a control-path function that may throw and returns its result or the errno of what it threw.
int guard_failed() noexcept; // inside a catch block
template <class F>
int guard(F &&f) noexcept
{
    try {
        return f();
    } catch (...) {
        return guard_failed();
    }
}

// Thrown by constructors of the control path.
struct failure {
    int error; // positive fabric errno
};

template <class T, class Base>
inline T *from_fid(Base *fid)
{
    return static_cast<T *>(fid);
}

// The fid is the first member of every fid_* structure.
template <class T, class Fid>
inline T *from_base(fid_t f)
{
    return static_cast<T *>(reinterpret_cast<Fid *>(f));
}

} // namespace ucxlike

#define PROV_WARN(subsystem, ...) FI_WARN(&::ucxlike::provider, FI_LOG_##subsystem, __VA_ARGS__)
#define PROV_INFO(subsystem, ...) FI_INFO(&::ucxlike::provider, FI_LOG_##subsystem, __VA_ARGS__)

// A wrong argument: one line that names it, and -FI_EINVAL.
#define PROV_CHECK_ARG(subsystem, cond, ...)                                                       \
    do {                                                                                           \
        if (UCS_UNLIKELY(!(cond))) {                                                               \
            PROV_WARN(subsystem, __VA_ARGS__);                                                     \
            return -FI_EINVAL;                                                                     \
        }                                                                                          \
    } while (0)
