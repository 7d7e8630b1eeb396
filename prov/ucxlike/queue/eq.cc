// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/queue/eq.h"

#include "prov/ucxlike/fabric.h"

#include <algorithm>
#include <cstddef>

namespace ucxlike {

eq::eq(fabric *fab, const fi_eq_attr &attr, void *context)
    : fid_eq(), waitable(true, attr.wait_obj, attr.wait_set), fabric_(fab),
      writable_(attr.flags & FI_WRITE)
{
    fid.fclass = FI_CLASS_EQ;
    fid.context = context;
    fid.ops = &waitable_fid<eq, fid_eq>::ops;
    ops = &ops_;
    fabric_->add_ref();
}

eq::~eq()
{
    for (event &e : events_) {
        if (e.info) {
            fi_freeinfo(e.info);
        }
    }
    fabric_->drop_ref();
}

int eq::open(fid_fabric *fab, fi_eq_attr *attr, fid_eq **out, void *context)
{
    fi_eq_attr a = attr ? *attr : fi_eq_attr{};
    PROV_CHECK_ARG(EQ, out, "fi_eq_open: eq must not be NULL\n");
    PROV_CHECK_ARG(EQ, !(a.flags & ~(FI_WRITE | FI_AFFINITY)),
                   "fi_eq_open: attr->flags 0x%lx are unknown\n", a.flags);
    if (int error = check("fi_eq_open", a.wait_obj, a.wait_set)) {
        return error;
    }
    return guard([&] {
        *out = new eq(from_fid<fabric>(fab), a, context);
        return 0;
    });
}

void eq::write(slot &&e) noexcept
{
    ucs::opt_guard g(lock_);
    events_.splice(events_.end(), e);
    notify();
}

void eq::purge(fid_t f)
{
    ucs::opt_guard g(lock_);
    std::erase_if(events_, [&](event &e) {
        if (e.fid != f || e.user) {
            return false;
        }
        if (e.info) {
            fi_freeinfo(e.info);
        }
        return true;
    });
}

ssize_t eq::take(uint32_t *type, void *buf, size_t len, uint64_t flags)
{
    ucs::opt_guard g(lock_);
    if (events_.empty()) {
        return -FI_EAGAIN;
    }
    event &e = events_.front();
    if (e.error) {
        return -FI_EAVAIL;
    }
    *type = e.type;
    size_t n;
    if (e.user) {
        n = std::min(len, e.bytes.size());
        memcpy(buf, e.bytes.data(), n);
    } else if (e.cm) {
        fi_eq_cm_entry head = {};
        head.fid = e.fid;
        head.info = e.info;
        size_t fixed = offsetof(fi_eq_cm_entry, data);
        if (len < fixed) {
            return -FI_ETOOSMALL;
        }
        memcpy(buf, &head, fixed);
        size_t room = std::min(len - fixed, e.bytes.size());
        memcpy(static_cast<char *>(buf) + fixed, e.bytes.data(), room);
        n = fixed + room;
    } else {
        fi_eq_entry entry = {};
        entry.fid = e.fid;
        entry.context = e.context;
        entry.data = e.data;
        if (len < sizeof(entry)) {
            return -FI_ETOOSMALL;
        }
        memcpy(buf, &entry, sizeof(entry));
        n = sizeof(entry);
    }
    if (!(flags & FI_PEEK)) {
        events_.pop_front();
    }
    return static_cast<ssize_t>(n);
}

ssize_t eq::read(fid_eq *f, uint32_t *type, void *buf, size_t len, uint64_t flags)
{
    eq *self = from_fid<eq>(f);
    PROV_CHECK_ARG(EQ, type, "fi_eq_read: event must not be NULL\n");
    PROV_CHECK_ARG(EQ, buf || !len, "fi_eq_read: buf must not be NULL\n");
    PROV_CHECK_ARG(EQ, !(flags & ~FI_PEEK), "fi_eq_read: flags 0x%lx are unknown\n", flags);
    ssize_t n = self->take(type, buf, len, flags);
    if (n != -FI_EAGAIN) {
        return n;
    }
    self->progress();
    return self->take(type, buf, len, flags);
}

ssize_t eq::sread(fid_eq *f, uint32_t *type, void *buf, size_t len, int timeout, uint64_t flags)
{
    eq *self = from_fid<eq>(f);
    if (!self->can_sleep()) {
        PROV_WARN(EQ, "fi_eq_sread: the queue was opened without a wait object of its own\n");
        return -FI_EINVAL;
    }
    deadline end(timeout);
    for (;;) {
        ssize_t n = read(f, type, buf, len, flags);
        if (n != -FI_EAGAIN) {
            return n;
        }
        if (end.left() == 0) {
            return -FI_EAGAIN;
        }
        int error = guard([&] {
            self->sleep([self] { return self->news(); }, end);
            return 0;
        });
        if (error) {
            return error;
        }
    }
}

ssize_t eq::readerr(fid_eq *f, fi_eq_err_entry *buf, uint64_t flags)
{
    eq *self = from_fid<eq>(f);
    PROV_CHECK_ARG(EQ, buf, "fi_eq_readerr: buf must not be NULL\n");
    PROV_CHECK_ARG(EQ, !(flags & ~FI_PEEK), "fi_eq_readerr: flags 0x%lx are unknown\n", flags);
    self->progress();
    ucs::opt_guard g(self->lock_);
    if (self->events_.empty() || !self->events_.front().error) {
        return -FI_EAGAIN;
    }
    event &e = self->events_.front();
    bool sized = self->fabric_->api_version >= FI_VERSION(1, 5);
    void *user_data = buf->err_data;
    size_t room = sized ? buf->err_data_size : 0;
    buf->fid = e.fid;
    buf->context = e.context;
    buf->data = e.data;
    buf->err = e.error;
    buf->prov_errno = e.prov_errno;
    if (room && user_data) {
        buf->err_data_size = std::min(room, e.bytes.size());
        memcpy(user_data, e.bytes.data(), buf->err_data_size);
    } else {
        self->last_error_data_.swap(e.bytes);
        if (flags & FI_PEEK) {
            e.bytes = self->last_error_data_;
        }
        size_t length = self->last_error_data_.size();
        buf->err_data = length ? self->last_error_data_.data() : nullptr;
        if (sized) {
            buf->err_data_size = length;
        }
    }
    if (!(flags & FI_PEEK)) {
        self->events_.pop_front();
    }
    return sizeof(*buf);
}

ssize_t eq::user_write(fid_eq *f, uint32_t type, const void *buf, size_t len, uint64_t flags)
{
    eq *self = from_fid<eq>(f);
    PROV_CHECK_ARG(EQ, buf || !len, "fi_eq_write: buf must not be NULL\n");
    PROV_CHECK_ARG(EQ, flags == 0, "fi_eq_write: flags must be 0\n");
    if (!self->writable_) {
        PROV_WARN(EQ, "fi_eq_write: the queue was opened without FI_WRITE\n");
        return -FI_EINVAL;
    }
    int error = guard([&] {
        event e;
        e.type = type;
        e.user = true;
        e.bytes.assign(static_cast<const char *>(buf), len);
        self->write(std::move(e));
        return 0;
    });
    return error ? error : static_cast<ssize_t>(len);
}

const char *eq::strerror(fid_eq *, int prov_errno, const void *, char *buf, size_t len)
{
    return strerror_of(prov_errno, buf, len);
}

fi_ops_eq eq::ops_ = {
    .size = sizeof(fi_ops_eq),
    .read = read,
    .readerr = readerr,
    .write = user_write,
    .sread = sread,
    .strerror = strerror,
};

} // namespace ucxlike
