// SPDX-License-Identifier: BSD-3-Clause
//
// The C functions of contexts, and the library's version.
#include "ucp/core/context.h"
#include "ucp/api/print.h"
#include "ucp/core/request.h"
#include "ucs/check.h"
#include "ucs/device_memory.h"
#include "ucs/error.h"

#include <cstring>
#include <dlfcn.h>
#include <memory>

#define UCP_STRING2(x) #x
#define UCP_STRING(x) UCP_STRING2(x)

namespace {

// A user that replaces libucp.so.0 wants to see which one a program took.
const char *loaded_from()
{
    Dl_info where = {};
    return dladdr(reinterpret_cast<void *>(&ucp_init_version), &where) != 0 && where.dli_fname
               ? where.dli_fname
               : "an unknown file";
}

} // namespace

extern "C" {

void ucp_get_version(unsigned *major_version, unsigned *minor_version, unsigned *release_number)
{
    if (major_version) {
        *major_version = UCP_API_MAJOR;
    }
    if (minor_version) {
        *minor_version = UCP_API_MINOR;
    }
    if (release_number) {
        *release_number = 0;
    }
}

const char *ucp_get_version_string(void)
{
    return UCP_STRING(UCP_API_MAJOR) "." UCP_STRING(UCP_API_MINOR) ".0";
}

ucs_status_t ucp_lib_query(ucp_lib_attr_t *attr)
{
    UCS_CHECK_ARG(attr, "ucp_lib_query: attr must not be NULL");
    if (attr->field_mask & UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL) {
        attr->max_thread_level = UCS_THREAD_MODE_MULTI;
    }
    return UCS_OK;
}

ucs_status_t ucp_init_version(unsigned api_major, unsigned api_minor, const ucp_params_t *params,
                              const ucp_config_t *config, ucp_context_h *context_p)
{
    UCS_CHECK_ARG(params, "ucp_init: params must not be NULL");
    UCS_CHECK_ARG(context_p, "ucp_init: context_p must not be NULL");
    if (api_major != UCP_API_MAJOR || api_minor > UCP_API_MINOR) {
        ucs_warn("UCP API version is incompatible: required >= %u.%u, actual %s", api_major,
                 api_minor, ucp_get_version_string());
    }
    ucs_info("Version %s of ucxlike (loaded from %s)", ucp_get_version_string(), loaded_from());
    return ucs::guard([&] {
        std::unique_ptr<ucp_config> own;
        if (!config) {
            own = std::make_unique<ucp_config>(nullptr, nullptr);
            config = own.get();
        }
        auto context = std::make_unique<ucp_context>(params, config);
        ucs::device_memory::load_drivers();
        context->look_for_drivers();
        if (context->features == 0) {
            ucs_warn("ucp_init: params->features is empty");
        }
        *context_p = context.release();
    });
}

void ucp_cleanup(ucp_context_h context)
{
    if (!context) {
        ucs_error("ucp_cleanup: context must not be NULL");
        return;
    }
    delete context;
}

ucs_status_t ucp_context_query(ucp_context_h context, ucp_context_attr_t *attr)
{
    UCS_CHECK_ARG(context, "ucp_context_query: context must not be NULL");
    UCS_CHECK_ARG(attr, "ucp_context_query: attr must not be NULL");
    if (attr->field_mask & UCP_ATTR_FIELD_REQUEST_SIZE) {
        attr->request_size = ucp::request_bytes;
    }
    if (attr->field_mask & UCP_ATTR_FIELD_THREAD_MODE) {
        attr->thread_mode =
            context->mt_workers_shared ? UCS_THREAD_MODE_MULTI : UCS_THREAD_MODE_SINGLE;
    }
    if (attr->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES) {
        // Managed memory is served as the host's, that of the devices is not.
        attr->memory_types = ucs::device_memory::known_kinds() & ~ucs::device_memory::device_kinds;
    }
    if (attr->field_mask & UCP_ATTR_FIELD_NAME) {
        strncpy(attr->name, context->name.c_str(), UCP_ENTITY_NAME_MAX - 1);
        attr->name[UCP_ENTITY_NAME_MAX - 1] = '\0';
    }
    if (attr->field_mask & UCP_ATTR_FIELD_DEVICE_COUNTER_SIZE) {
        attr->device_counter_size = 0;
    }
    return UCS_OK;
}

void ucp_context_print_info(const ucp_context_h context, FILE *stream)
{
    if (!context || !stream) {
        ucs_error("ucp_context_print_info: context and stream must not be NULL");
        return;
    }
    ucp::print_context(*context, stream);
}

} // extern "C"
