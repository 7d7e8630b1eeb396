// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/queue/waitset.h"

#include "prov/ucxlike/domain.h"
#include "prov/ucxlike/queue/cntr.h"
#include "prov/ucxlike/queue/cq.h"
#include "prov/ucxlike/queue/eq.h"

#include <algorithm>
#include <cerrno>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace ucxlike {

waitable *waitable_of(fid_t f)
{
    if (!f) {
        return nullptr;
    }
    switch (f->fclass) {
    case FI_CLASS_CQ:
        return from_base<cq, fid_cq>(f);
    case FI_CLASS_EQ:
        return from_base<eq, fid_eq>(f);
    case FI_CLASS_CNTR:
        return from_base<cntr, fid_cntr>(f);
    default:
        return nullptr;
    }
}

// ---- wait sets ----

wait_set::wait_set(fabric *fab, fi_wait_obj wait_obj)
    : fid_wait(), fabric_(fab), wait_obj_(wait_obj), epoll_(epoll_create1(EPOLL_CLOEXEC))
{
    if (epoll_ < 0) {
        throw failure{errno};
    }
    fid.fclass = FI_CLASS_WAIT;
    fid.ops = &fid_ops_;
    ops = &ops_;
    fabric_->add_ref();
}

wait_set::~wait_set()
{
    ::close(epoll_);
    fabric_->drop_ref();
}

int wait_set::open(fid_fabric *f, fi_wait_attr *attr, fid_wait **out)
{
    PROV_CHECK_ARG(FABRIC, attr && out, "fi_wait_open: attr and waitset must not be NULL\n");
    PROV_CHECK_ARG(FABRIC, attr->flags == 0, "fi_wait_open: attr->flags must be 0\n");
    PROV_CHECK_ARG(FABRIC, attr->wait_obj != FI_WAIT_NONE && attr->wait_obj != FI_WAIT_SET,
                   "fi_wait_open: attr->wait_obj %d is no wait object\n", attr->wait_obj);
    if (int error = waitable::check("fi_wait_open", attr->wait_obj, nullptr)) {
        return error;
    }
    return guard([&] {
        *out = new wait_set(from_fid<fabric>(f), attr->wait_obj);
        return 0;
    });
}

int wait_set::close(fid_t f)
{
    auto *self = from_base<wait_set, fid_wait>(f);
    if (!self->members_.empty()) {
        PROV_WARN(FABRIC, "fi_close: the wait set has %zu members\n", self->members_.size());
        return -FI_EBUSY;
    }
    delete self;
    return 0;
}

void wait_set::add(waitable *w)
{
    std::lock_guard g(mutex_);
    epoll_event ev = {.events = EPOLLIN, .data = {}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, w->fd(), &ev) != 0) {
        throw failure{errno};
    }
    members_.push_back(w);
}

void wait_set::remove(waitable *w, int fd)
{
    std::lock_guard g(mutex_);
    epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
    std::erase(members_, w);
}

int wait_set::trywait()
{
    std::lock_guard g(mutex_);
    int result = 0;
    // Each is told its news, also behind one that has some.
    for (waitable *w : members_) {
        if (int error = w->trywait()) {
            result = error;
        }
    }
    return result;
}

int wait_set::wait_until(const deadline &end)
{
    for (;;) {
        int error = trywait();
        if (error != -FI_EAGAIN && error != 0) {
            return error;
        }
        if (error == -FI_EAGAIN) {
            return 0;
        }
        int left = end.left();
        if (left == 0) {
            return -FI_ETIMEDOUT;
        }
        if (wait_obj_ == FI_WAIT_YIELD) {
            sched_yield();
        } else {
            waitable::wait_fd(epoll_, left);
        }
    }
}

int wait_set::wait(fid_wait *f, int timeout)
{
    auto *self = from_fid<wait_set>(f);
    int result = self->wait_until(deadline(timeout));
    std::lock_guard g(self->mutex_);
    for (waitable *w : self->members_) {
        w->disarm();
    }
    return result;
}

int wait_set::control(fid_t f, int command, void *arg)
{
    auto *self = from_base<wait_set, fid_wait>(f);
    PROV_CHECK_ARG(FABRIC, arg, "fi_control: arg must not be NULL\n");
    switch (command) {
    case FI_GETWAIT:
        if (self->wait_obj_ == FI_WAIT_YIELD) {
            return -FI_ENODATA;
        }
        *static_cast<int *>(arg) = self->epoll_;
        return 0;
    case FI_GETWAITOBJ:
        *static_cast<fi_wait_obj *>(arg) =
            self->wait_obj_ == FI_WAIT_UNSPEC ? FI_WAIT_FD : self->wait_obj_;
        return 0;
    default:
        return -FI_ENOSYS;
    }
}

fi_ops wait_set::fid_ops_ = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = no_op,
    .control = control,
    .ops_open = no_op,
    .tostr = no_op,
    .ops_set = no_op,
};

fi_ops_wait wait_set::ops_ = {
    .size = sizeof(fi_ops_wait),
    .wait = wait,
};

// ---- poll sets ----

poll_set::poll_set(domain *dom) : fid_poll(), domain_(dom)
{
    fid.fclass = FI_CLASS_POLL;
    fid.ops = &fid_ops_;
    ops = &ops_;
    domain_->add_ref();
}

poll_set::~poll_set()
{
    domain_->drop_ref();
}

int poll_set::open(fid_domain *d, fi_poll_attr *attr, fid_poll **out)
{
    PROV_CHECK_ARG(DOMAIN, out, "fi_poll_open: pollset must not be NULL\n");
    PROV_CHECK_ARG(DOMAIN, !attr || attr->flags == 0, "fi_poll_open: attr->flags must be 0\n");
    return guard([&] {
        *out = new poll_set(from_fid<domain>(d));
        return 0;
    });
}

int poll_set::close(fid_t f)
{
    auto *self = from_base<poll_set, fid_poll>(f);
    if (!self->members_.empty()) {
        PROV_WARN(DOMAIN, "fi_close: the poll set has %zu members\n", self->members_.size());
        return -FI_EBUSY;
    }
    delete self;
    return 0;
}

int poll_set::poll(fid_poll *f, void **contexts, int count)
{
    auto *self = from_fid<poll_set>(f);
    PROV_CHECK_ARG(DOMAIN, count >= 0 && (contexts || !count),
                   "fi_poll: context must not be NULL\n");
    std::lock_guard g(self->mutex_);
    for (fid_t member : self->members_) {
        waitable_of(member)->progress();
    }
    int n = 0;
    for (fid_t member : self->members_) {
        if (n == count) {
            break; // a counter that has no place left keeps its news
        }
        if (waitable_of(member)->polled()) {
            contexts[n++] = member->context;
        }
    }
    return n;
}

int poll_set::add(fid_poll *f, fid_t member, uint64_t flags)
{
    auto *self = from_fid<poll_set>(f);
    PROV_CHECK_ARG(DOMAIN, flags == 0, "fi_poll_add: flags must be 0\n");
    PROV_CHECK_ARG(DOMAIN,
                   member && (member->fclass == FI_CLASS_CQ || member->fclass == FI_CLASS_CNTR),
                   "fi_poll_add: event_fid is neither a completion queue nor a counter\n");
    std::lock_guard g(self->mutex_);
    if (std::find(self->members_.begin(), self->members_.end(), member) != self->members_.end()) {
        return -FI_EALREADY;
    }
    return guard([&] {
        self->members_.push_back(member);
        waitable_of(member)->attach();
        return 0;
    });
}

int poll_set::del(fid_poll *f, fid_t member, uint64_t flags)
{
    auto *self = from_fid<poll_set>(f);
    PROV_CHECK_ARG(DOMAIN, flags == 0, "fi_poll_del: flags must be 0\n");
    std::lock_guard g(self->mutex_);
    auto it = std::find(self->members_.begin(), self->members_.end(), member);
    PROV_CHECK_ARG(DOMAIN, it != self->members_.end(),
                   "fi_poll_del: event_fid is not in the poll set\n");
    waitable_of(member)->detach();
    self->members_.erase(it);
    return 0;
}

constinit fi_ops poll_set::fid_ops_ = only_close(close);

fi_ops_poll poll_set::ops_ = {
    .size = sizeof(fi_ops_poll),
    .poll = poll,
    .poll_add = add,
    .poll_del = del,
};

} // namespace ucxlike
