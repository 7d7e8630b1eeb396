// SPDX-License-Identifier: BSD-3-Clause
// The devices of a connection manager: choosing one, its domain, its completion queue, its message
// buffers.
#include "uct/ofi/cm/device.h"

#include "ucs/error.h"
#include "uct/ofi/cm/engine.h"
#include "uct/ofi/fabric/error.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <sys/socket.h>

namespace uct::ofi {

namespace {

constexpr size_t cq_entries = 4096;

bool same_name(const fi_info *info, const std::string &name)
{
    return info->domain_attr->name && name == info->domain_attr->name;
}

} // namespace

cm_device::cm_device(const core &c, fid_fabric *fabric, const fi_info *info)
    : name(info->domain_attr->name ? info->domain_attr->name : ""),
      local_mr_(info->domain_attr->mr_mode & FI_MR_LOCAL),
      short_ops_(pool_params(cm_wire::header_size)), long_ops_(pool_params(cm_wire::message_max))
{
    info_ptr copy = dup_info(info);
    fid_domain *domain = nullptr;
    check(fi_domain(fabric, copy.get(), &domain, nullptr), "fi_domain");
    domain_.reset(domain);

    fi_cq_attr attr{};
    attr.size = cq_entries;
    attr.format = FI_CQ_FORMAT_MSG;
    attr.wait_obj = FI_WAIT_FD;
    fid_cq *cq = nullptr;
    check(fi_cq_open(domain, &attr, &cq, nullptr), "fi_cq_open");
    cq_.reset(cq);
    if (c.has_mutable_signal()) {
        // Completions come in turns only, which leave none when they end.
        signal_.mute(cq);
    }
}

cm_device::~cm_device() = default;

ucs::mpool_base::params cm_device::pool_params(size_t room)
{
    return {.object_size = sizeof(cm_op) + room,
            .align = alignof(std::max_align_t),
            .chunk = 32,
            .arg = this,
            .chunk_alloc =
                [](void *arg, size_t size, size_t align, void **cookie) {
                    return static_cast<cm_device *>(arg)->alloc_chunk(size, align, cookie);
                },
            .chunk_free =
                [](void *, void *chunk, size_t, void *cookie) {
                    if (cookie) {
                        fi_close(&static_cast<fid_mr *>(cookie)->fid);
                    }
                    free(chunk);
                },
            .object_cookie =
                [](void *, void *object, void *cookie) {
                    auto *op = static_cast<cm_op *>(object);
                    op->desc = cookie ? fi_mr_desc(static_cast<fid_mr *>(cookie)) : nullptr;
                }};
}

void *cm_device::alloc_chunk(size_t size, size_t align, void **cookie)
{
    void *memory = aligned_alloc(align, (size + align - 1) & ~(align - 1));
    if (memory && local_mr_) {
        fid_mr *mr = nullptr;
        int ret = fi_mr_reg(domain_.get(), memory, size, FI_SEND | FI_RECV, 0, 0, 0, &mr, nullptr);
        if (ret != 0) {
            ucs_error("fi_mr_reg of %zu bytes: %s", size, fi_strerror(-ret));
            free(memory);
            return nullptr;
        }
        *cookie = mr;
    }
    return memory;
}

cm_op *cm_device::get_op(cm_conn *owner, bool receive, size_t room)
{
    room = room > cm_wire::header_size ? cm_wire::message_max : cm_wire::header_size;
    auto *op = static_cast<cm_op *>(pool_of(room).get());
    if (!op) {
        throw std::bad_alloc();
    }
    op->owner = owner;
    op->device = this;
    op->next = nullptr;
    op->room = static_cast<uint32_t>(room);
    op->receive = receive;
    op->counted = false;
    op->left = false;
    return op;
}

info_ptr cm_engine::make_info(const std::string &device, int family) const
{
    const fi_info *best = nullptr;
    uint32_t format = family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
    for (const ofi::device &d : devices(core_)) {
        if (!device.empty() && d.name != device) {
            continue;
        }
        for (const fi_info *info : d.infos) {
            if (info->addr_format == format || info->addr_format == FI_SOCKADDR) {
                best = info;
                break;
            }
        }
        if (best) {
            break;
        }
    }
    if (!best) {
        throw ucs::error(UCS_ERR_NO_DEVICE, "%s: no device %s with an address of family %d",
                         core_.transport.c_str(), device.c_str(), family);
    }
    info_ptr info = dup_info(best);
    // A handful of small messages: do not let the provider set up deep queues.
    info->tx_attr->size = 8;
    info->rx_attr->size = 8;
    info->tx_attr->iov_limit = 1;
    info->rx_attr->iov_limit = 1;
    info->tx_attr->inject_size = std::min(info->tx_attr->inject_size, cm_wire::header_size);
    info->caps = FI_MSG | FI_SEND | FI_RECV;
    info->tx_attr->caps = FI_MSG | FI_SEND;
    info->rx_attr->caps = FI_MSG | FI_RECV;
    for (void **address : {&info->src_addr, &info->dest_addr}) {
        free(*address);
        *address = nullptr;
    }
    info->src_addrlen = 0;
    info->dest_addrlen = 0;
    return info;
}

cm_device &cm_engine::device_of(const fi_info *info)
{
    for (auto &device : devices_) {
        // Domains over sockets are all the same, whatever interface names them.
        if (same_name(info, device->name) || core_.sockets()) {
            return *device;
        }
    }
    auto device = std::make_unique<cm_device>(core_, fabric_.get(), info);
    int fd = -1;
    check(fi_control(&device->cq()->fid, FI_GETWAIT, &fd),
          "fi_control(FI_GETWAIT) of the completion queue");
    devices_.reserve(devices_.size() + 1);
    queues_.reserve(queues_.size() + 1);
    driver_.add(fd);
    queues_.push_back(&device->cq()->fid);
    devices_.push_back(std::move(device));
    return *devices_.back();
}

} // namespace uct::ofi
