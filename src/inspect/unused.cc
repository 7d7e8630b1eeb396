// SPDX-License-Identifier: BSD-3-Clause
// What is here and not used, and why: see inspect.h. Providers come from libfabric's discovery,
// devices from what the configuration of UCP allows.
#include "inspect/inspect.h"

#include "ucp/core/config.h"
#include "ucp/core/resources.h"
#include "ucs/error.h"
#include "ucs/rcache/memory_watch.h"
#include "uct/base/component.h"
#include "uct/ofi/fabric/absences.h"

#include <memory>

namespace inspect {
namespace {

// The selection as it is, and one for which every network device is allowed.
struct selections {
    explicit selections(const ucp_config &config)
        : own(config.values), any_device([&] {
              ucp::config values = config.values;
              values.net_devices = {"all"};
              return values;
          }())
    {
    }
    ucp::selection own, any_device;
};

// Whether it has a resource that stands in for the spare component.
bool check_domain(uct_component *component, const char *name, selections *select,
                  std::vector<unused> *list)
{
    uct_md_config_t *config = nullptr;
    uct_md_h md = nullptr;
    if (uct_md_config_read(component, nullptr, nullptr, &config) != UCS_OK) {
        return false;
    }
    ucs_status_t status = uct_md_open(component, name, config, &md);
    uct_config_release(config);
    if (status != UCS_OK) {
        list->push_back(
            {"domain", name, "", std::string("it does not open: ") + ucs_status_string(status)});
        return false;
    }
    uct_tl_resource_desc_t *descs = nullptr;
    unsigned count = 0;
    bool stands_in = false;
    if (uct_md_query_tl_resources(md, &descs, &count) == UCS_OK) {
        for (unsigned i = 0; i < count; ++i) {
            ucp::tl_resource rsc;
            rsc.desc = descs[i];
            rsc.cls = ucp::classify(descs[i]);
            if (!select->any_device.allows(rsc)) {
                list->push_back(
                    {"transport", descs[i].tl_name, descs[i].dev_name, "UCX_TLS leaves it out"});
            } else if (!select->own.allows(rsc)) {
                list->push_back({"transport", descs[i].tl_name, descs[i].dev_name,
                                 "UCX_NET_DEVICES leaves it out"});
            } else {
                stands_in = stands_in || ucp::selection::stands_in_for_spare(rsc);
            }
        }
        uct_release_tl_resource_list(descs);
    }
    uct_md_close(md);
    return stands_in;
}

// spare_is_served: whether a component before this one stands in for the spare one.
void check_component(uct_component *component, selections *select, bool *spare_is_served,
                     std::vector<unused> *list)
{
    uct_component_attr_t attr = {};
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if (uct_component_query(component, &attr) != UCS_OK) {
        return;
    }
    if (!select->own.component_listed(attr.name)) {
        list->push_back({"transport", attr.name, "", "it is used only where UCX_TLS names it"});
        return;
    }
    if (*spare_is_served && select->own.is_spare(attr.name)) {
        list->push_back({"transport", attr.name, "",
                         "sm serves in its place; it is used where UCX_TLS names ofi_shm"});
        return;
    }
    if (attr.md_resource_count == 0) {
        list->push_back({"transport", attr.name, "", "other processes may not look at this one"});
        return;
    }
    auto domains = std::make_unique<uct_md_resource_desc_t[]>(attr.md_resource_count);
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = domains.get();
    if (uct_component_query(component, &attr) != UCS_OK) {
        return;
    }
    for (unsigned i = 0; i < attr.md_resource_count; ++i) {
        *spare_is_served =
            check_domain(component, domains[i].md_name, select, list) || *spare_is_served;
    }
}

void check_region_cache(const ucp_config &config, std::vector<unused> *list)
{
    std::string why = ucs::memory_watch::why_not();
    if (config.values.rcache_enable == ucs::config::ternary::no) {
        why = "UCX_RCACHE_ENABLE leaves it out";
    }
    if (!why.empty()) {
        list->push_back({"cache", "of registrations", "", why});
    }
}

} // namespace

bool not_used(std::vector<unused> *list)
{
    return ucs::guard([&] {
               for (const uct::ofi::absence &a : uct::ofi::absences()) {
                   list->push_back({"provider", a.provider, a.device, a.why});
               }
               ucp_config config(nullptr, nullptr);
               check_region_cache(config, list);
               selections select(config);
               bool spare_is_served = false;
               for (uct_component *component : uct::components()) {
                   check_component(component, &select, &spare_is_served, list);
               }
           }) == UCS_OK;
}

std::string libfabric_version()
{
    return uct::ofi::fabric_version();
}

std::string libfabric_headers()
{
    return uct::ofi::fabric_headers();
}

bool locks_memory()
{
    for (uct_component *component : uct::components()) {
        uct_component_attr_t attr = {};
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
        if (uct_component_query(component, &attr) == UCS_OK) {
            for (const char *name : {"verbs", "efa", "cxi", "opx", "psm3"}) {
                if (std::string(name) == attr.name) {
                    return true;
                }
            }
        }
    }
    return false;
}

} // namespace inspect
