// SPDX-License-Identifier: BSD-3-Clause
#include "cntr.h"

#include "domain.h"

namespace ucxlike {

cntr::cntr(domain *dom, const fi_cntr_attr &attr, void *context)
    : fid_cntr(), waitable(dom->locked()), domain_(dom), wait_obj_(attr.wait_obj)
{
    fid.fclass = FI_CLASS_CNTR;
    fid.context = context;
    fid.ops = &fid_ops_;
    ops = &ops_;
    if (wait_obj_ != FI_WAIT_NONE)
        fd();
    domain_->add_ref();
}

cntr::~cntr()
{
    domain_->drop_ref();
}

int cntr::open(fid_domain *dom, fi_cntr_attr *attr, fid_cntr **out, void *context)
{
    fi_cntr_attr a = attr ? *attr : fi_cntr_attr{};
    PROV_CHECK_ARG(CNTR, out, "fi_cntr_open: cntr must not be NULL\n");
    PROV_CHECK_ARG(CNTR, a.events == FI_CNTR_EVENTS_COMP,
                   "fi_cntr_open: attr->events %d is not FI_CNTR_EVENTS_COMP\n", a.events);
    switch (a.wait_obj) {
    case FI_WAIT_NONE:
    case FI_WAIT_UNSPEC:
    case FI_WAIT_FD:
    case FI_WAIT_YIELD:
        break;
    default:
        PROV_WARN(CNTR, "fi_cntr_open: attr->wait_obj %d is not supported\n", a.wait_obj);
        return -FI_ENOSYS;
    }
    return guard([&] {
        *out = new cntr(from_fid<domain>(dom), a, context);
        return 0;
    });
}

int cntr::close(fid_t f)
{
    cntr *self = from_base<cntr, fid_cntr>(f);
    if (self->users_ > 0) {
        PROV_WARN(CNTR, "fi_close: the counter is bound to %d endpoints\n", self->users_.load());
        return -FI_EBUSY;
    }
    delete self;
    return 0;
}

uint64_t cntr::read(fid_cntr *f)
{
    cntr *self = from_fid<cntr>(f);
    self->progress();
    return self->value_.load(std::memory_order_acquire);
}

uint64_t cntr::readerr(fid_cntr *f)
{
    cntr *self = from_fid<cntr>(f);
    self->progress();
    return self->errors_.load(std::memory_order_acquire);
}

int cntr::add(fid_cntr *f, uint64_t value)
{
    cntr *self = from_fid<cntr>(f);
    self->value_ += value;
    self->notify();
    return 0;
}

int cntr::set(fid_cntr *f, uint64_t value)
{
    cntr *self = from_fid<cntr>(f);
    self->value_ = value;
    self->notify();
    return 0;
}

int cntr::adderr(fid_cntr *f, uint64_t value)
{
    cntr *self = from_fid<cntr>(f);
    self->errors_ += value;
    self->notify();
    return 0;
}

int cntr::seterr(fid_cntr *f, uint64_t value)
{
    cntr *self = from_fid<cntr>(f);
    self->errors_ = value;
    self->notify();
    return 0;
}

int cntr::wait(fid_cntr *f, uint64_t threshold, int timeout)
{
    cntr *self = from_fid<cntr>(f);
    uint64_t end = timeout >= 0 ? now_ms() + static_cast<uint64_t>(timeout) : UINT64_MAX;
    uint64_t errors = self->errors_;
    for (;;) {
        uint64_t value = read(f);
        if (value >= threshold)
            return 0;
        if (self->errors_ != errors)
            return -FI_EAVAIL;
        uint64_t now = now_ms();
        if (now >= end)
            return -FI_ETIMEDOUT;
        if (self->wait_obj_ == FI_WAIT_NONE)
            continue;
        int left = timeout < 0 ? -1 : static_cast<int>(end - now);
        int error = guard([&] {
            self->sleep([&] { return self->value_ != value || self->errors_ != errors; }, left);
            return 0;
        });
        if (error)
            return error;
    }
}

int cntr::trywait()
{
    progress();
    uint64_t now = value_ + errors_;
    if (seen_ != now) {
        seen_ = now;
        return -FI_EAGAIN;
    }
    return arm([&] { return value_ + errors_ != now; }) ? 0 : -FI_EAGAIN;
}

int cntr::control(fid_t f, int command, void *arg)
{
    cntr *self = from_base<cntr, fid_cntr>(f);
    switch (command) {
    case FI_GETWAIT:
        PROV_CHECK_ARG(CNTR, arg, "fi_control: arg of FI_GETWAIT must not be NULL\n");
        if (self->wait_obj_ != FI_WAIT_FD && self->wait_obj_ != FI_WAIT_UNSPEC)
            return -FI_ENODATA;
        return guard([&] {
            *static_cast<int *>(arg) = self->fd();
            return 0;
        });
    case FI_GETOPSFLAG:
    case FI_SETOPSFLAG:
    default:
        return -FI_ENOSYS;
    }
}

fi_ops cntr::fid_ops_ = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = no_op,
    .control = control,
    .ops_open = no_op,
    .tostr = no_op,
    .ops_set = no_op,
};

fi_ops_cntr cntr::ops_ = {
    .size = sizeof(fi_ops_cntr),
    .read = read,
    .readerr = readerr,
    .add = add,
    .set = set,
    .wait = wait,
    .adderr = adderr,
    .seterr = seterr,
};

} // namespace ucxlike
