// SPDX-License-Identifier: BSD-3-Clause
// Opening what both kinds of interface have.
#include "uct/ofi/core/iface.h"

#include "uct/ofi/core/component.h"
#include "uct/ofi/core/ep.h"
#include "uct/ofi/fabric/error.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/epoll.h>
#include <utility>

namespace uct::ofi {

iface::iface(const uct_iface_ops_t &table, uct_worker &worker, uct::ofi::md &owner_md,
             const uct_iface_params_t &params, const uct_iface_config &config)
    : uct::iface(table, worker, owner_md, params), domain(owner_md),
      limit(static_cast<ofi::component &>(owner_md.component).limits_of(owner_md, config)),
      tx_queue_len(config.v.tx_queue_len), max_num_eps(config.v.max_num_eps),
      signal_cpu(params.field_mask & UCT_IFACE_PARAM_FIELD_CPU_MASK
                     ? ucs_cpu_set_find_lcs(&params.cpu_mask)
                     : -1),
      ops_({.object_size = std::max(sizeof(flush_op), sizeof(zcopy_op)),
            .chunk = 256,
            .object_init =
                [](void *, void *object) {
                    auto *o = static_cast<op *>(object);
                    o->has_buffer = false;
                    o->link = {};
                }}),
      buffers_({.object_size = sizeof(buffer_op) + limit.prefix + limit.segment,
                .chunk = 64,
                .max = 1024,
                .arg = this,
                .object_init =
                    [](void *arg, void *object) {
                        auto *b = static_cast<buffer_op *>(object);
                        b->has_buffer = true;
                        b->link = {};
                        b->order = nullptr;
                        b->data = reinterpret_cast<char *>(b + 1) +
                                  static_cast<iface *>(arg)->limit.prefix;
                    },
                .chunk_alloc =
                    [](void *arg, size_t size, size_t align, void **cookie) {
                        return alloc_registered(&static_cast<iface *>(arg)->domain, size, align,
                                                cookie);
                    },
                .chunk_free = free_registered,
                .object_cookie =
                    [](void *, void *object, void *cookie) {
                        static_cast<buffer_op *>(object)->desc =
                            cookie ? static_cast<memory *>(cookie)->desc : nullptr;
                    }}),
      receives_(receive_pool::of(owner, {.domain = domain.needs_local ? &domain : nullptr,
                                         .headroom = rx_headroom_,
                                         .length = limit.prefix + limit.segment,
                                         .prefix = limit.prefix,
                                         .align = am_alignment_,
                                         .align_offset = am_align_offset_}))
{
    if (limit.prefix) {
        order_ = std::make_unique<receive_order>(receives_->all());
        plain_ = am_special; // none has all of these
    }
    if ((params.field_mask & UCT_IFACE_PARAM_FIELD_KEEPALIVE_INTERVAL) &&
        params.keepalive_interval > 0 && !limit.watched) {
        keepalive_ = std::make_unique<keepalive>(params.keepalive_interval);
    }
}

iface::~iface()
{
    order_.reset(); // it gives buffers back
    receives_->take_back(*this);
    if (budget_) {
        budget_->leave(share_);
    }
    while (op *o = flushes_.pop_front()) {
        put(o);
    }
}

fid_ptr<fid_cq> iface::open_cq(size_t size)
{
    fi_cq_attr attr{};
    attr.format = FI_CQ_FORMAT_DATA;
    attr.wait_obj = domain.has_wait_fd() ? FI_WAIT_FD : FI_WAIT_NONE;
    if (attr.wait_obj == FI_WAIT_FD && domain.provider.trywait_does_nothing()) {
        // Called by their tables: libfabric 2.x, without net, warns of these calls.
        fi_wait_attr with{FI_WAIT_FD, 0};
        fid_wait *wait = nullptr;
        fid_fabric *fabric = domain.fabric.get();
        check(fabric->ops->wait_open(fabric, &with, &wait), "fi_wait_open");
        waited_with_.reset(wait);
        attr.wait_obj = FI_WAIT_SET;
        attr.wait_set = wait;
    }
    fid_cq *cq = nullptr;
    if (signal_cpu >= 0) {
        attr.flags |= FI_AFFINITY;
        attr.signaling_vector = signal_cpu;
    }
    int ret;
    do {
        attr.size = size;
        ret = fi_cq_open(domain.domain.get(), &attr, &cq, nullptr);
        if (ret != 0 && (attr.flags & FI_AFFINITY)) {
            attr.flags = 0; // the device has not that many vectors
            continue;
        }
        size /= 2;
    } while (ret != 0 && size >= 64);
    check(ret, "fi_cq_open");
    return fid_ptr<fid_cq>(cq);
}

unsigned iface::receives_wanted(const uct_iface_config &config) const
{
    constexpr unsigned usual = 256;
    // A user that sends no messages gets none; a few for peers that do all the same.
    constexpr unsigned few = 16;
    if (config.v.rx_queue_len) {
        return config.v.rx_queue_len;
    }
    return wants(UCT_IFACE_FEATURE_AM | UCT_IFACE_FEATURE_TAG) ? usual : few;
}

void iface::post_shared_receives(fid_ep *where, const uct_iface_config &config)
{
    constexpr unsigned usual = 32; // messages of the greatest length
    unsigned messages = config.v.rx_queue_len ? config.v.rx_queue_len
                        : wants(UCT_IFACE_FEATURE_AM | UCT_IFACE_FEATURE_TAG) ? usual
                                                                              : 0;
    shared_ =
        std::make_unique<shared_receives>(domain, where, limit.segment + limit.prefix, messages);
    missing_receives_ = shared_->post();
}

size_t iface::receive_room() const
{
    return shared_ ? shared_->bytes() : receives_->used() * receives_->length();
}

int iface::wait_on(const std::vector<fid_t> &queues)
{
    if (waits_.fd() < 0 && !waits_.open(queues, keepalive_ ? keepalive_->fd() : -1)) {
        throw ucs::error(UCS_ERR_UNSUPPORTED, "%s gives no descriptor to wait on",
                         domain.provider.transport.c_str());
    }
    return waits_.fd();
}

ucs_status_t iface::try_wait(std::vector<fid_t> queues)
{
    if (waited_with_) {
        int ret = waited_with_->ops->wait(waited_with_.get(), 0);
        return ret == 0 ? UCS_ERR_BUSY : ret == -FI_ETIMEDOUT ? UCS_OK : status_of(ret);
    }
    int ret = fi_trywait(domain.fabric.get(), queues.data(), static_cast<int>(queues.size()));
    return ret == 0 ? UCS_OK : ret == -FI_EAGAIN ? UCS_ERR_BUSY : status_of(ret);
}

void iface::announce_event(int fd)
{
    if (event_watch_) {
        event_watch_.set_events(EPOLLIN | EPOLLONESHOT); // a callback may be running
    } else if (async_event_cb_) {
        event_watch_ = ucs::async_watch::fd(
            fd, EPOLLIN | EPOLLONESHOT,
            [](void *arg, uint32_t) {
                auto *self = static_cast<iface *>(arg);
                self->async_event_cb_(self->async_event_arg_, UCT_EVENT_RECV | UCT_EVENT_SEND_COMP);
            },
            this);
    }
}

void iface::fail(ep *victim, ucs_status_t status)
{
    if (victim->status() != UCS_OK) {
        return; // it has failed or was cancelled, and the user knows
    }
    victim->set_failed(status);
    failing_ = victim;
    victim->fail_operations(status);
    if (std::exchange(failing_, nullptr) == victim) {
        report_error(victim, status);
    }
}

unsigned iface::keep_alive()
{
    keepalive_->begun();
    check_peers();
    return 1;
}

ucs_status_t iface::create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p)
{
    return ucs::guard([&] {
        auto *created = new ep(*this);
        if (params.field_mask & UCT_EP_PARAM_FIELD_IFACE_ADDR) {
            // By pointer to member: an old caller's params end before the lengths.
            auto length = [&](uint64_t field, size_t uct_ep_params_t::*value) {
                return params.field_mask & field ? params.*value : SIZE_MAX;
            };
            try {
                attach(*created, {params.dev_addr,
                                  length(UCT_EP_PARAM_FIELD_DEV_ADDR_LENGTH,
                                         &uct_ep_params_t::dev_addr_length),
                                  params.iface_addr,
                                  length(UCT_EP_PARAM_FIELD_IFACE_ADDR_LENGTH,
                                         &uct_ep_params_t::iface_addr_length)});
            } catch (...) {
                created->destroy();
                throw;
            }
        }
        *ep_p = created;
    });
}

void iface::attach(ep &from, const peer_address &to)
{
    connect(from, to);
    if (fenced_) {
        from.close_fence(ep::interface_fence);
    }
}

} // namespace uct::ofi
