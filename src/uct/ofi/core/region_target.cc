// SPDX-License-Identifier: BSD-3-Clause
// The endpoint that carries a memory domain's regions.
#include "uct/ofi/core/region_target.h"

#include "uct/ofi/fabric/error.h"

#include <utility>

namespace uct::ofi {

region_target::region_target(fid_domain *domain, const fi_info *about, const admission &how,
                             const std::string &device)
{
    fi_av_attr names{};
    names.type =
        about->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : about->domain_attr->av_type;
    fid_av *av = nullptr;
    check(fi_av_open(domain, &names, &av, nullptr), "fi_av_open for regions");
    av_.reset(av);
    fi_cq_attr queue{};
    queue.format = FI_CQ_FORMAT_CONTEXT;
    queue.wait_obj = FI_WAIT_NONE;
    fid_cq *cq = nullptr;
    check(fi_cq_open(domain, &queue, &cq, nullptr), "fi_cq_open for regions");
    cq_.reset(cq);
    info_ptr info = dup_info(about);
    fid_ep *endpoint = nullptr;
    how.check(fi_endpoint(domain, info.get(), &endpoint, nullptr), "fi_endpoint for regions",
              device);
    ep_.reset(endpoint);
    check(fi_ep_bind(endpoint, &av->fid, 0), "fi_ep_bind of the regions' address vector");
    check(fi_ep_bind(endpoint, &cq->fid, FI_TRANSMIT | FI_RECV),
          "fi_ep_bind of the regions' queue");
    check(fi_enable(endpoint), "fi_enable for regions");
    char address[max_target_name];
    size_t length = sizeof(address);
    check(fi_getname(&endpoint->fid, address, &length), "fi_getname for regions");
    name_.assign(address, length);
}

void region_target::enable(fid_mr *region)
{
    std::lock_guard guard(mutex_);
    check(fi_mr_bind(region, &ep_->fid, 0), "fi_mr_bind");
    check(fi_mr_enable(region), "fi_mr_enable");
}

void region_target::close(fid_ptr<fid_mr> region)
{
    std::lock_guard guard(mutex_);
    region.reset();
}

void region_target::progress()
{
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
        return; // another worker does it
    }
    fi_cq_entry entry;
    if (fi_cq_read(cq_.get(), &entry, 1) == -FI_EAVAIL) {
        fi_cq_err_entry error{};
        fi_cq_readerr(cq_.get(), &error, 0);
    }
}

} // namespace uct::ofi
