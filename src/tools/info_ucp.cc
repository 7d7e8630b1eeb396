// SPDX-License-Identifier: BSD-3-Clause
// What ucp_init() and the calls after it give: see info.h. The text is that of the library's own
// ucp_*_print_info(); JSON has its lines, and of an endpoint the transports.
#include "tools/info.h"

namespace tools {
namespace {

void keep(const options &opts, json *report, const char *name, const std::string &text)
{
    if (!opts.as_json) {
        fputs(text.c_str(), stdout);
        return;
    }
    (*report)[name] = lines_of(text);
}

void keep_transports(ucp_ep_h ep, json *report)
{
    ucp_transport_entry_t entries[16] = {};
    ucp_ep_attr_t attr = {};
    attr.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
    attr.transports.entries = entries;
    attr.transports.num_entries = 16;
    attr.transports.entry_size = sizeof(entries[0]);
    if (failed(ucp_ep_query(ep, &attr), "endpoint")) {
        return;
    }
    json &list = (*report)["endpoint_transports"] = json::array();
    for (unsigned i = 0; i < attr.transports.num_entries; ++i) {
        json row = json::object();
        row["transport"] = entries[i].transport_name;
        row["device"] = entries[i].device_name;
        list.push_back(row);
    }
}

// Prints the endpoint when its connection stands; the server, if there is one, accepts meanwhile.
bool show_endpoint(const options &opts, ucp_worker_h worker, ucp_ep_params_t params,
                   own_server *server, json *report)
{
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.err_mode = opts.error_handling ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
    ucp_ep_h ep;
    if (failed(ucp_ep_create(worker, &params, &ep), "endpoint")) {
        return false;
    }
    ucp_request_param_t none = {};
    ucs_status_ptr_t flush = ucp_ep_flush_nbx(ep, &none);
    while (server && UCS_PTR_IS_PTR(flush) && ucp_request_check_status(flush) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
        server->accept();
    }
    wait_for(worker, flush);
    keep(opts, report, "endpoint", printed([&](FILE *out) { ucp_ep_print_info(ep, out); }));
    if (opts.as_json) {
        keep_transports(ep, report);
    }
    wait_for(worker, ucp_ep_close_nbx(ep, &none));
    return true;
}

bool report_client(const options &opts, ucp_worker_h worker, json *report)
{
    own_server server;
    if (!server.listen(opts, worker)) {
        return false;
    }
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr = server.address();
    return show_endpoint(opts, worker, params, &server, report);
}

bool report_endpoint(const options &opts, const other_process &peer, ucp_worker_h worker,
                     json *report)
{
    if (!opts.server.empty()) {
        return report_client(opts, worker, report);
    }
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    if (peer.exists()) {
        params.address = reinterpret_cast<const ucp_address_t *>(peer.address().data());
        return !peer.address().empty() && show_endpoint(opts, worker, params, nullptr, report);
    }
    ucp_address_t *address;
    size_t length;
    if (failed(ucp_worker_get_address(worker, &address, &length), "worker address")) {
        return false;
    }
    params.address = address;
    bool ok = show_endpoint(opts, worker, params, nullptr, report);
    ucp_worker_release_address(worker, address);
    return ok;
}

bool report_worker(const options &opts, const other_process &peer, ucp_context_h context,
                   json *report)
{
    ucp_worker_params_t params = {};
    ucp_worker_h worker;
    if (failed(ucp_worker_create(context, &params, &worker), "worker")) {
        return false;
    }
    if (opts.worker) {
        keep(opts, report, "worker",
             printed([&](FILE *out) { ucp_worker_print_info(worker, out); }));
    }
    bool ok = !opts.endpoint || report_endpoint(opts, peer, worker, report);
    ucp_worker_destroy(worker);
    return ok;
}

} // namespace

void wait_for(ucp_worker_h worker, void *request)
{
    while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
    }
    if (UCS_PTR_IS_PTR(request)) {
        ucp_request_free(request);
    }
}

ucp_context_h open_context(const options &opts)
{
    ucp_config_t *config;
    if (failed(ucp_config_read(nullptr, nullptr, &config), "configuration")) {
        return nullptr;
    }
    const char *transports = opts.types_of_devices == "shm"    ? "shm"
                             : opts.types_of_devices == "self" ? "self"
                             : opts.types_of_devices == "net"  ? "^shm,self"
                                                               : nullptr;
    if (transports) {
        failed(ucp_config_modify(config, "TLS", transports), "-D");
    }
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS |
                        UCP_PARAM_FIELD_ESTIMATED_NUM_PPN;
    params.features = opts.features;
    params.estimated_num_eps = opts.num_eps;
    params.estimated_num_ppn = opts.num_eps_per_node;
    ucp_context_h context = nullptr;
    failed(ucp_init(&params, config, &context), "context");
    ucp_config_release(config);
    return context;
}

bool report_ucp(const options &opts, const other_process &peer, json *report)
{
    ucp_context_h context = open_context(opts);
    if (!context) {
        return false;
    }
    if (opts.context) {
        keep(opts, report, "context",
             printed([&](FILE *out) { ucp_context_print_info(context, out); }));
    }
    if (!opts.memory.empty()) {
        keep(opts, report, "memory",
             printed([&](FILE *out) { ucp_mem_print_info(opts.memory.c_str(), context, out); }));
    }
    bool ok = !(opts.worker || opts.endpoint) || report_worker(opts, peer, context, report);
    ucp_cleanup(context);
    return ok;
}

} // namespace tools
