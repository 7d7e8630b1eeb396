// SPDX-License-Identifier: BSD-3-Clause
// Reading /proc: see process.h.
#include "tools/process.h"

#include <cstdint>
#include <fstream>
#include <linux/capability.h>

namespace tools {

std::string file_name(const std::string &path)
{
    return path.substr(path.rfind('/') + 1);
}

std::string process::path(const std::string &file) const
{
    return "/proc/" + (pid_ ? std::to_string(pid_) : std::string("self")) + "/" + file;
}

std::optional<rlimit> process::limit(__rlimit_resource resource) const
{
    rlimit found = {};
    if (prlimit(pid_, resource, nullptr, &found) != 0) {
        return std::nullopt;
    }
    return found;
}

std::optional<std::set<std::string>> process::mapped_files() const
{
    std::ifstream maps(path("maps"));
    if (!maps) {
        return std::nullopt;
    }
    std::set<std::string> files;
    for (std::string line; std::getline(maps, line);) {
        if (size_t at = line.find('/'); at != std::string::npos) {
            files.insert(line.substr(at));
        }
    }
    return files;
}

uint64_t process::mask(const char *name) const
{
    std::ifstream status(path("status"));
    const std::string begin = std::string(name) + ":";
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with(begin)) {
            return std::stoull(line.substr(begin.size()), nullptr, 16);
        }
    }
    return 0;
}

bool process::handles(int signal) const
{
    return (mask("SigCgt") >> (signal - 1)) & 1;
}

bool process::locks_without_limit() const
{
    std::ifstream map(path("uid_map"));
    uint64_t inside = 0, outside = 0, count = 0;
    bool is_first_namespace =
        map >> inside >> outside >> count && outside == 0 && count >= UINT32_MAX;
    return is_first_namespace && ((mask("CapEff") >> CAP_IPC_LOCK) & 1);
}

} // namespace tools
