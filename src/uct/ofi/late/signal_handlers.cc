// SPDX-License-Identifier: BSD-3-Clause
#include "uct/ofi/late/signal_handlers.h"

#include "ucs/log.h"
#include "ucs/sys.h"

#include <algorithm>
#include <dlfcn.h>
#include <link.h>

namespace uct::ofi {

namespace {

int add_object(dl_phdr_info *info, size_t, void *objects)
{
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t first = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            static_cast<std::vector<uintptr_t> *>(objects)->push_back(first &
                                                                      ~(ucs::page_size() - 1));
            break;
        }
    }
    return 0;
}

// sa_handler and sa_sigaction share their storage.
void *function_of(const struct sigaction &action)
{
    return reinterpret_cast<void *>(action.sa_sigaction);
}

} // namespace

signal_handlers::signal_handlers()
{
    for (int number = 1; number < NSIG; ++number) {
        if (sigaction(number, nullptr, &actions_[number]) != 0) {
            actions_[number] = {}; // reserved by the C library
        }
    }
    dl_iterate_phdr(add_object, &objects_);
}

void signal_handlers::restore() const
{
    for (int number = 1; number < NSIG; ++number) {
        struct sigaction now;
        Dl_info object;
        if (sigaction(number, nullptr, &now) != 0 ||
            function_of(now) == function_of(actions_[number]) ||
            dladdr(function_of(now), &object) == 0) {
            continue;
        }
        auto first = reinterpret_cast<uintptr_t>(object.dli_fbase);
        if (std::find(objects_.begin(), objects_.end(), first) == objects_.end()) {
            ucs_debug("%s had installed a handler of signal %d", object.dli_fname, number);
            sigaction(number, &actions_[number], nullptr);
        }
    }
}

} // namespace uct::ofi
