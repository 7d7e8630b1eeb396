// SPDX-License-Identifier: BSD-3-Clause
// A device of the connection manager: its domain, its completion queue, its message buffers.
#include "uct/ofi/cm/device.h"

#include "ucs/error.h"
#include "uct/ofi/core/error.h"

#include <cstddef>
#include <cstdlib>

namespace uct::ofi {

namespace {

constexpr size_t cq_entries = 4096;

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
    return op;
}

} // namespace uct::ofi
