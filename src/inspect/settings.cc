// SPDX-License-Identifier: BSD-3-Clause
// The settings of all layers and where they come from: see inspect.h.
#include "inspect/inspect.h"

#include "ucp/core/config.h"
#include "ucs/config/config_origin.h"
#include "ucs/error.h"
#include "ucs/stats/settings.h"
#include "uct/base/component.h"
#include "uct/base/config.h"

namespace inspect {
namespace {

using ucs::config::origin;

const char *text_of(origin::kind from)
{
    switch (from) {
    case origin::kind::environment:
        return "environment";
    case origin::kind::file:
        return "file";
    case origin::kind::deflt:
        break;
    }
    return "default";
}

void add_table(const ucs::config::table &t, const void *values, std::vector<setting> *list)
{
    for (const ucs::config::field &f : t.fields) {
        origin where = ucs::config::origin_of(t, f);
        list->push_back({std::string("UCX_") + t.prefix + f.name,
                         f.value->format(static_cast<const char *>(values) + f.offset), f.deflt,
                         text_of(where.from), where.name, f.value->syntax, f.doc, t.title});
    }
}

template <class T>
void add(const std::string &prefix, std::vector<setting> *list)
{
    T config(prefix);
    ucs::config::fill(config.table(), config.values(), nullptr);
    add_table(config.table(), config.values(), list);
}

} // namespace

bool settings(std::vector<setting> *list)
{
    return ucs::guard([&] {
               ucp_config ucp(nullptr, nullptr);
               add_table(ucp::config_table, &ucp.values, list);
               add_table(ucs::stats::config_table, &ucs::stats::the_settings(), list);
               for (uct_component *component : uct::components()) {
                   uct_component_attr_t attr = {};
                   attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_FLAGS;
                   if (uct_component_query(component, &attr) != UCS_OK) {
                       continue;
                   }
                   std::string name = attr.name;
                   add<uct_md_config>(name, list);
                   add<uct_iface_config>(name, list);
                   if (attr.flags & UCT_COMPONENT_FLAG_CM) {
                       add<uct_cm_config>(name + "_CM", list);
                   }
               }
           }) == UCS_OK;
}

} // namespace inspect
