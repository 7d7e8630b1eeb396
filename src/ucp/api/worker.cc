// SPDX-License-Identifier: BSD-3-Clause
//
// The C functions of workers.
#include "ucp/core/worker.h"
#include "ucp/am/am.h"
#include "ucp/api/print.h"
#include "ucp/connect/address.h"
#include "ucp/core/nb.h"
#include "ucp/core/raw_value.h"
#include "ucp/endpoint/ep_control.h"
#include "ucp/proto/proto.h"
#include "ucp/worker/wakeup.h"
#include "ucs/check.h"
#include "ucs/error.h"

#include <cstdlib>
#include <cstring>

namespace {

void *copy_address(const std::vector<uint8_t> &blob)
{
    void *copy = malloc(blob.size());
    if (!copy) {
        throw std::bad_alloc();
    }
    memcpy(copy, blob.data(), blob.size());
    return copy;
}

ucs_status_t wakeup_of(ucp_worker_h worker, const char *function, ucp::wakeup **wakeup_p)
{
    UCS_CHECK_ARG(worker, "%s: worker must not be NULL", function);
    UCS_CHECK_ARG(worker->context->has_feature(UCP_FEATURE_WAKEUP),
                  "%s: the worker's context was created without UCP_FEATURE_WAKEUP", function);
    *wakeup_p = worker->wakeup.get();
    return UCS_OK;
}

class progress_scope {
  public:
    explicit progress_scope(ucp_worker *worker) : worker_(worker), before_(worker->inside_progress)
    {
        worker->inside_progress = true;
    }
    ~progress_scope() { worker_->inside_progress = before_; }

  private:
    ucp_worker *worker_;
    bool before_;
};

} // namespace

extern "C" {

ucs_status_t ucp_worker_create(ucp_context_h context, const ucp_worker_params_t *params,
                               ucp_worker_h *worker_p)
{
    UCS_CHECK_ARG(context, "ucp_worker_create: context must not be NULL");
    UCS_CHECK_ARG(params, "ucp_worker_create: params must not be NULL");
    UCS_CHECK_ARG(worker_p, "ucp_worker_create: worker_p must not be NULL");
    if (params->field_mask & UCP_WORKER_PARAM_FIELD_THREAD_MODE) {
        unsigned mode = ucp::raw_value(params->thread_mode);
        UCS_CHECK_ARG(mode < UCS_THREAD_MODE_LAST,
                      "ucp_worker_create: params->thread_mode %u is not a thread mode", mode);
    }
    UCS_CHECK_ARG(!(params->field_mask & UCP_WORKER_PARAM_FIELD_EVENT_FD) || params->event_fd >= 0,
                  "ucp_worker_create: params->event_fd %d is not a descriptor", params->event_fd);
    if (params->field_mask & UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT) {
        size_t alignment = params->am_alignment;
        UCS_CHECK_ARG(alignment != 0 && (alignment & (alignment - 1)) == 0,
                      "ucp_worker_create: params->am_alignment %zu is not a power of two",
                      alignment);
    }
    context->look_for_drivers();
    return ucs::guard([&] { *worker_p = new ucp_worker(context, params); });
}

void ucp_worker_destroy(ucp_worker_h worker)
{
    if (!worker) {
        ucs_error("ucp_worker_destroy: worker must not be NULL");
        return;
    }
    delete worker;
}

ucs_status_t ucp_worker_query(ucp_worker_h worker, ucp_worker_attr_t *attr)
{
    UCS_CHECK_ARG(worker, "ucp_worker_query: worker must not be NULL");
    UCS_CHECK_ARG(attr, "ucp_worker_query: attr must not be NULL");
    ucs::opt_guard guard(worker->lock);
    if (attr->field_mask & UCP_WORKER_ATTR_FIELD_THREAD_MODE) {
        attr->thread_mode = worker->thread_mode;
    }
    if (attr->field_mask & UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER) {
        attr->max_am_header = worker->max_am_header;
    }
    if (attr->field_mask & UCP_WORKER_ATTR_FIELD_NAME) {
        strncpy(attr->name, worker->name.c_str(), UCP_ENTITY_NAME_MAX - 1);
        attr->name[UCP_ENTITY_NAME_MAX - 1] = '\0';
    }
    if (attr->field_mask & UCP_WORKER_ATTR_FIELD_MAX_INFO_STRING) {
        attr->max_debug_string = 200;
    }
    if (attr->field_mask & UCP_WORKER_ATTR_FIELD_ADDRESS) {
        bool net_only = (attr->field_mask & UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS) &&
                        (attr->address_flags & UCP_WORKER_ADDRESS_FLAG_NET_ONLY);
        return ucs::guard([&] {
            std::vector<uint8_t> blob = ucp::pack_address(*worker, net_only);
            attr->address = static_cast<ucp_address_t *>(copy_address(blob));
            attr->address_length = blob.size();
        });
    }
    return UCS_OK;
}

ucs_status_t ucp_worker_get_address(ucp_worker_h worker, ucp_address_t **address_p,
                                    size_t *address_length_p)
{
    UCS_CHECK_ARG(worker, "ucp_worker_get_address: worker must not be NULL");
    UCS_CHECK_ARG(address_p, "ucp_worker_get_address: address_p must not be NULL");
    UCS_CHECK_ARG(address_length_p, "ucp_worker_get_address: address_length_p must not be NULL");
    ucs::opt_guard guard(worker->lock);
    return ucs::guard([&] {
        std::vector<uint8_t> blob = ucp::pack_address(*worker, false);
        *address_p = static_cast<ucp_address_t *>(copy_address(blob));
        *address_length_p = blob.size();
    });
}

void ucp_worker_release_address(ucp_worker_h, ucp_address_t *address)
{
    free(address);
}

ucs_status_t ucp_worker_address_query(ucp_address_t *address, ucp_worker_address_attr_t *attr)
{
    UCS_CHECK_ARG(address, "ucp_worker_address_query: address must not be NULL");
    UCS_CHECK_ARG(attr, "ucp_worker_address_query: attr must not be NULL");
    return ucs::guard([&]() -> ucs_status_t {
        ucp::unpacked_address peer;
        ucs_status_t status = ucp::unpack_address(address, SIZE_MAX, &peer);
        if (status == UCS_OK && (attr->field_mask & UCP_WORKER_ADDRESS_ATTR_FIELD_UID)) {
            attr->worker_uid = peer.uuid;
        }
        return status;
    });
}

void ucp_worker_print_info(ucp_worker_h worker, FILE *stream)
{
    if (!worker || !stream) {
        ucs_error("ucp_worker_print_info: worker and stream must not be NULL");
        return;
    }
    ucs::opt_guard guard(worker->lock);
    ucs::guard([&] { ucp::print_worker(*worker, stream); });
}

unsigned ucp_worker_progress(ucp_worker_h worker)
{
    unsigned count;
    {
        ucs::opt_guard guard(worker->lock);
        progress_scope scope(worker);
        count = worker->progress();
        worker->linger.polled(count);
    }
    if (UCS_LIKELY(worker->thread_mode != UCS_THREAD_MODE_MULTI)) {
        worker->spin.polled(count);
    }
    return count;
}

ucs_status_t ucp_worker_get_efd(ucp_worker_h worker, int *fd)
{
    UCS_CHECK_ARG(fd, "ucp_worker_get_efd: fd must not be NULL");
    ucp::wakeup *wakeup;
    ucs_status_t status = wakeup_of(worker, "ucp_worker_get_efd", &wakeup);
    if (status != UCS_OK) {
        return status;
    }
    if (wakeup->external_fd >= 0) {
        return UCS_ERR_UNSUPPORTED;
    }
    *fd = wakeup->epoll_fd;
    return UCS_OK;
}

ucs_status_t ucp_worker_arm(ucp_worker_h worker)
{
    ucp::wakeup *wakeup;
    ucs_status_t status = wakeup_of(worker, "ucp_worker_arm", &wakeup);
    if (status != UCS_OK) {
        return status;
    }
    ucs::opt_guard guard(worker->lock);
    return wakeup->arm();
}

ucs_status_t ucp_worker_wait(ucp_worker_h worker)
{
    ucp::wakeup *wakeup;
    ucs_status_t status = wakeup_of(worker, "ucp_worker_wait", &wakeup);
    if (status != UCS_OK) {
        return status;
    }
    status = ucp_worker_arm(worker);
    if (status == UCS_ERR_BUSY) {
        return UCS_OK;
    }
    if (status == UCS_OK) {
        wakeup->wait();
    }
    return status;
}

void ucp_worker_wait_mem(ucp_worker_h worker, void *address)
{
    if (!worker || !address) {
        ucs_error("ucp_worker_wait_mem: worker and address must not be NULL");
        return;
    }
    ucp::wakeup *sleeper = nullptr;
    ucs_status_t status = ucs::guard([&] {
        ucs::opt_guard guard(worker->lock);
        sleeper = &worker->own_wakeup();
    });
    if (status == UCS_OK) {
        sleeper->wait_memory(address);
    }
}

ucs_status_t ucp_worker_signal(ucp_worker_h worker)
{
    ucp::wakeup *wakeup;
    ucs_status_t status = wakeup_of(worker, "ucp_worker_signal", &wakeup);
    if (status == UCS_OK) {
        wakeup->signal();
    }
    return status;
}

ucs_status_t ucp_worker_fence(ucp_worker_h worker)
{
    UCS_CHECK_ARG(worker, "ucp_worker_fence: worker must not be NULL");
    ucs::opt_guard guard(worker->lock);
    for (const auto &iface : worker->ifaces) {
        ucs_status_t status = uct_iface_fence(iface->uct, 0);
        if (status != UCS_OK && status != UCS_ERR_UNSUPPORTED &&
            status != UCS_ERR_NOT_IMPLEMENTED) {
            return status;
        }
    }
    return ucp::worker_fence(worker);
}

ucs_status_ptr_t ucp_worker_flush_nbx(ucp_worker_h worker, const ucp_request_param_t *param)
{
    UCS_CHECK_ARG_PTR(worker, "ucp_worker_flush_nbx: worker must not be NULL");
    UCS_CHECK_ARG_PTR(param, "ucp_worker_flush_nbx: param must not be NULL");
    ucs::opt_guard guard(worker->lock);
    return ucp::worker_flush(worker, param);
}

ucs_status_ptr_t ucp_worker_flush_nb(ucp_worker_h worker, unsigned flags, ucp_send_callback_t cb)
{
    ucp_request_param_t param = ucp::nb_param(cb);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = flags;
    return ucp_worker_flush_nbx(worker, &param);
}

ucs_status_t ucp_worker_flush(ucp_worker_h worker)
{
    ucp_request_param_t param = {};
    return ucp::wait_request(worker, ucp_worker_flush_nbx(worker, &param));
}

} // extern "C"
