// SPDX-License-Identifier: BSD-3-Clause
// In a file of its own, since libucs.so.0 needs it, and nothing else of sys.h.
#include "ucs/sys.h"

#include <unistd.h>

namespace ucs {

const std::string &host_name()
{
    // Never destroyed: other objects log while the process ends.
    static const std::string &name = *[] {
        char buffer[256] = "";
        gethostname(buffer, sizeof(buffer) - 1);
        return new std::string(buffer);
    }();
    return name;
}

} // namespace ucs
