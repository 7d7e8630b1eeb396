// SPDX-License-Identifier: BSD-3-Clause
//
// Stands between a client and a server of tcp and may change what they say, so that either meets a
// peer of another version: the other side's bytes are those of this build, but for one.
#pragma once

#include "ucs/log.h"

#include <arpa/inet.h>
#include <cstdint>
#include <gtest/gtest.h>
#include <mutex>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace relay_test {

enum class says { client, server };

// The first time that this side says `magic`, the byte `offset` behind its beginning is raised.
struct change {
    says side;
    uint32_t magic; // as a little-endian word; 0: nothing is changed
    size_t offset;
};

class relay {
  public:
    relay(uint16_t server, const change &c) : server_(loopback(server)), change_(c)
    {
        listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in at = loopback(0);
        socklen_t length = sizeof(at);
        EXPECT_EQ(0, bind(listener_, reinterpret_cast<sockaddr *>(&at), sizeof(at)));
        EXPECT_EQ(0, listen(listener_, 8));
        EXPECT_EQ(0, getsockname(listener_, reinterpret_cast<sockaddr *>(&at), &length));
        port = ntohs(at.sin_port);
        thread_ = std::thread([this] { run(); });
    }
    relay(const relay &) = delete;
    relay &operator=(const relay &) = delete;
    ~relay()
    {
        eventfd_write(stop_, 1);
        thread_.join();
        for (const pair &p : pairs_) {
            close(p.fd[0]);
            close(p.fd[1]);
        }
        close(listener_);
        close(stop_);
    }

    uint16_t port = 0; // where the client connects

  private:
    struct pair {
        int fd[2]; // of the client, of the server
    };

    static sockaddr_in loopback(uint16_t port)
    {
        sockaddr_in a = {};
        a.sin_family = AF_INET;
        a.sin_port = htons(port);
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return a;
    }

    void accept_one()
    {
        int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(server, reinterpret_cast<sockaddr *>(&server_), sizeof(server_)) != 0) {
            shutdown(client, SHUT_RDWR);
        }
        pairs_.push_back({{client, server}});
    }

    void alter(std::string *bytes)
    {
        std::string magic(reinterpret_cast<const char *>(&change_.magic), sizeof(change_.magic));
        size_t at = change_.magic == 0 ? std::string::npos : bytes->find(magic);
        if (at != std::string::npos && at + change_.offset < bytes->size()) {
            ++(*bytes)[at + change_.offset];
            change_.magic = 0;
        }
    }

    // False: this direction has ended.
    bool pass(int from, int to, says side)
    {
        char room[65536];
        ssize_t n = recv(from, room, sizeof(room), 0);
        if (n <= 0) {
            shutdown(to, SHUT_WR);
            return false;
        }
        std::string bytes(room, static_cast<size_t>(n));
        if (side == change_.side) {
            alter(&bytes);
        }
        for (size_t done = 0; done < bytes.size();) {
            n = send(to, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
            if (n <= 0) {
                return false;
            }
            done += static_cast<size_t>(n);
        }
        return true;
    }

    void run()
    {
        std::vector<pollfd> fds = {{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
        while (poll(fds.data(), fds.size(), -1) > 0 && !fds[0].revents) {
            for (size_t i = 2; i < fds.size(); ++i) {
                const pair &p = pairs_[i / 2 - 1];
                bool client = i % 2 == 0;
                if (fds[i].revents &&
                    !pass(p.fd[!client], p.fd[client], client ? says::client : says::server)) {
                    fds[i].fd = -1; // poll() passes over it
                }
            }
            if (fds[1].revents) {
                accept_one();
                fds.push_back({pairs_.back().fd[0], POLLIN, 0});
                fds.push_back({pairs_.back().fd[1], POLLIN, 0});
            }
        }
    }

    sockaddr_in server_;
    change change_;
    int listener_ = -1;
    const int stop_ = eventfd(0, EFD_CLOEXEC);
    std::vector<pair> pairs_;
    std::thread thread_;
};

// The errors that are logged, by any thread.
class error_lines {
  public:
    error_lines()
    {
        lines().clear();
        ucs::log::set_sink([](ucs::log::level level, const char *, int, const char *text) {
            std::lock_guard guard(mutex());
            if (level == ucs::log::level::error) {
                lines().emplace_back(text);
            }
        });
    }
    error_lines(const error_lines &) = delete;
    error_lines &operator=(const error_lines &) = delete;
    ~error_lines() { ucs::log::set_sink(nullptr); }

    static testing::AssertionResult has(const std::string &text)
    {
        std::lock_guard guard(mutex());
        auto result = testing::AssertionFailure() << "no error '" << text << "' but:";
        for (const std::string &line : lines()) {
            if (line.find(text) != std::string::npos) {
                return testing::AssertionSuccess();
            }
            result << "\n  " << line;
        }
        return result;
    }

  private:
    static std::mutex &mutex()
    {
        static std::mutex one;
        return one;
    }
    static std::vector<std::string> &lines()
    {
        static std::vector<std::string> all;
        return all;
    }
};

} // namespace relay_test
