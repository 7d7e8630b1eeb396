// SPDX-License-Identifier: BSD-3-Clause
// The identities of this process and host, which decide whether two processes may share memory,
// random ids, the monotonic clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>

namespace ucs {

// Equal in two processes exactly when they run on the same booted kernel and share these
// namespaces.
struct host_identity {
    uint64_t boot;    // hash of the kernel's boot id
    uint64_t pid_ns;  // inode of the pid namespace
    uint64_t user_ns; // inode of the user namespace
    uint64_t net_ns;  // inode of the network namespace
    uint64_t ipc_ns;  // inode of the ipc namespace
    uint32_t uid;     // effective user id
};
const host_identity &this_host();

const std::string &host_name();
void random_fill(void *buffer, size_t size); // from the kernel; throws if it has none
uint64_t random_u64();                       // never 0, from the kernel
size_t page_size();
uint64_t monotonic_ns();

// What this thread got of a processor.
struct thread_usage {
    uint64_t cpu;         // ns
    uint64_t involuntary; // how often the kernel took it away
    uint64_t voluntary;   // how often the thread gave it up to sleep
};
thread_usage usage_of_thread();

// Whether the process can open so many descriptors now.
bool descriptors_left(unsigned count);

// When a process started, in clock ticks since boot; 0 when there is no such process.
uint64_t process_birth(pid_t pid);

} // namespace ucs
