// SPDX-License-Identifier: BSD-3-Clause
// The files in /dev/shm behind shared-memory endpoints. The core makes them and removes them when
// the endpoint closes; a process that is killed leaves them. Our names tell whose they are, so that
// any process can remove those of the dead:
//   ucxlike-<pid namespace>-<uid>-<pid>-<start time of the process>-<count>
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>

namespace uct::ofi::shm_file {

// What a name says besides the namespace and the user, which are ours.
struct parts {
    pid_t pid;
    uint64_t birth;
    unsigned count;
};

std::string make_name(); // a new one for this process
std::string name_of(const parts &p);
bool parse(const std::string &name, parts *p); // false: it is none of ours
// Whether the name is a whole one of ours, of that process. Others may lead anywhere.
bool is_of(const std::string &name, pid_t pid, uint64_t birth);
bool present(const std::string &name); // as a file of our user
// Both, of a name as the core gives it, with its final zero.
bool is_there(const std::string &name, pid_t pid, uint64_t birth);
// Removes the file of a process that is gone, as the name of ours and the kernel tell.
void remove_of_dead(const std::string &name);

// Removes files of our user and namespace whose process is gone.
void reap_stale();

} // namespace uct::ofi::shm_file
