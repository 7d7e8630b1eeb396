// SPDX-License-Identifier: BSD-3-Clause
//
// Order behind a write under way: what came later from the same peer waits until it has landed.
#include "prov/ucxlike/data/rma.h"

#include "ucs/copy.h"

#include <cstdlib>

namespace ucxlike {

struct deferred_messages {
    struct message {
        unsigned am;
        wire::message m;
        void *bytes;
        size_t length;
        uint64_t attr;
        bool held;
    };
    std::vector<message> list;
};

template <class F>
static void replay(conn *from, F &&deliver)
{
    std::unique_ptr<deferred_messages> d(from->deferred);
    from->deferred = nullptr;
    if (!d) {
        return;
    }
    ucp_worker_h worker = from->eng->worker;
    for (auto &e : d->list) {
        ucp_am_recv_param_t p = {};
        p.recv_attr = e.attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
        ucs_status_t st = deliver(e, p);
        bool refused = p.recv_attr && st != UCS_OK && st != UCS_INPROGRESS;
        if (e.held || refused) {
            ucp_am_data_release(worker, e.bytes);
        } else if (!p.recv_attr) {
            free(e.bytes);
        }
    }
}

void replay_deferred(conn *c)
{
    replay(c, [c](const deferred_messages::message &e, const ucp_am_recv_param_t &p) {
        return dispatch(c, e.am, e.m, e.bytes, e.length, &p);
    });
}

void pass_deferred(conn *from, conn *to)
{
    replay(from, [to](const deferred_messages::message &e, const ucp_am_recv_param_t &p) {
        return arrive(to, e.am, e.m, e.bytes, e.length, &p);
    });
}

ucs_status_t defer(conn *c, unsigned am, const wire::message &m, void *data, size_t length,
                   const ucp_am_recv_param_t *param)
{
    deferred_messages::message e = {am, m, data, length, param->recv_attr, false};
    e.m.hello = nullptr;
    e.held = !(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) &&
             (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA);
    bool copied = !e.held && !(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
    int error = guard([&] {
        if (!c->deferred) {
            c->deferred = new deferred_messages;
        }
        auto &list = c->deferred->list;
        list.push_back(e);
        if (!copied) {
            return 0;
        }
        list.back().bytes = malloc(length ? length : 1);
        if (!list.back().bytes) {
            list.pop_back();
            return -FI_ENOMEM;
        }
        ucs::copy(list.back().bytes, data, length);
        return 0;
    });
    if (error) {
        c->eng->give_up(c);
        return copied ? UCS_OK : UCS_ERR_NO_MEMORY;
    }
    return copied ? UCS_OK : UCS_INPROGRESS;
}

void drop_deferred(conn *c)
{
    if (!c->deferred) {
        return;
    }
    for (auto &e : c->deferred->list) {
        if (e.held || (e.attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
            ucp_am_data_release(c->eng->worker, e.bytes);
        } else {
            free(e.bytes);
        }
    }
    delete c->deferred;
    c->deferred = nullptr;
}

} // namespace ucxlike
