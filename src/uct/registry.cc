// SPDX-License-Identifier: BSD-3-Clause
// The list of components: the process itself, its host's memory, then the core providers
// that are here.
#include "uct/base/component.h"

#include "uct/api/components.h"
#include "uct/base/config.h"
#include "uct/ofi/cm/cm.h"
#include "uct/ofi/core/component.h"
#include "uct/ofi/msg/msg_iface.h"
#include "uct/ofi/rdm/rdm_iface.h"
#include "uct/ofi/shm/limits.h"
#include "uct/ofi/shm/node.h"
#include "uct/ofi/tcp/tcp_companion.h"
#include "uct/self/self.h"
#include "uct/sm/sm.h"

namespace uct {

namespace {

constexpr ofi::doors msg_doors = {ofi::open_msg_iface, ofi::open_cm, ofi::find_limits};
constexpr ofi::doors tcp_doors = {ofi::open_tcp_iface, ofi::open_cm, ofi::find_limits};
constexpr ofi::doors rdm_doors = {ofi::open_rdm_iface, nullptr, ofi::find_limits};
constexpr ofi::doors shm_doors = {ofi::open_shm_iface, nullptr, ofi::shm_limits};

const ofi::doors &doors_of(const ofi::core &c)
{
    return c.on_node() ? shm_doors : !c.msg() ? rdm_doors : c.sockets() ? tcp_doors : msg_doors;
}

} // namespace

// Never freed: handles may be used until the very end of the process.
const std::vector<uct_component_h> &own_components()
{
    static const auto *own = [] {
        auto *list = new std::vector<uct_component_h>;
        list->push_back(self::make_component());
        list->push_back(sm::make_component());
        know_variables("self");
        know_variables("sm");
        for (const std::string &transport : ofi::transports()) {
            know_variables(transport);
        }
        return list;
    }();
    return *own;
}

const std::vector<uct_component_h> &core_components()
{
    static const auto *cores = [] {
        auto *list = new std::vector<uct_component_h>;
        for (const ofi::core &c : ofi::cores()) {
            know_variables(c.transport);
            list->push_back(new ofi::component(c, doors_of(c)));
        }
        return list;
    }();
    return *cores;
}

ucs_status_t open_md(uct_component_h component, const char *name, const uct_md_config_t *config,
                     uct_md_h *md_p, std::string *why)
{
    return ucs::guard_quietly([&] {
        try {
            *md_p = component->open_md(name, *config);
        } catch (const std::exception &e) {
            *why = e.what();
            throw;
        }
    });
}

const std::vector<uct_component *> &components()
{
    static const auto *all = [] {
        auto *list = new std::vector<uct_component *>(own_components());
        list->insert(list->end(), core_components().begin(), core_components().end());
        return list;
    }();
    return *all;
}

} // namespace uct
