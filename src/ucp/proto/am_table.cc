// SPDX-License-Identifier: BSD-3-Clause
//
// Which function receives which active message. worker.cc sets the rows on every interface.
#include "ucp/connect/wireup.h"
#include "ucp/core/am_id.h"
#include "ucp/proto/proto.h"

namespace ucp {

constexpr uint64_t tag_or_am = UCP_FEATURE_TAG | UCP_FEATURE_AM;

extern const am_handler_entry am_handlers[] = {
    {AM_ID_WIREUP, wireup_handler, "wireup"},
    {AM_ID_TAG_EAGER, tag_eager_handler, "tag eager", UCP_FEATURE_TAG},
    {AM_ID_TAG_FIRST, tag_first_handler, "tag first", UCP_FEATURE_TAG},
    {AM_ID_TAG_MIDDLE, tag_middle_handler, "tag middle", UCP_FEATURE_TAG},
    {AM_ID_TAG_SYNC, tag_sync_handler, "tag sync", UCP_FEATURE_TAG},
    {AM_ID_RNDV_RTS, rndv_rts_handler, "rndv rts", tag_or_am},
    {AM_ID_RNDV_RTR, rndv_rtr_handler, "rndv rtr", tag_or_am},
    {AM_ID_RNDV_DATA, rndv_data_handler, "rndv data", tag_or_am},
    {AM_ID_RNDV_ATS, rndv_ats_handler, "rndv ats", tag_or_am},
    {AM_ID_ACK, ack_handler, "ack", UCP_FEATURE_TAG},
    {AM_ID_AM_SINGLE, am_single_handler, "am single", UCP_FEATURE_AM},
    {AM_ID_AM_REPLY, am_reply_handler, "am reply", UCP_FEATURE_AM},
    {AM_ID_AM_FIRST, am_first_handler, "am first", UCP_FEATURE_AM},
    {AM_ID_AM_MIDDLE, am_middle_handler, "am middle", UCP_FEATURE_AM},
    {AM_ID_STREAM, stream_handler, "stream", UCP_FEATURE_STREAM},
    {AM_ID_RMA_PUT, rma_put_handler, "rma put"},
    {AM_ID_RMA_GET, rma_get_handler, "rma get"},
    {AM_ID_RMA_GET_REPLY, rma_get_reply_handler, "rma get reply"},
    {AM_ID_AMO, amo_handler, "amo"},
    {AM_ID_AMO_REPLY, amo_reply_handler, "amo reply"},
    {AM_ID_RMA_ACK, rma_ack_handler, "rma ack"},
    {AM_ID_RMA_FLUSH, rma_flush_handler, "rma flush"},
};

extern const size_t am_handler_count = sizeof(am_handlers) / sizeof(am_handlers[0]);

} // namespace ucp
