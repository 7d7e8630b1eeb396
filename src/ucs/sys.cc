// SPDX-License-Identifier: BSD-3-Clause
#include "ucs/sys.h"

#include "ucs/error.h"

#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <memory>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace ucs {
namespace {

uint64_t fnv1a(const std::string &text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (unsigned char c : text) {
        hash = (hash ^ c) * 0x100000001b3u;
    }
    return hash;
}

uint64_t boot_hash()
{
    std::string id;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
    // Without a boot id two processes can only be told apart by the host's name.
    return fnv1a(id.empty() ? host_name() : id);
}

uint64_t namespace_inode(const char *name)
{
    struct stat st;
    std::string path = std::string("/proc/self/ns/") + name;
    return stat(path.c_str(), &st) == 0 ? st.st_ino : 0;
}

} // namespace

const host_identity &this_host()
{
    static const host_identity identity = {.boot = boot_hash(),
                                           .pid_ns = namespace_inode("pid"),
                                           .user_ns = namespace_inode("user"),
                                           .net_ns = namespace_inode("net"),
                                           .ipc_ns = namespace_inode("ipc"),
                                           .uid = geteuid()};
    return identity;
}

void random_fill(void *buffer, size_t size)
{
    auto *next = static_cast<char *>(buffer);
    for (ssize_t got; size > 0; next += got, size -= static_cast<size_t>(got)) {
        got = getrandom(next, size, 0);
        if (got < 0 && errno == EINTR) {
            got = 0;
        } else if (got < 0) {
            throw error(UCS_ERR_IO_ERROR, "getrandom: %s", strerror(errno));
        }
    }
}

uint64_t random_u64()
{
    uint64_t value = 0;
    while (value == 0) {
        random_fill(&value, sizeof(value));
    }
    return value;
}

size_t page_size()
{
    static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return size;
}

static uint64_t clock_ns(clockid_t clock)
{
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

thread_usage usage_of_thread()
{
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage); // its times are as old as the last tick
    return {.cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID),
            .involuntary = static_cast<uint64_t>(usage.ru_nivcsw),
            .voluntary = static_cast<uint64_t>(usage.ru_nvcsw)};
}

uint64_t monotonic_ns()
{
    return clock_ns(CLOCK_MONOTONIC);
}

bool descriptors_left(unsigned count)
{
    std::vector<int> taken;
    taken.reserve(count);
    int fd = eventfd(0, EFD_CLOEXEC);
    while (fd >= 0) {
        taken.push_back(fd);
        if (taken.size() == count) {
            break;
        }
        fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    for (int one : taken) {
        close(one);
    }
    return taken.size() == count;
}

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

} // namespace ucs
