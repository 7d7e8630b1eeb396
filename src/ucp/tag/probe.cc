// SPDX-License-Identifier: BSD-3-Clause
//
// Looking for a message that has arrived and that no receive has taken.
#include "ucp/core/context.h"
#include "ucp/core/worker.h"
#include "ucp/proto/proto.h"
#include "ucs/log.h"

extern "C" {

UCS_EXPORT ucp_tag_message_h ucp_tag_probe_nb(ucp_worker_h worker, ucp_tag_t tag,
                                              ucp_tag_t tag_mask, int remove,
                                              ucp_tag_recv_info_t *info)
{
    if (!worker || !info || !worker->context->has_feature(UCP_FEATURE_TAG)) {
        ucs_error("ucp_tag_probe_nb: %s", !worker ? "worker must not be NULL"
                                          : !info
                                              ? "info must not be NULL"
                                              : "the context was created without UCP_FEATURE_TAG");
        return nullptr;
    }
    ucs::opt_guard guard(worker->lock);
    ucp::worker_proto *proto = worker->proto.get();
    ucp::tag_matcher::msg_entry *m = proto->tags.find_msg({tag, tag_mask});
    if (!m) {
        return nullptr;
    }
    ucp::recv_desc *desc = ucp::recv_desc::from_match(m);
    info->sender_tag = m->what();
    info->length = desc->length;
    if (remove) {
        proto->tags.remove(m);
    }
    return reinterpret_cast<ucp_tag_message_h>(desc);
}

} // extern "C"
