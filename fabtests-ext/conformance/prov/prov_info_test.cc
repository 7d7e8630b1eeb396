// SPDX-License-Identifier: BSD-3-Clause
//
// fi_getinfo as the programs that use libfabric call it: their hints, and what they then check of
// the answer. Addresses, interfaces and the administrator's parameters.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/sanitized.h"
#include "fabtests-ext/common/two_hosts.h"
#include "prov/ucxlike/retired.h"

#include <algorithm>
#include <arpa/inet.h>
#include <fstream>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

using namespace app;

namespace {

void in_a_process(const role &r)
{
    EXPECT_EQ(run_pair(r, [](partner &) {}), "");
}

using info_ptr = std::unique_ptr<fi_info, void (*)(fi_info *)>;

info_ptr ask(uint32_t version, const std::function<void(fi_info *)> &set, uint64_t flags = 0,
             const char *node = nullptr, const char *service = nullptr)
{
    info_ptr hints(fi_allocinfo(), fi_freeinfo);
    hints->fabric_attr->prov_name = strdup("ucxlike");
    set(hints.get());
    fi_info *info = nullptr;
    int r = fi_getinfo(version, node, service, flags, hints.get(), &info);
    REQUIRE(r == 0 || r == -FI_ENODATA);
    return info_ptr(r ? nullptr : info, fi_freeinfo);
}

// What opens with the answer is what the answer promised.
void open_endpoint(fi_info *info, bool with_eq = false)
{
    fid_fabric *fabric;
    fid_domain *domain;
    fid_ep *ep;
    fid_cq *cq;
    fid_av *av = nullptr;
    fid_eq *eq = nullptr;
    REQUIRE_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
    REQUIRE_EQ(fi_domain(fabric, info, &domain, nullptr), 0);
    REQUIRE_EQ(fi_endpoint(domain, info, &ep, nullptr), 0);
    fi_cq_attr ca = {};
    ca.format = FI_CQ_FORMAT_TAGGED;
    REQUIRE_EQ(fi_cq_open(domain, &ca, &cq, nullptr), 0);
    REQUIRE_EQ(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
    if (info->ep_attr->type == FI_EP_RDM) {
        fi_av_attr aa = {};
        aa.type = info->domain_attr->av_type;
        REQUIRE_EQ(fi_av_open(domain, &aa, &av, nullptr), 0);
        REQUIRE_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
    }
    if (with_eq || info->ep_attr->type == FI_EP_MSG) {
        fi_eq_attr ea = {};
        REQUIRE_EQ(fi_eq_open(fabric, &ea, &eq, nullptr), 0);
        REQUIRE_EQ(fi_ep_bind(ep, &eq->fid, 0), 0);
    }
    REQUIRE_EQ(fi_enable(ep), 0);
    char name[128];
    size_t length = sizeof(name);
    REQUIRE_EQ(fi_getname(&ep->fid, name, &length), 0);
    REQUIRE(length <= 56); // of a tight consumer's message
    REQUIRE_EQ(fi_close(&ep->fid), 0);
    for (fid *f :
         {av ? &av->fid : nullptr, &cq->fid, eq ? &eq->fid : nullptr, &domain->fid, &fabric->fid}) {
        if (f) {
            REQUIRE_EQ(fi_close(f), 0);
        }
    }
}

constexpr int basic = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

// Of all: what is asked is given, and nothing is demanded that was not offered.
void check_answer(fi_info *i, uint64_t caps, uint64_t mode, int mr_mode)
{
    REQUIRE(i);
    REQUIRE_EQ(i->caps & caps, caps);
    REQUIRE_EQ(i->mode & ~mode, 0u);
    REQUIRE_EQ(i->domain_attr->mr_mode & ~mr_mode, 0);
    REQUIRE(!strcmp(i->fabric_attr->prov_name, "ucxlike"));
    REQUIRE(i->domain_attr->name && i->fabric_attr->name);
}

TEST(prov_info_test, serves_open_mpi)
{
    in_a_process([](partner &) {
        constexpr uint64_t mode = FI_CONTEXT | FI_CONTEXT2;
        for (uint32_t version : {FI_VERSION(1, 9), FI_VERSION(1, 17)}) {
            for (auto threads : {FI_THREAD_DOMAIN, FI_THREAD_SAFE}) {
                // mtl ofi
                constexpr uint64_t mtl =
                    FI_MSG | FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
                auto i = ask(version, [&](fi_info *h) {
                    h->caps = mtl;
                    h->mode = mode;
                    h->tx_attr->msg_order = h->rx_attr->msg_order = FI_ORDER_SAS;
                    h->tx_attr->op_flags = h->rx_attr->op_flags = FI_COMPLETION;
                    h->ep_attr->type = FI_EP_RDM;
                    h->domain_attr->threading = threads;
                    h->domain_attr->control_progress = FI_PROGRESS_UNSPEC;
                    h->domain_attr->resource_mgmt = FI_RM_ENABLED;
                    h->domain_attr->av_type = FI_AV_MAP;
                    h->domain_attr->cq_data_size = 4;
                });
                check_answer(i.get(), mtl, mode, 0);
                REQUIRE_EQ(i->domain_attr->threading, threads);
                REQUIRE(i->domain_attr->cq_data_size >= 4);
                REQUIRE(i->ep_attr->mem_tag_format != 0);
                open_endpoint(i.get());
                // btl ofi
                constexpr uint64_t btl = FI_RMA | FI_ATOMIC | FI_MSG;
                constexpr int wants = basic | FI_MR_ENDPOINT;
                i = ask(version, [&](fi_info *h) {
                    h->caps = btl;
                    h->mode = mode;
                    h->tx_attr->op_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
                    h->tx_attr->iov_limit = h->rx_attr->iov_limit = 1;
                    h->ep_attr->type = FI_EP_RDM;
                    h->domain_attr->mr_mode = wants;
                    h->domain_attr->threading = threads;
                    h->domain_attr->av_type = FI_AV_TABLE;
                });
                check_answer(i.get(), btl, mode, wants);
                REQUIRE(!strstr(i->fabric_attr->prov_name, "ofi_rxm"));
                REQUIRE(i->tx_attr->op_flags & FI_DELIVERY_COMPLETE);
                open_endpoint(i.get());
            }
        }
    });
}

// MPICH asks for anything first, then for what the provider says it has.
TEST(prov_info_test, serves_mpich)
{
    in_a_process([](partner &) {
        constexpr uint64_t mode = FI_CONTEXT | FI_CONTEXT2 | FI_ASYNC_IOV | FI_RX_CQ_DATA;
        auto first = ask(FI_VERSION(1, 17), [](fi_info *) {});
        REQUIRE(first);
        constexpr uint64_t order = FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW |
                                   FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
        constexpr uint64_t wanted = FI_TAGGED | FI_MSG | FI_MULTI_RECV | FI_RMA | FI_ATOMIC |
                                    FI_READ | FI_WRITE | FI_SEND | FI_RECV | FI_REMOTE_READ |
                                    FI_REMOTE_WRITE | FI_DIRECTED_RECV;
        REQUIRE_EQ(first->caps & wanted, wanted);
        auto i = ask(FI_VERSION(1, 17), [&](fi_info *h) {
            h->caps = wanted;
            h->mode = mode;
            h->ep_attr->type = FI_EP_RDM;
            h->tx_attr->op_flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
            h->tx_attr->msg_order = h->rx_attr->msg_order = order;
            h->rx_attr->op_flags = FI_COMPLETION;
            h->domain_attr->threading = FI_THREAD_DOMAIN;
            h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
            h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
            h->domain_attr->resource_mgmt = FI_RM_ENABLED;
            h->domain_attr->av_type = FI_AV_TABLE;
            h->domain_attr->mr_mode = basic | FI_MR_ENDPOINT;
            h->domain_attr->cq_data_size = 4;
        });
        check_answer(i.get(), wanted, mode, basic | FI_MR_ENDPOINT);
        REQUIRE_EQ(i->domain_attr->threading, FI_THREAD_DOMAIN); // it aborts on another one
        REQUIRE_EQ(i->tx_attr->msg_order & order, order);
        REQUIRE(i->src_addrlen <= 64);
        open_endpoint(i.get());
    });
}

TEST(prov_info_test, serves_openshmem)
{
    in_a_process([](partner &) {
        for (int mr : {0, basic}) {
            for (auto progress : {FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL}) {
                constexpr uint64_t wanted = FI_RMA | FI_ATOMIC;
                auto i = ask(FI_VERSION(1, 5), [&](fi_info *h) {
                    h->caps = wanted | FI_RMA_EVENT;
                    h->ep_attr->type = FI_EP_RDM;
                    h->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
                    h->tx_attr->inject_size = 16;
                    h->domain_attr->mr_mode = mr;
                    h->domain_attr->threading = FI_THREAD_COMPLETION;
                    h->domain_attr->data_progress = progress;
                });
                check_answer(i.get(), wanted, 0, mr);
                REQUIRE_EQ(i->mode, 0u);
                REQUIRE(i->tx_attr->inject_size >= 16);
                REQUIRE_EQ(i->domain_attr->data_progress, progress);
                REQUIRE_EQ(i->domain_attr->threading, FI_THREAD_COMPLETION);
                open_endpoint(i.get());
            }
        }
    });
}

TEST(prov_info_test, serves_mercury_and_nccl)
{
    in_a_process([](partner &) {
        constexpr int mr = basic | FI_MR_LOCAL | FI_MR_ENDPOINT;
        constexpr uint64_t mercury = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV |
                                     FI_MULTI_RECV | FI_SOURCE | FI_SOURCE_ERR;
        for (auto threads : {FI_THREAD_SAFE, FI_THREAD_DOMAIN}) {
            for (uint32_t version : {FI_VERSION(1, 9), FI_VERSION(1, 13)}) {
                auto i = ask(version, [&](fi_info *h) {
                    h->caps = mercury;
                    h->mode = FI_ASYNC_IOV | FI_CONTEXT;
                    h->ep_attr->type = FI_EP_RDM;
                    h->addr_format = FI_SOCKADDR_IN;
                    h->tx_attr->op_flags = FI_INJECT_COMPLETE;
                    h->domain_attr->mr_mode = mr;
                    h->domain_attr->threading = threads;
                    h->domain_attr->av_type = FI_AV_MAP;
                    h->domain_attr->resource_mgmt = FI_RM_ENABLED;
                });
                check_answer(i.get(), mercury, FI_ASYNC_IOV | FI_CONTEXT, mr);
                REQUIRE_EQ(i->addr_format, static_cast<uint32_t>(FI_SOCKADDR_IN));
                open_endpoint(i.get());
            }
        }
        constexpr uint64_t nccl = FI_LOCAL_COMM | FI_REMOTE_COMM | FI_TAGGED | FI_MSG;
        auto set = [&](uint64_t more) {
            return [=](fi_info *h) {
                h->caps = nccl | more;
                h->mode = FI_CONTEXT | FI_CONTEXT2;
                h->ep_attr->type = FI_EP_RDM;
                h->domain_attr->mr_mode = mr;
                h->domain_attr->mr_key_size = 2;
                h->domain_attr->threading = FI_THREAD_SAFE;
                h->tx_attr->msg_order = h->rx_attr->msg_order = FI_ORDER_SAS;
            };
        };
        REQUIRE(!ask(FI_VERSION(1, 6), set(FI_HMEM | FI_RMA | FI_READ))); // its first question
        auto i = ask(FI_VERSION(1, 6), set(0));
        check_answer(i.get(), nccl, FI_CONTEXT | FI_CONTEXT2, mr);
        open_endpoint(i.get());
    });
}

TEST(prov_info_test, serves_fabtests)
{
    in_a_process([](partner &) {
        constexpr int mr = basic | FI_MR_LOCAL | FI_MR_ENDPOINT;
        struct {
            fi_ep_type type;
            uint64_t caps, mode, tx_flags;
        } const rows[] = {
            {FI_EP_RDM, FI_MSG, FI_CONTEXT, 0},
            {FI_EP_RDM, FI_MSG, FI_CONTEXT, FI_DELIVERY_COMPLETE},
            {FI_EP_RDM, FI_TAGGED, FI_CONTEXT, FI_INJECT_COMPLETE},
            {FI_EP_RDM, FI_MSG | FI_MULTI_RECV, FI_CONTEXT, 0},
            {FI_EP_RDM, FI_MSG | FI_RMA, FI_CONTEXT, FI_DELIVERY_COMPLETE},
            {FI_EP_RDM, FI_MSG | FI_RMA | FI_RMA_EVENT, FI_CONTEXT, 0},
            {FI_EP_RDM, FI_MSG | FI_ATOMIC, FI_CONTEXT, 0},
            {FI_EP_RDM, FI_MSG | FI_MULTICAST, FI_CONTEXT, FI_MULTICAST},
            {FI_EP_MSG, FI_MSG, 0, 0},
            {FI_EP_MSG, FI_MSG | FI_RMA, FI_CONTEXT, 0},
            {FI_EP_MSG, FI_MSG | FI_MULTI_RECV, FI_CONTEXT, 0},
        };
        for (auto &r : rows) {
            auto i = ask(FI_VERSION(1, 9), [&](fi_info *h) {
                h->caps = r.caps;
                h->mode = r.mode;
                h->ep_attr->type = r.type;
                h->tx_attr->op_flags = r.tx_flags;
                h->domain_attr->mr_mode = mr;
                h->domain_attr->resource_mgmt = FI_RM_ENABLED;
            });
            check_answer(i.get(), r.caps, r.mode, mr);
            REQUIRE_EQ(i->ep_attr->type, r.type);
            open_endpoint(i.get());
        }
        // What fabtests take as "cannot be run here".
        for (uint64_t caps :
             {FI_MSG | FI_TRIGGER, FI_MSG | FI_SHARED_AV, FI_MSG | FI_NAMED_RX_CTX}) {
            REQUIRE(!ask(FI_VERSION(1, 9), [&](fi_info *h) {
                h->caps = caps;
                h->ep_attr->type = FI_EP_RDM;
            }));
        }
        // Of old, registration modes were a choice of two.
        for (int mode : {ucxlike::retired::mr_basic, ucxlike::retired::mr_scalable}) {
            auto i = ask(FI_VERSION(1, 4), [&](fi_info *h) {
                h->caps = FI_MSG | FI_RMA;
                h->domain_attr->mr_mode = mode;
            });
            REQUIRE(i);
            REQUIRE_EQ(i->domain_attr->mr_mode, mode);
        }
    });
}

// Where hints ask for a number of objects, the answer has it.
TEST(prov_info_test, gives_as_many_objects_as_are_asked_for)
{
    in_a_process([](partner &) {
        for (auto count :
             {&fi_domain_attr::cq_cnt, &fi_domain_attr::ep_cnt, &fi_domain_attr::cntr_cnt,
              &fi_domain_attr::tx_ctx_cnt, &fi_domain_attr::rx_ctx_cnt}) {
            for (size_t asked : {0, 1, 1000, 4096}) {
                auto i = ask(FI_VERSION(1, 9), [&](fi_info *h) { h->domain_attr->*count = asked; });
                REQUIRE(i);
                REQUIRE(i->domain_attr->*count >= std::max(asked, size_t(1)));
            }
            REQUIRE(!ask(FI_VERSION(1, 9), [&](fi_info *h) { h->domain_attr->*count = 4097; }));
        }
    });
}

std::string host_of(const void *addr)
{
    char text[INET6_ADDRSTRLEN] = "";
    auto *sa = static_cast<const sockaddr *>(addr);
    if (sa->sa_family == AF_INET) {
        inet_ntop(AF_INET, &static_cast<const sockaddr_in *>(addr)->sin_addr, text, sizeof(text));
    } else {
        inet_ntop(AF_INET6, &static_cast<const sockaddr_in6 *>(addr)->sin6_addr, text,
                  sizeof(text));
    }
    return text;
}

TEST(prov_info_test, resolves_both_families)
{
    in_a_process([](partner &) {
        auto with = [](uint32_t format) {
            return [=](fi_info *h) {
                h->addr_format = format;
                h->ep_attr->type = FI_EP_RDM;
            };
        };
        auto v4 = ask(FI_VERSION(1, 17), with(FI_SOCKADDR_IN), FI_NUMERICHOST, "127.0.0.1", "99");
        REQUIRE(v4);
        REQUIRE_EQ(v4->addr_format, static_cast<uint32_t>(FI_SOCKADDR_IN));
        REQUIRE_EQ(v4->dest_addrlen, sizeof(sockaddr_in));
        REQUIRE(host_of(v4->src_addr) == "127.0.0.1"); // what leads there
        REQUIRE(!ask(FI_VERSION(1, 17), with(FI_SOCKADDR_IN6), FI_NUMERICHOST, "127.0.0.1", "99"));
        REQUIRE(!ask(FI_VERSION(1, 17), with(FI_SOCKADDR_IN), FI_NUMERICHOST, "::1", "99"));
        int s = socket(AF_INET6, SOCK_STREAM, 0);
        sockaddr_in6 loop = {};
        loop.sin6_family = AF_INET6;
        loop.sin6_addr = in6addr_loopback;
        bool six = s >= 0 && bind(s, reinterpret_cast<sockaddr *>(&loop), sizeof(loop)) == 0;
        close(s);
        if (!six) {
            return; // the machine has no IPv6
        }
        auto v6 = ask(FI_VERSION(1, 17), with(FI_SOCKADDR_IN6), FI_NUMERICHOST, "::1", "99");
        REQUIRE(v6);
        REQUIRE_EQ(v6->addr_format, static_cast<uint32_t>(FI_SOCKADDR_IN6));
        REQUIRE_EQ(v6->dest_addrlen, sizeof(sockaddr_in6));
        REQUIRE(host_of(v6->src_addr) == "::1");
        v6 = ask(FI_VERSION(1, 17), with(FI_SOCKADDR_IN6), FI_SOURCE, "::1", nullptr);
        REQUIRE(v6 && host_of(v6->src_addr) == "::1" && !v6->dest_addr);
        open_endpoint(v6.get());
    });
}

// The administrator's interface, and what happens when it is not there.
TEST(prov_info_test, obeys_the_chosen_interface)
{
    in_a_process([](partner &) {
        auto any = [](fi_info *h) { h->ep_attr->type = FI_EP_RDM; };
        setenv("FI_UCXLIKE_IFACE", "lo", 1);
        auto i = ask(FI_VERSION(1, 17), any);
        REQUIRE(i && host_of(i->src_addr) == "127.0.0.1");
        setenv("FI_UCXLIKE_IFACE", "127.0.0.3", 1);
        i = ask(FI_VERSION(1, 17), any);
        REQUIRE(i && host_of(i->src_addr) == "127.0.0.3");
        setenv("FI_UCXLIKE_IFACE", "nosuchif0", 1);
        REQUIRE(ask(FI_VERSION(1, 17), any)); // warns, and takes another one
        setenv("FI_UCXLIKE_STRICT", "1", 1);
        REQUIRE(!ask(FI_VERSION(1, 17), any));
        setenv("FI_UCXLIKE_IFACE", "lo", 1);
        REQUIRE(ask(FI_VERSION(1, 17), any));
    });
}

// Without a default route: the first interface that is for other hosts. What is first of all is
// called as container software calls its own.
TEST(prov_info_test, takes_the_interface_that_leads_out)
{
    if (std::string why = two_hosts::obstacle(); !why.empty()) {
        GTEST_SKIP() << why;
    }
    auto role = [](two_hosts::host &h) {
        REQUIRE_EQ(system(("ip link set " + h.device(0) + " down && ip link set " + h.device(0) +
                           " name docker0 && ip link set docker0 up")
                              .c_str()),
                   0);
        auto takes = [&](const std::string &address, const char *node) {
            auto i = ask(
                FI_VERSION(1, 17),
                [](fi_info *hints) {
                    hints->ep_attr->type = FI_EP_RDM;
                    hints->addr_format = FI_SOCKADDR_IN;
                },
                0, node, node ? "99" : nullptr);
            REQUIRE(i);
            if (host_of(i->src_addr) == address) {
                return true;
            }
            fprintf(stderr, "takes %s, not %s\n", host_of(i->src_addr).c_str(), address.c_str());
            return false;
        };
        use_build_tree();
        REQUIRE(takes(h.address(h.number, 1), nullptr));
        REQUIRE(takes("127.0.0.1", "127.0.0.1"));
        for (unsigned link : {0u, 1u}) {
            REQUIRE(takes(h.address(h.number, link), h.address(1 - h.number, link).c_str()));
        }
        setenv("FI_UCXLIKE_IFACE", "docker0", 1);
        REQUIRE(takes(h.address(h.number, 0), nullptr));
        h.other.tell("done");
        h.other.hear(); // whose interfaces lead to ours
        return 0;
    };
    two_hosts::outcome got = two_hosts::run(2, role, role);
    EXPECT_EQ(got.first, 0);
    EXPECT_EQ(got.second, 0);
}

TEST(prov_info_test, strict_mode_insists_on_every_transport)
{
    struct {
        const char *tls;
        const char *strict;
        bool works;
    } const rows[] = {
        {"tcp", "1", true},           {"shm,tcp", "1", true},        {"ofi_shm,tcp", "1", true},
        {"tcp,nosuchtls", "0", true}, {"tcp,nosuchtls", "1", false}, {"nosuchtls", "0", false},
        {"nosuchtls", "1", false}};
    for (auto &r : rows) {
        in_a_process([&](partner &) {
            setenv("FI_UCXLIKE_TLS", r.tls, 1);
            setenv("FI_UCXLIKE_STRICT", r.strict, 1);
            auto i = ask(FI_VERSION(1, 17), [](fi_info *h) { h->ep_attr->type = FI_EP_RDM; });
            REQUIRE(i);
            fid_fabric *fabric = nullptr;
            fid_domain *domain = nullptr;
            REQUIRE_EQ(fi_fabric(i->fabric_attr, &fabric, nullptr), 0);
            int result = fi_domain(fabric, i.get(), &domain, nullptr);
            REQUIRE_EQ(result == 0, r.works);
            if (domain) {
                REQUIRE_EQ(fi_close(&domain->fid), 0);
            }
            REQUIRE_EQ(fi_close(&fabric->fid), 0);
        });
    }
}

// What fi_info prints with some variables set, on both streams.
std::string fi_info_says(const std::string &variables, const std::string &options)
{
    std::string text;
    FILE *out =
        popen(("env " + variables + " fi_info -p ucxlike " + options + " 2>&1").c_str(), "r");
    EXPECT_TRUE(out);
    char line[512];
    while (out && fgets(line, sizeof(line), out)) {
        text += line;
    }
    if (out) {
        pclose(out);
    }
    return text;
}

// Each wrong variable is named in libfabric's log, which has to be asked for.
TEST(prov_info_test, wrong_parameters_are_named_in_the_log_of_libfabric)
{
    if (sanitized) {
        GTEST_SKIP() << "fi_info cannot load a sanitized provider";
    }
    const struct {
        const char *variable;
        const char *text;
    } rows[] = {
        {"FI_UCXLIKE_IFACE=nosuchif0", "FI_UCXLIKE_IFACE: \"nosuchif0\""},
        {"FI_UCXLIKE_TX_SIZE=abc", "FI_UCXLIKE_TX_SIZE: \"abc\" is not a number"},
        {"FI_UCXLIKE_BACKLOG=-1", "FI_UCXLIKE_BACKLOG: \"-1\" is not a number"},
        {"FI_UCXLIKE_IFCE=lo",
         "FI_UCXLIKE_IFCE: no such parameter (did you mean FI_UCXLIKE_IFACE?)"},
    };
    use_build_tree();
    for (auto &r : rows) {
        std::string variable = r.variable;
        EXPECT_NE(std::string::npos, fi_info_says(variable + " FI_LOG_LEVEL=warn", "").find(r.text))
            << variable;
        EXPECT_EQ(std::string::npos,
                  fi_info_says(variable + " FI_LOG_LEVEL=warn FI_LOG_PROV=tcp", "").find(r.text))
            << variable;
        EXPECT_NE(std::string::npos,
                  fi_info_says(variable + " FI_UCXLIKE_STRICT=1", "").find("fi_getinfo: -61"))
            << variable;
    }
}

// The engine's lines are the provider's: silent where libfabric is, and named after the variable.
TEST(prov_info_test, the_engine_logs_by_libfabric)
{
    auto opened = [](const char *level) {
        int ends[2];
        EXPECT_EQ(pipe(ends), 0);
        in_a_process([&](partner &) {
            setenv("FI_UCXLIKE_TLS", "nosuchtls", 1);
            REQUIRE(level ? setenv("FI_LOG_LEVEL", level, 1) == 0 : unsetenv("FI_LOG_LEVEL") == 0);
            REQUIRE(dup2(ends[1], STDERR_FILENO) >= 0);
            auto i = ask(FI_VERSION(1, 17), [](fi_info *h) { h->ep_attr->type = FI_EP_RDM; });
            REQUIRE(i);
            fid_fabric *fabric = nullptr;
            fid_domain *domain = nullptr;
            REQUIRE_EQ(fi_fabric(i->fabric_attr, &fabric, nullptr), 0);
            REQUIRE(fi_domain(fabric, i.get(), &domain, nullptr) != 0);
        });
        close(ends[1]);
        std::string text;
        char part[4096];
        for (ssize_t n; (n = read(ends[0], part, sizeof(part))) > 0;) {
            text.append(part, static_cast<size_t>(n));
        }
        close(ends[0]);
        return text;
    };
    std::string text = opened("warn");
    EXPECT_NE(std::string::npos, text.find("FI_UCXLIKE_TLS=nosuchtls")) << text;
    EXPECT_NE(std::string::npos, text.find("FI_UCXLIKE_TLS: no such transport here: nosuchtls; "
                                           "what exists: "))
        << text;
    EXPECT_EQ(std::string::npos, text.find("ucp_config_modify")) << text;
    EXPECT_EQ(std::string::npos, text.find(" UCX  ")) << text;
    EXPECT_EQ(std::string::npos, opened(nullptr).find("nosuchtls"));
}

// fi_info -e lists the parameters that the man page has, and no others.
TEST(prov_info_test, its_parameters_are_listed_and_documented)
{
    if (sanitized) {
        GTEST_SKIP() << "fi_info cannot load a sanitized provider";
    }
    if (system("command -v fi_info > /dev/null") != 0) {
        GTEST_SKIP() << "fi_info is not installed";
    }
    auto names_in = [](std::istream &in, const std::string &prefix) {
        std::set<std::string> names;
        for (std::string line; std::getline(in, line);) {
            size_t at = line.find("FI_UCXLIKE_");
            if (line.rfind(prefix, 0) != 0 || at == std::string::npos) {
                continue;
            }
            size_t end = line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", at);
            names.insert(line.substr(at, end == std::string::npos ? end : end - at));
        }
        return names;
    };
    const char *source = getenv("top_srcdir");
    std::ifstream page(std::string(source ? source : ".") + "/man/fi_ucxlike.7");
    auto documented = names_in(page, ".It Ev ");
    EXPECT_FALSE(documented.empty());
    const char *build = getenv("top_builddir");
    std::string command =
        "IPATH_NO_BACKTRACE=1 FI_PROVIDER_PATH=" + std::string(build ? build : ".") +
        "/.libs fi_info -e 2> /dev/null";
    FILE *p = popen(command.c_str(), "r");
    ASSERT_TRUE(p);
    std::string all;
    char buf[4096];
    size_t n;
    while ((n = fread(buf, 1, sizeof(buf), p)) > 0) {
        all.append(buf, n);
    }
    EXPECT_EQ(pclose(p), 0);
    std::istringstream lines(all);
    EXPECT_EQ(names_in(lines, "# FI_UCXLIKE_"), documented);
}

} // namespace
