// SPDX-License-Identifier: BSD-3-Clause
// What the cores offer: see inspect.h.
#include "inspect/inspect.h"

#include "ucs/error.h"
#include "uct/ofi/fabric/facts.h"

namespace inspect {

bool cores(std::vector<core> *list)
{
    return ucs::guard([&] {
               for (uct::ofi::core_facts &f : uct::ofi::facts_of_cores()) {
                   list->push_back({f.transport, f.device, f.provider, f.max_message,
                                    std::move(f.offered), std::move(f.supplied)});
               }
           }) == UCS_OK;
}

} // namespace inspect
