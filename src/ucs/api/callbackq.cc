// SPDX-License-Identifier: BSD-3-Clause
// ucs_callbackq_*: queues of callbacks for programs that dispatch their own. The inline part of a
// queue has one element, run_all, in both of the layouts that callers may have been compiled with;
// everything else is behind it, under a mutex that no callback runs with.
#include "ucs/error.h"

#include <ucs/datastruct/callbackq.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <vector>

struct ucs_callbackq_priv {
    struct entry {
        int id;
        ucs_callbackq_elem_t call; // cb is null when removed during a dispatch
    };
    struct oneshot {
        ucs_callbackq_key_t key;
        ucs_callbackq_elem_t call;
    };

    int add(const ucs_callbackq_elem_t &call)
    {
        std::lock_guard lock(mutex);
        entries.push_back({next_id, call});
        return next_id++;
    }

    void *remove(int id)
    {
        std::lock_guard lock(mutex);
        auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const entry &e) { return e.id == id && e.call.cb; });
        if (found == entries.end()) {
            return nullptr;
        }
        void *arg = found->call.arg;
        if (dispatching) {
            found->call.cb = nullptr;
        } else {
            entries.erase(found);
        }
        return arg;
    }

    // The callback at an index, null past the end; a removed one counts as one that does nothing.
    bool at(size_t index, ucs_callbackq_elem_t *call)
    {
        std::lock_guard lock(mutex);
        if (index >= entries.size()) {
            return false;
        }
        *call = entries[index].call;
        return true;
    }

    bool pop_oneshot(ucs_callbackq_elem_t *call)
    {
        std::lock_guard lock(mutex);
        if (oneshots.empty()) {
            return false;
        }
        *call = oneshots.front().call;
        oneshots.pop_front();
        return true;
    }

    size_t begin()
    {
        std::lock_guard lock(mutex);
        dispatching = true;
        return oneshots.size();
    }

    void end()
    {
        std::lock_guard lock(mutex);
        dispatching = false;
        std::erase_if(entries, [](const entry &e) { return !e.call.cb; });
    }

    std::mutex mutex;
    std::vector<entry> entries;
    std::deque<oneshot> oneshots;
    int next_id = 0;
    bool dispatching = false;
};

namespace {

unsigned run_all(void *arg)
{
    auto *priv = static_cast<ucs_callbackq_priv *>(arg);
    unsigned done = 0;
    ucs_callbackq_elem_t call;
    size_t due = priv->begin(); // those added by callbacks wait for the next dispatch
    for (size_t i = 0; priv->at(i, &call); ++i) {
        if (call.cb) {
            done += call.cb(call.arg);
        }
    }
    for (; due > 0 && priv->pop_oneshot(&call); --due) {
        done += call.cb(call.arg);
    }
    priv->end();
    return done;
}

} // namespace

extern "C" {

ucs_status_t ucs_callbackq_init(ucs_callbackq_t *cbq)
{
    return ucs::guard([&] {
        ucs_callbackq_t queue = {};
        queue.priv = new ucs_callbackq_priv();
        queue.fast_elems[0] = {.cb = run_all, .arg = queue.priv};
        *cbq = queue;
    });
}

void ucs_callbackq_cleanup(ucs_callbackq_t *cbq)
{
    delete cbq->priv;
    *cbq = {};
}

int ucs_callbackq_add(ucs_callbackq_t *cbq, ucs_callback_t cb, void *arg)
{
    int id = UCS_CALLBACKQ_ID_NULL;
    ucs::guard([&] { id = cbq->priv->add({.cb = cb, .arg = arg}); });
    return id;
}

void *ucs_callbackq_remove(ucs_callbackq_t *cbq, int id)
{
    return cbq->priv->remove(id);
}

int ucs_callbackq_add_safe(ucs_callbackq_t *cbq, ucs_callback_t cb, void *arg)
{
    return ucs_callbackq_add(cbq, cb, arg);
}

void *ucs_callbackq_remove_safe(ucs_callbackq_t *cbq, int id)
{
    return ucs_callbackq_remove(cbq, id);
}

void ucs_callbackq_add_oneshot(ucs_callbackq_t *cbq, ucs_callbackq_key_t key, ucs_callback_t cb,
                               void *arg)
{
    ucs::guard([&] {
        std::lock_guard lock(cbq->priv->mutex);
        cbq->priv->oneshots.push_back({key, {.cb = cb, .arg = arg}});
    });
}

void ucs_callbackq_remove_oneshot(ucs_callbackq_t *cbq, ucs_callbackq_key_t key,
                                  ucs_callbackq_predicate_t pred, void *arg)
{
    std::lock_guard lock(cbq->priv->mutex);
    std::erase_if(cbq->priv->oneshots, [&](const ucs_callbackq_priv::oneshot &o) {
        return o.key == key && pred(&o.call, arg);
    });
}
}
