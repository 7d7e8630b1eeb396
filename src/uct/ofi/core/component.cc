// SPDX-License-Identifier: BSD-3-Clause
// Names of the memory domains: "shm" for the host's memory, else the device's name.
#include "uct/ofi/core/component.h"

#include "uct/ofi/core/iface.h"
#include "uct/ofi/core/md.h"

#include <memory>

namespace uct::ofi {

namespace {

std::string md_name(const core &c, const device &d)
{
    return c.on_node() ? c.transport : d.name.substr(0, UCT_MD_NAME_MAX - 1);
}

} // namespace

uint64_t component::flags() const
{
    uint64_t flags = core_.on_node() ? UCT_COMPONENT_FLAG_RKEY_PTR : 0;
    return flags | (doors_.open_cm ? UCT_COMPONENT_FLAG_CM : 0);
}

std::vector<std::string> component::md_names() const
{
    std::vector<std::string> names;
    for (const device &d : devices(core_)) {
        names.push_back(md_name(core_, d));
    }
    return names;
}

uct_md *component::open_md(const std::string &wanted, const uct_md_config &config)
{
    for (const device &d : devices(core_)) {
        if (md_name(core_, d) == wanted) {
            auto opened = std::make_unique<md>(*this, core_, d, config);
            if (config.v.reg_nonblock && opened->needs_local) {
                ucs_warn("%sREG_NONBLOCK: %s maps and pins all pages when memory is registered",
                         config.prefix.c_str(), core_.provider.c_str());
            }
            return opened.release();
        }
    }
    throw ucs::error(UCS_ERR_NO_DEVICE, "uct_md_open: component %s has no memory domain \"%s\"",
                     name.c_str(), wanted.c_str());
}

limits component::limits_of(const md &domain, const uct_iface_config &config) const
{
    return doors_.limits_of(domain, config);
}

uct_cm *component::open_cm(uct_worker *worker, const uct_cm_config &config)
{
    if (!doors_.open_cm) {
        return uct_component::open_cm(worker, config);
    }
    return doors_.open_cm(core_, *this, worker, config);
}

} // namespace uct::ofi
