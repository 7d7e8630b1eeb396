// SPDX-License-Identifier: BSD-3-Clause
// What may be wrong on this machine: see info.h. Each check tells what it looked at and what it
// found, and where that is worse than it could be, what that costs and what to do.
#include "tools/info.h"
#include "tools/process.h"

#include "inspect/inspect.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tools {
namespace {

class findings {
  public:
    void good(const char *check, const std::string &found) { add(check, found); }
    void bad(const char *check, const std::string &found, const std::string &cost,
             const std::string &fix)
    {
        json &row = add(check, found);
        row["ok"] = false;
        row["cost"] = cost;
        row["fix"] = fix;
    }
    json take() { return std::move(report_); }

  private:
    json &add(const char *check, const std::string &found)
    {
        json row = json::object();
        row["check"] = check;
        row["ok"] = true;
        row["found"] = found;
        return report_.emplace_back(std::move(row));
    }
    json report_ = json::array();
};

std::string amount(rlim_t value)
{
    return value == RLIM_INFINITY ? "unlimited" : std::to_string(value);
}

void not_asked(const char *check, const process &p, findings *f)
{
    f->bad(check, p.name() + ": " + strerror(errno), "nothing is known of it",
           "ask for a process of your own");
}

void check_files(const process &p, findings *f)
{
    constexpr const char *check = "descriptors";
    constexpr rlim_t enough = 4096;
    std::optional<rlimit> limit = p.limit(RLIMIT_NOFILE);
    if (!limit) {
        not_asked(check, p, f);
        return;
    }
    std::string found = amount(limit->rlim_cur) + " descriptors (RLIMIT_NOFILE)";
    if (limit->rlim_cur >= enough) {
        f->good(check, found);
    } else {
        f->bad(
            check, found,
            "each connection of tcp takes one; the next peer is not reached when they are used up",
            "ulimit -n " + amount(std::min(limit->rlim_max, enough)));
    }
}

void check_locked_memory(const process &p, findings *f)
{
    constexpr const char *check = "locked memory";
    constexpr rlim_t enough = rlim_t(1) << 30;
    std::optional<rlimit> limit = p.limit(RLIMIT_MEMLOCK);
    if (!limit) {
        not_asked(check, p, f);
        return;
    }
    std::string found = amount(limit->rlim_cur) + " bytes may be locked (RLIMIT_MEMLOCK)";
    if (!inspect::locks_memory()) {
        f->good(check, found + "; no device here needs it");
    } else if (limit->rlim_cur >= enough) {
        f->good(check, found);
    } else if (p.locks_without_limit()) {
        f->good(check, found + "; CAP_IPC_LOCK lifts that");
    } else {
        f->bad(check, found,
               "the network adapter locks the memory that it registers: beyond the limit, "
               "operations fail",
               "ulimit -l unlimited, or memlock in /etc/security/limits.conf");
    }
}

// Whether another process of this user may read our memory: the error's number. A child tries,
// which is none of our ancestors, the relatives that Yama allows it.
int reading_by_another()
{
    uint64_t there = 1;
    pid_t reader = fork();
    if (reader == 0) {
        uint64_t here = 0;
        iovec local = {&here, sizeof(here)}, remote = {&there, sizeof(there)};
        bool has_read = process_vm_readv(getppid(), &local, 1, &remote, 1, 0) == sizeof(here);
        _exit(has_read ? 0 : errno);
    }
    int status = 0;
    if (reader < 0 || waitpid(reader, &status, 0) != reader || !WIFEXITED(status)) {
        return errno;
    }
    return WEXITSTATUS(status);
}

void check_ptrace(findings *f)
{
    constexpr const char *check = "ptrace";
    constexpr int until_boot = 3;
    int scope = 0;
    std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
    std::string name = "kernel.yama.ptrace_scope is " + std::to_string(scope);
    int error = reading_by_another();
    if (error == 0) {
        f->good(check, "processes may read each other's memory" +
                           (scope ? "; " + name + ", which does not hold here" : ""));
        return;
    }
    std::string cost = "large messages between processes of this host are copied twice";
    if (scope == 0) {
        f->bad(check, std::string("process_vm_readv is refused: ") + strerror(error), cost,
               "a seccomp profile that allows it, or in a container --cap-add=SYS_PTRACE");
    } else {
        f->bad(check, name + ": processes may not read each other's memory", cost,
               std::string(scope == until_boot ? "boot with another value, as 3 stays until then"
                                               : "sysctl kernel.yama.ptrace_scope=0") +
                   "; in a container --cap-add=SYS_PTRACE");
    }
}

void check_shared_memory(const process &p, findings *f)
{
    constexpr const char *check = "/dev/shm";
    constexpr uint64_t enough = uint64_t(256) << 20;
    const std::string folder = p.path("root/dev/shm");
    const std::string cost =
        "libfabric's shm keeps its memory there: UCX_TLS=ofi_shm is not opened, or ends with "
        "SIGBUS; sm keeps none there";
    struct statvfs fs = {};
    if (statvfs(folder.c_str(), &fs) != 0 || access(folder.c_str(), W_OK | X_OK) != 0) {
        f->bad(check, strerror(errno), cost, "mount -t tmpfs -o mode=1777 tmpfs /dev/shm");
        return;
    }
    uint64_t room = static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize;
    std::string found = std::to_string(room >> 20) + " MiB free";
    if (room >= enough) {
        f->good(check, found);
    } else {
        f->bad(check, found, cost,
               "remove what is left there; in a container --shm-size=1g or --ipc=host");
    }
}

// What a program that was built for UCX would get.
void check_next_library(findings *f)
{
    constexpr const char *check = "UCX libraries";
    void *library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        f->good(check, "a program started here finds no libucp.so.0; ucxlike-run brings one");
        return;
    }
    Dl_info where = {};
    if (dladdr(dlsym(library, "ucp_init_version"), &where)) {
        f->good(check,
                std::string("a program started here gets libucp.so.0 of ") + where.dli_fname);
    }
    dlclose(library);
}

void check_libraries(const process &p, const std::set<std::string> &files, findings *f)
{
    constexpr const char *check = "UCX libraries";
    std::string list;
    unsigned count = 0;
    for (const std::string &path : files) {
        const std::string name = file_name(path);
        if (name.starts_with("libucp.so") || name.starts_with("libucxlike.so")) {
            list += (count++ ? ", " : "") + path;
        }
    }
    if (count < 2) {
        f->good(check, p.name() + " has " + (list.empty() ? "none" : list));
    } else {
        f->bad(check, p.name() + " has more than one: " + list,
               "each has connections and memory of its own, and a call may go to either",
               "start it with ucxlike-run, which takes one alone");
    }
}

// What is lost with the signal, and how PSM is kept from it.
void handled(const std::string &found, findings *f)
{
    f->bad("signal handlers", found,
           "a program that crashes or is ended has exit status 1 instead of the signal, and leaves "
           "no core file",
           "IPATH_NO_BACKTRACE=1 in its environment, where that is PSM");
}

constexpr struct {
    int number;
    const char *name;
} fatal_signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGILL, "SIGILL"},
                     {SIGABRT, "SIGABRT"}, {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}};

// Of this process, once it has loaded the providers as a UCX program does.
void check_own_handlers(findings *f)
{
    inspect::locks_memory();
    std::string list, library;
    for (const auto &signal : fatal_signals) {
        struct sigaction now = {};
        sigaction(signal.number, nullptr, &now);
        if (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN) {
            Dl_info where = {};
            bool known =
                dladdr(reinterpret_cast<void *>(now.sa_handler), &where) && where.dli_fname;
            list += (list.empty() ? "" : ", ") + std::string(signal.name);
            library = known ? where.dli_fname : "an unknown file";
        }
    }
    if (list.empty()) {
        f->good("signal handlers", "no provider handles SIGSEGV in a UCX program");
    } else {
        handled(list + " handled by " + library, f);
    }
}

// A handler of another process may be its own. With PSM's library in it, it is most likely not.
void check_handlers(const process &p, const std::set<std::string> &files, findings *f)
{
    std::string list;
    for (const auto &signal : fatal_signals) {
        if (p.handles(signal.number)) {
            list += (list.empty() ? "" : ", ") + std::string(signal.name);
        }
    }
    auto psm = std::find_if(files.begin(), files.end(), [](const std::string &path) {
        return file_name(path).starts_with("libinfinipath.so");
    });
    if (list.empty() || psm == files.end()) {
        f->good("signal handlers",
                p.name() + (list.empty() ? " handles no fatal signal"
                                         : " handles " + list + ", without PSM"));
    } else {
        handled(p.name() + " handles " + list + ", as PSM does: " + *psm, f);
    }
}

} // namespace

json doctor_report(pid_t pid)
{
    findings f;
    const process p(pid);
    std::optional<std::set<std::string>> files = p.mapped_files();
    if (!files) {
        not_asked("process", p, &f);
        return f.take();
    }
    check_files(p, &f);
    check_locked_memory(p, &f);
    check_ptrace(&f);
    check_shared_memory(p, &f);
    if (pid) {
        check_libraries(p, *files, &f);
        check_handlers(p, *files, &f);
    } else {
        check_next_library(&f);
        check_own_handlers(&f);
    }
    return f.take();
}

void print_doctor(const json &report)
{
    for (const json &row : report) {
        if (row.at("ok").get<bool>()) {
            printf("ok   %s: %s\n", text(row, "check").c_str(), text(row, "found").c_str());
        } else {
            printf("WARN %s: %s\n     cost: %s\n     -> %s\n", text(row, "check").c_str(),
                   text(row, "found").c_str(), text(row, "cost").c_str(), text(row, "fix").c_str());
        }
    }
}

bool has_findings(const json &report)
{
    return std::any_of(report.begin(), report.end(),
                       [](const json &row) { return !row.at("ok").get<bool>(); });
}

} // namespace tools
