// SPDX-License-Identifier: BSD-3-Clause
// Some cores want each region bound to one enabled endpoint, and have no key for it before. A
// memory domain of such a core has one endpoint that carries all of its regions, from before any
// interface is open; the endpoint's address travels in the packed keys, and writes, reads and
// atomic operations go there. Nothing is ever posted on it.
#pragma once

#include "uct/ofi/fabric/admission.h"
#include "uct/ofi/fabric/fid.h"

#include <mutex>
#include <string>

namespace uct::ofi {

constexpr size_t max_target_name = 64; // bytes of the endpoint's address

class region_target {
  public:
    // how, device: for what is said when there is no such endpoint. Throws ucs::error.
    region_target(fid_domain *domain, const fi_info *about, const admission &how,
                  const std::string &device);

    // Binds and enables a region: it has a key then. Any thread. Throws ucs::error.
    void enable(fid_mr *region);
    void close(fid_ptr<fid_mr> region);

    // A core may reach the regions only while their endpoint is progressed: every interface of the
    // domain does that. Any thread.
    void progress();

    // The core's address of the endpoint.
    const std::string &name() const { return name_; }

  private:
    // Threads of several workers meet here, and the core locks nothing for them.
    std::mutex mutex_;
    fid_ptr<fid_av> av_;
    fid_ptr<fid_cq> cq_;
    fid_ptr<fid_ep> ep_;
    std::string name_;
};

} // namespace uct::ofi
