// SPDX-License-Identifier: BSD-3-Clause
//
// Two hosts on one machine: processes with network, pid, ipc and mount namespaces of their own,
// joined by veth pairs and nothing else. Interface i is a<i> with 10.77.<i>.1 and fd77:0:0:<i>::1
// on the first host and b<i> with 10.77.<i>.2 and fd77:0:0:<i>::2 on the second. Everything goes
// with the processes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <sys/types.h>

namespace two_hosts {

// Whole messages to another process of the test.
class channel {
  public:
    explicit channel(int fd) : fd_(fd) {}
    ~channel();
    channel(channel &&other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
    channel(const channel &) = delete;
    channel &operator=(const channel &) = delete;

    void tell(const std::string &message);
    // Whether a message is there; never waits.
    bool hear_now(std::string *message);
    // Whether the other side has left; never waits.
    bool gone();
    // Waits; ends the process when the other side has gone.
    std::string hear();

  private:
    int fd_;
};

// What a role has: the other host.
struct host {
    int number; // 0 or 1
    channel other;

    std::string device(unsigned link) const
    {
        return (number == 0 ? "a" : "b") + std::to_string(link);
    }
    static std::string address(int number, unsigned link)
    {
        return "10.77." + std::to_string(link) + "." + std::to_string(number + 1);
    }
    static std::string address6(int number, unsigned link)
    {
        return "fd77:0:0:" + std::to_string(link) + "::" + std::to_string(number + 1);
    }
    // Takes the interface out of service.
    void cut(unsigned link) const;
    // Puts it back; what was sent meanwhile is sent again by TCP.
    void restore(unsigned link) const;
    // Bytes that the interface has received.
    unsigned long received(unsigned link) const;
};

// Runs in a process of its own; the result is its exit code.
using role = std::function<int(host &)>;

// Why hosts cannot be made here, or "".
std::string obstacle();

// The outcome of both roles: their exit codes, or 128 + the signal that ended them.
struct outcome {
    int first = -1;
    int second = -1;
};
// links: how many veth pairs. Roles that hang are killed.
outcome run(unsigned links, const role &first, const role &second);

} // namespace two_hosts
