// SPDX-License-Identifier: BSD-3-Clause
#include "ucs/epoll_set.h"

#include <cstdio>
#include <memory>

namespace ucs {

std::vector<epoll_member> members_of(int set)
{
    std::vector<epoll_member> members;
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", set);
    std::unique_ptr<FILE, int (*)(FILE *)> file(fopen(path, "re"), fclose);
    char line[256];
    while (file && fgets(line, sizeof(line), file.get())) {
        epoll_member m{};
        unsigned long long data;
        if (sscanf(line, "tfd: %d events: %x data: %llx", &m.fd, &m.events, &data) == 3) {
            m.data = data;
            members.push_back(m);
        }
    }
    return members;
}

std::vector<int> without_a_level(int set)
{
    std::vector<int> found;
    bool nested = false;
    for (const epoll_member &m : members_of(set)) {
        found.push_back(m.fd);
        nested = nested || !members_of(m.fd).empty();
    }
    return nested ? found : std::vector<int>{set};
}

} // namespace ucs
