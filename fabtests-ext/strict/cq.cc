// SPDX-License-Identifier: BSD-3-Clause
// Completion queues: what comes from the inner queue is a request, of which the user sees the
// context, or nothing. Reading is what makes messages that are held go on.
#include "strict/strict.h"

#include <algorithm>
#include <cstring>

namespace strict {

namespace {

int close_cq(fid_t fid)
{
    auto *queue = self<cq>(fid);
    if (queue->eps > 0) {
        forbid(*queue->home->about, "a completion queue is closed before its endpoints");
    }
    queue->home->mover.remove(queue);
    delete queue;
    return 0;
}

int control_cq(fid_t fid, int command, void *arg)
{
    auto *queue = self<cq>(fid);
    return queue->inner->fid.ops->control(&queue->inner->fid, command, arg);
}

size_t entry_size(fi_cq_format format)
{
    switch (format) {
    case FI_CQ_FORMAT_MSG:
        return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
        return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
        return sizeof(fi_cq_tagged_entry);
    default:
        return sizeof(fi_cq_entry);
    }
}

// The messages of a buffer that they share end one after the other.
bool stays_posted(const request &r, uint64_t flags)
{
    return (r.flags & FI_MULTI_RECV) && !(flags & FI_MULTI_RECV);
}

ssize_t read(fid_cq *fid, void *buffer, size_t count)
{
    constexpr size_t most = 16;
    auto *queue = self<cq>(fid);
    queue->was_read = true;
    std::set<ep *> senders;
    {
        std::lock_guard guard(queue->mutex);
        senders = queue->senders;
    }
    for (ep *e : senders) {
        e->release(false);
    }
    fi_cq_tagged_entry entries[most];
    size_t size = entry_size(queue->format);
    if (queue->take_released(entries)) {
        memcpy(buffer, entries, size);
        return 1;
    }
    ssize_t n = queue->read_inner(entries, std::min(count, most));
    ssize_t seen = 0;
    // The formats are beginnings of each other.
    for (ssize_t i = 0; i < n; ++i) {
        auto *r = static_cast<request *>(entries[i].op_context);
        if (!r || queue->completed(r, &entries[i])) {
            memcpy(static_cast<char *>(buffer) + static_cast<size_t>(seen++) * size, &entries[i],
                   size);
        }
    }
    if (n == -FI_EAGAIN) {
        queue->end_early();
        std::lock_guard guard(queue->mutex);
        return queue->lost.empty() ? n : -FI_EAVAIL;
    }
    return n < 0 ? n : seen > 0 ? seen : -FI_EAGAIN;
}

ssize_t readfrom(fid_cq *fid, void *buffer, size_t count, fi_addr_t *from)
{
    ssize_t n = read(fid, buffer, count);
    for (ssize_t i = 0; from && i < n; ++i) {
        from[i] = FI_ADDR_NOTAVAIL;
    }
    return n;
}

ssize_t readerr(fid_cq *fid, fi_cq_err_entry *entry, uint64_t flags)
{
    auto *queue = self<cq>(fid);
    ssize_t n = fi_cq_readerr(queue->inner.get(), entry, flags);
    if (n == 1 && entry->op_context) {
        auto *r = static_cast<request *>(entry->op_context);
        if (r->flags & FI_MULTI_RECV) {
            queue->failed_in_shared(r, entry);
        } else {
            queue->finish(r, &entry->op_context); // an error is seen in any case
        }
    }
    std::lock_guard guard(queue->mutex);
    if (n == -FI_EAGAIN && !queue->lost.empty()) {
        *entry = queue->lost.front();
        queue->lost.erase(queue->lost.begin());
        return 1;
    }
    return n;
}

const char *strerror(fid_cq *fid, int error, const void *data, char *buffer, size_t length)
{
    return fi_cq_strerror(self<cq>(fid)->inner.get(), error, data, buffer, length);
}

fi_ops cq_fid_ops = {sizeof(fi_ops), close_cq, no_op, control_cq, no_op, no_op, no_op};
fi_ops_cq cq_ops = {
    .size = sizeof(fi_ops_cq),
    .read = read,
    .readfrom = readfrom,
    .readerr = readerr,
    .sread = no_op,
    .sreadfrom = no_op,
    .signal = no_op,
    .strerror = strerror,
};

} // namespace

cq::~cq()
{
    inner.reset();
    for (request *r : requests) {
        delete r;
    }
}

bool cq::sends()
{
    std::lock_guard guard(mutex);
    return std::any_of(requests.begin(), requests.end(),
                       [](const request *r) { return !receives(r->what); });
}

void cq::move()
{
    for (ep *e : senders) { // the device's mutex is held: they change when one is bound
        e->release(true);
    }
    read_inner(nullptr, 0);
}

ssize_t cq::read_inner(void *entries, size_t count)
{
    std::lock_guard guard(home->inner_moves);
    return fi_cq_read(inner.get(), entries, count);
}

void cq::fail(request *r, int error)
{
    fi_cq_err_entry entry = {};
    entry.err = error;
    finish(r, &entry.op_context); // an error is seen in any case
    std::lock_guard guard(mutex);
    lost.push_back(entry);
}

bool cq::completed(request *r, fi_cq_tagged_entry *entry)
{
    bool alone = (r->flags & FI_MULTI_RECV) && home->about->releases_alone;
    if (alone && (entry->flags & FI_MULTI_RECV)) {
        entry->flags &= ~FI_MULTI_RECV;
        std::lock_guard guard(mutex);
        released.push_back(r);
    }
    if (stays_posted(*r, entry->flags)) {
        entry->op_context = r->context;
        return r->reported && r->owner;
    }
    return finish(r, &entry->op_context);
}

// The inner core's errors overtake its completions.
void cq::failed_in_shared(request *r, fi_cq_err_entry *entry)
{
    entry->op_context = r->context;
    if (entry->flags & FI_MULTI_RECV) {
        r->check_iovecs(*home->about);
        r->caller = nullptr;
        std::lock_guard guard(mutex);
        early.push_back(r);
    }
}

void cq::end_early()
{
    std::vector<request *> over;
    {
        std::lock_guard guard(mutex);
        over.swap(early);
    }
    for (request *r : over) {
        void *context;
        finish(r, &context);
    }
}

bool cq::take_released(fi_cq_tagged_entry *entry)
{
    *entry = {};
    entry->flags = FI_MULTI_RECV;
    request *r = nullptr;
    do {
        std::unique_lock guard(mutex);
        if (released.empty()) {
            return false;
        }
        r = released.front();
        released.pop_front();
        guard.unlock();
    } while (!finish(r, &entry->op_context));
    return true;
}

bool cq::finish(request *r, void **context)
{
    std::unique_ptr<request> over(r);
    {
        std::lock_guard guard(mutex);
        requests.erase(r);
    }
    r->check_iovecs(*home->about);
    *context = r->context;
    return r->reported && r->owner;
}

int open_cq(fid_domain *d, fi_cq_attr *attr, fid_cq **out, void *context)
{
    auto *home = self<domain>(d);
    if (attr->wait_obj != FI_WAIT_NONE && !waits(*home->about)) {
        return -FI_ENOSYS;
    }
    if (attr->wait_obj == FI_WAIT_SET) {
        return -FI_ENOSYS;
    }
    auto made = std::make_unique<cq>();
    if (!made->where.take(home, &domain::queues, most(*home->about).queues)) {
        return -FI_ENOSPC;
    }
    fi_cq_attr wanted{};
    wanted.size = attr->size;
    wanted.format = FI_CQ_FORMAT_TAGGED;
    wanted.wait_obj = attr->wait_obj;
    fid_cq *inner = nullptr;
    int ret = fi_cq_open(home->inner.get(), &wanted, &inner, nullptr);
    if (ret != 0) {
        return ret;
    }
    made->outer = {{FI_CLASS_CQ, context, &cq_fid_ops}, &cq_ops};
    made->home = home;
    made->inner.reset(inner);
    made->format = attr->format;
    home->mover.add(made.get());
    *out = &made.release()->outer;
    return 0;
}

} // namespace strict
