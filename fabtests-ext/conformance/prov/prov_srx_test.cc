// SPDX-License-Identifier: BSD-3-Clause
//
// Receives that endpoints share: what is not the completion of a message (a peek that finds
// nothing, a receive that is cancelled, a buffer that is given back) is reported, too.
#include "fabtests-ext/common/fabric_app.h"

#include <gtest/gtest.h>

using namespace app;

namespace {

// One endpoint on a shared context, which sends to itself.
struct alone {
    explicit alone(bool bind_queue = false)
        : s([this, bind_queue] {
              options o;
              o.caps |= FI_MULTI_RECV;
              o.before_enable = [this, bind_queue](fabric_side &f) {
                  REQUIRE_EQ(fi_srx_context(f.domain, nullptr, &srx, nullptr), 0);
                  if (bind_queue) {
                      fi_cq_attr a = {};
                      a.format = FI_CQ_FORMAT_TAGGED;
                      REQUIRE_EQ(fi_cq_open(f.domain, &a, &own, nullptr), 0);
                      REQUIRE_EQ(fi_ep_bind(srx, &own->fid, FI_RECV), 0);
                  }
                  REQUIRE_EQ(fi_ep_bind(f.ep, &srx->fid, 0), 0);
              };
              return o;
          }())
    {
        s.open_active(s.info);
        char name[64];
        size_t length = sizeof(name);
        REQUIRE_EQ(fi_getname(&s.ep->fid, name, &length), 0);
        REQUIRE_EQ(fi_av_insert(s.av, name, 1, &s.peer, 0, nullptr), 1);
    }
    ~alone()
    {
        s.close_active();
        REQUIRE_EQ(fi_close(&srx->fid), 0);
        if (own) {
            REQUIRE_EQ(fi_close(&own->fid), 0);
        }
    }

    void send(uint64_t tag, unsigned seed)
    {
        s.retry([&] { return fi_tinject(s.ep, pattern(10, seed).data(), 10, s.peer, tag); });
    }
    // Until the message is there.
    fi_cq_tagged_entry peek(uint64_t tag, uint64_t flags)
    {
        fi_msg_tagged m = {};
        m.addr = FI_ADDR_UNSPEC;
        m.tag = tag;
        m.context = &context;
        for (;;) {
            s.retry([&] { return fi_trecvmsg(srx, &m, FI_PEEK | flags); });
            fi_cq_err_entry error = {};
            fi_cq_tagged_entry e = s.complete(s.rxcq, &error);
            if (!error.err) {
                return e;
            }
            REQUIRE_EQ(error.err, FI_ENOMSG);
            REQUIRE(error.op_context == &context);
        }
    }

    fid_ep *srx = nullptr;
    fid_cq *own = nullptr;
    fi_context2 context = {};
    fabric_side s;
};

void in_a_process(const role &r)
{
    EXPECT_EQ(run_pair(r, [](partner &) {}), "");
}

TEST(prov_srx_test, peeks_claims_and_discards)
{
    in_a_process([](partner &) {
        alone a;
        a.send(1, 1);
        a.send(2, 2);
        a.send(3, 3);
        REQUIRE_EQ(a.peek(1, 0).len, 10);
        REQUIRE_EQ(a.peek(1, 0).len, 10); // it is still there
        REQUIRE_EQ(a.peek(2, FI_DISCARD).len, 10);
        REQUIRE_EQ(a.peek(3, FI_CLAIM).len, 10);
        char buf[64] = {};
        iovec iov = {buf, sizeof(buf)};
        fi_msg_tagged m = {};
        m.msg_iov = &iov;
        m.iov_count = 1;
        m.addr = FI_ADDR_UNSPEC;
        m.context = &a.context;
        a.s.retry([&] { return fi_trecvmsg(a.srx, &m, FI_CLAIM); });
        REQUIRE_EQ(a.s.complete(a.s.rxcq).tag, 3);
        REQUIRE(memcmp(buf, pattern(10, 3).data(), 10) == 0);
        REQUIRE_EQ(fi_trecv(a.srx, buf, 64, nullptr, FI_ADDR_UNSPEC, 0, ~0ull, &a), 0);
        REQUIRE_EQ(a.s.complete(a.s.rxcq).tag, 1);
    });
}

// Its sender waits for that.
TEST(prov_srx_test, a_discarded_message_has_come_to_its_end)
{
    in_a_process([](partner &) {
        alone a;
        for (bool claimed : {false, true}) {
            char data[10] = {};
            iovec iov = {data, sizeof(data)};
            fi_msg_tagged m = {};
            m.msg_iov = &iov;
            m.iov_count = 1;
            m.addr = a.s.peer;
            m.tag = 1;
            m.context = data;
            a.s.retry(
                [&] { return fi_tsendmsg(a.s.ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE); });
            REQUIRE_EQ(a.peek(1, claimed ? FI_CLAIM : FI_DISCARD).len, 10);
            if (claimed) {
                m.context = &a.context;
                m.addr = FI_ADDR_UNSPEC;
                a.s.retry([&] { return fi_trecvmsg(a.srx, &m, FI_CLAIM | FI_DISCARD); });
                REQUIRE(a.s.complete(a.s.rxcq).op_context == &a.context);
            }
            REQUIRE(a.s.complete(a.s.txcq).op_context == data);
        }
    });
}

TEST(prov_srx_test, claims_one_message_for_a_context)
{
    in_a_process([](partner &) {
        alone a;
        a.send(1, 1);
        a.send(2, 2);
        a.peek(2, 0);
        a.peek(1, FI_CLAIM);
        fi_msg_tagged m = {};
        m.addr = FI_ADDR_UNSPEC;
        m.tag = 2;
        m.context = &a.context;
        REQUIRE_EQ(fi_trecvmsg(a.srx, &m, FI_PEEK | FI_CLAIM), -FI_EINVAL);
        a.peek(2, 0); // it is still there
        a.s.retry([&] { return fi_trecvmsg(a.srx, &m, FI_CLAIM | FI_DISCARD); });
        REQUIRE_EQ(a.s.complete(a.s.rxcq).tag, 1);
        a.peek(2, FI_CLAIM);
    });
}

TEST(prov_srx_test, refuses_a_counter)
{
    in_a_process([](partner &) {
        alone a;
        REQUIRE_EQ(fi_ep_bind(a.srx, &a.s.counter()->fid, FI_RECV), -FI_EOPNOTSUPP);
    });
}

void expect_cancelled(alone &a, fid_cq *q)
{
    char buf[8];
    int tagged, plain;
    REQUIRE_EQ(fi_trecv(a.srx, buf, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &tagged), 0);
    REQUIRE_EQ(fi_recv(a.srx, buf, 8, nullptr, FI_ADDR_UNSPEC, &plain), 0);
    for (void *c : {static_cast<void *>(&tagged), static_cast<void *>(&plain)}) {
        REQUIRE_EQ(fi_cancel(&a.srx->fid, c), 0);
        fi_cq_err_entry error = {};
        a.s.complete(q, &error);
        REQUIRE_EQ(error.err, FI_ECANCELED);
        REQUIRE(error.op_context == c);
    }
    REQUIRE_EQ(fi_cancel(&a.srx->fid, &plain), -FI_ENOENT);
}

TEST(prov_srx_test, reports_a_cancelled_receive)
{
    in_a_process([](partner &) {
        alone a;
        expect_cancelled(a, a.s.rxcq);
    });
}

TEST(prov_srx_test, reports_to_the_queue_it_is_bound_to)
{
    in_a_process([](partner &) {
        alone a(true);
        REQUIRE_EQ(fi_close(&a.own->fid), -FI_EBUSY);
        expect_cancelled(a, a.own);
    });
}

TEST(prov_srx_test, gives_a_multi_receive_buffer_back_with_that_flag_alone)
{
    in_a_process([](partner &) {
        alone a;
        for (fid_ep *ep : {a.srx, a.s.ep}) {
            char buf[1024];
            iovec iov = {buf, 1000};
            fi_msg m = {};
            m.msg_iov = &iov;
            m.iov_count = 1;
            m.addr = FI_ADDR_UNSPEC;
            m.context = &a.context;
            REQUIRE_EQ(fi_recvmsg(ep, &m, FI_MULTI_RECV | FI_COMPLETION), 0);
            char out[600] = {};
            // The second message has no room behind the first.
            for (int i = 0; i < 2; ++i) {
                a.s.retry([&] { return fi_inject(a.s.ep, out, sizeof(out), a.s.peer); });
            }
            REQUIRE_EQ(a.s.complete(a.s.rxcq).flags & (FI_MULTI_RECV | FI_RECV), FI_RECV);
            REQUIRE_EQ(a.s.complete(a.s.rxcq).flags, FI_MULTI_RECV);
            REQUIRE_EQ(fi_recv(ep, buf, sizeof(buf), nullptr, FI_ADDR_UNSPEC, &a.context), 0);
            REQUIRE_EQ(a.s.complete(a.s.rxcq).len, 600);
        }
    });
}

} // namespace
