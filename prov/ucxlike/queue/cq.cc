// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/queue/cq.h"

#include "prov/ucxlike/domain.h"

#include <bit>
#include <cstddef>

namespace ucxlike {

static size_t size_of(fi_cq_format format)
{
    switch (format) {
    case FI_CQ_FORMAT_UNSPEC:
    case FI_CQ_FORMAT_CONTEXT:
        return sizeof(fi_cq_entry);
    case FI_CQ_FORMAT_MSG:
        return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
        return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
        return sizeof(fi_cq_tagged_entry);
    }
    return 0;
}

// Every format is the beginning of a completion.
static_assert(offsetof(completion, tag) == offsetof(fi_cq_tagged_entry, tag) &&
              offsetof(completion, data) == offsetof(fi_cq_data_entry, data) &&
              offsetof(completion, length) == offsetof(fi_cq_msg_entry, len));

cq::cq(domain *dom, const fi_cq_attr &attr, void *context)
    : fid_cq(), waitable(dom->locked(), attr.wait_obj, attr.wait_set), domain_(dom),
      lock_(dom->locked()), entry_size_(size_of(attr.format)),
      threshold_(attr.wait_cond == FI_CQ_COND_THRESHOLD),
      mask_(std::bit_ceil(attr.size ? attr.size : limit::cq_size) - 1), ring_(mask_ + 1)
{
    fid.fclass = FI_CLASS_CQ;
    fid.context = context;
    fid.ops = &waitable_fid<cq, fid_cq>::ops;
    ops = &ops_;
    domain_->add_ref();
}

cq::~cq()
{
    domain_->drop_ref();
}

int cq::open(fid_domain *dom, fi_cq_attr *attr, fid_cq **out, void *context)
{
    fi_cq_attr a = attr ? *attr : fi_cq_attr{};
    PROV_CHECK_ARG(CQ, out, "fi_cq_open: cq must not be NULL\n");
    PROV_CHECK_ARG(CQ, size_of(a.format), "fi_cq_open: attr->format %d is not a format\n",
                   a.format);
    PROV_CHECK_ARG(CQ, a.size <= (size_t(1) << 24), "fi_cq_open: attr->size %zu is too large\n",
                   a.size);
    PROV_CHECK_ARG(CQ, !(a.flags & ~FI_AFFINITY), "fi_cq_open: attr->flags 0x%lx are unknown\n",
                   a.flags);
    if (int error = check("fi_cq_open", a.wait_obj, a.wait_set)) {
        return error;
    }
    return guard([&] {
        *out = new cq(from_fid<domain>(dom), a, context);
        return 0;
    });
}

void cq::lose()
{
    if (!overrun_.exchange(true)) {
        PROV_WARN(CQ, "no memory for a completion: the queue is overrun\n");
    }
    notify();
}

bool cq::grow() noexcept
{
    std::vector<completion> larger;
    if (guard([&] {
            larger.resize(ring_.size() * 2);
            return 0;
        })) {
        lose();
        return false;
    }
    size_t mask = larger.size() - 1;
    for (size_t i = head_; i != tail_; ++i) {
        larger[i & mask] = ring_[i & mask_];
    }
    ring_.swap(larger);
    mask_ = mask;
    return true;
}

void cq::write_error(const completion &c, int err, int prov_errno, size_t overflow,
                     const void *err_data, size_t err_data_size)
{
    ucs::opt_guard g(lock_);
    completion *mark = add();
    if (!mark) {
        return;
    }
    error_entry e = {};
    e.entry.op_context = c.context;
    e.entry.flags = c.flags;
    e.entry.len = c.length;
    e.entry.buf = c.buffer;
    e.entry.data = c.data;
    e.entry.tag = c.tag;
    e.entry.olen = overflow;
    e.entry.err = err;
    e.entry.prov_errno = prov_errno;
    e.source = c.source;
    if (guard([&] {
            if (err_data_size) {
                e.data.assign(static_cast<const char *>(err_data), err_data_size);
            }
            errors_.push_back(std::move(e));
            return 0;
        })) {
        lose();
        return;
    }
    *mark = {};
    mark->flags = error_mark;
    added();
}

// `size` is that of a format.
static UCS_ALWAYS_INLINE void copy_entry(char *to, const completion &c, size_t size)
{
    switch (size) {
    case sizeof(fi_cq_tagged_entry):
        memcpy(to, &c, sizeof(fi_cq_tagged_entry));
        break;
    case sizeof(fi_cq_data_entry):
        memcpy(to, &c, sizeof(fi_cq_data_entry));
        break;
    case sizeof(fi_cq_msg_entry):
        memcpy(to, &c, sizeof(fi_cq_msg_entry));
        break;
    default:
        memcpy(to, &c, sizeof(fi_cq_entry));
        break;
    }
}

ssize_t cq::take(void *buf, size_t count, fi_addr_t *source)
{
    if (empty()) {
        return UCS_UNLIKELY(overrun_) ? -FI_EOVERRUN : -FI_EAGAIN;
    }
    ucs::opt_guard g(lock_);
    auto *to = static_cast<char *>(buf);
    size_t n = 0;
    size_t head = head_.load(std::memory_order_relaxed);
    size_t tail = tail_.load(std::memory_order_relaxed);
    for (; n < count && head != tail; ++n, ++head) {
        const completion &c = ring_[head & mask_];
        if (UCS_UNLIKELY(c.flags & error_mark)) {
            break;
        }
        copy_entry(to, c, entry_size_);
        to += entry_size_;
        if (source) {
            source[n] = c.source;
        }
    }
    head_.store(head, std::memory_order_relaxed);
    if (n) {
        return static_cast<ssize_t>(n);
    }
    if (head == tail) { // another thread was faster
        return -FI_EAGAIN;
    }
    return ring_[head & mask_].flags & error_mark ? -FI_EAVAIL : 0;
}

ssize_t cq::readfrom(fid_cq *f, void *buf, size_t count, fi_addr_t *source)
{
    cq *self = from_fid<cq>(f);
    if (!self->empty()) {
        ssize_t n = self->take(buf, count, source);
        if (n != -FI_EAGAIN) {
            return n;
        }
    }
    self->progress();
    return self->take(buf, count, source);
}

ssize_t cq::read(fid_cq *f, void *buf, size_t count)
{
    return readfrom(f, buf, count, nullptr);
}

ssize_t cq::readerr(fid_cq *f, fi_cq_err_entry *buf, uint64_t)
{
    cq *self = from_fid<cq>(f);
    PROV_CHECK_ARG(CQ, buf, "fi_cq_readerr: buf must not be NULL\n");
    if (self->empty()) {
        self->progress();
    }
    ucs::opt_guard g(self->lock_);
    if (self->empty() || !(self->ring_[self->head_ & self->mask_].flags & error_mark)) {
        return -FI_EAGAIN;
    }
    error_entry &e = self->errors_.front();
    uint32_t api = self->domain_->api_version();
    void *user_data = buf->err_data;
    size_t room = api >= FI_VERSION(1, 5) ? buf->err_data_size : 0;
    if (api >= FI_VERSION(1, 5)) {
        memcpy(buf, &e.entry, sizeof(e.entry));
        if (room && user_data) {
            buf->err_data = user_data;
            buf->err_data_size = std::min(room, e.data.size());
            memcpy(user_data, e.data.data(), buf->err_data_size);
        } else {
            self->last_error_data_ = std::move(e.data);
            buf->err_data =
                self->last_error_data_.empty() ? nullptr : self->last_error_data_.data();
            buf->err_data_size = self->last_error_data_.size();
        }
        // Since 1.20 the entry goes on with the source address.
        if (api >= FI_VERSION(1, 20)) {
            memcpy(reinterpret_cast<char *>(buf) + sizeof(fi_cq_err_entry), &e.source,
                   sizeof(e.source));
        }
    } else {
        memcpy(buf, &e.entry, offsetof(fi_cq_err_entry, err_data_size));
        buf->err_data = nullptr;
    }
    self->errors_.pop_front();
    ++self->head_;
    return 1;
}

ssize_t cq::wait(void *buf, size_t count, fi_addr_t *source, const void *cond, int timeout)
{
    deadline end(timeout);
    size_t want = threshold_ && cond ? std::min(*static_cast<const size_t *>(cond), count) : 1;
    char *to = static_cast<char *>(buf);
    size_t got = 0;
    for (;;) {
        ssize_t n = take(to, count - got, source ? source + got : nullptr);
        if (n == -FI_EAGAIN || n == 0) {
            progress();
            n = take(to, count - got, source ? source + got : nullptr);
        }
        if (n > 0) {
            got += static_cast<size_t>(n);
            to += static_cast<size_t>(n) * entry_size_;
        } else if (n != -FI_EAGAIN) {
            return got ? static_cast<ssize_t>(got) : n;
        }
        if (got >= want) {
            return static_cast<ssize_t>(got);
        }
        if (signalled_.exchange(false)) {
            return got ? static_cast<ssize_t>(got) : -FI_EAGAIN;
        }
        if (end.left() == 0) {
            return got ? static_cast<ssize_t>(got) : -FI_EAGAIN;
        }
        sleep([this] { return news(); }, end);
    }
}

ssize_t cq::sreadfrom(fid_cq *f, void *buf, size_t count, fi_addr_t *source, const void *cond,
                      int timeout)
{
    cq *self = from_fid<cq>(f);
    if (!self->can_sleep()) {
        PROV_WARN(CQ, "fi_cq_sread: the queue was opened without a wait object of its own\n");
        return -FI_EINVAL;
    }
    ssize_t result = 0;
    int error = guard([&] {
        result = self->wait(buf, count, source, cond, timeout);
        return 0;
    });
    return error ? error : result;
}

ssize_t cq::sread(fid_cq *f, void *buf, size_t count, const void *cond, int timeout)
{
    return sreadfrom(f, buf, count, nullptr, cond, timeout);
}

int cq::signal(fid_cq *f)
{
    cq *self = from_fid<cq>(f);
    if (!self->can_sleep()) {
        return -FI_EINVAL;
    }
    self->signalled_ = true;
    self->ring();
    return 0;
}

const char *cq::strerror(fid_cq *, int prov_errno, const void *, char *buf, size_t len)
{
    return strerror_of(prov_errno, buf, len);
}

fi_ops_cq cq::ops_ = {
    .size = sizeof(fi_ops_cq),
    .read = read,
    .readfrom = readfrom,
    .readerr = readerr,
    .sread = sread,
    .sreadfrom = sreadfrom,
    .signal = signal,
    .strerror = strerror,
};

} // namespace ucxlike
