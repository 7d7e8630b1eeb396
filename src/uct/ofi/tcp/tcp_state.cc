// SPDX-License-Identifier: BSD-3-Clause
// Reading /proc/net/tcp and tcp6. Only connections with retransmissions are kept, and those are
// few; many endpoints that are checked in one round share one reading.
#include "uct/ofi/tcp/tcp_state.h"

#include "ucs/sockaddr.h"
#include "ucs/sys.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <netinet/in.h>
#include <rdma/fi_cm.h>
#include <string>
#include <vector>

namespace uct::ofi {

namespace {

constexpr uint64_t fresh_ns = 20'000'000;

struct side {
    std::string ip; // as the kernel prints it
    unsigned port;

    bool operator==(const side &) const = default;
};

struct stalled {
    side local, remote;
    unsigned count;
};

side side_of(const sockaddr_storage &address)
{
    uint32_t words[4];
    size_t count = 1;
    if (address.ss_family == AF_INET) {
        memcpy(words, &reinterpret_cast<const sockaddr_in &>(address).sin_addr, 4);
    } else {
        memcpy(words, &reinterpret_cast<const sockaddr_in6 &>(address).sin6_addr, 16);
        count = 4;
    }
    side s{"", ucs::sockaddr_port(reinterpret_cast<const sockaddr *>(&address))};
    for (size_t i = 0; i < count; ++i) {
        char text[9];
        snprintf(text, sizeof(text), "%08X", words[i]);
        s.ip += text;
    }
    return s;
}

// sl local rem st tx:rx tr:when retrnsmt ...
void read_table(const char *path, std::vector<stalled> &out)
{
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        char local[33], remote[33];
        unsigned local_port, remote_port, count;
        if (sscanf(line.c_str(), " %*u: %32[0-9A-F]:%x %32[0-9A-F]:%x %*x %*x:%*x %*x:%*x %x",
                   local, &local_port, remote, &remote_port, &count) == 5 &&
            count > 0) {
            out.push_back({{local, local_port}, {remote, remote_port}, count});
        }
    }
}

} // namespace

bool ends_of(fid_ep *endpoint, tcp_ends *out)
{
    *out = {};
    size_t local = sizeof(out->local), remote = sizeof(out->remote);
    return fi_getname(&endpoint->fid, &out->local, &local) == 0 &&
           fi_getpeer(endpoint, &out->remote, &remote) == 0;
}

unsigned unanswered(const tcp_ends &of)
{
    static std::mutex mutex;
    static uint64_t read_at = 0;
    static std::vector<stalled> table;
    std::lock_guard guard(mutex);
    uint64_t now = ucs::monotonic_ns();
    if (read_at == 0 || now - read_at > fresh_ns) {
        table.clear();
        read_table("/proc/self/net/tcp", table);
        read_table("/proc/self/net/tcp6", table);
        read_at = now;
    }
    side here = side_of(of.local);
    side there = side_of(of.remote);
    for (const stalled &s : table) {
        if (s.local == here && s.remote == there) {
            return s.count;
        }
    }
    return 0;
}

} // namespace uct::ofi
