// SPDX-License-Identifier: BSD-3-Clause
//
// Two processes with different namespaces or rights, and what carries their messages: the table of
// docs/containers.md. Each cell ends with a transport or with UCS_ERR_UNREACHABLE, and what
// arrives is what was sent.
#include "fabtests-ext/common/forbid_copies.h"
#include "fabtests-ext/common/ucp_entity.h"
#include "fabtests-ext/common/ucp_lanes.h"

#include <bit>
#include <cerrno>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ucp_test;

namespace {

constexpr int not_allowed = 77; // exit status
constexpr int all_namespaces =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS;

enum class rights { usual, hidden, no_copies };

struct cell {
    int apart = 0; // CLONE_NEW*: what the guest has of its own
    rights guest = rights::usual;
    bool together = false; // both are in new namespaces
    bool late = false;     // UCX_LATE_NETWORKS
};

bool write_file(const char *path, const std::string &text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(fd);
    return good;
}

bool enter_user_namespace()
{
    std::string uid = std::to_string(geteuid()), gid = std::to_string(getegid());
    return unshare(CLONE_NEWUSER) == 0 && write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/uid_map", uid + " " + uid + " 1") &&
           write_file("/proc/self/gid_map", gid + " " + gid + " 1");
}

int status_of(pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Of a process of its own. /dev/shm of a mount namespace is empty, and no other process has it.
void enter(int namespaces)
{
    if ((namespaces & CLONE_NEWUSER) && !enter_user_namespace()) {
        _exit(not_allowed);
    }
    if (unshare(namespaces & ~CLONE_NEWUSER) != 0) {
        _exit(not_allowed);
    }
    if (namespaces & CLONE_NEWPID) {
        pid_t inner = fork();
        if (inner != 0) {
            _exit(inner < 0 ? not_allowed : status_of(inner));
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    if ((namespaces & CLONE_NEWNS) &&
        (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
         mount("none", "/dev/shm", "tmpfs", 0, nullptr) != 0 ||
         ((namespaces & CLONE_NEWPID) && mount("proc", "/proc", "proc", 0, nullptr) != 0))) {
        _exit(not_allowed);
    }
}

// ---- The two sides

void tell(int fd, const std::string &text)
{
    if (send(fd, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
        _exit(1);
    }
}

std::string hear(int fd, entity *e = nullptr)
{
    char buffer[8192];
    for (;;) {
        ssize_t n = recv(fd, buffer, sizeof(buffer), e ? MSG_DONTWAIT : 0);
        if (n > 0) {
            return {buffer, static_cast<size_t>(n)};
        }
        if (n == 0 || !e || errno != EAGAIN) {
            _exit(1);
        }
        e->progress();
    }
}

std::vector<char> bytes(size_t length, int side)
{
    std::vector<char> data(length);
    for (size_t i = 0; i < length; ++i) {
        data[i] = static_cast<char>(i * 7 + i / 251 + static_cast<size_t>(side));
    }
    return data;
}

bool exchange(entity &e, ucp_ep_h ep, int side)
{
    for (size_t length : {8, 5000, 300000}) {
        std::vector<char> out = bytes(length, side), in(length);
        ucs_status_ptr_t receive = recv_nb(e, in.data(), length, 1);
        ucs_status_ptr_t sent = send_nb(ep, out.data(), length, 1);
        if (wait({&e}, receive) != UCS_OK || wait({&e}, sent) != UCS_OK ||
            in != bytes(length, 1 - side)) {
            return false;
        }
    }
    return wait({&e}, flush_nb(ep)) == UCS_OK;
}

// The transport, or "unreachable", or what went wrong.
std::string live(const cell &c, int fd, int side)
{
    options o;
    o.config = {{"LATE_NETWORKS", c.late ? "y" : "n"}};
    entity e(o);
    std::vector<char> own = e.address();
    tell(fd, {own.data(), own.size()});
    std::string theirs = hear(fd);
    ucp_ep_h ep = nullptr;
    ucs_status_t status = create_ep(e, {theirs.begin(), theirs.end()}, &ep);
    tell(fd, status == UCS_OK ? "reaches" : "does not");
    bool both = hear(fd, &e) == "reaches" && status == UCS_OK;
    std::string way = status == UCS_ERR_UNREACHABLE ? "unreachable" : ucs_status_string(status);
    if (both) {
        bool good = exchange(e, ep, side);
        std::string lane = transports_of(ep).at(0);
        way = good ? lane.substr(0, lane.find('/')) : "wrong bytes";
        way += way == "sm" && e.worker->door && !e.context->networks_are_late ? " beside networks"
                                                                              : "";
    }
    tell(fd, "done"); // the other may still need an answer
    hear(fd, &e);
    if (ep) {
        wait({&e}, close_nb(ep, true));
    }
    return way;
}

struct sockets {
    sockets() { EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd)); }
    ~sockets() { keep(-1); }
    // Closes the others, so that a side sees when the other has gone.
    void keep(int side)
    {
        for (int i : {0, 1}) {
            if (i != side && fd[i] >= 0) {
                close(fd[i]);
                fd[i] = -1;
            }
        }
    }
    int fd[2];
};

pid_t start(const cell &c, int side, sockets &between, int report)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        between.keep(side);
        if (side == 1) {
            enter(c.apart);
            if (c.guest == rights::no_copies) {
                if (!forbid_copies()) {
                    _exit(not_allowed);
                }
            } else if (c.guest == rights::hidden) {
                prctl(PR_SET_DUMPABLE, 0);
            }
        }
        // What it throws must not go on in the test's place.
        try {
            tell(report, live(c, between.fd[side], side));
        } catch (const std::exception &e) {
            fprintf(stderr, "side %d: %s\n", side, e.what());
            _exit(1);
        }
        _exit(0);
    }
    return pid;
}

// Runs both sides and waits for them; the status of the one that failed.
int run(const cell &c, int report)
{
    sockets between;
    pid_t sides[2];
    for (int side : {0, 1}) {
        sides[side] = start(c, side, between, report);
    }
    between.keep(-1);
    int guest = status_of(sides[1]);
    if (guest != 0) {
        kill(sides[0], SIGKILL);
    }
    int host = status_of(sides[0]);
    return guest ? guest : host;
}

std::string name_of(const cell &c)
{
    std::string name = c.together ? "together" : "apart";
    name += c.late ? "_late" : "";
    const std::pair<int, const char *> kinds[] = {{CLONE_NEWUSER, "_user"},
                                                  {CLONE_NEWPID, "_pid"},
                                                  {CLONE_NEWIPC, "_ipc"},
                                                  {CLONE_NEWNET, "_net"},
                                                  {CLONE_NEWNS, "_mount"}};
    for (auto [flag, text] : kinds) {
        name += c.apart & flag ? text : "";
    }
    return name + (c.guest == rights::hidden      ? "_hidden"
                   : c.guest == rights::no_copies ? "_no_copies"
                                                  : "");
}

std::string expected(const cell &c)
{
    bool visible = !(c.apart & (CLONE_NEWUSER | CLONE_NEWPID)) && c.guest != rights::hidden;
    return c.together || visible ? "sm" : c.apart & CLONE_NEWNET ? "unreachable" : "tcp";
}

std::vector<cell> cells()
{
    std::vector<cell> all;
    for (unsigned set = 0; set < 32; ++set) {
        const int kinds[] = {CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWIPC, CLONE_NEWNET, CLONE_NEWNS};
        int apart = 0;
        for (unsigned i = 0; i < std::size(kinds); ++i) {
            apart |= set >> i & 1 ? kinds[i] : 0;
        }
        all.push_back({.apart = apart});
    }
    for (rights guest : {rights::hidden, rights::no_copies}) {
        for (int apart : {0, CLONE_NEWNS, CLONE_NEWIPC | CLONE_NEWNET, CLONE_NEWPID}) {
            all.push_back({.apart = apart, .guest = guest});
        }
    }
    all.push_back({.apart = all_namespaces, .together = true});
    std::vector<cell> late; // one kind each; together they are as without
    for (cell c : all) {
        if (c.together || std::popcount(static_cast<unsigned>(c.apart)) <= 1) {
            c.late = true;
            late.push_back(c);
        }
    }
    all.insert(all.end(), late.begin(), late.end());
    return all;
}

class ucp_namespaces : public testing::TestWithParam<cell> {};

TEST_P(ucp_namespaces, messages_arrive_or_the_peer_is_unreachable)
{
    cell c = GetParam();
    sockets report;
    int status = 0;
    if (c.together) {
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            enter(c.apart);
            c.apart = 0;
            _exit(run(c, report.fd[1]));
        }
        status = status_of(pid);
    } else {
        status = run(c, report.fd[1]);
    }
    if (status == not_allowed) {
        GTEST_SKIP() << "these namespaces or filters are not allowed here";
    }
    ASSERT_EQ(status, 0);
    for (int side : {0, 1}) {
        EXPECT_EQ(hear(report.fd[0]), expected(c)) << side;
    }
}

INSTANTIATE_TEST_SUITE_P(guest, ucp_namespaces, testing::ValuesIn(cells()),
                         [](const auto &info) { return name_of(info.param); });

} // namespace
