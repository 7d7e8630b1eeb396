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
#include <sys/stat.h>
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

// Of one width: addresses of one transport have one length.
std::string name_of(const parts &p)
{
    char text[64];
    snprintf(text, sizeof(text), "%07d-%012" PRIu64 "-%06x", p.pid, p.birth, p.count);
    return owner_prefix() + text;
}

// False unless name_of() would give the same.
bool parse(const std::string &name, parts *p)
{
    std::string prefix = owner_prefix();
    return name.starts_with(prefix) &&
           sscanf(name.c_str() + prefix.size(), "%d-%" SCNu64 "-%x", &p->pid, &p->birth,
                  &p->count) == 3 &&
           name == name_of(*p);
}

std::string make_name()
{
    static std::atomic<unsigned> count = 0;
    return name_of({getpid(), ucs::process_birth(getpid()), count++});
}

bool is_of(const std::string &name, pid_t pid, uint64_t birth)
{
    parts p;
    return parse(name, &p) && p.pid == pid && p.birth == birth;
}

bool present(const std::string &name)
{
    struct stat about;
    return lstat((std::string(directory) + "/" + name).c_str(), &about) == 0 &&
           S_ISREG(about.st_mode) && about.st_uid == geteuid();
}

bool is_there(const std::string &name, pid_t pid, uint64_t birth)
{
    return name.find('\0') == name.size() - 1 && is_of(name.c_str(), pid, birth) &&
           present(name.c_str());
}

void remove_of_dead(const std::string &name)
{
    parts p;
    if (parse(name, &p) && ucs::process_birth(p.pid) != p.birth) {
        ucs_debug("removing %s/%s of a process that is gone", directory, name.c_str());
        shm_unlink(name.c_str());
    }
}

void reap_stale()
{
    std::unique_ptr<DIR, int (*)(DIR *)> dir(opendir(directory), closedir);
    if (!dir) {
        return;
    }
    while (const dirent *entry = readdir(dir.get())) {
        remove_of_dead(entry->d_name);
    }
}

} // namespace uct::ofi::shm_file
