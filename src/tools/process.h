// SPDX-License-Identifier: BSD-3-Clause
// What /proc says of a process, for the doctor.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>

namespace tools {

class process {
  public:
    // 0: this one.
    explicit process(pid_t pid) : pid_(pid) {}
    std::string name() const { return pid_ ? "process " + std::to_string(pid_) : "this process"; }
    // A file of it, as "root/dev/shm".
    std::string path(const std::string &file) const;
    // Nothing where it may not be asked; errno says why.
    std::optional<rlimit> limit(__rlimit_resource resource) const;
    // The files that it has mapped; nothing as above.
    std::optional<std::set<std::string>> mapped_files() const;
    // Whether it has a handler for the signal.
    bool handles(int signal) const;
    // Whether a limit of locked memory does not count for it: CAP_IPC_LOCK, which counts outside of
    // user namespaces alone.
    bool locks_without_limit() const;

  private:
    uint64_t mask(const char *name) const; // a line of its status
    pid_t pid_;
};

// "libucp.so.0" of "/usr/lib/libucp.so.0".
std::string file_name(const std::string &path);

} // namespace tools
