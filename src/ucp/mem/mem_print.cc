// SPDX-License-Identifier: BSD-3-Clause
// ucp_mem_print_info: allocates and registers memory as a program would and tells what came of it.
#include "ucs/config/config.h"
#include "ucs/log.h"

#include <ucp/api/ucp.h>

#include <cstring>
#include <string>

namespace {

bool parse_type(const std::string &name, ucs_memory_type_t *type)
{
    for (unsigned i = 0; i < UCS_MEMORY_TYPE_LAST; ++i) {
        if (name == ucs_memory_type_names[i]) {
            *type = static_cast<ucs_memory_type_t>(i);
            return true;
        }
    }
    return false;
}

} // namespace

extern "C" void ucp_mem_print_info(const char *mem_spec, ucp_context_h context, FILE *stream)
{
    std::string spec = mem_spec ? mem_spec : "";
    size_t comma = spec.find(',');
    ucp_mem_map_params_t params = {};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS |
                        UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.flags = UCP_MEM_MAP_ALLOCATE;
    params.memory_type = UCS_MEMORY_TYPE_HOST;
    if (!ucs::config::size_.parse(spec.substr(0, comma).c_str(), &params.length) ||
        (comma != std::string::npos && !parse_type(spec.substr(comma + 1), &params.memory_type))) {
        fprintf(stream, "<\"%s\" is not \"size[,kind of memory]\">\n", spec.c_str());
        return;
    }

    ucp_mem_h memh;
    ucs_status_t status = ucp_mem_map(context, &params, &memh);
    if (status != UCS_OK) {
        fprintf(stream, "<cannot allocate %s: %s>\n", spec.c_str(), ucs_status_string(status));
        return;
    }
    ucp_mem_attr_t attr = {};
    attr.field_mask =
        UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH | UCP_MEM_ATTR_FIELD_MEM_TYPE;
    ucp_mem_query(memh, &attr);
    ucp_memh_pack_params_t pack = {};
    void *key = nullptr;
    size_t key_length = 0;
    status = ucp_memh_pack(memh, &pack, &key, &key_length);

    fprintf(stream, "#\n# UCP memory\n#\n");
    fprintf(stream, "#          asked for: %zu bytes of %s\n", params.length,
            ucs_memory_type_names[params.memory_type]);
    fprintf(stream, "#          allocated: %zu bytes of %s at %p\n", attr.length,
            ucs_memory_type_names[attr.mem_type], attr.address);
    if (status == UCS_OK) {
        fprintf(stream, "#         remote key: %zu bytes\n#\n", key_length);
        ucp_memh_buffer_release(key, nullptr);
    } else {
        fprintf(stream, "#         remote key: %s\n#\n", ucs_status_string(status));
    }
    ucp_mem_unmap(context, memh);
}
