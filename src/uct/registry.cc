// SPDX-License-Identifier: BSD-3-Clause
// The list of components: the process itself, its host's memory, then the core providers
// that are here.
#include "uct/base/component.h"

#include "uct/base/config.h"
#include "uct/ofi/cm/cm.h"
#include "uct/ofi/core/component.h"
#include "uct/ofi/msg/msg_iface.h"
#include "uct/ofi/rdm/rdm_iface.h"
#include "uct/self/self.h"
#include "uct/sm/sm.h"

namespace uct {

namespace {

constexpr ofi::doors msg_doors = {ofi::open_msg_iface, ofi::open_cm};
constexpr ofi::doors rdm_doors = {ofi::open_rdm_iface, nullptr};

} // namespace

const std::vector<uct_component *> &components()
{
    // Never freed: handles may be used until the very end of the process.
    static const auto *all = [] {
        auto *list = new std::vector<uct_component *>;
        list->push_back(self::make_component());
        list->push_back(sm::make_component());
        know_variables("self");
        know_variables("sm");
        for (const std::string &transport : ofi::transports()) {
            know_variables(transport);
        }
        for (const ofi::core &c : ofi::cores()) {
            know_variables(c.transport);
            list->push_back(new ofi::component(c, c.msg() ? msg_doors : rdm_doors));
        }
        return list;
    }();
    return *all;
}

} // namespace uct
