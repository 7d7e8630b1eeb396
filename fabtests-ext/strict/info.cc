// SPDX-License-Identifier: BSD-3-Clause
// What a strict core lists, and for which hints.
#include "strict/strict.h"

#include <cstdlib>
#include <cstring>
#include <string>

namespace strict {

namespace {

constexpr uint64_t flag_core_only = 1ull << 59;
constexpr uint64_t flag_hidden = 1ull << 60;

bool on_loopback(const fi_info *info)
{
    return info->addr_format == FI_SOCKADDR_IN && info->src_addr &&
           ntohl(static_cast<const sockaddr_in *>(info->src_addr)->sin_addr.s_addr) ==
               INADDR_LOOPBACK;
}

void rename(char **name, const char *to)
{
    free(*name);
    *name = strdup(to);
}

bool same_name(const char *asked, const char *ours)
{
    return !asked || strcmp(asked, ours) == 0;
}

uint64_t granted(const profile &p, uint64_t asked)
{
    return p.order_on_request ? p.order & asked : p.order;
}

// Of the profile's device with that number.
std::string domain_name(const profile &p, uint64_t number)
{
    std::string name(p.domain);
    size_t digits = name.find_last_not_of("0123456789") + 1;
    if (number > 0) {
        name =
            (digits < name.size() ? name.substr(0, digits) : name + "-") + std::to_string(number);
    }
    return name;
}

bool fits(const profile &p, const std::string &device, const fi_info *hints)
{
    if (!hints) {
        return true;
    }
    const fi_domain_attr *domain = hints->domain_attr;
    const fi_ep_attr *ep = hints->ep_attr;
    const fi_tx_attr *tx = hints->tx_attr;
    const fi_rx_attr *rx = hints->rx_attr;
    if ((hints->caps & ~p.caps) || (domain && (p.mr_mode & ~domain->mr_mode)) ||
        (ep && ep->type != FI_EP_UNSPEC && ep->type != FI_EP_RDM)) {
        return false;
    }
    if (hints->addr_format != FI_FORMAT_UNSPEC && hints->addr_format != p.addr_format) {
        return false;
    }
    if (!fits_key(p, hints)) {
        return false;
    }
    if ((tx && (tx->msg_order & ~p.order)) || (rx && (rx->msg_order & ~p.order)) ||
        (tx && (tx->inject_size > p.inject || tx->iov_limit > p.iov_limit)) ||
        (rx && rx->iov_limit > p.iov_limit) || (ep && ep->max_msg_size > longest(p)) ||
        (domain && domain->cq_data_size > p.cq_data_size)) {
        return false;
    }
    if (domain && domain->av_type != FI_AV_UNSPEC && domain->av_type != p.av_type) {
        return false;
    }
    return (!domain || same_name(domain->name, device.c_str())) &&
           (!hints->fabric_attr || same_name(hints->fabric_attr->name, p.fabric));
}

void apply_order(const profile &p, const fi_info *hints, fi_info *info)
{
    uint64_t tx = hints && hints->tx_attr ? hints->tx_attr->msg_order : 0;
    uint64_t rx = hints && hints->rx_attr ? hints->rx_attr->msg_order : 0;
    info->tx_attr->msg_order = granted(p, tx);
    info->rx_attr->msg_order = granted(p, rx);
}

fi_info *make_info(const profile &p, const std::string &device, const fi_info *hints)
{
    fi_info *info = inner_info(p);
    if (!info) {
        return nullptr;
    }
    free(info->src_addr);
    info->src_addr = nullptr;
    info->src_addrlen = 0;
    info->addr_format = p.addr_format;
    uint64_t caps = hints && hints->caps ? hints->caps | base_caps : p.caps;
    info->caps = caps & p.caps;
    info->tx_attr->caps &= info->caps;
    info->rx_attr->caps &= info->caps;
    info->domain_attr->caps &= info->caps;
    info->tx_attr->inject_size = p.inject;
    info->tx_attr->iov_limit = p.iov_limit;
    info->tx_attr->rma_iov_limit = 1;
    info->rx_attr->iov_limit = p.iov_limit;
    info->ep_attr->max_msg_size = longest(p);
    info->ep_attr->max_order_raw_size = p.order_size;
    info->ep_attr->max_order_war_size = p.order_size;
    info->ep_attr->max_order_waw_size = p.order_size;
    info->ep_attr->tx_ctx_cnt = 1;
    info->ep_attr->rx_ctx_cnt = 1;
    info->domain_attr->mr_mode = p.mr_mode;
    info->domain_attr->cq_data_size = p.cq_data_size;
    info->domain_attr->mr_iov_limit = 1;
    info->domain_attr->ep_cnt = most(p).eps;
    info->domain_attr->cq_cnt = most(p).queues;
    info->domain_attr->mr_cnt = most(p).regions;
    info->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    info->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    info->domain_attr->av_type = p.av_type;
    apply_order(p, hints, info);
    rename(&info->domain_attr->name, device.c_str());
    rename(&info->fabric_attr->name, p.fabric);
    free(info->fabric_attr->prov_name); // libfabric writes it
    info->fabric_attr->prov_name = nullptr;
    return info;
}

} // namespace

fi_info *inner_info(const profile &p)
{
    fi_info *hints = fi_allocinfo();
    hints->fabric_attr->prov_name = strdup("sockets");
    hints->ep_attr->type = FI_EP_RDM;
    // Its own thread answers slowly, but without that its descriptor tells nothing.
    hints->domain_attr->data_progress = waits(p) ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
    fi_info *list = nullptr;
    int ret =
        fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, flag_core_only | flag_hidden, hints, &list);
    fi_freeinfo(hints);
    if (ret != 0) {
        return nullptr;
    }
    fi_info *found = list;
    while (found && !on_loopback(found)) {
        found = found->next;
    }
    fi_info *copy = found ? fi_dupinfo(found) : nullptr;
    fi_freeinfo(list);
    return copy;
}

int get_infos(uint32_t, const char *node, const char *, uint64_t, const fi_info *hints,
              fi_info **list)
{
    fi_info **end = list;
    *end = nullptr;
    for (uint64_t i = 0; i < setting("FI_STRICT_DEVICES", 1); ++i) {
        for (const profile &p : profiles) {
            std::string device = domain_name(p, i);
            if (node || !fits(p, device, hints)) { // the addresses of these fabrics have no names
                continue;
            }
            *end = make_info(p, device, hints);
            if (*end) {
                end = &(*end)->next;
            }
        }
    }
    return *list ? 0 : -FI_ENODATA;
}

} // namespace strict
