// SPDX-License-Identifier: BSD-3-Clause
//
// Printing contexts, workers and endpoints.
#include "ucp/api/print.h"

#include "ucp/connect/address.h"
#include "ucp/connect/announce.h"
#include "ucp/endpoint/ep_control.h"
#include "ucp/endpoint/hooks.h"
#include "ucp/proto/protocols.h"

#include <cstring>
#include <string>

namespace ucp {

void print_context(const ucp_context &context, FILE *stream)
{
    fprintf(stream, "#\n# UCP context\n#\n");
    for (unsigned i = 0; i < context.md_count; ++i) {
        fprintf(stream, "#     component %-2u :  %s\n", i, context.mds[i].cmpt_attr.name);
    }
    fprintf(stream, "#\n");
    for (unsigned i = 0; i < context.md_count; ++i) {
        fprintf(stream, "#            md %-2u :  component %-2u %s\n", i, i,
                context.mds[i].name.c_str());
    }
    fprintf(stream, "#\n");
    unsigned device = 0;
    for (size_t i = 0; i < context.resources.size(); ++i) {
        const tl_resource &rsc = context.resources[i];
        bool same = i > 0 && strcmp(context.resources[i - 1].desc.dev_name, rsc.desc.dev_name) == 0;
        device += i > 0 && !same;
        fprintf(stream, "#      resource %-2zu :  md %-2u dev %-2u flags -- %.*s/%.*s\n", i,
                rsc.md_index, device, static_cast<int>(sizeof(rsc.desc.tl_name)), rsc.desc.tl_name,
                static_cast<int>(sizeof(rsc.desc.dev_name)), rsc.desc.dev_name);
    }
    if (context.networks_are_late) {
        fprintf(stream, "#     networks: not opened so far (UCX_LATE_NETWORKS)\n");
    }
    fprintf(stream, "#\n");
}

void print_worker(const ucp_worker &worker, FILE *stream)
{
    fprintf(stream, "#\n# UCP worker '%s'\n#\n", worker.name.c_str());
    fprintf(stream, "#                 address: %zu bytes\n", pack_address(worker, false).size());
    fprintf(stream, "#                 network address: %zu bytes\n",
            pack_address(worker, true).size());
    for (const auto &iface : worker.ifaces) {
        const auto &desc = worker.context->resources[iface->resource].desc;
        fprintf(stream, "#                 interface: %s/%s\n", desc.tl_name, desc.dev_name);
    }
    if (worker.context->networks_are_late ||
        worker.seen_resources < worker.context->resources.size()) {
        fprintf(stream, "#                 networks: not opened so far (UCX_LATE_NETWORKS)\n");
    }
    fprintf(stream, "#                 endpoints: %zu\n#\n", worker.ep_ids.size());
}

void print_ep(const ucp_ep &ep, FILE *stream)
{
    fprintf(stream, "#\n# UCP endpoint %s\n#\n",
            ep.control->extras ? ep.control->extras->name.c_str() : "");
    std::string peer = peer_name_of(&ep);
    fprintf(stream, "#               peer: %s\n", peer.empty() ? "<no debug data>" : peer.c_str());
    for (unsigned i = 0; i < ep.lane_count; ++i) {
        const lane &l = ep.lanes[i];
        const tl_resource &rsc = ep.worker->context->resources[l.iface->resource];
        fprintf(stream, "#                 lane[%u]: %2u:%s/%s md[%u] ->%s\n", i, l.iface->resource,
                rsc.desc.tl_name, rsc.desc.dev_name, rsc.md_index, roles_of(ep, i).c_str());
    }
    fprintf(stream, "#\n#                am: short <= %zu, copy <= %zu, rendezvous >= ",
            ep.limits().max_short, ep.limits().max_bcopy);
    const proto_table &tag = ep.config->tag[MEMORY_MAPPED];
    const proto_range &last = tag.ranges[tag.count - 1];
    bool rendezvous = last.proto == tag_messages.read || last.proto == tag_messages.send;
    fprintf(stream, "%s\n#\n",
            rendezvous ? std::to_string(tag.begin(tag.count - 1u)).c_str() : "inf");
}

} // namespace ucp
