// SPDX-License-Identifier: BSD-3-Clause
// Words for what a core's info says: see facts.h.
#include "uct/ofi/fabric/facts.h"

#include "uct/ofi/fabric/info.h"

namespace uct::ofi {
namespace {

std::string words(const void *value, fi_type type)
{
    char text[1024] = {};
    fi_tostr_r(text, sizeof(text), value, type);
    std::string all(text);
    for (size_t at; (at = all.find_first_of("[]")) != std::string::npos;) {
        all.erase(at, 1);
    }
    size_t first = all.find_first_not_of(' ');
    return first == std::string::npos ? "none" : all.substr(first);
}

std::string version_of(uint32_t version)
{
    return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

std::vector<std::pair<std::string, std::string>> offered_by(const core &c, const fi_info &info)
{
    int mr_mode = info.domain_attr->mr_mode;
    return {{"provider", c.provider + " " + version_of(info.fabric_attr->prov_version) +
                             ", interface " + version_of(info.fabric_attr->api_version)},
            {"fabric", info.fabric_attr->name ? info.fabric_attr->name : ""},
            {"endpoint", words(&info.ep_attr->type, FI_TYPE_EP_TYPE)},
            {"protocol", words(&info.ep_attr->protocol, FI_TYPE_PROTOCOL)},
            {"address format", words(&info.addr_format, FI_TYPE_ADDR_FORMAT)},
            {"capabilities", words(&info.caps, FI_TYPE_CAPS)},
            {"mr_mode", words(&mr_mode, FI_TYPE_MR_MODE)},
            {"order of sends", words(&info.tx_attr->msg_order, FI_TYPE_MSG_ORDER)},
            {"order of receives", words(&info.rx_attr->msg_order, FI_TYPE_MSG_ORDER)},
            {"inject size", std::to_string(info.tx_attr->inject_size)},
            {"max message", std::to_string(info.ep_attr->max_msg_size)},
            {"iov limits", "send " + std::to_string(info.tx_attr->iov_limit) + ", receive " +
                               std::to_string(info.rx_attr->iov_limit) + ", remote " +
                               std::to_string(info.tx_attr->rma_iov_limit)},
            {"completion data", std::to_string(info.domain_attr->cq_data_size) + " bytes"},
            {"progress of data", words(&info.domain_attr->data_progress, FI_TYPE_PROGRESS)},
            {"waiting", c.has_wait_fd() ? "file descriptor" : "none that is used"}};
}

std::vector<std::string> supplied_for(const core &c, const fi_info &info)
{
    std::vector<std::string> list;
    if (!c.on_node() && !keeps_order(&info)) {
        list.emplace_back("order of messages: numbers that the receiver sorts by");
    }
    if (info.tx_attr->iov_limit < 2) {
        list.emplace_back("header and payload are copied together");
    }
    if (info.domain_attr->mr_mode & FI_MR_ENDPOINT) {
        list.emplace_back("one endpoint of the domain carries the regions");
    }
    return list;
}

} // namespace

std::vector<core_facts> facts_of_cores()
{
    std::vector<core_facts> list;
    for (const core &c : cores()) {
        for (const device &d : devices(c)) {
            const fi_info &info = *d.infos.front();
            list.push_back({c.transport, d.name, c.provider, info.ep_attr->max_msg_size,
                            offered_by(c, info), supplied_for(c, info)});
        }
    }
    return list;
}

} // namespace uct::ofi
