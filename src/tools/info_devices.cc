// SPDX-License-Identifier: BSD-3-Clause
// Memory domains, transports and devices: see info.h.
#include "tools/info.h"
#include "tools/query_interface.h"

#include <uct/api/uct.h>

#include <memory>

namespace tools {
namespace {

json size_of(size_t value)
{
    return value == SIZE_MAX ? json("inf") : json(value);
}

json operations_of(const uct_iface_attr_t &attr)
{
    const struct {
        const char *name;
        uint64_t flag;
        size_t most;
    } rows[] = {{"am_short", UCT_IFACE_FLAG_AM_SHORT, attr.cap.am.max_short},
                {"am_bcopy", UCT_IFACE_FLAG_AM_BCOPY, attr.cap.am.max_bcopy},
                {"am_zcopy", UCT_IFACE_FLAG_AM_ZCOPY, attr.cap.am.max_zcopy},
                {"put_short", UCT_IFACE_FLAG_PUT_SHORT, attr.cap.put.max_short},
                {"put_bcopy", UCT_IFACE_FLAG_PUT_BCOPY, attr.cap.put.max_bcopy},
                {"put_zcopy", UCT_IFACE_FLAG_PUT_ZCOPY, attr.cap.put.max_zcopy},
                {"get_short", UCT_IFACE_FLAG_GET_SHORT, attr.cap.get.max_short},
                {"get_bcopy", UCT_IFACE_FLAG_GET_BCOPY, attr.cap.get.max_bcopy},
                {"get_zcopy", UCT_IFACE_FLAG_GET_ZCOPY, attr.cap.get.max_zcopy}};
    json report = json::object();
    for (auto &row : rows) {
        if (attr.cap.flags & row.flag) {
            report[row.name] = size_of(row.most);
        }
    }
    return report;
}

json flags_of(const uct_iface_attr_t &attr)
{
    const struct {
        const char *name;
        uint64_t flag;
    } rows[] = {{"to iface", UCT_IFACE_FLAG_CONNECT_TO_IFACE},
                {"to ep", UCT_IFACE_FLAG_CONNECT_TO_EP},
                {"to sockaddr", UCT_IFACE_FLAG_CONNECT_TO_SOCKADDR},
                {"peer failure", UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE},
                {"ep_check", UCT_IFACE_FLAG_EP_CHECK},
                {"keepalive", UCT_IFACE_FLAG_EP_KEEPALIVE}};
    json report = json::object();
    for (auto &row : rows) {
        report[row.name] = (attr.cap.flags & row.flag) != 0;
    }
    return report;
}

void describe(const uct_iface_attr_t &attr, json *report)
{
    json &r = *report;
    r["latency_ns"] = attr.latency.c * 1e9;
    r["latency_ns_per_endpoint"] = attr.latency.m * 1e9;
    r["bandwidth_shared_MBps"] = attr.bandwidth.shared / 1e6;
    r["bandwidth_dedicated_MBps"] = attr.bandwidth.dedicated / 1e6;
    r["overhead_ns"] = attr.overhead * 1e9;
    r["operations"] = operations_of(attr);
    json &atomics = r["atomics"] = json::object();
    atomics["post32"] = attr.cap.atomic32.op_flags;
    atomics["post64"] = attr.cap.atomic64.op_flags;
    atomics["fetch32"] = attr.cap.atomic32.fop_flags;
    atomics["fetch64"] = attr.cap.atomic64.fop_flags;
    r["flags"] = flags_of(attr);
    r["device_address_bytes"] = attr.device_addr_len;
    r["iface_address_bytes"] = attr.iface_addr_len;
    r["ep_address_bytes"] = attr.ep_addr_len;
}

bool report_transport(uct_md_h md, uct_worker_h worker, const uct_tl_resource_desc_t &resource,
                      json *list)
{
    json report = json::object();
    report["transport"] = resource.tl_name;
    report["device"] = resource.dev_name;
    report["type"] = uct_device_type_names[resource.dev_type];
    uct_iface_config_t *config;
    if (failed(uct_md_iface_config_read(md, resource.tl_name, nullptr, nullptr, &config),
               resource.tl_name)) {
        return false;
    }
    uct_iface_attr_t attr;
    ucs_status_t status = query_interface(md, worker, resource, config, &attr);
    if (status == UCS_OK) {
        describe(attr, &report);
    }
    list->push_back(report);
    return !failed(status, resource.dev_name);
}

bool report_domain(uct_component_h component, const char *name, uct_worker_h worker,
                   const options &opts, json *domains)
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
    json report = json::object();
    report["domain"] = name;
    uct_md_attr_t attr;
    uct_tl_resource_desc_t *resources = nullptr;
    unsigned count = 0;
    bool ok = !failed(uct_md_query(md, &attr), name) &&
              !failed(uct_md_query_tl_resources(md, &resources, &count), name);
    if (ok) {
        report["component"] = attr.component_name;
        report["packed_rkey_bytes"] = attr.rkey_packed_size;
    }
    json &list = report["transports"] = json::array();
    for (unsigned i = 0; i < count; ++i) {
        if (opts.transport.empty() || opts.transport == resources[i].tl_name) {
            ok &= report_transport(md, worker, resources[i], &list);
        }
    }
    uct_release_tl_resource_list(resources);
    uct_md_close(md);
    domains->push_back(report);
    return ok;
}

bool report_component(uct_component_h component, uct_worker_h worker, const options &opts,
                      json *report)
{
    uct_component_attr_t attr = {};
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT |
                      UCT_COMPONENT_ATTR_FIELD_FLAGS;
    if (failed(uct_component_query(component, &attr), "component")) {
        return false;
    }
    if (attr.flags & UCT_COMPONENT_FLAG_CM) {
        (*report)["connection_managers"].push_back(attr.name);
    }
    auto resources = std::make_unique<uct_md_resource_desc_t[]>(attr.md_resource_count);
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = resources.get();
    if (failed(uct_component_query(component, &attr), attr.name)) {
        return false;
    }
    bool ok = true;
    for (unsigned i = 0; i < attr.md_resource_count; ++i) {
        ok &= report_domain(component, resources[i].md_name, worker, opts, &(*report)["domains"]);
    }
    return ok;
}

double number(const json &value)
{
    return value.is_number() ? value.get<double>() : 0;
}

void print_transport(const json &t)
{
    printf("#      Transport: %s\n#         Device: %s\n#           Type: %s\n",
           text(t, "transport").c_str(), text(t, "device").c_str(), text(t, "type").c_str());
    printf("#         latency: %.0f + %.3f * N nsec\n", number(t.at("latency_ns")),
           number(t.at("latency_ns_per_endpoint")));
    printf("#       bandwidth: %.2f/ppn + %.2f MB/s\n", number(t.at("bandwidth_shared_MBps")),
           number(t.at("bandwidth_dedicated_MBps")));
    printf("#        overhead: %.0f nsec\n", number(t.at("overhead_ns")));
    for (const auto &[name, value] : t.at("operations").items()) {
        printf("#      %20s: %s\n", name.c_str(), text(value).c_str());
    }
    auto atomics = [&](const char *which) {
        return static_cast<unsigned long>(number(t.at("atomics").at(which)));
    };
    printf("#      atomics (32/64 post, fetch): 0x%lx/0x%lx, 0x%lx/0x%lx\n", atomics("post32"),
           atomics("post64"), atomics("fetch32"), atomics("fetch64"));
    std::string can;
    for (const auto &[name, value] : t.at("flags").items()) {
        can += value.get<bool>() ? (can.empty() ? "" : ", ") + name : "";
    }
    printf("#      connection and errors: %s\n", can.c_str());
    printf("#      device address: %s bytes, iface address: %s bytes, ep address: %s bytes\n#\n",
           text(t, "device_address_bytes").c_str(), text(t, "iface_address_bytes").c_str(),
           text(t, "ep_address_bytes").c_str());
}

} // namespace

bool report_devices(const options &opts, json *report)
{
    *report = json::object();
    (*report)["connection_managers"] = json::array();
    (*report)["domains"] = json::array();
    ucs_async_context_t *async;
    if (failed(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async), "async context")) {
        return false;
    }
    uct_worker_h worker;
    uct_component_h *components;
    unsigned count = 0;
    bool ok = !failed(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker), "worker");
    if (ok) {
        ok = !failed(uct_query_components(&components, &count), "components");
        for (unsigned i = 0; i < count; ++i) {
            ok &= report_component(components[i], worker, opts, report);
        }
        if (count) {
            uct_release_component_list(components);
        }
        uct_worker_destroy(worker);
    }
    ucs_async_context_destroy(async);
    return ok;
}

void print_devices(const json &report)
{
    for (const json &name : report.at("connection_managers")) {
        printf("# Connection manager: %s\n#\n", text(name).c_str());
    }
    for (const json &domain : report.at("domains")) {
        printf("# Memory domain: %s\n#     Component: %s\n#      packed rkey: %s bytes\n#\n",
               text(domain, "domain").c_str(), text(domain, "component").c_str(),
               text(domain, "packed_rkey_bytes").c_str());
        for (const json &transport : domain.at("transports")) {
            print_transport(transport);
        }
    }
}

} // namespace tools
