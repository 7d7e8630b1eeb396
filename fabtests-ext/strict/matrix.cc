// SPDX-License-Identifier: BSD-3-Clause
// Prints what each transport does by itself and what is supplied for it, as the library says: the
// table in docs/fabrics.md, by fabtests-ext/scripts/core-matrix. FI_PROVIDER_PATH has the
// imitations. usage: matrix TRANSPORT...
#include "uct/ofi/fabric/facts.h"

#include <uct/api/uct.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct column {
    std::string transport;
    uct_component_attr_t component;
    uct_md_attr_t md;
    uct_iface_attr_t iface;
    std::string capabilities;          // of the core
    std::vector<std::string> supplied; // sentences

    bool has(uint64_t flags) const { return (iface.cap.flags & flags) == flags; }
    bool is_supplied(const char *begin) const
    {
        return std::any_of(supplied.begin(), supplied.end(),
                           [=](const std::string &s) { return s.starts_with(begin); });
    }
};

[[noreturn]] void fail(const char *what, const std::string &transport)
{
    fprintf(stderr, "%s of %s fails\n", what, transport.c_str());
    exit(1);
}

void must(ucs_status_t status, const char *what, const std::string &transport)
{
    if (status != UCS_OK) {
        fail(what, transport);
    }
}

void open_interface(uct_md_h md, const uct_tl_resource_desc_t &resource, column *to)
{
    uct_worker_h worker;
    uct_iface_h iface;
    uct_iface_config_t *config;
    uct_iface_params_t params{};
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name = resource.tl_name;
    params.mode.device.dev_name = resource.dev_name;
    must(uct_worker_create(nullptr, UCS_THREAD_MODE_SINGLE, &worker), "uct_worker_create",
         to->transport);
    must(uct_md_iface_config_read(md, resource.tl_name, nullptr, nullptr, &config),
         "uct_md_iface_config_read", to->transport);
    must(uct_iface_open(md, worker, &params, config, &iface), "uct_iface_open", to->transport);
    must(uct_iface_query(iface, &to->iface), "uct_iface_query", to->transport);
    uct_config_release(config);
    uct_iface_close(iface);
    uct_worker_destroy(worker);
}

void open_domain(uct_component_h component, const char *name, column *to)
{
    uct_md_h md;
    uct_md_config_t *config;
    uct_tl_resource_desc_t *resources;
    unsigned count;
    must(uct_md_config_read(component, nullptr, nullptr, &config), "uct_md_config_read",
         to->transport);
    must(uct_md_open(component, name, config, &md), "uct_md_open", to->transport);
    uct_config_release(config);
    must(uct_md_query(md, &to->md), "uct_md_query", to->transport);
    must(uct_md_query_tl_resources(md, &resources, &count), "uct_md_query_tl_resources",
         to->transport);
    open_interface(md, resources[0], to);
    uct_release_tl_resource_list(resources);
    uct_md_close(md);
}

void add_facts(column *to)
{
    for (const uct::ofi::core_facts &f : uct::ofi::facts_of_cores()) {
        if (f.transport != to->transport) {
            continue;
        }
        to->supplied = f.supplied;
        for (const auto &[what, value] : f.offered) {
            if (what == "capabilities") {
                to->capabilities = value;
            }
        }
        return;
    }
}

column column_of(const std::string &transport)
{
    uct_component_h *list;
    unsigned count;
    must(uct_query_components(&list, &count), "uct_query_components", transport);
    column made{transport, {}, {}, {}, "", {}};
    for (unsigned i = 0; i < count; ++i) {
        uct_component_attr_t &attr = made.component;
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                          UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT |
                          UCT_COMPONENT_ATTR_FIELD_FLAGS;
        must(uct_component_query(list[i], &attr), "uct_component_query", transport);
        if (transport != attr.name) {
            continue;
        }
        std::vector<uct_md_resource_desc_t> domains(attr.md_resource_count);
        uct_component_attr_t more{};
        more.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        more.md_resources = domains.data();
        must(uct_component_query(list[i], &more), "uct_component_query", transport);
        open_domain(list[i], domains.at(0).md_name, &made);
        add_facts(&made);
        uct_release_component_list(list);
        return made;
    }
    fail("uct_query_components: there is no component", transport);
}

const char *native_or(bool is_native, const char *otherwise)
{
    return is_native ? "native" : otherwise;
}

struct row {
    const char *what;
    const char *(*cell)(const column &c);
};

constexpr row rows[] = {
    {"active messages, streams, tagged messages",
     [](const column &c) { return native_or(c.has(UCT_IFACE_FLAG_AM_BCOPY), "-"); }},
    {"their order", [](const column &c) { return native_or(!c.is_supplied("order"), "supplied"); }},
    {"header and payload without a copy",
     [](const column &c) { return native_or(!c.is_supplied("header and payload"), "supplied"); }},
    {"tags matched by the core (UCT)",
     [](const column &c) { return native_or(c.has(UCT_IFACE_FLAG_TAG_EAGER_BCOPY), "-"); }},
    {"put", [](const column &c) { return native_or(c.has(UCT_IFACE_FLAG_PUT_BCOPY), "supplied"); }},
    {"put of the program's buffer",
     [](const column &c) { return native_or(c.has(UCT_IFACE_FLAG_PUT_ZCOPY), "supplied"); }},
    {"get", [](const column &c) { return native_or(c.has(UCT_IFACE_FLAG_GET_BCOPY), "supplied"); }},
    {"get to the program's buffer",
     [](const column &c) { return native_or(c.has(UCT_IFACE_FLAG_GET_ZCOPY), "supplied"); }},
    {"atomics of the core or of processors (UCT)",
     [](const column &c) { return native_or(c.iface.cap.atomic64.fop_flags != 0, "-"); }},
    {"atomics (UCP)",
     [](const column &c) { return native_or(c.has(UCT_IFACE_FLAG_ATOMIC_CPU), "supplied"); }},
    {"memory registered at any time",
     [](const column &c) { return native_or(!c.is_supplied("one endpoint"), "supplied"); }},
    {"memory that peers map",
     [](const column &c) { return native_or(c.md.cap.flags & UCT_MD_FLAG_ALLOC, "-"); }},
    {"messages share receive buffers",
     [](const column &c) {
         return native_or(c.has(UCT_IFACE_FLAG_INTER_NODE) &&
                              c.capabilities.find("FI_MULTI_RECV") != std::string::npos,
                          "-");
     }},
    {"waiting without polling",
     [](const column &c) {
         return native_or(c.iface.cap.event_flags & UCT_IFACE_FLAG_EVENT_FD, "supplied");
     }},
    {"listeners and connections by address",
     [](const column &c) {
         return native_or(c.component.flags & UCT_COMPONENT_FLAG_CM, "supplied");
     }},
};

} // namespace

int main(int argc, char **argv)
{
    std::string head = "| |", line = "|---|";
    std::vector<column> columns;
    for (int i = 1; i < argc; ++i) {
        columns.push_back(column_of(argv[i]));
        head += std::string(" ") + argv[i] + " |";
        line += "---|";
    }
    printf("%s\n%s\n", head.c_str(), line.c_str());
    for (const row &r : rows) {
        printf("| %s |", r.what);
        for (const column &c : columns) {
            printf(" %s |", r.cell(c));
        }
        printf("\n");
    }
    return 0;
}
