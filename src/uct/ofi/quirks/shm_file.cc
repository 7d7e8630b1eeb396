// SPDX-License-Identifier: BSD-3-Clause
// Naming and reaping of /dev/shm files.
#include "uct/ofi/quirks/shm_file.h"

#include "ucs/log.h"
#include "ucs/sys.h"

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <memory>
#include <sys/mman.h>
#include <unistd.h>

namespace uct::ofi::shm_file {

namespace {

constexpr char directory[] = "/dev/shm";

std::string owner_prefix()
{
    char text[96];
    snprintf(text, sizeof(text), "ucxlike-%" PRIx64 "-%u-", ucs::this_host().pid_ns,
             ucs::this_host().uid);
    return text;
}

} // namespace

uint64_t process_birth(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    std::unique_ptr<FILE, int (*)(FILE *)> file(fopen(path, "re"), fclose);
    if (!file) {
        return 0;
    }
    char line[1024];
    size_t n = fread(line, 1, sizeof(line) - 1, file.get());
    line[n] = '\0';
    // The second field is the command in brackets and may contain anything; the start time is the
    // twentieth after it.
    const char *at = strrchr(line, ')');
    if (!at) {
        return 0;
    }
    char state = 0;
    unsigned long long birth = 0;
    int fields = sscanf(at + 1,
                        " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                        "%*s %llu",
                        &state, &birth);
    return fields == 2 && state != 'Z' && state != 'X' ? birth : 0;
}

std::string make_name()
{
    static std::atomic<unsigned> count = 0;
    char text[64];
    // Of one width: addresses of one transport have one length.
    snprintf(text, sizeof(text), "%07d-%012" PRIu64 "-%06x", getpid(), process_birth(getpid()),
             count++);
    return owner_prefix() + text;
}

bool present(const std::string &name)
{
    return access((std::string(directory) + "/" + name).c_str(), R_OK | W_OK) == 0;
}

void remove(const std::string &name)
{
    if (name.starts_with(owner_prefix())) {
        shm_unlink(name.c_str());
    }
}

void reap_stale()
{
    std::unique_ptr<DIR, int (*)(DIR *)> dir(opendir(directory), closedir);
    if (!dir) {
        return;
    }
    std::string prefix = owner_prefix();
    while (const dirent *entry = readdir(dir.get())) {
        std::string name = entry->d_name;
        int pid = 0;
        uint64_t birth = 0;
        if (name.starts_with(prefix) &&
            sscanf(name.c_str() + prefix.size(), "%d-%" SCNu64, &pid, &birth) == 2 &&
            process_birth(pid) != birth) {
            ucs_debug("removing %s/%s of a process that is gone", directory, name.c_str());
            shm_unlink(name.c_str());
        }
    }
}

} // namespace uct::ofi::shm_file
