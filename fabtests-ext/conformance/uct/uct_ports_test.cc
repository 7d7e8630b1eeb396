// SPDX-License-Identifier: BSD-3-Clause
// Where interfaces of tcp listen: UCX_TCP_PORT_RANGE, UCX_TCP_AF_PRIO.
#include "fabtests-ext/conformance/common/uct_entity.h"

#include <arpa/inet.h>
#include <chrono>
#include <cstdlib>
#include <map>
#include <sys/socket.h>
#include <unistd.h>

namespace uct_conformance {
namespace {

// A listening socket of 127.0.0.1.
class taken_port {
  public:
    taken_port() : fd_(socket(AF_INET, SOCK_STREAM, 0))
    {
        sockaddr_in own = {};
        own.sin_family = AF_INET;
        own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof(own);
        EXPECT_EQ(0, bind(fd_, reinterpret_cast<sockaddr *>(&own), length));
        EXPECT_EQ(0, listen(fd_, 1));
        EXPECT_EQ(0, getsockname(fd_, reinterpret_cast<sockaddr *>(&own), &length));
        port_ = ntohs(own.sin_port);
    }
    ~taken_port() { close(fd_); }
    taken_port(const taken_port &) = delete;
    taken_port &operator=(const taken_port &) = delete;
    unsigned port() const { return port_; }

  private:
    int fd_;
    unsigned port_ = 0;
};

bool is_listened_on(unsigned port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in peer = {};
    peer.sin_family = AF_INET;
    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    peer.sin_port = htons(static_cast<uint16_t>(port));
    bool found = connect(fd, reinterpret_cast<sockaddr *>(&peer), sizeof(peer)) == 0;
    close(fd);
    return found;
}

// Reads the settings of tcp: of its memory domain if these are not valid, else of its interface.
ucs_status_t read_configs(uct_iface_config_t **config)
{
    uct_component_h *components = nullptr;
    unsigned count = 0;
    EXPECT_EQ(UCS_OK, uct_query_components(&components, &count));
    ucs_status_t status = UCS_ERR_NO_DEVICE;
    for (unsigned i = 0; i < count; ++i) {
        uct_md_resource_desc_t domains[64];
        uct_component_attr_t attr = {};
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = domains;
        EXPECT_EQ(UCS_OK, uct_component_query(components[i], &attr));
        if (strcmp(attr.name, "tcp") != 0) {
            continue;
        }
        uct_md_config_t *md_config = nullptr;
        uct_md_h md = nullptr;
        status = uct_md_config_read(components[i], nullptr, nullptr, &md_config);
        if (status != UCS_OK) {
            break;
        }
        EXPECT_EQ(UCS_OK, uct_md_open(components[i], domains[0].md_name, md_config, &md));
        uct_config_release(md_config);
        status = uct_md_iface_config_read(md, "tcp", nullptr, nullptr, config);
        uct_md_close(md);
    }
    uct_release_component_list(components);
    return status;
}

class uct_ports : public testing::Test {
  protected:
    ~uct_ports() override { unsetenv("UCX_TCP_PORT_RANGE"); }
    static void set(unsigned first, unsigned last)
    {
        std::string range = std::to_string(first) + "-" + std::to_string(last);
        setenv("UCX_TCP_PORT_RANGE", range.c_str(), 1);
    }
};

TEST_F(uct_ports, are_those_of_the_range)
{
    unsigned port = taken_port().port(); // and free again
    ASSERT_FALSE(is_listened_on(port));
    set(port, port);
    entity e("tcp", {});
    EXPECT_TRUE(is_listened_on(port));
    // There is no second one.
    EXPECT_THROW(entity("tcp", {}), std::runtime_error);
}

TEST_F(uct_ports, that_are_taken_are_passed_over)
{
    taken_port taken;
    ASSERT_LE(taken.port(), 65500u);
    set(taken.port(), taken.port() + 9);
    std::vector<std::unique_ptr<entity>> entities;
    unsigned before = 0, after = 0;
    for (unsigned port = taken.port(); port < taken.port() + 10; ++port) {
        before += is_listened_on(port);
    }
    for (int i = 0; i < 4; ++i) {
        entities.push_back(std::make_unique<entity>("tcp", entity::options()));
    }
    for (unsigned port = taken.port(); port < taken.port() + 10; ++port) {
        after += is_listened_on(port);
    }
    EXPECT_EQ(before + 4, after);
}

TEST_F(uct_ports, of_a_range_that_is_none_are_refused)
{
    for (const char *wrong : {"70000", "9-8", "5-", "-5", "0-9", "five"}) {
        setenv("UCX_TCP_PORT_RANGE", wrong, 1);
        uct_iface_config_t *config = nullptr;
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, read_configs(&config)) << wrong;
    }
}

// How many sockets of this process listen, by family.
std::map<int, int> listening()
{
    std::map<int, int> found;
    for (int fd = 0; fd < 1024; ++fd) {
        int listens = 0, family = 0;
        socklen_t length = sizeof(int);
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens &&
            getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0) {
            ++found[family];
        }
    }
    return found;
}

bool has_ipv6()
{
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    sockaddr_in6 own = {};
    own.sin6_family = AF_INET6;
    own.sin6_addr = in6addr_loopback;
    bool has = bind(fd, reinterpret_cast<sockaddr *>(&own), sizeof(own)) == 0;
    close(fd);
    return has;
}

class uct_families : public testing::Test {
  protected:
    ~uct_families() override { unsetenv("UCX_TCP_AF_PRIO"); }

    // Two interfaces opened with the setting, and a message from one to the other. What listens.
    static std::map<int, int> with(const char *order)
    {
        setenv("UCX_TCP_AF_PRIO", order, 1);
        entity a("tcp", {}), b("tcp", {});
        uct_ep_h ep = a.connect(b);
        packed p{"by one family", 0};
        ssize_t sent = UCS_ERR_NO_RESOURCE;
        auto end = std::chrono::steady_clock::now() + std::chrono::seconds(300);
        while (b.received.empty() && std::chrono::steady_clock::now() < end) {
            if (sent == UCS_ERR_NO_RESOURCE) {
                sent = uct_ep_am_bcopy(ep, 1, pack, &p, 0);
            }
            uct_worker_progress(a.worker);
            uct_worker_progress(b.worker);
        }
        EXPECT_EQ(1u, b.received.size());
        return listening();
    }
};

TEST_F(uct_families, the_first_is_preferred)
{
    EXPECT_EQ((std::map<int, int>{{AF_INET, 2}}), with("inet,inet6"));
    EXPECT_EQ((std::map<int, int>{{AF_INET, 2}}), with("INET"));
    if (!has_ipv6()) {
        GTEST_SKIP() << "no IPv6 here";
    }
    EXPECT_EQ((std::map<int, int>{{AF_INET6, 2}}), with("inet6,inet"));
    EXPECT_EQ((std::map<int, int>{{AF_INET6, 2}}), with("inet6"));
}

TEST_F(uct_families, that_are_none_are_refused)
{
    for (const char *wrong : {"inet5", "", "inet,", "inet,inet", ",inet6", "inet,inet6,inet"}) {
        setenv("UCX_TCP_AF_PRIO", wrong, 1);
        uct_iface_config_t *config = nullptr;
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, read_configs(&config)) << wrong;
    }
}

} // namespace
} // namespace uct_conformance
