// SPDX-License-Identifier: BSD-3-Clause
//
// The C functions of the device interface, which this library does not have: see ucp_host.h.
#include "ucs/log.h"

#include <ucp/api/device/ucp_host.h>

namespace {

ucs_status_t refuse(const char *call)
{
    ucs_error("%s: there is no device interface", call);
    return UCS_ERR_UNSUPPORTED;
}

} // namespace

extern "C" {

ucs_status_t ucp_device_local_mem_list_create(const ucp_device_mem_list_params_t *,
                                              ucp_device_local_mem_list_h *)
{
    return refuse("ucp_device_local_mem_list_create");
}

ucs_status_t ucp_device_remote_mem_list_create(const ucp_device_mem_list_params_t *,
                                               ucp_device_remote_mem_list_h *)
{
    return refuse("ucp_device_remote_mem_list_create");
}

uint32_t ucp_device_get_mem_list_length(const void *)
{
    return 0;
}

void ucp_device_mem_list_release(void *) {}

ucs_status_t ucp_device_counter_init(ucp_worker_h, const ucp_device_counter_params_t *, void *)
{
    return refuse("ucp_device_counter_init");
}

uint64_t ucp_device_counter_read(ucp_worker_h, const ucp_device_counter_params_t *, void *)
{
    return 0;
}

} // extern "C"
