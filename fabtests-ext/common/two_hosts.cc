// SPDX-License-Identifier: BSD-3-Clause
//
// Making the namespaces and the links between them with unshare(2) and ip(8). A host is the first
// process of its pid namespace; a keeper outside starts it and passes its end on.
#include "fabtests-ext/common/two_hosts.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <fstream>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdexcept>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace two_hosts {

namespace {

constexpr int namespaces = CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS;
constexpr unsigned hang_guard_seconds = 300;

[[noreturn]] void give_up(const char *what)
{
    perror(what);
    _exit(99);
}

void sh(const std::string &command)
{
    if (system(command.c_str()) != 0) {
        fprintf(stderr, "failed: %s\n", command.c_str());
        _exit(98);
    }
}

struct sockets {
    sockets()
    {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) != 0) {
            give_up("socketpair");
        }
    }
    int fd[2];
};

// In the new namespaces, before the links exist.
bool isolate()
{
    // Nothing that is mounted here may be seen outside.
    return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("none", "/dev/shm", "tmpfs", 0, nullptr) == 0;
}

void raise_links(const host &self, unsigned links)
{
    sh("ip link set lo up");
    for (unsigned i = 0; i < links; ++i) {
        sh("ip addr add " + host::address(self.number, i) + "/24 dev " + self.device(i));
        // Used at once, so it cannot wait until it is known to be of no other test.
        sh("ip -6 addr add " + host::address6(self.number, i) + "/64 dev " + self.device(i) +
           " nodad");
        sh("ip link set " + self.device(i) + " up");
    }
}

bool is_running(const std::string &device)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request = {};
    strncpy(request.ifr_name, device.c_str(), IFNAMSIZ - 1);
    bool running = ioctl(fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_RUNNING);
    close(fd);
    return running;
}

// The kernel notices the carrier some time after both ends are up, and says so.
void await_links(const host &self, unsigned links)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    sockaddr_nl address = {};
    address.nl_family = AF_NETLINK;
    address.nl_groups = RTMGRP_LINK;
    if (fd < 0 || bind(fd, reinterpret_cast<sockaddr *>(&address), sizeof(address)) != 0) {
        give_up("netlink");
    }
    for (unsigned i = 0; i < links; ++i) {
        while (!is_running(self.device(i))) {
            char news[8192];
            if (recv(fd, news, sizeof(news), 0) < 0 && errno != EINTR) {
                give_up("netlink");
            }
        }
    }
    close(fd);
}

struct running {
    pid_t keeper;
    channel control; // to the host: "go" once the links exist
    pid_t pid;       // the host's, as seen from here
};

int exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

[[noreturn]] void be_host(int number, int other, channel control, unsigned links, const role &act)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!isolate()) {
        give_up("mount");
    }
    control.hear();
    host self{number, channel(other)};
    raise_links(self, links);
    self.other.tell("up");
    self.other.hear();
    await_links(self, links);
    self.other.tell("linked");
    self.other.hear();
    // An exception must not run into what this process was forked from.
    try {
        _exit(act(self));
    } catch (const std::exception &e) {
        fprintf(stderr, "host %d: %s\n", number, e.what());
        _exit(97);
    }
}

running start(int number, sockets &between, unsigned links, const role &act)
{
    sockets control;
    int pids[2];
    if (pipe2(pids, O_CLOEXEC) != 0) {
        give_up("pipe2");
    }
    pid_t keeper = fork();
    if (keeper == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(control.fd[0]);
        close(between.fd[1 - number]);
        if (unshare(namespaces) != 0) {
            give_up("unshare");
        }
        pid_t inner = fork();
        if (inner == 0) {
            be_host(number, between.fd[number], channel(control.fd[1]), links, act);
        }
        close(control.fd[1]);
        close(between.fd[number]);
        int status = 0;
        if (inner < 0 || write(pids[1], &inner, sizeof(inner)) != sizeof(inner) ||
            waitpid(inner, &status, 0) != inner) {
            give_up("host");
        }
        _exit(exit_code(status));
    }
    close(control.fd[1]);
    close(pids[1]);
    pid_t pid = -1;
    if (keeper < 0 || read(pids[0], &pid, sizeof(pid)) != sizeof(pid)) {
        pid = -1;
    }
    close(pids[0]);
    return {keeper, channel(control.fd[0]), pid};
}

int finish(const running &r)
{
    int status = 0;
    return waitpid(r.keeper, &status, 0) == r.keeper ? exit_code(status) : -1;
}

} // namespace

channel::~channel()
{
    if (fd_ >= 0) {
        close(fd_);
    }
}

void channel::tell(const std::string &message)
{
    if (send(fd_, message.data(), message.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(message.size())) {
        give_up("send to the other host");
    }
}

bool channel::hear_now(std::string *message)
{
    pollfd p = {fd_, POLLIN, 0};
    if (poll(&p, 1, 0) != 1) {
        return false;
    }
    *message = hear();
    return true;
}

bool channel::gone()
{
    char byte;
    ssize_t n = recv(fd_, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

std::string channel::hear()
{
    char buffer[16384];
    ssize_t n;
    do {
        n = recv(fd_, buffer, sizeof(buffer), 0);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) {
        give_up("the other host has gone");
    }
    return {buffer, static_cast<size_t>(n)};
}

void host::cut(unsigned link) const
{
    sh("ip link set " + device(link) + " down");
}

void host::restore(unsigned link) const
{
    sh("ip link set " + device(link) + " up");
}

unsigned long host::received(unsigned link) const
{
    std::ifstream file("/proc/net/dev");
    std::string wanted = device(link) + ":";
    for (std::string word; file >> word;) {
        unsigned long bytes;
        if (word == wanted && file >> bytes) {
            return bytes;
        }
    }
    throw std::runtime_error("/proc/net/dev does not have " + device(link));
}

std::string obstacle()
{
    if (system("ip -V > /dev/null 2>&1") != 0) {
        return "there is no ip(8)";
    }
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(namespaces) != 0 || system("ip link add p0 type veth peer name p1") != 0) {
            _exit(1);
        }
        _exit(isolate() ? 0 : 2);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    switch (exit_code(status)) {
    case 0:
        return "";
    case 2:
        return "no right to mount, or the root directory is not a mount point";
    default:
        return "no right to make namespaces and veth interfaces";
    }
}

outcome run(unsigned links, const role &first, const role &second)
{
    sockets between;
    running a = start(0, between, links, first);
    running b = start(1, between, links, second);
    close(between.fd[0]);
    close(between.fd[1]);
    pid_t guard = fork();
    if (guard == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sleep(hang_guard_seconds);
        kill(a.keeper, SIGKILL); // their hosts die with them
        kill(b.keeper, SIGKILL);
        _exit(0);
    }
    bool linked = a.pid > 0 && b.pid > 0;
    for (unsigned i = 0; linked && i < links; ++i) {
        std::string n = std::to_string(i);
        linked = system(("ip link add a" + n + " netns " + std::to_string(a.pid) +
                         " type veth peer name b" + n + " netns " + std::to_string(b.pid))
                            .c_str()) == 0;
    }
    if (linked) {
        a.control.tell("go");
        b.control.tell("go");
    } else {
        kill(a.keeper, SIGKILL);
        kill(b.keeper, SIGKILL);
    }
    outcome result;
    result.first = finish(a);
    result.second = finish(b);
    kill(guard, SIGKILL);
    waitpid(guard, nullptr, 0);
    return result;
}

} // namespace two_hosts
