// SPDX-License-Identifier: BSD-3-Clause
#include "fabtests-ext/common/own_allocations.h"

#include "fabtests-ext/common/sanitized.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&                             \
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define REPLACES_MALLOC 1
#else
#define REPLACES_MALLOC 0
#endif

namespace {

enum class owner : uint8_t { unknown, ours, runtime, other };

struct text {
    uintptr_t begin, end;
    owner whose;
};

constexpr size_t most_texts = 256;
text texts[most_texts];
std::atomic<size_t> text_count;
std::atomic_flag adding = ATOMIC_FLAG_INIT;

std::atomic<bool> armed;
std::atomic<size_t> failing, count;
thread_local bool inside;

owner owner_of(const char *name)
{
    if (strstr(name, "/libucxlike")) {
        return owner::ours;
    }
    for (const char *runtime : {"/libstdc++.", "/libc++", "/libc.so.", "/libgcc_s."}) {
        if (strstr(name, runtime)) {
            return owner::runtime;
        }
    }
    return owner::other;
}

int add_text(dl_phdr_info *info, size_t, void *address)
{
    auto wanted = *static_cast<uintptr_t *>(address);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto &p = info->dlpi_phdr[i];
        uintptr_t begin = info->dlpi_addr + p.p_vaddr;
        if (p.p_type == PT_LOAD && wanted >= begin && wanted < begin + p.p_memsz) {
            size_t n = text_count;
            if (n < most_texts) {
                texts[n] = {begin, begin + p.p_memsz, owner_of(info->dlpi_name)};
                text_count = n + 1;
            }
            return 1;
        }
    }
    return 0;
}

owner find(uintptr_t address)
{
    for (size_t i = 0; i < text_count; ++i) {
        if (address >= texts[i].begin && address < texts[i].end) {
            return texts[i].whose;
        }
    }
    return owner::unknown;
}

owner owner_at(uintptr_t address)
{
    owner whose = find(address);
    if (whose != owner::unknown) {
        return whose;
    }
    while (adding.test_and_set()) {
    }
    if (find(address) == owner::unknown) {
        dl_iterate_phdr(add_text, &address);
    }
    adding.clear();
    whose = find(address);
    return whose == owner::unknown ? owner::other : whose;
}

_Unwind_Reason_Code look(_Unwind_Context *context, void *result)
{
    auto *whose = static_cast<owner *>(result);
    uintptr_t address = _Unwind_GetIP(context);
    if (!address) {
        *whose = owner::other;
        return _URC_END_OF_STACK;
    }
    owner at = owner_at(address - 1);
    // The frames of this file come first.
    if (at == owner::runtime) {
        *whose = owner::runtime;
        return _URC_NO_REASON;
    }
    if (*whose == owner::unknown) {
        return _URC_NO_REASON;
    }
    *whose = at;
    return _URC_END_OF_STACK;
}

// The library's or not: the first caller that is not of the C or C++ library says it.
bool called_by_us(void *caller)
{
    owner whose = owner_at(reinterpret_cast<uintptr_t>(caller) - 1);
    if (whose == owner::runtime) {
        whose = owner::unknown;
        _Unwind_Backtrace(look, &whose);
    }
    return whose == owner::ours;
}

void write_stack(size_t n)
{
    void *frames[32];
    dprintf(STDERR_FILENO, "allocation %zu:\n", n);
    int depth = backtrace(frames, 32);
    backtrace_symbols_fd(frames, depth, STDERR_FILENO);
}

// Not called where malloc stays the system's.
[[maybe_unused]] bool refused(void *caller)
{
    if (!armed || inside) {
        return false;
    }
    inside = true;
    bool fails = false;
    if (called_by_us(caller)) {
        size_t n = ++count;
        fails = n == failing;
        if (fails) {
            write_stack(n);
        }
    }
    inside = false;
    if (fails) {
        errno = ENOMEM;
    }
    return fails;
}

} // namespace

#if REPLACES_MALLOC
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" void *__libc_malloc(size_t size);
extern "C" void *__libc_calloc(size_t count, size_t size);
extern "C" void *__libc_realloc(void *old, size_t size);
extern "C" void *__libc_memalign(size_t alignment, size_t size);
// NOLINTEND(bugprone-reserved-identifier)

#define CALLER __builtin_return_address(0)

extern "C" void *malloc(size_t size)
{
    return refused(CALLER) ? nullptr : __libc_malloc(size);
}

extern "C" void *calloc(size_t number, size_t size)
{
    return refused(CALLER) ? nullptr : __libc_calloc(number, size);
}

extern "C" void *realloc(void *old, size_t size)
{
    return refused(CALLER) ? nullptr : __libc_realloc(old, size);
}

extern "C" void *aligned_alloc(size_t alignment, size_t size)
{
    return refused(CALLER) ? nullptr : __libc_memalign(alignment, size);
}

extern "C" int posix_memalign(void **memory, size_t alignment, size_t size)
{
    if (refused(CALLER)) {
        return ENOMEM;
    }
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}
#endif

namespace own_allocations {

bool can_fail()
{
    return REPLACES_MALLOC;
}

namespace {

// The end of a process that was forked, and what it wrote.
result await(pid_t pid, int from)
{
    result r;
    int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    pollfd p = {pidfd, POLLIN, 0};
    bool ended = poll(&p, 1, 100000) == 1;
    kill(pid, SIGKILL);
    close(pidfd);
    int status = 0;
    waitpid(pid, &status, 0);
    char text[512];
    ssize_t n =
        read(from, &r.made, sizeof(r.made)) == sizeof(r.made) ? read(from, text, sizeof(text)) : 0;
    if (n > 0) {
        r.wrong.assign(text, static_cast<size_t>(n));
    }
    if (!ended) {
        r.wrong = "it hangs";
    } else if (WIFSIGNALED(status)) {
        r.wrong = "signal " + std::to_string(WTERMSIG(status));
    } else if (r.wrong.empty() && WEXITSTATUS(status)) {
        r.wrong = "it ended with " + std::to_string(WEXITSTATUS(status));
    }
    return r;
}

} // namespace

// What it logs is of interest when it is the only one.
static bool shown(size_t n)
{
    const char *asked = getenv("UCXLIKE_ALLOCATION");
    return asked && strtoul(asked, nullptr, 10) == n;
}

result run(size_t n, const std::function<std::string()> &scenario)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return {"no pipe", 0};
    }
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (!shown(n)) {
            dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
        }
        failing = n;
        armed = true;
        std::string wrong = scenario();
        armed = false;
        size_t all = count;
        bool told = write(fds[1], &all, sizeof(all)) == sizeof(all) &&
                    write(fds[1], wrong.data(), wrong.size()) >= 0;
        _exit(told ? 0 : 1);
    }
    close(fds[1]);
    result r = await(pid, fds[0]);
    close(fds[0]);
    return r;
}

std::string run_each(size_t k, const std::function<std::string()> &scenario)
{
    const char *asked = getenv("UCXLIKE_ALLOCATION");
    if (asked && strtoul(asked, nullptr, 10)) {
        return run(strtoul(asked, nullptr, 10), scenario).wrong;
    }
    if (asked && strcmp(asked, "all") == 0) {
        k = 1;
    }
    result whole = run(0, scenario);
    if (!whole.wrong.empty() || !whole.made) {
        return "without a failure: " + whole.wrong;
    }
    std::string wrong;
    unsigned bad = 0;
    for (size_t n = 1; n <= whole.made && bad < 10; n += k) {
        result r = run(n, scenario);
        if (!r.wrong.empty()) {
            wrong += "allocation " + std::to_string(n) + " of " + std::to_string(whole.made) +
                     ": " + r.wrong + "\n";
            ++bad;
        }
    }
    return wrong;
}

} // namespace own_allocations
