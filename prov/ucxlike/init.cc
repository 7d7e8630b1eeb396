// SPDX-License-Identifier: BSD-3-Clause
//
// The provider's entry point. libfabric calls fi_prov_ini under its own lock: nothing of libfabric
// but fi_param_define and fi_version may be called here.
#include "prov/ucxlike/prov.h"

#include "ucs/error.h"

#include <exception>

namespace ucxlike {

fi_provider provider = {
    .version = FI_VERSION(0, 1),
    .fi_version = 0, // at load time: the library's own version
    .context = {},
    .name = "ucxlike",
    .getinfo = getinfo,
    .fabric = open_fabric,
    .cleanup = [] {},
};

int guard_failed() noexcept
{
    try {
        throw;
    } catch (const failure &f) {
        return -f.error;
    } catch (const ucs::error &e) {
        PROV_WARN(CORE, "%s\n", e.what());
        return -errno_of(e.status());
    } catch (const std::bad_alloc &) {
        PROV_WARN(CORE, "out of memory\n");
        return -FI_ENOMEM;
    } catch (const std::exception &e) {
        PROV_WARN(CORE, "%s\n", e.what());
        return -FI_EOTHER;
    }
}

} // namespace ucxlike

extern "C" FI_EXT_INI
{
    ucxlike::provider.fi_version = fi_version();
    ucxlike::define_params();
    return &ucxlike::provider;
}
