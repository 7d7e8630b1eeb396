// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/queue/cntr.h"

#include "prov/ucxlike/domain.h"

namespace ucxlike {

cntr::cntr(domain *dom, const fi_cntr_attr &attr, void *context)
    : fid_cntr(), waitable(dom->locked(), attr.wait_obj, attr.wait_set), domain_(dom)
{
    fid.fclass = FI_CLASS_CNTR;
    fid.context = context;
    fid.ops = &waitable_fid<cntr, fid_cntr>::ops;
    ops = &ops_;
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
    PROV_CHECK_ARG(CNTR, a.flags == 0, "fi_cntr_open: attr->flags must be 0\n");
    if (int error = check("fi_cntr_open", a.wait_obj, a.wait_set)) {
        return error;
    }
    return guard([&] {
        *out = new cntr(from_fid<domain>(dom), a, context);
        return 0;
    });
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
    self->polled_ += value;
    self->notify();
    return 0;
}

int cntr::set(fid_cntr *f, uint64_t value)
{
    cntr *self = from_fid<cntr>(f);
    self->value_ = value;
    self->polled_ = self->total();
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
    deadline end(timeout);
    uint64_t errors = self->errors_;
    for (;;) {
        uint64_t value = read(f);
        if (value >= threshold) {
            return 0;
        }
        if (self->errors_ != errors) {
            return -FI_EAVAIL;
        }
        if (end.left() == 0) {
            return -FI_ETIMEDOUT;
        }
        if (!self->can_sleep()) {
            continue;
        }
        int error = guard([&] {
            self->sleep([&] { return self->value_ != value || self->errors_ != errors; }, end);
            return 0;
        });
        if (error) {
            return error;
        }
    }
}

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
