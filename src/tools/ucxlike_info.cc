// SPDX-License-Identifier: BSD-3-Clause
// ucxlike_info: what the library found on this machine and how it is configured. Speaks the public
// API only; the letters are those of ucx_info.
#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <cstdio>
#include <cstdlib>
#include <getopt.h>
#include <memory>
#include <string>

namespace {

constexpr const char *usage_text =
    "usage: ucxlike_info [options]\n"
    "  -v           version of the library and of the API it implements\n"
    "  -d           memory domains, transports and devices, with their capabilities\n"
    "  -c           configuration (UCX_ variables and their values)\n"
    "  -f           with -c: the meaning of every variable\n"
    "  -p           the context: what a program gets from ucp_init\n"
    "  -w           a worker of that context\n"
    "  -e           an endpoint of that worker to itself: which transport carries what\n"
    "  -u FEATURES  letters of the features for -p, -w, -e: a AMO, r RMA, t tag, m AM, s stream,\n"
    "               w wake-up (default tm)\n"
    "  -t NAME      with -d: only the transport NAME\n"
    "  -h           this text\n";

struct options {
    bool version = false;
    bool devices = false;
    bool config = false;
    bool docs = false;
    bool context = false;
    bool worker = false;
    bool endpoint = false;
    std::string transport;
    uint64_t features = UCP_FEATURE_TAG | UCP_FEATURE_AM;
};

bool failed(ucs_status_t status, const char *what)
{
    if (status == UCS_OK) {
        return false;
    }
    fprintf(stderr, "ucxlike_info: %s: %s\n", what, ucs_status_string(status));
    return true;
}

bool parse_features(const char *letters, uint64_t *features)
{
    *features = 0;
    for (const char *p = letters; *p; ++p) {
        switch (*p) {
        case 'a':
            *features |= UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
            break;
        case 'r':
            *features |= UCP_FEATURE_RMA;
            break;
        case 't':
            *features |= UCP_FEATURE_TAG;
            break;
        case 'm':
            *features |= UCP_FEATURE_AM;
            break;
        case 's':
            *features |= UCP_FEATURE_STREAM;
            break;
        case 'w':
            *features |= UCP_FEATURE_WAKEUP;
            break;
        default:
            fprintf(stderr, "ucxlike_info: -u: '%c' is not one of a r t m s w\n", *p);
            return false;
        }
    }
    return true;
}

int print_version()
{
    unsigned major, minor, release;
    ucp_get_version(&major, &minor, &release);
    printf("# Library version: %s\n# API version: %d.%d\n", ucp_get_version_string(), UCP_API_MAJOR,
           UCP_API_MINOR);
    return major == UCP_API_MAJOR ? EXIT_SUCCESS : EXIT_FAILURE;
}

void print_size(const char *name, size_t value)
{
    if (value == SIZE_MAX) {
        printf("#      %20s: inf\n", name);
    } else {
        printf("#      %20s: %zu\n", name, value);
    }
}

void print_operation(const char *name, const uct_iface_attr_t &attr, uint64_t flag, size_t max)
{
    if (attr.cap.flags & flag) {
        print_size(name, max);
    }
}

void print_iface(const uct_iface_attr_t &attr)
{
    printf("#         latency: %.0f + %.3f * N nsec\n", attr.latency.c * 1e9, attr.latency.m * 1e9);
    printf("#       bandwidth: %.2f/ppn + %.2f MB/s\n", attr.bandwidth.shared / 1e6,
           attr.bandwidth.dedicated / 1e6);
    printf("#        overhead: %.0f nsec\n", attr.overhead * 1e9);
    print_operation("am_short", attr, UCT_IFACE_FLAG_AM_SHORT, attr.cap.am.max_short);
    print_operation("am_bcopy", attr, UCT_IFACE_FLAG_AM_BCOPY, attr.cap.am.max_bcopy);
    print_operation("am_zcopy", attr, UCT_IFACE_FLAG_AM_ZCOPY, attr.cap.am.max_zcopy);
    print_operation("put_short", attr, UCT_IFACE_FLAG_PUT_SHORT, attr.cap.put.max_short);
    print_operation("put_bcopy", attr, UCT_IFACE_FLAG_PUT_BCOPY, attr.cap.put.max_bcopy);
    print_operation("put_zcopy", attr, UCT_IFACE_FLAG_PUT_ZCOPY, attr.cap.put.max_zcopy);
    print_operation("get_short", attr, UCT_IFACE_FLAG_GET_SHORT, attr.cap.get.max_short);
    print_operation("get_bcopy", attr, UCT_IFACE_FLAG_GET_BCOPY, attr.cap.get.max_bcopy);
    print_operation("get_zcopy", attr, UCT_IFACE_FLAG_GET_ZCOPY, attr.cap.get.max_zcopy);
    printf("#      atomics (32/64 post, fetch): 0x%lx/0x%lx, 0x%lx/0x%lx\n",
           attr.cap.atomic32.op_flags, attr.cap.atomic64.op_flags, attr.cap.atomic32.fop_flags,
           attr.cap.atomic64.fop_flags);
    printf("#      connection:%s%s%s\n",
           attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE ? " to iface" : "",
           attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_EP ? " to ep" : "",
           attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_SOCKADDR ? " to sockaddr" : "");
    printf("#      device address: %zu bytes, iface address: %zu bytes, ep address: %zu bytes\n",
           attr.device_addr_len, attr.iface_addr_len, attr.ep_addr_len);
    printf("#      error handling:%s%s%s\n",
           attr.cap.flags & UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE ? " peer failure" : "",
           attr.cap.flags & UCT_IFACE_FLAG_EP_CHECK ? ", ep_check" : "",
           attr.cap.flags & UCT_IFACE_FLAG_EP_KEEPALIVE ? ", keepalive" : "");
}

bool print_transport(uct_md_h md, uct_worker_h worker, const uct_tl_resource_desc_t &resource)
{
    printf("#      Transport: %s\n#         Device: %s\n#           Type: %s\n", resource.tl_name,
           resource.dev_name, uct_device_type_names[resource.dev_type]);
    uct_iface_config_t *config;
    if (failed(uct_md_iface_config_read(md, resource.tl_name, nullptr, nullptr, &config),
               resource.tl_name)) {
        return false;
    }
    uct_iface_params_t params = {};
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name = resource.tl_name;
    params.mode.device.dev_name = resource.dev_name;
    uct_iface_h iface;
    ucs_status_t status = uct_iface_open(md, worker, &params, config, &iface);
    uct_config_release(config);
    if (failed(status, resource.dev_name)) {
        return false;
    }
    uct_iface_attr_t attr;
    status = uct_iface_query(iface, &attr);
    if (status == UCS_OK) {
        print_iface(attr);
    }
    uct_iface_close(iface);
    printf("#\n");
    return !failed(status, resource.dev_name);
}

bool print_md(uct_component_h component, const char *name, uct_worker_h worker, const options &opts)
{
    uct_md_config_t *config;
    if (failed(uct_md_config_read(component, nullptr, nullptr, &config), name)) {
        return false;
    }
    uct_md_h md;
    ucs_status_t status = uct_md_open(component, name, config, &md);
    uct_config_release(config);
    if (failed(status, name)) {
        return false;
    }
    printf("# Memory domain: %s\n", name);
    uct_md_attr_t attr;
    bool ok = !failed(uct_md_query(md, &attr), name);
    if (ok) {
        printf("#     Component: %s\n#      packed rkey: %zu bytes\n#\n", attr.component_name,
               attr.rkey_packed_size);
    }
    uct_tl_resource_desc_t *resources;
    unsigned count = 0;
    if (ok && !failed(uct_md_query_tl_resources(md, &resources, &count), name)) {
        for (unsigned i = 0; i < count; ++i) {
            if (opts.transport.empty() || opts.transport == resources[i].tl_name) {
                ok &= print_transport(md, worker, resources[i]);
            }
        }
        uct_release_tl_resource_list(resources);
    }
    uct_md_close(md);
    return ok;
}

bool print_component(uct_component_h component, uct_worker_h worker, const options &opts)
{
    uct_component_attr_t attr = {};
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT |
                      UCT_COMPONENT_ATTR_FIELD_FLAGS;
    if (failed(uct_component_query(component, &attr), "component")) {
        return false;
    }
    if (attr.flags & UCT_COMPONENT_FLAG_CM) {
        printf("# Connection manager: %s\n#\n", attr.name);
    }
    auto resources = std::make_unique<uct_md_resource_desc_t[]>(attr.md_resource_count);
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = resources.get();
    if (failed(uct_component_query(component, &attr), attr.name)) {
        return false;
    }
    bool ok = true;
    for (unsigned i = 0; i < attr.md_resource_count; ++i) {
        ok &= print_md(component, resources[i].md_name, worker, opts);
    }
    return ok;
}

int print_devices(const options &opts)
{
    ucs_async_context_t *async;
    if (failed(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async), "async context")) {
        return EXIT_FAILURE;
    }
    uct_worker_h worker;
    uct_component_h *components;
    unsigned count = 0;
    bool ok = !failed(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker), "worker");
    if (ok) {
        ok = !failed(uct_query_components(&components, &count), "components");
        for (unsigned i = 0; ok && i < count; ++i) {
            ok &= print_component(components[i], worker, opts);
        }
        if (count) {
            uct_release_component_list(components);
        }
        uct_worker_destroy(worker);
    }
    ucs_async_context_destroy(async);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int print_config(const options &opts)
{
    ucp_config_t *config;
    if (failed(ucp_config_read(nullptr, nullptr, &config), "configuration")) {
        return EXIT_FAILURE;
    }
    unsigned flags = UCS_CONFIG_PRINT_CONFIG;
    if (opts.docs) {
        flags |= UCS_CONFIG_PRINT_HEADER | UCS_CONFIG_PRINT_DOC;
    }
    ucp_config_print(config, stdout, "ucxlike configuration",
                     static_cast<ucs_config_print_flags_t>(flags));
    ucp_config_release(config);
    return EXIT_SUCCESS;
}

bool print_endpoint(ucp_worker_h worker)
{
    ucp_address_t *address;
    size_t length;
    if (failed(ucp_worker_get_address(worker, &address, &length), "worker address")) {
        return false;
    }
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = address;
    ucp_ep_h ep;
    bool ok = !failed(ucp_ep_create(worker, &params, &ep), "endpoint");
    if (ok) {
        ucp_request_param_t none = {};
        void *flush = ucp_ep_flush_nbx(ep, &none);
        while (UCS_PTR_IS_PTR(flush) && ucp_request_check_status(flush) == UCS_INPROGRESS) {
            ucp_worker_progress(worker);
        }
        if (UCS_PTR_IS_PTR(flush)) {
            ucp_request_free(flush);
        }
        ucp_ep_print_info(ep, stdout);
        void *close = ucp_ep_close_nbx(ep, &none);
        while (UCS_PTR_IS_PTR(close) && ucp_request_check_status(close) == UCS_INPROGRESS) {
            ucp_worker_progress(worker);
        }
        if (UCS_PTR_IS_PTR(close)) {
            ucp_request_free(close);
        }
    }
    ucp_worker_release_address(worker, address);
    return ok;
}

int print_ucp(const options &opts)
{
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = opts.features;
    ucp_context_h context;
    if (failed(ucp_init(&params, nullptr, &context), "context")) {
        return EXIT_FAILURE;
    }
    if (opts.context) {
        ucp_context_print_info(context, stdout);
    }
    bool ok = true;
    if (opts.worker || opts.endpoint) {
        ucp_worker_params_t worker_params = {};
        ucp_worker_h worker;
        ok = !failed(ucp_worker_create(context, &worker_params, &worker), "worker");
        if (ok) {
            if (opts.worker) {
                ucp_worker_print_info(worker, stdout);
            }
            ok = !opts.endpoint || print_endpoint(worker);
            ucp_worker_destroy(worker);
        }
    }
    ucp_cleanup(context);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

// EXIT_SUCCESS: go on; otherwise the text has been printed.
int parse(int argc, char **argv, options *opts)
{
    for (int c; (c = getopt(argc, argv, "vdcfpweu:t:h")) != -1;) {
        switch (c) {
        case 'v':
            opts->version = true;
            break;
        case 'd':
            opts->devices = true;
            break;
        case 'c':
            opts->config = true;
            break;
        case 'f':
            opts->docs = true;
            break;
        case 'p':
            opts->context = true;
            break;
        case 'w':
            opts->worker = true;
            break;
        case 'e':
            opts->endpoint = true;
            break;
        case 'u':
            if (!parse_features(optarg, &opts->features)) {
                return EXIT_FAILURE;
            }
            break;
        case 't':
            opts->transport = optarg;
            break;
        case 'h':
            fputs(usage_text, stdout);
            exit(EXIT_SUCCESS);
        default:
            fputs(usage_text, stderr);
            return EXIT_FAILURE;
        }
    }
    if (optind != argc || !(opts->version || opts->devices || opts->config || opts->context ||
                            opts->worker || opts->endpoint)) {
        fputs(usage_text, stderr);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

} // namespace

int main(int argc, char **argv)
{
    options opts;
    if (parse(argc, argv, &opts) != EXIT_SUCCESS) {
        return EXIT_FAILURE;
    }
    int result = EXIT_SUCCESS;
    if (opts.version) {
        result |= print_version();
    }
    if (opts.devices) {
        result |= print_devices(opts);
    }
    if (opts.config) {
        result |= print_config(opts);
    }
    if (opts.context || opts.worker || opts.endpoint) {
        result |= print_ucp(opts);
    }
    return result;
}
