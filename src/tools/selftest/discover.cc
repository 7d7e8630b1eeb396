// SPDX-License-Identifier: BSD-3-Clause
// What is here, by the sources that ucxlike_info has, too: see selftest.h.
#include "tools/query_interface.h"
#include "tools/selftest/selftest.h"

#include "config.h"
#include "inspect/inspect.h"

#include <memory>
#include <uct/api/uct.h>
#include <unistd.h>

namespace selftest {
namespace {

// What UCP does by messages because the transport cannot.
json emulated_over(const uct_iface_attr_t &attr)
{
    constexpr uint64_t put =
        UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY;
    constexpr uint64_t get =
        UCT_IFACE_FLAG_GET_SHORT | UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY;
    json list = json::array();
    if (!(attr.cap.flags & put)) {
        list.push_back("put: by messages");
    }
    if (!(attr.cap.flags & get)) {
        list.push_back("get: by messages, or the other side puts");
    }
    if (!attr.cap.atomic32.op_flags || !attr.cap.atomic32.fop_flags) {
        list.push_back("atomics of 32 bits: by messages, or the processor's over shared memory");
    }
    if (!attr.cap.atomic64.op_flags || !attr.cap.atomic64.fop_flags) {
        list.push_back("atomics of 64 bits: by messages, or the processor's over shared memory");
    }
    if (!(attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_RECV)) {
        list.push_back(
            "no event for a message: a timer wakes a worker that sleeps (UCX_WAKEUP_INTERVAL)");
    }
    return list;
}

json describe(uct_md_h md, uct_worker_h worker, const uct_tl_resource_desc_t &resource,
              const std::vector<inspect::core> &cores)
{
    json device = json::object();
    device["device"] = resource.dev_name;
    device["type"] = uct_device_type_names[resource.dev_type];
    device["offered"] = json::object();
    device["supplied"] = json::array();
    for (const inspect::core &c : cores) {
        if (c.transport == resource.tl_name && c.device == resource.dev_name) {
            device["provider"] = c.provider;
            device["max_message"] = c.max_message;
            for (const auto &[name, value] : c.offered) {
                device["offered"][name] = value;
            }
            device["supplied"] = c.supplied;
        }
    }
    uct_iface_config_t *config;
    uct_iface_attr_t attr;
    if (uct_md_iface_config_read(md, resource.tl_name, nullptr, nullptr, &config) == UCS_OK &&
        tools::query_interface(md, worker, resource, config, &attr) == UCS_OK) {
        for (const json &line : emulated_over(attr)) {
            device["supplied"].push_back(line);
        }
    } else {
        device["offered"]["error"] = "the interface does not open";
    }
    return device;
}

// The transport's entry; a new one is at the end.
json &entry_of(json *transports, const std::string &name)
{
    for (json &t : *transports) {
        if (t.at("transport") == name) {
            return t;
        }
    }
    transports->push_back({{"transport", name}, {"devices", json::array()}});
    return transports->back();
}

void add_domain(uct_component_h component, const char *name, uct_worker_h worker,
                const std::vector<inspect::core> &cores, json *transports)
{
    uct_md_config_t *config;
    uct_md_h md;
    if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) {
        return;
    }
    ucs_status_t status = uct_md_open(component, name, config, &md);
    uct_config_release(config);
    if (status != UCS_OK) {
        return;
    }
    uct_tl_resource_desc_t *resources = nullptr;
    unsigned count = 0;
    if (uct_md_query_tl_resources(md, &resources, &count) == UCS_OK) {
        for (unsigned i = 0; i < count; ++i) {
            if (resources[i].dev_type != UCT_DEVICE_TYPE_SELF) {
                entry_of(transports, resources[i].tl_name)["devices"].push_back(
                    describe(md, worker, resources[i], cores));
            }
        }
        uct_release_tl_resource_list(resources);
    }
    uct_md_close(md);
}

void add_component(uct_component_h component, uct_worker_h worker,
                   const std::vector<inspect::core> &cores, json *transports)
{
    uct_component_attr_t attr = {};
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    must(uct_component_query(component, &attr), "uct_component_query");
    auto domains = std::make_unique<uct_md_resource_desc_t[]>(attr.md_resource_count);
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = domains.get();
    must(uct_component_query(component, &attr), "uct_component_query");
    for (unsigned i = 0; i < attr.md_resource_count; ++i) {
        add_domain(component, domains[i].md_name, worker, cores, transports);
    }
}

json find_transports()
{
    std::vector<inspect::core> cores;
    inspect::cores(&cores);
    json transports = json::array();
    ucs_async_context_t *async;
    uct_worker_h worker;
    must(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async), "async context");
    must(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker), "uct_worker_create");
    uct_component_h *components;
    unsigned count = 0;
    must(uct_query_components(&components, &count), "uct_query_components");
    for (unsigned i = 0; i < count; ++i) {
        add_component(components[i], worker, cores, &transports);
    }
    uct_release_component_list(components);
    uct_worker_destroy(worker);
    ucs_async_context_destroy(async);
    return transports;
}

} // namespace

std::string own_versions()
{
    char host[256] = {};
    gethostname(host, sizeof(host) - 1);
    return std::string(host) + ": ucxlike " + PACKAGE_VERSION + ", UCX API " +
           std::to_string(UCP_API_MAJOR) + "." + std::to_string(UCP_API_MINOR) + ", libfabric " +
           inspect::libfabric_version() + " (built with " + inspect::libfabric_headers() + ")";
}

json discover(const options &opts)
{
    result found = apart(4 * opts.limit, [] {
        return outcome_of([] {
            json report = json::object();
            report["versions"] = own_versions();
            report["transports"] = find_transports();
            std::vector<inspect::unused> unused;
            inspect::not_used(&unused);
            report["not_used"] = json::array();
            for (const inspect::unused &u : unused) {
                report["not_used"].push_back(
                    {{"kind", u.kind}, {"name", u.name}, {"device", u.device}, {"why", u.why}});
            }
            return report.dump(-1, ' ', false, json::error_handler_t::replace);
        });
    });
    if (found.status != "pass") {
        fprintf(stderr, "ucxlike_selftest: the transports of this host: %s\n", found.note.c_str());
        exit(EXIT_FAILURE);
    }
    return json::parse(found.note);
}

} // namespace selftest
