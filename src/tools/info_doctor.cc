// SPDX-License-Identifier: BSD-3-Clause
// What may be wrong on this machine: see info.h. Each check tells what it looked at, what it found,
// and where that is worse than it could be, what to do.
#include "tools/info.h"

#include "inspect/inspect.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <set>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace tools {
namespace {

class findings {
  public:
    void good(const char *check, const std::string &found) { add(check, found, true, ""); }
    void bad(const char *check, const std::string &found, const std::string &fix)
    {
        add(check, found, false, fix);
    }
    json take() { return std::move(report_); }

  private:
    void add(const char *check, const std::string &found, bool is_good, const std::string &fix)
    {
        json row = json::object();
        row["check"] = check;
        row["ok"] = is_good;
        row["found"] = found;
        if (!is_good) {
            row["fix"] = fix;
        }
        report_.push_back(row);
    }
    json report_ = json::array();
};

std::string amount(rlim_t value)
{
    return value == RLIM_INFINITY ? "unlimited" : std::to_string(value);
}

void check_files(findings *f)
{
    constexpr rlim_t enough = 4096;
    rlimit limit = {};
    getrlimit(RLIMIT_NOFILE, &limit);
    std::string found = amount(limit.rlim_cur) + " descriptors (RLIMIT_NOFILE)";
    if (limit.rlim_cur >= enough) {
        f->good("descriptors", found);
    } else {
        f->bad("descriptors", found + "; each connection of tcp takes one",
               "ulimit -n " + amount(std::min(limit.rlim_max, enough)));
    }
}

void check_locked_memory(findings *f)
{
    constexpr rlim_t enough = rlim_t(1) << 30;
    rlimit limit = {};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    std::string found = amount(limit.rlim_cur) + " bytes may be locked (RLIMIT_MEMLOCK)";
    if (!inspect::locks_memory()) {
        f->good("locked memory", found + "; no device here needs it");
    } else if (limit.rlim_cur >= enough) {
        f->good("locked memory", found);
    } else {
        f->bad("locked memory", found + "; the network adapter registers memory by locking it",
               "ulimit -l unlimited, or memlock in /etc/security/limits.conf");
    }
}

void check_ptrace(findings *f)
{
    std::ifstream file("/proc/sys/kernel/yama/ptrace_scope");
    int scope = 0;
    if (!(file >> scope)) {
        f->good("ptrace", "the kernel has no ptrace_scope");
    } else if (scope == 0 || geteuid() == 0) {
        f->good("ptrace", "kernel.yama.ptrace_scope is " + std::to_string(scope) +
                              (scope ? ", and this is root" : ""));
    } else {
        f->bad("ptrace",
               "kernel.yama.ptrace_scope is " + std::to_string(scope) +
                   ": processes may not read each other's memory, so large messages on this host "
                   "are copied twice",
               "sysctl kernel.yama.ptrace_scope=0; in a container --cap-add=SYS_PTRACE");
    }
}

void check_shared_memory(findings *f)
{
    constexpr uint64_t enough = uint64_t(256) << 20;
    struct statvfs fs = {};
    if (statvfs("/dev/shm", &fs) != 0) {
        f->bad("/dev/shm", strerror(errno), "mount a tmpfs there");
        return;
    }
    uint64_t room = static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize;
    std::string found = std::to_string(room >> 20) + " MiB free";
    if (room >= enough) {
        f->good("/dev/shm", found);
    } else {
        f->bad("/dev/shm", found + "; libfabric's shm keeps its memory there",
               "remove what is left there; in a container --shm-size=1g or --ipc=host");
    }
}

// The files of UCX's names and ours that a process has mapped.
bool mapped_libraries(pid_t pid, std::set<std::string> *found)
{
    std::ifstream maps(pid ? "/proc/" + std::to_string(pid) + "/maps" : "/proc/self/maps");
    if (!maps) {
        return false;
    }
    for (std::string line; std::getline(maps, line);) {
        size_t at = line.find('/');
        if (at == std::string::npos) {
            continue;
        }
        std::string path = line.substr(at), name = path.substr(path.rfind('/') + 1);
        if (name.starts_with("libucp.so") || name.starts_with("libucxlike.so")) {
            found->insert(path);
        }
    }
    return true;
}

void check_libraries(pid_t pid, findings *f)
{
    constexpr const char *check = "UCX libraries";
    std::string who = pid ? "process " + std::to_string(pid) : "a program started here";
    std::set<std::string> paths;
    if (!pid) {
        // What a program that was built for UCX would get.
        if (void *library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL)) {
            Dl_info where = {};
            if (dladdr(dlsym(library, "ucp_init_version"), &where)) {
                f->good(check, who + " gets libucp.so.0 of " + where.dli_fname);
            }
            dlclose(library);
        } else {
            f->good(check, who + " finds no libucp.so.0; ucxlike-run brings one");
        }
        return;
    }
    std::string list;
    if (!mapped_libraries(pid, &paths)) {
        f->bad(check, who + ": " + strerror(errno), "ask for a process of your own");
        return;
    }
    for (const std::string &path : paths) {
        list += (list.empty() ? "" : ", ") + path;
    }
    if (paths.size() < 2) {
        f->good(check, who + " has " + (list.empty() ? "none" : list));
    } else {
        f->bad(check, who + " has more than one: " + list,
               "start it with ucxlike-run, which takes one alone");
    }
}

void check_signal_handler(findings *f)
{
    constexpr const char *check = "signal handlers";
    inspect::locks_memory(); // loads the providers
    struct sigaction now = {};
    sigaction(SIGSEGV, nullptr, &now);
    if (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) {
        f->good(check, "no provider handles SIGSEGV in a UCX program");
        return;
    }
    Dl_info where = {};
    bool known = dladdr(reinterpret_cast<void *>(now.sa_handler), &where) != 0 && where.dli_fname;
    f->bad(check,
           std::string("SIGSEGV is handled by ") + (known ? where.dli_fname : "an unknown file") +
               ": a program that crashes ends with a status instead of the signal",
           "IPATH_NO_BACKTRACE=1 where that is PSM");
}

} // namespace

json doctor_report(pid_t pid)
{
    findings f;
    check_files(&f);
    check_locked_memory(&f);
    check_ptrace(&f);
    check_shared_memory(&f);
    check_libraries(pid, &f);
    check_signal_handler(&f);
    return f.take();
}

void print_doctor(const json &report)
{
    for (const json &row : report) {
        printf("%s %s: %s\n", row.at("ok").get<bool>() ? "ok  " : "WARN",
               text(row, "check").c_str(), text(row, "found").c_str());
        if (std::string fix = text(row, "fix"); !fix.empty()) {
            printf("     -> %s\n", fix.c_str());
        }
    }
}

bool has_findings(const json &report)
{
    for (const json &row : report) {
        if (!row.at("ok").get<bool>()) {
            return true;
        }
    }
    return false;
}

} // namespace tools
