// SPDX-License-Identifier: BSD-3-Clause
//
// Sections of a configuration file. A section that names conditions, such as
//
//   [Some machine]
//   CPU vendor=AMD
//   Product name=R7525*
//   UCX_RNDV_THRESH=16k
//
// counts only on machines where all of them hold. They stand before the section's variables.
#pragma once

#include <string>

namespace ucs::config {

class section {
  public:
    // Whether variables count here.
    bool applies() const { return applies_; }

    // A line "[NAME]".
    void begin() { applies_ = true; }

    // True if the line is a condition, and not a variable.
    bool condition(const std::string &name, const std::string &pattern);

  private:
    bool applies_ = true;
};

} // namespace ucs::config
