// SPDX-License-Identifier: BSD-3-Clause
// Ownership of libfabric objects: a fid is closed and an info freed when its owner goes. Members
// are declared in opening order, so that they close in reverse.
#pragma once

#include "ucs/log.h"

#include <memory>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

namespace uct::ofi {

struct fid_closer {
    template <class Fid>
    void operator()(Fid *object) const noexcept
    {
        int ret = fi_close(&object->fid);
        if (ret != 0) {
            ucs_debug("fi_close of a fid of class %zu: %s", object->fid.fclass, fi_strerror(-ret));
        }
    }
};

template <class Fid>
using fid_ptr = std::unique_ptr<Fid, fid_closer>;

struct info_freer {
    void operator()(fi_info *info) const noexcept { fi_freeinfo(info); }
};
using info_ptr = std::unique_ptr<fi_info, info_freer>;

// A copy that the caller may edit. Throws bad_alloc.
info_ptr dup_info(const fi_info *info);

} // namespace uct::ofi
