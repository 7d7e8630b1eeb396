// SPDX-License-Identifier: BSD-3-Clause
#include "uct/ofi/quirks/shm_patience.h"

#include <cctype>
#include <dirent.h>
#include <fstream>
#include <memory>

namespace uct::ofi {

namespace {

// The state follows the name in parentheses, which may contain any byte.
bool is_stopped(const std::string &process)
{
    std::string line;
    std::getline(std::ifstream(process + "/stat"), line);
    size_t end = line.rfind(") ");
    return end != std::string::npos && end + 2 < line.size() &&
           (line[end + 2] == 'T' || line[end + 2] == 't');
}

bool has_mapped(const std::string &process, std::span<const std::string> names)
{
    std::ifstream maps(process + "/maps");
    for (std::string line; std::getline(maps, line);) {
        for (const std::string &name : names) {
            // A name of the core may have its final zero with it. " (deleted)" may follow.
            std::string path = std::string("/dev/shm/") + name.c_str();
            size_t at = line.find(path);
            if (at != std::string::npos &&
                (at + path.size() == line.size() || line[at + path.size()] == ' ')) {
                return true;
            }
        }
    }
    return false;
}

} // namespace

bool is_stopped_with(std::span<const std::string> names)
{
    std::unique_ptr<DIR, int (*)(DIR *)> all(opendir("/proc"), closedir);
    while (dirent *entry = all ? readdir(all.get()) : nullptr) {
        std::string process = std::string("/proc/") + entry->d_name;
        if (isdigit(static_cast<unsigned char>(entry->d_name[0])) && is_stopped(process) &&
            has_mapped(process, names)) {
            return true;
        }
    }
    return false;
}

} // namespace uct::ofi
