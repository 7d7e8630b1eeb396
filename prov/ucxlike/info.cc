// SPDX-License-Identifier: BSD-3-Clause
//
// fi_getinfo: one entry per endpoint type, made to measure of the hints. What the application does
// not ask for is offered only where it costs nothing; what we cannot do gives -FI_ENODATA.
#include "prov/ucxlike/info.h"

#include "prov/ucxlike/params.h"
#include "prov/ucxlike/prov.h"
#include "prov/ucxlike/retired.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <strings.h>

namespace ucxlike {

namespace {

constexpr uint64_t core_providers_only = 1ULL << 59; // a utility provider looks for cores

// All 64 bits of a tag are the application's, in fields that alternate bit by bit.
constexpr uint64_t tag_format = 0xaaaaaaaaaaaaaaaaull;
constexpr uint32_t own_protocol = retired::prov_specific | 0x1c;
constexpr uint64_t data_caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
constexpr uint64_t direction_caps =
    FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr uint64_t rdm_extra = FI_DIRECTED_RECV | FI_SOURCE;
constexpr uint64_t on_request = FI_SOURCE_ERR | FI_MULTICAST; // offered on request alone
constexpr uint64_t domain_caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
constexpr uint64_t all_caps(bool rdm)
{
    return data_caps | direction_caps | FI_MULTI_RECV | FI_RMA_EVENT | domain_caps |
           (rdm ? rdm_extra : 0);
}
constexpr uint64_t tx_caps = data_caps | FI_MULTICAST | FI_SEND | FI_READ | FI_WRITE;
constexpr uint64_t rx_caps = data_caps | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE |
                             FI_MULTI_RECV | FI_DIRECTED_RECV | FI_SOURCE | FI_SOURCE_ERR |
                             FI_RMA_EVENT;
constexpr uint64_t known_op_flags =
    FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE;
// Of the caps that must come with others.
constexpr struct {
    uint64_t cap;
    uint64_t needs;
    const char *text;
} pairs[] = {{FI_SOURCE_ERR, FI_SOURCE, "FI_SOURCE_ERR needs FI_SOURCE"},
             {FI_MULTICAST, FI_MSG, "FI_MULTICAST needs FI_MSG"}};
constexpr uint64_t known_rx_flags = FI_COMPLETION | FI_MULTI_RECV;
constexpr uint64_t msg_order = FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW | FI_ORDER_WAS |
                               FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_RAS | FI_ORDER_RMA_RAR |
                               FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAW | FI_ORDER_ATOMIC_RAR |
                               FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR | FI_ORDER_ATOMIC_WAW;
struct info_delete {
    void operator()(fi_info *i) const { fi_freeinfo(i); }
};
using info_ptr = std::unique_ptr<fi_info, info_delete>;

#define REFUSE(...)                                                                                \
    do {                                                                                           \
        PROV_INFO(CORE, __VA_ARGS__);                                                              \
        return false;                                                                              \
    } while (0)

bool serves_ep(const fi_ep_attr *a, bool rdm)
{
    if (a->type != FI_EP_UNSPEC && a->type != (rdm ? FI_EP_RDM : FI_EP_MSG)) {
        return false;
    }
    if (a->protocol != FI_PROTO_UNSPEC && a->protocol != own_protocol) {
        REFUSE("protocol %u is not ours\n", a->protocol);
    }
    if (a->protocol_version > 1 || a->max_msg_size > limit::max_msg) {
        REFUSE("max_msg_size %zu or the protocol's version is over the limit\n", a->max_msg_size);
    }
    if (a->tx_ctx_cnt > 1 && a->tx_ctx_cnt != FI_SHARED_CONTEXT) {
        REFUSE("tx_ctx_cnt %zu: one transmit context per endpoint\n", a->tx_ctx_cnt);
    }
    if (a->tx_ctx_cnt == FI_SHARED_CONTEXT) {
        REFUSE("shared transmit contexts are not supported\n");
    }
    if (a->rx_ctx_cnt > 1 && a->rx_ctx_cnt != FI_SHARED_CONTEXT) {
        REFUSE("rx_ctx_cnt %zu is not supported\n", a->rx_ctx_cnt);
    }
    if (a->max_order_raw_size > limit::max_msg || a->max_order_war_size > limit::max_msg ||
        a->max_order_waw_size > limit::max_msg) {
        REFUSE("max_order sizes over %zu\n", limit::max_msg);
    }
    if (a->auth_key_size) {
        REFUSE("auth keys are not supported\n");
    }
    return true;
}

bool serves_domain(uint32_t version, const fi_domain_attr *a, bool rdm)
{
    if (a->name && strcasecmp(a->name, "ucxlike")) {
        return false;
    }
    if (a->threading > FI_THREAD_ENDPOINT || a->resource_mgmt > FI_RM_ENABLED ||
        a->av_type > FI_AV_TABLE || a->control_progress > FI_PROGRESS_MANUAL ||
        a->data_progress > FI_PROGRESS_MANUAL) {
        REFUSE("a domain attribute has an unknown value\n");
    }
    if (a->mr_key_size > 8 || a->cq_data_size > 8) {
        REFUSE("mr_key_size %zu or cq_data_size %zu is over 8\n", a->mr_key_size, a->cq_data_size);
    }
    size_t objects = std::max({a->cq_cnt, a->ep_cnt, a->cntr_cnt, a->tx_ctx_cnt, a->rx_ctx_cnt});
    if (objects > limit::most_objects || a->max_ep_tx_ctx > 1 || a->max_ep_rx_ctx > 1 ||
        a->max_ep_stx_ctx > 0 || a->max_ep_srx_ctx > 1 || a->mr_iov_limit > 1 ||
        a->mr_cnt > limit::regions || a->max_err_data > limit::err_data) {
        REFUSE("a domain limit is over ours\n");
    }
    if (a->caps & ~(domain_caps | (rdm ? FI_AV_USER_ID : 0))) {
        REFUSE("domain caps 0x%lx are not supported\n", a->caps & ~domain_caps);
    }
    if (a->auth_key_size) {
        REFUSE("auth keys are not supported\n");
    }
    if (FI_VERSION_LT(version, FI_VERSION(1, 5)) && (a->mr_mode & ~3)) {
        REFUSE("mr_mode 0x%x needs a newer API\n", a->mr_mode);
    }
    return true;
}

bool serves_tx(const fi_info *h, const fi_tx_attr *a, uint64_t ours)
{
    if (a->caps & ~ours) {
        REFUSE("tx caps 0x%lx are not supported\n", a->caps);
    }
    if (h->caps && (a->caps & tx_caps & ~direction_caps & ~h->caps)) {
        REFUSE("tx caps 0x%lx exceed caps\n", a->caps);
    }
    if (a->op_flags & ~(known_op_flags | (h->caps & FI_MULTICAST))) {
        REFUSE("tx op_flags 0x%lx are not supported\n", a->op_flags & ~known_op_flags);
    }
    if ((a->msg_order & ~(msg_order | retired::order_data)) || (a->comp_order & ~0ULL)) {
        REFUSE("tx msg_order 0x%lx or comp_order 0x%lx is not kept\n", a->msg_order, a->comp_order);
    }
    if (a->inject_size > limit::inject || a->size > limit::most_queued ||
        a->iov_limit > limit::iov || a->rma_iov_limit > 1) {
        REFUSE("tx inject_size %zu, size %zu or an iov limit is over ours\n", a->inject_size,
               a->size);
    }
    return true;
}

bool serves_rx(const fi_info *h, const fi_rx_attr *a, uint64_t ours)
{
    if (a->caps & ~ours) {
        REFUSE("rx caps 0x%lx are not supported\n", a->caps);
    }
    if (h->caps && (a->caps & rx_caps & ~direction_caps & ~h->caps)) {
        REFUSE("rx caps 0x%lx exceed caps\n", a->caps);
    }
    if (a->op_flags & ~known_rx_flags) {
        REFUSE("rx op_flags 0x%lx are not supported\n", a->op_flags & ~known_rx_flags);
    }
    if (a->msg_order & ~(msg_order | retired::order_data)) {
        REFUSE("rx msg_order 0x%lx is not kept\n", a->msg_order);
    }
    if (a->size > limit::most_queued || a->iov_limit > limit::iov) {
        REFUSE("rx size %zu or iov_limit %zu is over ours\n", a->size, a->iov_limit);
    }
    return true;
}

// True when everything the hints ask for can be given.
bool can_serve(uint32_t version, const fi_info *h, bool rdm)
{
    if (!h) {
        return true;
    }
    uint64_t ours = all_caps(rdm) | (rdm ? on_request : 0);
    if (h->caps & ~ours) {
        REFUSE("caps 0x%lx are not supported\n", h->caps & ~ours);
    }
    for (auto &p : pairs) {
        if ((h->caps & p.cap) && !(h->caps & p.needs)) {
            REFUSE("%s\n", p.text);
        }
    }
    if (h->addr_format != FI_FORMAT_UNSPEC && h->addr_format != FI_SOCKADDR &&
        h->addr_format != FI_SOCKADDR_IN && h->addr_format != FI_SOCKADDR_IN6) {
        REFUSE("addr_format %u is not supported\n", h->addr_format);
    }
    bool fabric =
        !h->fabric_attr || !h->fabric_attr->name || !strcasecmp(h->fabric_attr->name, "ucxlike");
    return fabric && (!h->ep_attr || serves_ep(h->ep_attr, rdm)) &&
           (!h->domain_attr || serves_domain(version, h->domain_attr, rdm)) &&
           (!h->tx_attr || serves_tx(h, h->tx_attr, ours)) &&
           (!h->rx_attr || serves_rx(h, h->rx_attr, ours));
}

template <class T>
T either(T asked, T ours)
{
    return asked ? asked : ours;
}

char *copy(const char *s)
{
    char *c = strdup(s);
    if (!c) {
        throw failure{FI_ENOMEM};
    }
    return c;
}

uint64_t caps_for(const fi_info *h, bool rdm)
{
    uint64_t caps = h ? h->caps : 0;
    if (!(caps & data_caps)) {
        caps |= data_caps;
    }
    if (!(caps & (FI_SEND | FI_RECV)) && (caps & (FI_MSG | FI_TAGGED))) {
        caps |= FI_SEND | FI_RECV;
    }
    if (!(caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)) &&
        (caps & (FI_RMA | FI_ATOMIC))) {
        caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    }
    caps |= domain_caps;
    if (!h || !h->caps) {
        caps = all_caps(rdm);
    } else if (!(h->caps & domain_caps)) {
        caps |= domain_caps;
    } else {
        caps = (caps & ~domain_caps) | (h->caps & domain_caps);
    }
    return caps;
}

// ht, hr: the hints', or nullptr.
void fill_contexts(fi_info *info, const fi_tx_attr *ht, const fi_rx_attr *hr)
{
    uint64_t caps = info->caps;
    fi_tx_attr *t = info->tx_attr;
    t->caps = ht && ht->caps ? ht->caps & caps : caps & tx_caps;
    t->op_flags = ht ? ht->op_flags : 0;
    t->msg_order = ht && ht->msg_order ? ht->msg_order : msg_order;
    t->inject_size = limit::inject;
    t->size = either(ht ? ht->size : 0, limit::tx_size);
    t->iov_limit = limit::iov;
    t->rma_iov_limit = 1;
    t->tclass = ht ? ht->tclass : 0;
    fi_rx_attr *r = info->rx_attr;
    r->caps = hr && hr->caps ? hr->caps & caps : caps & rx_caps;
    r->op_flags = hr ? hr->op_flags : 0;
    r->msg_order = hr && hr->msg_order ? hr->msg_order : msg_order;
    r->size = either(hr ? hr->size : 0, limit::rx_size);
    r->iov_limit = limit::iov;
}

// hd: the hints', or nullptr.
void fill_domain(fi_info *info, uint32_t version, const fi_domain_attr *hd, bool rdm)
{
    fi_domain_attr *d = info->domain_attr;
    d->domain = hd ? hd->domain : nullptr;
    d->name = copy("ucxlike");
    d->threading = either(hd ? hd->threading : FI_THREAD_UNSPEC, FI_THREAD_SAFE);
    d->control_progress =
        either(hd ? hd->control_progress : FI_PROGRESS_UNSPEC, FI_PROGRESS_MANUAL);
    d->data_progress = either(hd ? hd->data_progress : FI_PROGRESS_UNSPEC, FI_PROGRESS_MANUAL);
    d->resource_mgmt = either(hd ? hd->resource_mgmt : FI_RM_UNSPEC, FI_RM_ENABLED);
    d->av_type = hd ? hd->av_type : FI_AV_UNSPEC;
    int mr = hd ? hd->mr_mode : 0;
    bool old = FI_VERSION_LT(version, FI_VERSION(1, 5));
    d->mr_mode = mr == retired::mr_basic             ? retired::mr_basic
                 : mr == retired::mr_scalable || old ? retired::mr_scalable
                                                     : 0;
    d->mr_key_size = 8;
    d->cq_data_size = 8;
    auto objects = [&](size_t fi_domain_attr::*count) {
        return std::max(hd ? hd->*count : 0, limit::objects);
    };
    d->cq_cnt = objects(&fi_domain_attr::cq_cnt);
    d->ep_cnt = objects(&fi_domain_attr::ep_cnt);
    d->cntr_cnt = objects(&fi_domain_attr::cntr_cnt);
    d->tx_ctx_cnt = objects(&fi_domain_attr::tx_ctx_cnt);
    d->rx_ctx_cnt = objects(&fi_domain_attr::rx_ctx_cnt);
    d->max_ep_tx_ctx = 1;
    d->max_ep_rx_ctx = 1;
    d->max_ep_srx_ctx = 1;
    d->mr_iov_limit = 1;
    d->mr_cnt = limit::regions;
    d->max_err_data = limit::err_data;
    d->caps = (info->caps & domain_caps) | (rdm ? FI_AV_USER_ID : 0);
    d->tclass = hd ? hd->tclass : 0;
}

info_ptr make(uint32_t version, const fi_info *h, bool rdm, uint32_t format, const address &src,
              const address &dest)
{
    info_ptr info(fi_allocinfo());
    if (!info) {
        throw failure{FI_ENOMEM};
    }
    uint64_t caps = caps_for(h, rdm);
    info->caps = caps;
    info->addr_format = format;
    set_address(&info->src_addr, &info->src_addrlen, src);
    set_address(&info->dest_addr, &info->dest_addrlen, dest);
    info->handle = h ? h->handle : nullptr;

    const fi_tx_attr *ht = h ? h->tx_attr : nullptr;
    const fi_rx_attr *hr = h ? h->rx_attr : nullptr;
    const fi_ep_attr *he = h ? h->ep_attr : nullptr;
    const fi_domain_attr *hd = h ? h->domain_attr : nullptr;

    fill_contexts(info.get(), ht, hr);

    fi_ep_attr *e = info->ep_attr;
    e->type = rdm ? FI_EP_RDM : FI_EP_MSG;
    e->protocol = own_protocol;
    e->protocol_version = 1;
    e->max_msg_size = limit::max_msg;
    e->max_order_raw_size = limit::max_msg;
    e->max_order_waw_size = limit::max_msg;
    e->max_order_war_size = limit::max_msg;
    e->mem_tag_format = he && he->mem_tag_format ? he->mem_tag_format : tag_format;
    e->tx_ctx_cnt = 1;
    e->rx_ctx_cnt = he && he->rx_ctx_cnt == FI_SHARED_CONTEXT ? FI_SHARED_CONTEXT : 1;

    fill_domain(info.get(), version, hd, rdm);

    info->fabric_attr->name = copy("ucxlike");
    info->fabric_attr->prov_version = provider.version;
    info->fabric_attr->api_version = version;
    return info;
}

bool fits(const address &a, uint32_t format)
{
    return a.empty() || format == FI_FORMAT_UNSPEC || format == FI_SOCKADDR ||
           (format == FI_SOCKADDR_IN) == (a.sa.sa_family == AF_INET);
}

// One for each type of endpoint that the hints allow; empty when there is none. fallback: where
// they name no source.
info_ptr make_all(uint32_t version, const fi_info *h, uint32_t format, const address &src,
                  const address &dest, const address &fallback)
{
    bool passive_any = is_any(src);
    info_ptr first;
    fi_info **tail = nullptr;
    for (bool rdm : {true, false}) {
        if (!can_serve(version, h, rdm)) {
            continue;
        }
        address s = src;
        if (s.empty()) {
            s = fallback;
        } else if (passive_any && rdm) {
            s = fallback;
            s.set_port(src.port());
        }
        uint32_t f = format == FI_SOCKADDR        ? static_cast<uint32_t>(FI_SOCKADDR)
                     : s.sa.sa_family == AF_INET6 ? static_cast<uint32_t>(FI_SOCKADDR_IN6)
                                                  : static_cast<uint32_t>(FI_SOCKADDR_IN);
        info_ptr i = make(version, h, rdm, f, s, dest);
        if (!first) {
            first = std::move(i);
            tail = &first->next;
        } else {
            *tail = i.release();
            tail = &(*tail)->next;
        }
    }
    return first;
}

// Which family is to be resolved; AF_UNSPEC: either.
int wanted_family(uint32_t format, const char *node, const char *service, uint64_t flags)
{
    if (format == FI_SOCKADDR_IN) {
        return AF_INET;
    }
    if (format == FI_SOCKADDR_IN6) {
        return AF_INET6;
    }
    if ((node || service) && (!node || (flags & FI_SOURCE))) {
        // Nothing says which family: IPv4, if the node has such an address.
        address test;
        if (!node || resolve(node, service, flags, AF_INET, &test) == 0) {
            return AF_INET;
        }
    }
    return AF_UNSPEC;
}

// What node and service name goes to the one side or the other.
int resolve_names(const char *node, const char *service, uint64_t flags, int family, address *src,
                  address *dest)
{
    if (!node && !service) {
        return 0;
    }
    if (!node && !(flags & FI_SOURCE) && !dest->empty()) {
        dest->set_port(static_cast<uint16_t>(atoi(service)));
        return 0;
    }
    // A service alone is that of this side, for there is no peer to connect to.
    bool here = (flags & FI_SOURCE) || !node;
    address found;
    if (int error = resolve(node, service, flags | (here ? FI_SOURCE : 0), family, &found)) {
        return error;
    }
    *(here ? src : dest) = found;
    return 0;
}

// A destination decides the local address unless the application did. False: no route leads there.
bool set_source(address *src, const address &dest)
{
    if (dest.empty()) {
        return true;
    }
    if (is_any(*src)) {
        uint16_t port = src->port();
        *src = source_for(dest);
        src->set_port(port);
    }
    if (src->empty()) {
        *src = source_for(dest);
    }
    return !src->empty();
}

int build(uint32_t version, const char *node, const char *service, uint64_t flags, const fi_info *h,
          fi_info **out)
{
    uint32_t format = h ? h->addr_format : static_cast<uint32_t>(FI_FORMAT_UNSPEC);
    int family = wanted_family(format, node, service, flags);
    address src, dest;
    if (h && h->src_addr) {
        src = address::from(h->src_addr, h->src_addrlen);
    }
    if (h && h->dest_addr) {
        dest = address::from(h->dest_addr, h->dest_addrlen);
    }
    if (int error = resolve_names(node, service, flags, family, &src, &dest)) {
        return error;
    }
    if (!fits(src, format) || !fits(dest, format)) {
        return -FI_ENODATA;
    }
    if (!set_source(&src, dest)) {
        PROV_INFO(CORE, "no route to the destination\n");
        return -FI_ENODATA;
    }
    if (family == AF_UNSPEC) {
        family = !src.empty() ? src.sa.sa_family : AF_INET;
    }
    address fallback = default_source(family);
    if (fallback.empty()) {
        return -FI_ENODATA;
    }
    info_ptr first = make_all(version, h, format, src, dest, fallback);
    if (!first) {
        return -FI_ENODATA;
    }
    *out = first.release();
    return 0;
}

} // namespace

int getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
            const fi_info *hints, fi_info **info)
{
    if (flags & core_providers_only) {
        return -FI_ENODATA; // a utility provider on top of us would only cost
    }
    return guard([&] {
        int error = check_params();
        return error ? error : build(version, node, service, flags, hints, info);
    });
}

} // namespace ucxlike
