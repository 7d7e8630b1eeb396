// SPDX-License-Identifier: BSD-3-Clause
// What uct_iface_query() says against what the core, the kernel and the variables say.
#include "fabtests-ext/conformance/common/uct_entity.h"

#include <climits>
#include <memory>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <sys/resource.h>

namespace uct_conformance {
namespace {

// The limit of core endpoints of a provider's domain; 0: no such provider.
size_t endpoints_of(const char *provider, fi_ep_type type)
{
    std::unique_ptr<fi_info, decltype(&fi_freeinfo)> hints(fi_allocinfo(), fi_freeinfo);
    hints->fabric_attr->prov_name = strdup(provider);
    hints->ep_attr->type = type;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    hints->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
    fi_info *found = nullptr;
    if (fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found) != 0) {
        return 0;
    }
    size_t count = found->domain_attr->ep_cnt;
    fi_freeinfo(found);
    return count;
}

class uct_attr : public uct_test {};

TEST_P(uct_attr, peers_are_limited_by_what_they_take)
{
    std::string transport = GetParam();
    rlimit files{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    size_t expected = SIZE_MAX;
    if (transport == "shm") {
        expected = endpoints_of("shm", FI_EP_RDM);
        EXPECT_EQ(expected, 256u);
    } else if (transport == "tcp") {
        expected = std::min<size_t>(endpoints_of("tcp", FI_EP_MSG), files.rlim_cur);
    } else if (transport == "tcprdm") {
        expected = files.rlim_cur;
    } else if (transport == "verbs") {
        expected = endpoints_of("verbs", FI_EP_MSG);
    }
    ASSERT_NE(expected, 0u);
    EXPECT_EQ(a().attr.max_num_eps, expected);
}

TEST_P(uct_attr, peers_are_limited_by_the_variable)
{
    std::string name = GetParam();
    for (char &c : name) {
        c = static_cast<char>(toupper(c));
    }
    std::string variable = "UCX_" + name + "_MAX_NUM_EPS";
    setenv(variable.c_str(), "7", 1);
    open({});
    unsetenv(variable.c_str());
    EXPECT_EQ(a().attr.max_num_eps, 7u);
}

TEST_P(uct_attr, segment_size_is_what_the_variable_says)
{
    std::string name = GetParam();
    for (char &c : name) {
        c = static_cast<char>(toupper(c));
    }
    std::string variable = "UCX_" + name + "_SEG_SIZE";
    for (size_t size : {2000ul, 20000ul}) {
        setenv(variable.c_str(), std::to_string(size).c_str(), 1);
        open({});
        unsetenv(variable.c_str());
        size = std::min<size_t>(size, name == "SM" ? 8448 : name == "SHM" ? 4096 : size);
        ASSERT_EQ(a().attr.cap.am.max_bcopy, size);
        uct_ep_h ep = a().connect(b());
        packed p{pattern(size, 3)};
        ssize_t sent = post([&] { return uct_ep_am_bcopy(ep, 2, pack, &p, 0); });
        ASSERT_EQ(sent, static_cast<ssize_t>(size));
        ASSERT_TRUE(until([&] { return !b().received.empty(); }));
        EXPECT_EQ(b().received[0].data, p.data);
    }
}

// A row that a transport does not honour is not in its table, so that setting it fails.
TEST_P(uct_attr, only_rows_that_are_honoured)
{
    std::string transport = GetParam();
    uct_iface_config_t *config = nullptr;
    ASSERT_EQ(uct_md_iface_config_read(a().md, GetParam(), nullptr, nullptr, &config), UCS_OK);
    struct row {
        const char *name;
        const char *value;
        bool honoured;
    };
    bool own = transport == "self" || transport == "sm";
    bool network = !own && transport != "shm";
    for (const row &r :
         {row{"SEG_SIZE", "4k", true}, row{"TX_QUEUE_LEN", "32", true},
          row{"MAX_NUM_EPS", "3", true}, row{"RX_QUEUE_LEN", "32", !own},
          row{"CONN_TIMEOUT", "3s", network}, row{"BATCH", "0", transport == "tcp"},
          row{"ATTEND", "n", transport == "tcp"}, row{"LOCAL_PACING", "y", transport == "tcp"}}) {
        ucs_status_t status = uct_config_modify(config, r.name, r.value);
        EXPECT_EQ(status, r.honoured ? UCS_OK : UCS_ERR_NO_ELEM) << r.name;
    }
    uct_config_release(config);
}

// Sends find no room after as many messages as were asked for.
TEST(uct_attr_self, queue_is_as_long_as_the_variable_says)
{
    setenv("UCX_SELF_TX_QUEUE_LEN", "5", 1);
    entity e("self", {});
    unsetenv("UCX_SELF_TX_QUEUE_LEN");
    uct_ep_h ep = e.connect(e);
    int sent = 0;
    while (posting([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }) == UCS_OK && sent < 100) {
        ++sent;
    }
    EXPECT_EQ(sent, 5);
    uct_worker_progress(e.worker);
    EXPECT_EQ(e.received.size(), 5u);
}

// A program that does not progress is told to wait after so many copied messages; progress makes
// room.
TEST(uct_attr_tcp, copied_messages_on_their_way_are_as_many_as_the_variable_says)
{
    using asked = std::pair<const char *, size_t>;
    for (auto [variable, limit] : {asked{"0", 32}, asked{"3", 3}}) {
        setenv("UCX_TCP_TX_QUEUE_LEN", variable, 1);
        entity a("tcp", {}), b("tcp", {});
        unsetenv("UCX_TCP_TX_QUEUE_LEN");
        uct_ep_h ep = a.connect(b);
        size_t sent = 0;
        auto send = [&](size_t length) {
            auto pack = [](void *dest, void *arg) {
                size_t n = *static_cast<size_t *>(arg);
                memset(dest, 1, n);
                return n;
            };
            ssize_t n = posting([&] { return uct_ep_am_bcopy(ep, 1, pack, &length, 0); });
            sent += n == static_cast<ssize_t>(length);
            return n;
        };
        auto end = std::chrono::steady_clock::now() + patience;
        auto all_came = [&] {
            while (b.received.size() < sent && std::chrono::steady_clock::now() < end) {
                uct_worker_progress(a.worker);
                uct_worker_progress(b.worker);
            }
            return b.received.size() == sent;
        };
        for (size_t length : {8000ul, 16ul}) { // alone, and gathered
            while (send(8000) == UCS_ERR_NO_RESOURCE) {
                uct_worker_progress(a.worker);
                uct_worker_progress(b.worker);
            }
            ASSERT_TRUE(all_came());
            size_t before = sent, most = limit * (length < 8000 ? 33024 / 24 : 1);
            while (send(length) == static_cast<ssize_t>(length) && sent - before <= most + 100) {
            }
            EXPECT_GE(sent - before, limit);
            EXPECT_LE(sent - before, most + 64);
            EXPECT_TRUE(all_came());
        }
    }
}

UCT_INSTANTIATE(uct_attr);

} // namespace
} // namespace uct_conformance
