// SPDX-License-Identifier: BSD-3-Clause
// A component is a family of memory domains of one kind: one for each core provider, and "self".
// Components live as long as the process; uct/registry.cc makes them. All calls are control path:
// they throw ucs::error, which capi.cc turns into a status.
#pragma once

#include "ucs/error.h"
#include "uct/base/config.h"

#include <uct/api/uct.h>

#include <string>
#include <vector>

struct uct_component {
    explicit uct_component(std::string name) : name(std::move(name)) {}
    uct_component(const uct_component &) = delete;
    uct_component &operator=(const uct_component &) = delete;
    virtual ~uct_component() = default;

    virtual uint64_t flags() const { return 0; } // UCT_COMPONENT_FLAG_*
    virtual std::vector<std::string> md_names() const = 0;
    virtual uct_md *open_md(const std::string &md_name, const uct_md_config &config) = 0;

    // buffer: what the peer's mkey_pack made, of unknown length; it describes itself.
    virtual ucs_status_t rkey_unpack(const void *buffer, uct_rkey_bundle_t *rkey) = 0;
    virtual ucs_status_t rkey_release(const uct_rkey_bundle_t *rkey) = 0;
    virtual ucs_status_t rkey_ptr(const uct_rkey_bundle_t *, uint64_t, void **)
    {
        return UCS_ERR_UNSUPPORTED;
    }

    // Present when flags() has UCT_COMPONENT_FLAG_CM.
    virtual uct_cm *open_cm(uct_worker *, const uct_cm_config &)
    {
        throw ucs::error(UCS_ERR_UNSUPPORTED, "component %s has no connection manager",
                         name.c_str());
    }

    const std::string name; // at most UCT_COMPONENT_NAME_MAX - 1 characters
};

namespace uct {

// Every component of this process, in order of preference: own_components(), then
// core_components(), of uct/api/components.h. Made at the first call.
const std::vector<uct_component *> &components();

} // namespace uct
