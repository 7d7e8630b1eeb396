// SPDX-License-Identifier: BSD-3-Clause
#include "eq.h"

#include "fabric.h"

#include <algorithm>
#include <cstddef>

namespace ucxlike {

eq::eq(fabric *fab, const fi_eq_attr &attr, void *context)
    : fid_eq(), waitable(true), fabric_(fab), wait_obj_(attr.wait_obj),
      writable_(attr.flags & FI_WRITE)
{
    fid.fclass = FI_CLASS_EQ;
    fid.context = context;
    fid.ops = &fid_ops_;
    ops = &ops_;
    if (wait_obj_ != FI_WAIT_NONE)
        fd();
    fabric_->add_ref();
}

eq::~eq()
{
    for (event &e : events_)
        if (e.info)
            fi_freeinfo(e.info);
    fabric_->drop_ref();
}

int eq::open(fid_fabric *fab, fi_eq_attr *attr, fid_eq **out, void *context)
{
    fi_eq_attr a = attr ? *attr : fi_eq_attr{};
    PROV_CHECK_ARG(EQ, out, "fi_eq_open: eq must not be NULL\n");
    switch (a.wait_obj) {
    case FI_WAIT_NONE:
    case FI_WAIT_UNSPEC:
    case FI_WAIT_FD:
    case FI_WAIT_YIELD:
        break;
    case FI_WAIT_SET:
    case FI_WAIT_MUTEX_COND:
    case FI_WAIT_POLLFD:
        PROV_WARN(EQ, "fi_eq_open: attr->wait_obj %d is not supported\n", a.wait_obj);
        return -FI_ENOSYS;
    default:
        PROV_CHECK_ARG(EQ, false, "fi_eq_open: attr->wait_obj %d is unknown\n", a.wait_obj);
    }
    return guard([&] {
        *out = new eq(from_fid<fabric>(fab), a, context);
        return 0;
    });
}

int eq::close(fid_t f)
{
    eq *self = from_base<eq, fid_eq>(f);
    if (self->users_ > 0) {
        PROV_WARN(EQ, "fi_close: the event queue is bound to %d objects\n", self->users_.load());
        return -FI_EBUSY;
    }
    delete self;
    return 0;
}

void eq::write(event &&e)
{
    ucs::opt_guard g(lock_);
    events_.push_back(std::move(e));
    notify();
}

void eq::purge(fid_t f)
{
    ucs::opt_guard g(lock_);
    std::erase_if(events_, [&](event &e) {
        if (e.fid != f || e.user)
            return false;
        if (e.info)
            fi_freeinfo(e.info);
        return true;
    });
}

ssize_t eq::take(uint32_t *type, void *buf, size_t len, uint64_t flags)
{
    ucs::opt_guard g(lock_);
    if (events_.empty())
        return -FI_EAGAIN;
    event &e = events_.front();
    if (e.error)
        return -FI_EAVAIL;
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
        if (len < fixed)
            return -FI_ETOOSMALL;
        memcpy(buf, &head, fixed);
        size_t room = std::min(len - fixed, e.bytes.size());
        memcpy(static_cast<char *>(buf) + fixed, e.bytes.data(), room);
        n = fixed + room;
    } else {
        fi_eq_entry entry = {};
        entry.fid = e.fid;
        entry.context = e.context;
        entry.data = e.data;
        if (len < sizeof(entry))
            return -FI_ETOOSMALL;
        memcpy(buf, &entry, sizeof(entry));
        n = sizeof(entry);
    }
    if (!(flags & FI_PEEK))
        events_.pop_front();
    return static_cast<ssize_t>(n);
}

ssize_t eq::read(fid_eq *f, uint32_t *type, void *buf, size_t len, uint64_t flags)
{
    eq *self = from_fid<eq>(f);
    PROV_CHECK_ARG(EQ, type, "fi_eq_read: event must not be NULL\n");
    PROV_CHECK_ARG(EQ, buf || !len, "fi_eq_read: buf must not be NULL\n");
    self->progress();
    return self->take(type, buf, len, flags);
}

ssize_t eq::sread(fid_eq *f, uint32_t *type, void *buf, size_t len, int timeout, uint64_t flags)
{
    eq *self = from_fid<eq>(f);
    if (self->wait_obj_ == FI_WAIT_NONE) {
        PROV_WARN(EQ, "fi_eq_sread: the queue was opened without a wait object\n");
        return -FI_EINVAL;
    }
    uint64_t end = timeout >= 0 ? now_ms() + static_cast<uint64_t>(timeout) : UINT64_MAX;
    for (;;) {
        ssize_t n = read(f, type, buf, len, flags);
        if (n != -FI_EAGAIN)
            return n;
        uint64_t now = now_ms();
        if (now >= end)
            return -FI_EAGAIN;
        int left = timeout < 0 ? -1 : static_cast<int>(end - now);
        int error = guard([&] {
            self->sleep([self] { return self->ready(); }, left);
            return 0;
        });
        if (error)
            return error;
    }
}

ssize_t eq::readerr(fid_eq *f, fi_eq_err_entry *buf, uint64_t flags)
{
    eq *self = from_fid<eq>(f);
    PROV_CHECK_ARG(EQ, buf, "fi_eq_readerr: buf must not be NULL\n");
    self->progress();
    ucs::opt_guard g(self->lock_);
    if (self->events_.empty() || !self->events_.front().error)
        return -FI_EAGAIN;
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
        self->last_error_data_ = e.bytes;
        buf->err_data = e.bytes.empty() ? nullptr : self->last_error_data_.data();
        if (sized)
            buf->err_data_size = e.bytes.size();
    }
    if (!(flags & FI_PEEK))
        self->events_.pop_front();
    return sizeof(*buf);
}

ssize_t eq::user_write(fid_eq *f, uint32_t type, const void *buf, size_t len, uint64_t)
{
    eq *self = from_fid<eq>(f);
    PROV_CHECK_ARG(EQ, buf || !len, "fi_eq_write: buf must not be NULL\n");
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

int eq::trywait()
{
    progress();
    return arm([this] { return ready(); }) ? 0 : -FI_EAGAIN;
}

const char *eq::strerror(fid_eq *, int prov_errno, const void *, char *buf, size_t len)
{
    return strerror_of(prov_errno, buf, len);
}

int eq::control(fid_t f, int command, void *arg)
{
    eq *self = from_base<eq, fid_eq>(f);
    switch (command) {
    case FI_GETWAIT:
        PROV_CHECK_ARG(EQ, arg, "fi_control: arg of FI_GETWAIT must not be NULL\n");
        if (self->wait_obj_ != FI_WAIT_FD && self->wait_obj_ != FI_WAIT_UNSPEC)
            return -FI_ENODATA;
        return guard([&] {
            *static_cast<int *>(arg) = self->fd();
            return 0;
        });
    case FI_GETWAITOBJ:
        PROV_CHECK_ARG(EQ, arg, "fi_control: arg of FI_GETWAITOBJ must not be NULL\n");
        *static_cast<fi_wait_obj *>(arg) =
            self->wait_obj_ == FI_WAIT_UNSPEC ? FI_WAIT_FD : self->wait_obj_;
        return 0;
    default:
        return -FI_ENOSYS;
    }
}

fi_ops eq::fid_ops_ = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = no_op,
    .control = control,
    .ops_open = no_op,
    .tostr = no_op,
    .ops_set = no_op,
};

fi_ops_eq eq::ops_ = {
    .size = sizeof(fi_ops_eq),
    .read = read,
    .readerr = readerr,
    .write = user_write,
    .sread = sread,
    .strerror = strerror,
};

} // namespace ucxlike
