// SPDX-License-Identifier: BSD-3-Clause
//
// Every slot of every ops table has a function, because libfabric's inline calls test none; wrong
// arguments give -FI_EINVAL; attributes agree with the hints.
#include "fabtests-ext/common/fabric_app.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_collective.h>

// Calls that libfabric 2.x calls deprecated are still served.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace app;

namespace {

// A table is its size and then pointers to functions. A provider that was built with an older
// libfabric (UCXLIKE_OLDER_PROVIDER) has the slots of then, and its sizes must say so.
template <class T>
int empty_slots(const T *table, const char *name)
{
    if (!table) {
        fprintf(stderr, "%s: no table\n", name);
        return 1;
    }
    int empty = 0;
    auto *slots = reinterpret_cast<void *const *>(table) + 1;
    bool older = getenv("UCXLIKE_OLDER_PROVIDER") && table->size < sizeof(T);
    if (table->size != sizeof(T) && !older) {
        fprintf(stderr, "%s: size %zu\n", name, table->size);
        ++empty;
    }
    for (size_t i = 0; i < std::min(table->size, sizeof(T)) / sizeof(void *) - 1; ++i) {
        if (!slots[i]) {
            fprintf(stderr, "%s: slot %zu is empty\n", name, i);
            ++empty;
        }
    }
    return empty;
}

int empty_ep_slots(fid_ep *ep)
{
    return empty_slots(ep->fid.ops, "ep.fid") + empty_slots(ep->ops, "ep") +
           empty_slots(ep->cm, "cm") + empty_slots(ep->msg, "msg") + empty_slots(ep->rma, "rma") +
           empty_slots(ep->tagged, "tagged") + empty_slots(ep->atomic, "atomic") +
           empty_slots(ep->collective, "collective");
}

void in_a_process(const role &r)
{
    EXPECT_EQ(run_pair(r, [](partner &) {}), "");
}

TEST(prov_ops_test, no_slot_is_empty)
{
    in_a_process([](partner &) {
        int empty = 0;
        for (fi_ep_type type : {FI_EP_RDM, FI_EP_MSG}) {
            options o;
            o.type = type;
            fabric_side s(o);
            empty += empty_slots(s.fabric->fid.ops, "fabric.fid");
            empty += empty_slots(s.fabric->ops, "fabric");
            empty += empty_slots(s.domain->fid.ops, "domain.fid");
            empty += empty_slots(s.domain->ops, "domain");
            empty += empty_slots(s.domain->mr, "mr");
            empty += empty_slots(s.txcq->fid.ops, "cq.fid");
            empty += empty_slots(s.txcq->ops, "cq");
            fid_cntr *cntr = nullptr;
            fi_cntr_attr ca = {};
            REQUIRE_EQ(fi_cntr_open(s.domain, &ca, &cntr, nullptr), 0);
            empty += empty_slots(cntr->fid.ops, "cntr.fid");
            empty += empty_slots(cntr->ops, "cntr");
            REQUIRE_EQ(fi_close(&cntr->fid), 0);
            char buf[8];
            fid_mr *mr = nullptr;
            REQUIRE_EQ(fi_mr_reg(s.domain, buf, 8, FI_REMOTE_READ, 0, 1, 0, &mr, nullptr), 0);
            empty += empty_slots(mr->fid.ops, "mr.fid");
            REQUIRE_EQ(fi_close(&mr->fid), 0);
            fid_wait *wait = nullptr;
            fi_wait_attr wa = {};
            REQUIRE_EQ(fi_wait_open(s.fabric, &wa, &wait), -FI_EINVAL);
            wa.wait_obj = FI_WAIT_UNSPEC;
            REQUIRE_EQ(fi_wait_open(s.fabric, &wa, &wait), 0);
            empty += empty_slots(wait->fid.ops, "wait.fid");
            empty += empty_slots(wait->ops, "wait");
            REQUIRE_EQ(fi_close(&wait->fid), 0);
            fid_poll *poll = nullptr;
            REQUIRE_EQ(fi_poll_open(s.domain, nullptr, &poll), 0);
            empty += empty_slots(poll->fid.ops, "poll.fid");
            empty += empty_slots(poll->ops, "poll");
            REQUIRE_EQ(fi_close(&poll->fid), 0);
            if (type == FI_EP_RDM) {
                empty += empty_slots(s.av->fid.ops, "av.fid");
                empty += empty_slots(s.av->ops, "av");
            } else {
                empty += empty_slots(s.eq->fid.ops, "eq.fid");
                empty += empty_slots(s.eq->ops, "eq");
                REQUIRE_EQ(fi_passive_ep(s.fabric, s.info, &s.pep, nullptr), 0);
                empty += empty_slots(s.pep->fid.ops, "pep.fid");
                empty += empty_slots(s.pep->ops, "pep");
                empty += empty_slots(s.pep->cm, "pep.cm");
                fid_ep *srx = nullptr;
                REQUIRE_EQ(fi_srx_context(s.domain, nullptr, &srx, nullptr), 0);
                empty += empty_ep_slots(srx);
                REQUIRE_EQ(fi_close(&srx->fid), 0);
            }
            s.open_active(s.info);
            empty += empty_ep_slots(s.ep);
        }
        REQUIRE_EQ(empty, 0);
    });
}

TEST(prov_ops_test, unsupported_calls_say_so)
{
    in_a_process([](partner &) {
        fabric_side s({});
        fid_ep *ep;
        REQUIRE_EQ(fi_scalable_ep(s.domain, s.info, &ep, nullptr), -FI_ENOSYS);
        s.open_active(s.info);
        REQUIRE_EQ(fi_barrier(s.ep, 0, nullptr), -FI_ENOSYS);
        REQUIRE_EQ(fi_listen(reinterpret_cast<fid_pep *>(s.ep)), -FI_ENOSYS);
        size_t value = 0, length = sizeof(value);
        REQUIRE_EQ(fi_getopt(&s.ep->fid, FI_OPT_ENDPOINT, 12345, &value, &length), -FI_ENOPROTOOPT);
        REQUIRE_EQ(fi_setopt(&s.ep->fid, FI_OPT_ENDPOINT, 12345, &value, length), -FI_ENOPROTOOPT);
    });
}

TEST(prov_ops_test, wrong_arguments_are_invalid)
{
    in_a_process([](partner &) {
        fabric_side s({});
        fid_cq *cq;
        fid_av *av;
        fid_ep *ep;
        fi_cq_attr bad_format = {};
        bad_format.format = static_cast<fi_cq_format>(99);
        REQUIRE_EQ(fi_cq_open(s.domain, &bad_format, &cq, nullptr), -FI_EINVAL);
        fi_cq_attr bad_wait = {};
        bad_wait.wait_obj = static_cast<fi_wait_obj>(99);
        REQUIRE_EQ(fi_cq_open(s.domain, &bad_wait, &cq, nullptr), -FI_EINVAL);
        REQUIRE_EQ(fi_av_open(s.domain, nullptr, &av, nullptr), -FI_EINVAL);
        fi_av_attr bad_av = {};
        bad_av.type = static_cast<fi_av_type>(99);
        REQUIRE_EQ(fi_av_open(s.domain, &bad_av, &av, nullptr), -FI_EINVAL);
        REQUIRE_EQ(fi_endpoint(s.domain, nullptr, &ep, nullptr), -FI_EINVAL);
        REQUIRE_EQ(fi_endpoint(s.domain, s.info, &ep, nullptr), 0);
        REQUIRE_EQ(fi_enable(ep), -FI_ENOAV);
        REQUIRE_EQ(fi_ep_bind(ep, &s.av->fid, 0), 0);
        REQUIRE_EQ(fi_enable(ep), -FI_ENOCQ);
        REQUIRE_EQ(fi_ep_bind(ep, &s.txcq->fid, 0), -FI_EINVAL);
        REQUIRE_EQ(fi_ep_bind(ep, nullptr, 0), -FI_EINVAL);
        REQUIRE_EQ(fi_ep_bind(ep, &s.txcq->fid, FI_TRANSMIT | FI_RECV), 0);
        REQUIRE_EQ(fi_ep_bind(ep, &s.txcq->fid, FI_TRANSMIT), -FI_EINVAL);
        REQUIRE_EQ(fi_enable(ep), 0);
        char buf[8];
        REQUIRE_EQ(fi_send(ep, buf, 8, nullptr, 77, nullptr), -FI_EINVAL);
        std::vector<char> large(1 << 20);
        REQUIRE_EQ(fi_inject(ep, large.data(), large.size(), 0), -FI_EINVAL);
        iovec iov[99] = {};
        REQUIRE_EQ(fi_recvv(ep, iov, nullptr, 99, 0, nullptr), -FI_EINVAL);
        REQUIRE_EQ(fi_close(&s.av->fid), -FI_EBUSY);
        REQUIRE_EQ(fi_close(&s.txcq->fid), -FI_EBUSY);
        REQUIRE_EQ(fi_close(&s.domain->fid), -FI_EBUSY);
        fi_addr_t none = 5;
        REQUIRE_EQ(fi_av_remove(s.av, &none, 1, 0), -FI_EINVAL);
        REQUIRE_EQ(fi_close(&ep->fid), 0);
    });
}

// One endpoint that can send to itself.
struct alone {
    alone()
        : s([] {
              options o;
              o.caps |= FI_RMA | FI_ATOMIC | FI_MULTI_RECV;
              return o;
          }())
    {
        s.open_active(s.info);
        char name[64];
        size_t length = sizeof(name);
        REQUIRE_EQ(fi_getname(&s.ep->fid, name, &length), 0);
        REQUIRE_EQ(fi_av_insert(s.av, name, 1, &s.peer, 0, nullptr), 1);
        at = s.expose(memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE);
        while (fi_inject(s.ep, memory, 8, s.peer) == -FI_EAGAIN) {
            s.progress();
        }
    }
    char memory[64] = {};
    remote at = {};
    fabric_side s;
};

TEST(prov_ops_test, a_count_without_its_array_is_invalid)
{
    in_a_process([](partner &) {
        alone a;
        fid_ep *ep = a.s.ep, *srx = nullptr;
        REQUIRE_EQ(fi_srx_context(a.s.domain, nullptr, &srx, nullptr), 0);
        fi_msg m = {};
        m.iov_count = 1;
        fi_msg_tagged t = {};
        t.iov_count = 1;
        for (fid_ep *f : {ep, srx}) {
            REQUIRE_EQ(fi_recvmsg(f, &m, 0), -FI_EINVAL);
            REQUIRE_EQ(fi_trecvmsg(f, &t, 0), -FI_EINVAL);
            REQUIRE_EQ(fi_trecvmsg(f, nullptr, 0), -FI_EINVAL);
            REQUIRE_EQ(fi_recvv(f, nullptr, nullptr, 1, 0, nullptr), -FI_EINVAL);
            REQUIRE_EQ(fi_trecvv(f, nullptr, nullptr, 1, 0, 0, 0, nullptr), -FI_EINVAL);
        }
        fi_rma_iov to = {a.at.address, 8, a.at.key};
        fi_msg_rma r = {};
        r.iov_count = 1;
        r.rma_iov = &to;
        r.rma_iov_count = 1;
        REQUIRE_EQ(fi_writemsg(ep, &r, FI_INJECT), -FI_EINVAL);
        REQUIRE_EQ(fi_writemsg(ep, &r, 0), -FI_EINVAL);
        REQUIRE_EQ(fi_readmsg(ep, &r, 0), -FI_EINVAL);
        fi_rma_ioc cells = {a.at.address, 1, a.at.key};
        fi_ioc one = {a.memory, 1};
        fi_msg_atomic x = {};
        x.iov_count = 1;
        x.rma_iov = &cells;
        x.rma_iov_count = 1;
        x.datatype = FI_UINT64;
        x.op = FI_SUM;
        REQUIRE_EQ(fi_atomicmsg(ep, &x, 0), -FI_EINVAL);
        x.msg_iov = &one;
        REQUIRE_EQ(fi_fetch_atomicmsg(ep, &x, nullptr, nullptr, 1, 0), -FI_EINVAL);
        x.op = FI_CSWAP;
        REQUIRE_EQ(fi_compare_atomicmsg(ep, &x, nullptr, nullptr, 1, &one, nullptr, 1, 0),
                   -FI_EINVAL);
        REQUIRE_EQ(fi_atomicv(ep, nullptr, nullptr, 1, a.s.peer, a.at.address, a.at.key, FI_UINT64,
                              FI_SUM, nullptr),
                   -FI_EINVAL);
        REQUIRE_EQ(fi_close(&srx->fid), 0);
    });
}

TEST(prov_ops_test, unknown_flags_are_bad)
{
    in_a_process([](partner &) {
        alone a;
        fid_ep *ep = a.s.ep;
        constexpr uint64_t unknown = 1ull << 55;
        iovec iov = {a.memory, 8};
        fi_msg m = {};
        m.msg_iov = &iov;
        m.iov_count = 1;
        m.addr = a.s.peer;
        REQUIRE_EQ(fi_sendmsg(ep, &m, unknown), -FI_EBADFLAGS);
        REQUIRE_EQ(fi_recvmsg(ep, &m, unknown), -FI_EBADFLAGS);
        REQUIRE_EQ(fi_recvmsg(ep, &m, FI_PEEK), -FI_EBADFLAGS);
        fi_msg_tagged t = {};
        t.msg_iov = &iov;
        t.iov_count = 1;
        t.addr = a.s.peer;
        REQUIRE_EQ(fi_tsendmsg(ep, &t, unknown), -FI_EBADFLAGS);
        REQUIRE_EQ(fi_trecvmsg(ep, &t, unknown), -FI_EBADFLAGS);
        fi_rma_iov to = {a.at.address, 8, a.at.key};
        fi_msg_rma r = {};
        r.msg_iov = &iov;
        r.iov_count = 1;
        r.addr = a.s.peer;
        r.rma_iov = &to;
        r.rma_iov_count = 1;
        REQUIRE_EQ(fi_writemsg(ep, &r, unknown), -FI_EBADFLAGS);
        REQUIRE_EQ(fi_readmsg(ep, &r, unknown), -FI_EBADFLAGS);
    });
}

TEST(prov_ops_test, a_fenced_operation_waits_for_those_before_it)
{
    in_a_process([](partner &) {
        alone a;
        fid_ep *ep = a.s.ep;
        uint64_t in = 0, out = 7;
        iovec iov = {&out, sizeof(out)};
        fi_rma_iov to = {a.at.address, sizeof(out), a.at.key};
        fi_msg_rma r = {};
        r.msg_iov = &iov;
        r.iov_count = 1;
        r.addr = a.s.peer;
        r.rma_iov = &to;
        r.rma_iov_count = 1;
        a.s.retry([&] {
            return fi_read(ep, &in, sizeof(in), nullptr, a.s.peer, a.at.address, a.at.key, &in);
        });
        // The read waits for the target, whose progress is ours.
        REQUIRE_EQ(fi_writemsg(ep, &r, FI_FENCE | FI_COMPLETION), -FI_EAGAIN);
        fi_msg m = {};
        m.msg_iov = &iov;
        m.iov_count = 1;
        m.addr = a.s.peer;
        REQUIRE_EQ(fi_sendmsg(ep, &m, FI_FENCE | FI_COMPLETION), -FI_EAGAIN);
        a.s.complete(a.s.txcq);
        REQUIRE_EQ(in, 0);
        a.s.retry([&] { return fi_writemsg(ep, &r, FI_FENCE | FI_COMPLETION); });
        a.s.complete(a.s.txcq);
        memcpy(&in, a.memory, sizeof(in));
        REQUIRE_EQ(in, 7);
    });
}

TEST(prov_ops_test, flags_that_a_call_does_not_know_are_refused)
{
    in_a_process([](partner &) {
        alone a;
        constexpr uint64_t unknown = 1ull << 58;
        fi_cq_attr ca = {};
        fi_cntr_attr na = {};
        fi_eq_attr ea = {};
        ca.flags = na.flags = ea.flags = unknown;
        fid_cq *cq = nullptr;
        fid_cntr *cntr = nullptr;
        fid_eq *eq = nullptr;
        REQUIRE_EQ(fi_cq_open(a.s.domain, &ca, &cq, nullptr), -FI_EINVAL);
        REQUIRE_EQ(fi_cntr_open(a.s.domain, &na, &cntr, nullptr), -FI_EINVAL);
        REQUIRE_EQ(fi_eq_open(a.s.fabric, &ea, &eq, nullptr), -FI_EINVAL);
        ea.flags = FI_WRITE;
        REQUIRE_EQ(fi_eq_open(a.s.fabric, &ea, &eq, nullptr), 0);
        uint32_t type = 0;
        char entry[64] = {};
        fi_eq_err_entry error = {};
        REQUIRE_EQ(fi_eq_write(eq, 77, entry, sizeof(entry), unknown), -FI_EINVAL);
        REQUIRE_EQ(fi_eq_write(eq, 77, entry, sizeof(entry), 0),
                   static_cast<ssize_t>(sizeof(entry)));
        REQUIRE_EQ(fi_eq_read(eq, &type, entry, sizeof(entry), unknown), -FI_EINVAL);
        REQUIRE_EQ(fi_eq_readerr(eq, &error, unknown), -FI_EINVAL);
        REQUIRE_EQ(fi_eq_read(eq, &type, entry, sizeof(entry), FI_PEEK),
                   static_cast<ssize_t>(sizeof(entry)));
        REQUIRE_EQ(fi_close(&eq->fid), 0);
        for (uint64_t half : {FI_TRANSMIT, FI_RECV}) {
            uint64_t flags = half | unknown;
            REQUIRE_EQ(fi_control(&a.s.ep->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
            flags = half | FI_COMPLETION;
            REQUIRE_EQ(fi_control(&a.s.ep->fid, FI_SETOPSFLAG, &flags), 0);
        }
    });
}

TEST(prov_ops_test, a_region_has_no_offset)
{
    in_a_process([](partner &) {
        options o;
        o.caps |= FI_RMA;
        o.mr_mode = 0;
        fabric_side s(o);
        char memory[64];
        fid_mr *mr = nullptr;
        REQUIRE_EQ(fi_mr_reg(s.domain, memory, 64, FI_REMOTE_READ, 8, 1, 0, &mr, nullptr),
                   -FI_EINVAL);
    });
}

TEST(prov_ops_test, too_much_connection_data_is_refused)
{
    in_a_process([](partner &) {
        options o;
        o.type = FI_EP_MSG;
        o.caps = FI_MSG;
        fabric_side s(o);
        s.open_active(s.info);
        std::vector<char> data(1025);
        sockaddr_in to = {};
        to.sin_family = AF_INET;
        to.sin_port = htons(1);
        to.sin_addr.s_addr = 0x0100007f;
        REQUIRE_EQ(fi_connect(s.ep, &to, data.data(), data.size()), -FI_EINVAL);
        REQUIRE_EQ(fi_accept(s.ep, data.data(), data.size()), -FI_EINVAL);
    });
}

fi_info *ask(const std::function<void(fi_info *)> &set, uint64_t flags = 0,
             const char *node = nullptr, const char *service = nullptr)
{
    fi_info *hints = fi_allocinfo(), *info = nullptr;
    hints->mode = ~0ull;
    hints->fabric_attr->prov_name = strdup("ucxlike");
    set(hints);
    int r = fi_getinfo(FI_VERSION(1, 17), node, service, flags, hints, &info);
    fi_freeinfo(hints);
    REQUIRE(r == 0 || r == -FI_ENODATA);
    return r ? nullptr : info;
}

TEST(prov_info_test, says_only_what_it_can)
{
    in_a_process([](partner &) {
        auto refused = [](const std::function<void(fi_info *)> &set) { return !ask(set); };
        REQUIRE(refused([](fi_info *h) { h->ep_attr->type = FI_EP_DGRAM; }));
        REQUIRE(refused([](fi_info *h) { h->caps = FI_COLLECTIVE; }));
        REQUIRE(refused([](fi_info *h) { h->caps = FI_MSG | FI_HMEM; }));
        REQUIRE(refused([](fi_info *h) { h->caps = FI_MSG | FI_NAMED_RX_CTX; }));
        REQUIRE(refused([](fi_info *h) { h->addr_format = FI_ADDR_PSMX2; }));
        REQUIRE(refused([](fi_info *h) { h->tx_attr->inject_size = 1 << 30; }));
        REQUIRE(refused([](fi_info *h) { h->domain_attr->name = strdup("other"); }));
        REQUIRE(refused([](fi_info *h) { h->ep_attr->protocol = FI_PROTO_RXM; }));
        REQUIRE(refused([](fi_info *h) { h->tx_attr->op_flags = FI_COMMIT_COMPLETE; }));
        REQUIRE(!ask([](fi_info *) {}, 1ull << 59)); // for a utility provider
    });
}

TEST(prov_info_test, echoes_what_was_asked)
{
    in_a_process([](partner &) {
        for (auto t : {FI_THREAD_SAFE, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION}) {
            for (auto v : {FI_AV_UNSPEC, FI_AV_MAP, FI_AV_TABLE}) {
                fi_info *i = ask([&](fi_info *h) {
                    h->domain_attr->threading = t;
                    h->domain_attr->av_type = v;
                    h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
                });
                REQUIRE(i);
                REQUIRE_EQ(i->domain_attr->threading, t);
                REQUIRE_EQ(i->domain_attr->av_type, v);
                REQUIRE_EQ(i->domain_attr->data_progress, FI_PROGRESS_MANUAL);
                REQUIRE(strcmp(i->fabric_attr->prov_name, "ucxlike") == 0);
                fi_freeinfo(i);
            }
        }
    });
}

// An answer is a valid question.
TEST(prov_info_test, takes_its_own_answers_as_hints)
{
    in_a_process([](partner &) {
        for (fi_ep_type type : {FI_EP_RDM, FI_EP_MSG}) {
            fi_info *i = ask([&](fi_info *h) { h->ep_attr->type = type; });
            REQUIRE(i);
            fi_info *again = nullptr;
            REQUIRE_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, i, &again), 0);
            REQUIRE_EQ(again->caps, i->caps);
            REQUIRE_EQ(again->ep_attr->protocol, i->ep_attr->protocol);
            fi_freeinfo(again);
            fi_freeinfo(i);
        }
    });
}

// What the consumers of libfabric ask for.
TEST(prov_info_test, serves_the_hints_of_known_applications)
{
    struct application {
        const char *name;
        uint64_t caps, mode, tx_flags, order;
        fi_ep_type type;
    };
    static constexpr application known[] = {
        {"Open MPI mtl ofi", FI_MSG | FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV,
         FI_CONTEXT | FI_CONTEXT2, FI_COMPLETION, FI_ORDER_SAS, FI_EP_RDM},
        {"Open MPI btl ofi", FI_RMA | FI_ATOMIC | FI_MSG, FI_CONTEXT | FI_CONTEXT2,
         FI_DELIVERY_COMPLETE | FI_COMPLETION, 0, FI_EP_RDM},
        {"MPICH", FI_TAGGED | FI_MSG | FI_MULTI_RECV | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV,
         FI_CONTEXT | FI_CONTEXT2 | FI_ASYNC_IOV | FI_RX_CQ_DATA,
         FI_COMPLETION | FI_DELIVERY_COMPLETE,
         FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |
             FI_ORDER_ATOMIC_WAW,
         FI_EP_RDM},
        {"Mercury", FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_MULTI_RECV | FI_SOURCE,
         FI_ASYNC_IOV | FI_CONTEXT, FI_INJECT_COMPLETE, 0, FI_EP_RDM},
        {"aws-ofi-nccl", FI_LOCAL_COMM | FI_REMOTE_COMM | FI_TAGGED | FI_MSG,
         FI_CONTEXT | FI_CONTEXT2, 0, FI_ORDER_SAS, FI_EP_RDM},
        {"Sandia OpenSHMEM", FI_RMA | FI_ATOMIC, 0, FI_DELIVERY_COMPLETE, 0, FI_EP_RDM},
        {"fabtests msg", FI_MSG, 0, 0, 0, FI_EP_MSG},
        {"fi_pingpong", FI_TAGGED, FI_CONTEXT | FI_CONTEXT2 | FI_MSG_PREFIX, 0, 0, FI_EP_RDM},
    };
    for (const application &a : known) {
        SCOPED_TRACE(a.name);
        in_a_process([&](partner &) {
            fi_info *i = ask([&](fi_info *h) {
                h->caps = a.caps;
                h->mode = a.mode;
                h->tx_attr->op_flags = a.tx_flags;
                h->tx_attr->msg_order = h->rx_attr->msg_order = a.order;
                h->ep_attr->type = a.type;
                h->domain_attr->threading = FI_THREAD_DOMAIN;
                h->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
                h->domain_attr->resource_mgmt = FI_RM_ENABLED;
            });
            REQUIRE(i);
            REQUIRE_EQ(i->caps & a.caps, a.caps);
            REQUIRE_EQ(i->mode & ~a.mode, 0);
            REQUIRE_EQ(i->ep_attr->type, a.type);
            REQUIRE(i->tx_attr->inject_size >= 64);
            REQUIRE(i->domain_attr->cq_data_size >= 4);
            REQUIRE(i->src_addrlen && i->src_addrlen <= 56);
            fi_freeinfo(i);
        });
    }
}

TEST(prov_info_test, resolves_node_and_service)
{
    in_a_process([](partner &) {
        fi_info *i = ask([](fi_info *) {}, FI_SOURCE, "127.0.0.1", "7777");
        REQUIRE(i && i->src_addr && !i->dest_addr);
        auto *in = static_cast<sockaddr_in *>(i->src_addr);
        REQUIRE_EQ(i->addr_format, static_cast<uint32_t>(FI_SOCKADDR_IN));
        REQUIRE_EQ(in->sin_port, __builtin_bswap16(7777));
        fi_freeinfo(i);
        i = ask([](fi_info *) {}, 0, "127.0.0.1", "7777");
        REQUIRE(i && i->src_addr && i->dest_addr);
        in = static_cast<sockaddr_in *>(i->dest_addr);
        REQUIRE_EQ(in->sin_port, __builtin_bswap16(7777));
        in = static_cast<sockaddr_in *>(i->src_addr);
        REQUIRE_EQ(in->sin_addr.s_addr, 0x0100007fu); // the interface that leads there
        fi_freeinfo(i);
        i = ask([](fi_info *) {}, 0, "::1", "7777");
        if (i) {
            REQUIRE_EQ(i->addr_format, static_cast<uint32_t>(FI_SOCKADDR_IN6));
            fi_freeinfo(i);
        }
        REQUIRE(!ask([](fi_info *) {}, FI_NUMERICHOST, "localhost", "7777"));
        REQUIRE(!ask([](fi_info *) {}, 0, "no.such.host.invalid", "7777"));
    });
}

} // namespace
