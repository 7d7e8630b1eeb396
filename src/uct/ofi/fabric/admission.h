// SPDX-License-Identifier: BSD-3-Clause
// What lets this process into a fabric: the key of a setting of ours (uct/base/auth_key.h), or what
// the job's launcher has put into the environment, which the cores read by themselves.
#pragma once

#include "uct/base/auth_key.h"
#include "uct/ofi/fabric/info.h"

#include <string>

namespace uct::ofi {

struct admission {
    key_bytes key;     // of a setting; empty: the core finds its own
    std::string words; // which key it is or where one would be: "service 5, VNI 234 of ..."; or ""

    // Throws as uct::ofi::check does, with the key where that may be why: "fi_domain of cxi0, with
    // service 5 ...: Permission denied".
    void check(long ret, const char *call, const std::string &device) const;
};

// prefix: of the variables of the transport, "CXI_".
admission find_admission(const core &c, const std::string &device, const auth_keys &own,
                         const std::string &prefix);

// The device's best info that takes the key, with it. Throws ucs::error where none does.
info_ptr admitted_info(const core &c, const device &d, const admission &a);

} // namespace uct::ofi
