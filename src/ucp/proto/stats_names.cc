// SPDX-License-Identifier: BSD-3-Clause
//
// What reports of UCX_STATS_DEST call the active messages.
#include "ucp/proto/stats_names.h"
#include "ucp/core/am_id.h"
#include "ucp/proto/wire.h"

#include <array>

namespace ucp {
namespace {

using ucs::stats::flow_name;
using ucs::stats::way;

constexpr uint16_t tag_header = sizeof(uint64_t);
constexpr uint16_t endpoint_header = sizeof(uint64_t);

constexpr std::array<flow_name, ucs::stats::am_flows> names = [] {
    std::array<flow_name, ucs::stats::am_flows> n{};
    n[AM_ID_WIREUP] = {"wireup", way::message, 0};
    n[AM_ID_TAG_EAGER] = {"tag eager", way::message, tag_header};
    n[AM_ID_TAG_FIRST] = {"tag first", way::message, sizeof(wire::tag_first_hdr)};
    n[AM_ID_TAG_MIDDLE] = {"tag middle", way::message, sizeof(wire::frag_hdr)};
    n[AM_ID_TAG_SYNC] = {"tag sync", way::message, sizeof(wire::tag_sync_hdr)};
    n[AM_ID_RNDV_RTS] = {"rndv rts", way::message, sizeof(wire::rts_hdr)};
    n[AM_ID_RNDV_RTR] = {"rndv rtr", way::message, sizeof(wire::rtr_hdr)};
    n[AM_ID_RNDV_DATA] = {"rndv data", way::emulated, sizeof(wire::data_hdr)};
    n[AM_ID_RNDV_ATS] = {"rndv ats", way::message, sizeof(wire::answer_hdr)};
    n[AM_ID_ACK] = {"ack", way::message, sizeof(wire::answer_hdr)};
    n[AM_ID_AM_SINGLE] = {"am single", way::message, sizeof(wire::am_hdr)};
    n[AM_ID_AM_REPLY] = {"am reply", way::message, sizeof(wire::am_hdr) + endpoint_header};
    n[AM_ID_AM_FIRST] = {"am first", way::message, sizeof(wire::am_first_hdr)};
    n[AM_ID_AM_MIDDLE] = {"am middle", way::message, sizeof(wire::frag_hdr)};
    n[AM_ID_STREAM] = {"stream", way::message, endpoint_header};
    n[AM_ID_RMA_PUT] = {"put", way::emulated, sizeof(wire::put_hdr)};
    n[AM_ID_RMA_GET] = {"get", way::emulated, sizeof(wire::get_hdr)};
    n[AM_ID_RMA_GET_REPLY] = {"get reply", way::emulated, sizeof(wire::data_hdr)};
    n[AM_ID_AMO] = {"atomic", way::emulated, sizeof(wire::amo_hdr)};
    n[AM_ID_AMO_REPLY] = {"atomic reply", way::emulated, sizeof(wire::amo_reply_hdr)};
    n[AM_ID_RMA_ACK] = {"rma ack", way::emulated, sizeof(wire::flush_hdr)};
    n[AM_ID_RMA_FLUSH] = {"rma flush", way::emulated, sizeof(wire::flush_hdr)};
    return n;
}();

} // namespace

const flow_name *stats_names() noexcept
{
    return names.data();
}

} // namespace ucp
