// SPDX-License-Identifier: BSD-3-Clause
#include "rma.h"

namespace ucxlike {

ucs_status_t rma_arrived(conn *, const wire::message &, void *, size_t, const ucp_am_recv_param_t *)
{
    return UCS_OK;
}

int query_atomic(fid_domain *, fi_datatype, fi_op, fi_atomic_attr *, uint64_t)
{
    return -FI_EOPNOTSUPP;
}

fi_ops_rma rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = no_op,
    .readv = no_op,
    .readmsg = no_op,
    .write = no_op,
    .writev = no_op,
    .writemsg = no_op,
    .inject = no_op,
    .writedata = no_op,
    .injectdata = no_op,
};

fi_ops_atomic atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = no_op,
    .writev = no_op,
    .writemsg = no_op,
    .inject = no_op,
    .readwrite = no_op,
    .readwritev = no_op,
    .readwritemsg = no_op,
    .compwrite = no_op,
    .compwritev = no_op,
    .compwritemsg = no_op,
    .writevalid = no_op,
    .readwritevalid = no_op,
    .compwritevalid = no_op,
};

} // namespace ucxlike
