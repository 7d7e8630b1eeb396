// SPDX-License-Identifier: BSD-3-Clause
//
// The provider's entry point. libfabric calls fi_prov_ini under its own lock: nothing of libfabric
// but fi_param_define and fi_version may be called here.
#include "prov.h"

#include <cstdlib>
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

void define_params()
{
    fi_param_define(&provider, "iface", FI_PARAM_STRING,
                    "Network interface or address that endpoints get when the application names "
                    "none (default: the one that routes to the peer, else the default route's)");
    fi_param_define(&provider, "tls", FI_PARAM_STRING,
                    "Transports to use, as UCX_TLS (default: all that work)");
    fi_param_define(&provider, "net_devices", FI_PARAM_STRING,
                    "Network devices to use, as UCX_NET_DEVICES (default: all)");
    fi_param_define(&provider, "strict", FI_PARAM_BOOL,
                    "Fail instead of falling back when the interface or a transport that was "
                    "chosen is not there (default: false)");
    fi_param_define(&provider, "tx_size", FI_PARAM_INT,
                    "Operations an endpoint may have in flight before -FI_EAGAIN (default: %zu)",
                    limit::tx_size);
    fi_param_define(&provider, "backlog", FI_PARAM_INT,
                    "Connection requests that may wait for an answer at a passive endpoint "
                    "(default: %d)",
                    limit::backlog);
    fi_param_define(&provider, "close_timeout", FI_PARAM_INT,
                    "Milliseconds that closing an endpoint may wait for its peer (default: 500)");
}

std::string param_string(const char *name)
{
    char *value = nullptr;
    return fi_param_get_str(&provider, name, &value) == 0 && value ? value : "";
}

int param_int(const char *name, int fallback)
{
    int value = fallback;
    fi_param_get_int(&provider, name, &value);
    return value;
}

bool param_bool(const char *name)
{
    int value = 0;
    fi_param_get_bool(&provider, name, &value);
    return value != 0;
}

int guard_failed() noexcept
{
    try {
        throw;
    } catch (const failure &f) {
        return -f.error;
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
