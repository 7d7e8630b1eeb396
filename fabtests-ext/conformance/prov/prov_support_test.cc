// SPDX-License-Identifier: BSD-3-Clause
//
// The fi_* rows of the table of what is supported against what the provider does. A call is
// unsupported when it says -FI_ENOSYS, or when its slot holds the function that says so: that one
// is known, because objects that do not serve a table hold it in a slot of the same type. Every row
// must have a probe here and every probe a row.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/support_table.h"

#include <gtest/gtest.h>
#include <map>
#include <rdma/fi_collective.h>

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace app;

namespace {

std::map<std::string, bool> found;

void note(const char *name, bool works)
{
    REQUIRE(!found.count(name));
    found[name] = works;
}

#define CALL(name, ...) note(#name, (__VA_ARGS__) != -FI_ENOSYS)
template <class F>
bool served(F slot, F blank)
{
    return slot && slot != blank;
}

void fabric_and_domain(fabric_side &s)
{
    fi_info *list = nullptr;
    fid_fabric *fabric = nullptr;
    fid_domain *domain = nullptr;
    CALL(fi_getinfo, fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, s.info, &list));
    fi_freeinfo(list);
    CALL(fi_fabric, fi_fabric(s.info->fabric_attr, &fabric, nullptr));
    CALL(fi_domain, fi_domain(fabric, s.info, &domain, nullptr));
    CALL(fi_domain_bind, fi_domain_bind(domain, &s.eq->fid, 0));
    void *ops = nullptr;
    CALL(fi_open_ops, fi_open_ops(&domain->fid, "none", 0, &ops, nullptr));
    int fd;
    CALL(fi_control, fi_control(&s.rxcq->fid, FI_GETWAIT, &fd));
    REQUIRE_EQ(fi_close(&domain->fid), 0);
    CALL(fi_close, fi_close(&fabric->fid));
}

void endpoints(fabric_side &s)
{
    fid_ep *ep = nullptr, *other = nullptr;
    fid_stx *stx = nullptr;
    uint64_t value = 0;
    size_t length = sizeof(value);
    CALL(fi_endpoint, fi_endpoint(s.domain, s.info, &ep, nullptr));
    CALL(fi_endpoint2, fi_endpoint2(s.domain, s.info, &other, 0, nullptr));
    REQUIRE_EQ(fi_close(&other->fid), 0);
    CALL(fi_scalable_ep, fi_scalable_ep(s.domain, s.info, &other, nullptr));
    CALL(fi_stx_context, fi_stx_context(s.domain, nullptr, &stx, nullptr));
    CALL(fi_srx_context, fi_srx_context(s.domain, nullptr, &other, nullptr));
    REQUIRE_EQ(fi_close(&other->fid), 0);
    CALL(fi_ep_bind, fi_ep_bind(ep, &s.txcq->fid, FI_TRANSMIT | FI_RECV));
    REQUIRE_EQ(fi_ep_bind(ep, &s.av->fid, 0), 0);
    CALL(fi_enable, fi_enable(ep));
    CALL(fi_cancel, static_cast<int>(fi_cancel(&ep->fid, &value)));
    CALL(fi_setopt, fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &length, length));
    CALL(fi_getopt, fi_getopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &length));
    CALL(fi_ep_alias, fi_ep_alias(ep, &other, FI_TRANSMIT));
    CALL(fi_tx_context, fi_tx_context(ep, 0, nullptr, &other, nullptr));
    CALL(fi_rx_context, fi_rx_context(ep, 0, nullptr, &other, nullptr));
    CALL(fi_rx_size_left, fi_rx_size_left(ep));
    CALL(fi_tx_size_left, fi_tx_size_left(ep));
    REQUIRE_EQ(fi_close(&ep->fid), 0);
}

void connections(fabric_side &s, fid_ep *blank)
{
    options o;
    o.type = FI_EP_MSG;
    fabric_side m(o);
    CALL(fi_passive_ep, fi_passive_ep(m.fabric, m.info, &m.pep, nullptr));
    CALL(fi_pep_bind, fi_pep_bind(m.pep, &m.eq->fid, 0));
    m.open_active(m.info);
    auto *ep = m.ep->cm, *pep = m.pep->cm, *none = blank->cm, *rdm = s.ep->cm;
    note("fi_listen", served(pep->listen, none->listen));
    note("fi_connect", served(ep->connect, none->connect));
    note("fi_accept", served(ep->accept, none->accept));
    note("fi_reject", served(pep->reject, none->reject));
    note("fi_shutdown", served(ep->shutdown, none->shutdown));
    for (auto *cm : {ep, pep, rdm}) { // wherever there is a name
        REQUIRE(served(cm->setname, none->setname));
        REQUIRE(served(cm->getname, none->getname));
    }
    note("fi_setname", true);
    note("fi_getname", true);
    note("fi_getpeer", served(ep->getpeer, none->getpeer));
    note("fi_join", served(rdm->join, none->join));
}

void data(fid_ep *ep, fid_ep *blank)
{
    // A shared receive context does receive: what those slots hold is tried.
    iovec none_iov = {};
    fi_msg m = {&none_iov, nullptr, 99, 0, nullptr, 0};
    fi_msg_tagged tm = {&none_iov, nullptr, 99, 0, 0, 0, nullptr, 0};
    CALL(fi_recv, fi_recv(ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, nullptr));
    CALL(fi_recvv, fi_recvv(ep, &none_iov, nullptr, 99, FI_ADDR_UNSPEC, nullptr));
    CALL(fi_recvmsg, fi_recvmsg(ep, &m, 0));
    CALL(fi_trecv, fi_trecv(ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, 0, 0, nullptr));
    CALL(fi_trecvv, fi_trecvv(ep, &none_iov, nullptr, 99, FI_ADDR_UNSPEC, 0, 0, nullptr));
    CALL(fi_trecvmsg, fi_trecvmsg(ep, &tm, 0));
    {
        auto *t = ep->msg, *none_table = blank->msg;
        note("fi_send", served(t->send, none_table->send));
        note("fi_sendv", served(t->sendv, none_table->sendv));
        note("fi_sendmsg", served(t->sendmsg, none_table->sendmsg));
        note("fi_inject", served(t->inject, none_table->inject));
        note("fi_senddata", served(t->senddata, none_table->senddata));
        note("fi_injectdata", served(t->injectdata, none_table->injectdata));
    }
    {
        auto *t = ep->tagged, *none = blank->tagged;
        note("fi_tsend", served(t->send, none->send));
        note("fi_tsendv", served(t->sendv, none->sendv));
        note("fi_tsendmsg", served(t->sendmsg, none->sendmsg));
        note("fi_tinject", served(t->inject, none->inject));
        note("fi_tsenddata", served(t->senddata, none->senddata));
        note("fi_tinjectdata", served(t->injectdata, none->injectdata));
    }
    {
        auto *t = ep->rma, *none = blank->rma;
        note("fi_read", served(t->read, none->read));
        note("fi_readv", served(t->readv, none->readv));
        note("fi_readmsg", served(t->readmsg, none->readmsg));
        note("fi_write", served(t->write, none->write));
        note("fi_writev", served(t->writev, none->writev));
        note("fi_writemsg", served(t->writemsg, none->writemsg));
        note("fi_inject_write", served(t->inject, none->inject));
        note("fi_writedata", served(t->writedata, none->writedata));
        note("fi_inject_writedata", served(t->injectdata, none->injectdata));
    }
}

void atomics(fid_ep *ep, fid_ep *blank, fid_domain *domain)
{
    auto *t = ep->atomic, *none = blank->atomic;
    note("fi_atomic", served(t->write, none->write));
    note("fi_atomicv", served(t->writev, none->writev));
    note("fi_atomicmsg", served(t->writemsg, none->writemsg));
    note("fi_inject_atomic", served(t->inject, none->inject));
    note("fi_fetch_atomic", served(t->readwrite, none->readwrite));
    note("fi_fetch_atomicv", served(t->readwritev, none->readwritev));
    note("fi_fetch_atomicmsg", served(t->readwritemsg, none->readwritemsg));
    note("fi_compare_atomic", served(t->compwrite, none->compwrite));
    note("fi_compare_atomicv", served(t->compwritev, none->compwritev));
    note("fi_compare_atomicmsg", served(t->compwritemsg, none->compwritemsg));
    size_t n;
    fi_atomic_attr attr;
    CALL(fi_atomicvalid, fi_atomicvalid(ep, FI_UINT64, FI_SUM, &n));
    CALL(fi_fetch_atomicvalid, fi_fetch_atomicvalid(ep, FI_UINT64, FI_SUM, &n));
    CALL(fi_compare_atomicvalid, fi_compare_atomicvalid(ep, FI_UINT64, FI_CSWAP, &n));
    CALL(fi_query_atomic, fi_query_atomic(domain, FI_UINT64, FI_SUM, &attr, 0));
}

void addresses(fabric_side &s)
{
    fi_av_attr a = {};
    a.type = FI_AV_TABLE;
    a.flags = FI_EVENT;
    fid_av *av = nullptr;
    fid_av_set *set = nullptr;
    fi_av_set_attr sa = {};
    char name[256], text[256];
    size_t length = sizeof(name), text_length = sizeof(text);
    fi_addr_t addr = 0;
    CALL(fi_av_open, fi_av_open(s.domain, &a, &av, nullptr));
    CALL(fi_av_bind, fi_av_bind(av, &s.eq->fid, 0));
    REQUIRE_EQ(fi_getname(&s.ep->fid, name, &length), 0);
    CALL(fi_av_insert, fi_av_insert(av, name, 1, &addr, 0, nullptr));
    CALL(fi_av_insertsvc, fi_av_insertsvc(av, "127.0.0.1", "7", &addr, 0, nullptr));
    CALL(fi_av_insertsym, fi_av_insertsym(av, "127.0.0.1", 1, "7", 1, &addr, 0, nullptr));
    CALL(fi_av_lookup, fi_av_lookup(av, addr, name, &length));
    note("fi_av_straddr", fi_av_straddr(av, name, text, &text_length) != nullptr);
    CALL(fi_av_remove, fi_av_remove(av, &addr, 1, 0));
    CALL(fi_av_set, fi_av_set(av, &sa, &set, nullptr));
    REQUIRE_EQ(fi_close(&av->fid), 0);
}

void memory(fabric_side &s)
{
    char buf[64] = {};
    iovec iov = {buf, sizeof(buf)};
    fi_mr_attr a = {};
    a.mr_iov = &iov;
    a.iov_count = 1;
    a.access = FI_REMOTE_READ;
    fid_mr *mr[3] = {};
    CALL(fi_mr_reg, fi_mr_reg(s.domain, buf, 64, FI_REMOTE_READ, 0, 1, 0, &mr[0], nullptr));
    CALL(fi_mr_regv, fi_mr_regv(s.domain, &iov, 1, FI_REMOTE_READ, 0, 2, 0, &mr[1], nullptr));
    a.requested_key = 3;
    CALL(fi_mr_regattr, fi_mr_regattr(s.domain, &a, 0, &mr[2]));
    CALL(fi_mr_bind, fi_mr_bind(mr[0], &s.ep->fid, 0));
    CALL(fi_mr_refresh, fi_mr_refresh(mr[0], &iov, 1, 0));
    CALL(fi_mr_enable, fi_mr_enable(mr[0]));
    for (fid_mr *m : mr) {
        REQUIRE_EQ(fi_close(&m->fid), 0);
    }
}

void queues(fabric_side &s)
{
    fi_cq_attr a = {};
    a.wait_obj = FI_WAIT_FD;
    fid_cq *cq = nullptr;
    fi_cq_entry e;
    fi_cq_err_entry err = {};
    fi_addr_t from;
    char text[64];
    CALL(fi_cq_open, fi_cq_open(s.domain, &a, &cq, nullptr));
    CALL(fi_cq_read, fi_cq_read(cq, &e, 1));
    CALL(fi_cq_readfrom, fi_cq_readfrom(cq, &e, 1, &from));
    CALL(fi_cq_readerr, fi_cq_readerr(cq, &err, 0));
    CALL(fi_cq_sread, fi_cq_sread(cq, &e, 1, nullptr, 0));
    CALL(fi_cq_sreadfrom, fi_cq_sreadfrom(cq, &e, 1, &from, nullptr, 0));
    CALL(fi_cq_signal, fi_cq_signal(cq));
    note("fi_cq_strerror", fi_cq_strerror(cq, 0, nullptr, text, sizeof(text)) != nullptr);
    fid *fids[] = {&cq->fid};
    CALL(fi_trywait, fi_trywait(s.fabric, fids, 1));
    REQUIRE_EQ(fi_close(&cq->fid), 0);

    fi_cntr_attr ca = {};
    fid_cntr *c = nullptr;
    CALL(fi_cntr_open, fi_cntr_open(s.domain, &ca, &c, nullptr));
    CALL(fi_cntr_set, fi_cntr_set(c, 3));
    CALL(fi_cntr_add, fi_cntr_add(c, 2));
    CALL(fi_cntr_seterr, fi_cntr_seterr(c, 5));
    CALL(fi_cntr_adderr, fi_cntr_adderr(c, 4));
    note("fi_cntr_read", fi_cntr_read(c) == 5);
    note("fi_cntr_readerr", fi_cntr_readerr(c) == 9);
    CALL(fi_cntr_wait, fi_cntr_wait(c, 5, 0));
    REQUIRE_EQ(fi_close(&c->fid), 0);
}

void events(fabric_side &s)
{
    fi_eq_attr a = {};
    a.wait_obj = FI_WAIT_FD;
    a.flags = FI_WRITE;
    fid_eq *eq = nullptr;
    fi_eq_entry e = {};
    fi_eq_err_entry err = {};
    uint32_t type;
    char text[64];
    CALL(fi_eq_open, fi_eq_open(s.fabric, &a, &eq, nullptr));
    CALL(fi_eq_write, fi_eq_write(eq, 1, &e, sizeof(e), 0));
    CALL(fi_eq_read, fi_eq_read(eq, &type, &e, sizeof(e), 0));
    CALL(fi_eq_readerr, fi_eq_readerr(eq, &err, 0));
    CALL(fi_eq_sread, fi_eq_sread(eq, &type, &e, sizeof(e), 0, 0));
    note("fi_eq_strerror", fi_eq_strerror(eq, 0, nullptr, text, sizeof(text)) != nullptr);
    REQUIRE_EQ(fi_close(&eq->fid), 0);

    fi_wait_attr wa = {};
    wa.wait_obj = FI_WAIT_FD;
    fid_wait *wait = nullptr;
    fi_poll_attr pa = {};
    fid_poll *poll = nullptr;
    void *context;
    CALL(fi_wait_open, fi_wait_open(s.fabric, &wa, &wait));
    CALL(fi_wait, fi_wait(wait, 0));
    REQUIRE_EQ(fi_close(&wait->fid), 0);
    CALL(fi_poll_open, fi_poll_open(s.domain, &pa, &poll));
    CALL(fi_poll_add, fi_poll_add(poll, &s.rxcq->fid, 0));
    CALL(fi_poll, fi_poll(poll, &context, 1));
    CALL(fi_poll_del, fi_poll_del(poll, &s.rxcq->fid, 0));
    REQUIRE_EQ(fi_close(&poll->fid), 0);
}

void collectives(fabric_side &s)
{
    fid_ep *ep = s.ep;
    fi_collective_attr attr = {};
    CALL(fi_barrier, fi_barrier(ep, 0, nullptr));
    CALL(fi_broadcast, fi_broadcast(ep, nullptr, 0, nullptr, 0, 0, FI_INT8, 0, nullptr));
    CALL(fi_alltoall,
         fi_alltoall(ep, nullptr, 0, nullptr, nullptr, nullptr, 0, FI_INT8, 0, nullptr));
    CALL(fi_allreduce,
         fi_allreduce(ep, nullptr, 0, nullptr, nullptr, nullptr, 0, FI_INT8, FI_SUM, 0, nullptr));
    CALL(fi_allgather,
         fi_allgather(ep, nullptr, 0, nullptr, nullptr, nullptr, 0, FI_INT8, 0, nullptr));
    CALL(fi_reduce_scatter, fi_reduce_scatter(ep, nullptr, 0, nullptr, nullptr, nullptr, 0, FI_INT8,
                                              FI_SUM, 0, nullptr));
    CALL(fi_reduce,
         fi_reduce(ep, nullptr, 0, nullptr, nullptr, nullptr, 0, 0, FI_INT8, FI_SUM, 0, nullptr));
    CALL(fi_scatter,
         fi_scatter(ep, nullptr, 0, nullptr, nullptr, nullptr, 0, 0, FI_INT8, 0, nullptr));
    CALL(fi_gather,
         fi_gather(ep, nullptr, 0, nullptr, nullptr, nullptr, 0, 0, FI_INT8, 0, nullptr));
    CALL(fi_query_collective, fi_query_collective(s.domain, FI_BARRIER, &attr, 0));
}

TEST(prov_support_test, the_table_says_what_the_provider_does)
{
    auto alone = [](partner &) {
        auto table = support_table::read("fi");
        REQUIRE(table.size() > 100);
        options o;
        o.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTICAST;
        o.with_eq = true;
        o.wait = FI_WAIT_FD;
        fabric_side s(o);
        s.open_active(s.info);
        fid_ep *blank = nullptr; // serves no sends, no remote memory, no connections
        REQUIRE_EQ(fi_srx_context(s.domain, nullptr, &blank, nullptr), 0);
        fabric_and_domain(s);
        endpoints(s);
        connections(s, blank);
        data(s.ep, blank);
        atomics(s.ep, blank, s.domain);
        addresses(s);
        memory(s);
        queues(s);
        events(s);
        collectives(s);
        note("fi_join_collective", false); // needs fi_av_set, which there is not
        REQUIRE(!found["fi_av_set"]);
        REQUIRE_EQ(fi_close(&blank->fid), 0);
        int wrong = 0;
        for (auto &[name, works] : table) {
            auto it = found.find(name);
            if (it != found.end() && it->second == works) {
                continue;
            }
            fprintf(stderr, "%s is listed as %s: %s\n", name.c_str(),
                    works ? "working" : "unsupported",
                    it == found.end() ? "nothing here asks" : "it is the reverse");
            ++wrong;
        }
        for (auto &[name, works] : found) {
            if (table.count(name)) {
                continue;
            }
            fprintf(stderr, "%s is not listed\n", name.c_str());
            ++wrong;
        }
        REQUIRE_EQ(wrong, 0);
    };
    EXPECT_EQ(run_pair(alone, [](partner &) {}), "");
}

} // namespace
