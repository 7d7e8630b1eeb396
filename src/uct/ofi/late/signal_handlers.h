// SPDX-License-Identifier: BSD-3-Clause
// The process's signal handlers before a library is loaded. A library that it brings along may have
// a constructor that installs its own: a program that crashes would then end with a status.
#pragma once

#include <csignal>
#include <cstdint>
#include <vector>

namespace uct::ofi {

class signal_handlers {
  public:
    signal_handlers(); // as they are now

    // Puts those back that were replaced since by a handler in an object that was loaded since.
    // What the program itself has installed meanwhile stays.
    void restore() const;

  private:
    struct sigaction actions_[NSIG];
    std::vector<uintptr_t> objects_; // first addresses of what was loaded
};

} // namespace uct::ofi
