// SPDX-License-Identifier: BSD-3-Clause
#include "fabtests-ext/benchmarks/core_ep.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

namespace {

struct core {
    fi_info *info = nullptr;
    fid_fabric *fabric = nullptr;
    fid_eq *eq = nullptr;
    fid_domain *domain = nullptr;
    fid_cq *cq = nullptr;
    fid_pep *pep = nullptr;
    sockaddr_in here{};

    bool listen()
    {
        fi_info *hints = fi_allocinfo();
        hints->fabric_attr->prov_name = strdup("tcp");
        hints->ep_attr->type = FI_EP_MSG;
        hints->caps = FI_MSG;
        hints->addr_format = FI_SOCKADDR_IN;
        int ret = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints, &info);
        fi_freeinfo(hints);
        fi_eq_attr eq_attr{};
        eq_attr.wait_obj = FI_WAIT_FD;
        fi_cq_attr cq_attr{};
        cq_attr.format = FI_CQ_FORMAT_MSG;
        cq_attr.wait_obj = FI_WAIT_FD;
        size_t length = sizeof(here);
        return ret == 0 && fi_fabric(info->fabric_attr, &fabric, nullptr) == 0 &&
               fi_eq_open(fabric, &eq_attr, &eq, nullptr) == 0 &&
               fi_domain(fabric, info, &domain, nullptr) == 0 &&
               fi_cq_open(domain, &cq_attr, &cq, nullptr) == 0 &&
               fi_passive_ep(fabric, info, &pep, nullptr) == 0 &&
               fi_pep_bind(pep, &eq->fid, 0) == 0 && fi_listen(pep) == 0 &&
               fi_getname(&pep->fid, &here, &length) == 0;
    }

    fid_ep *open(fi_info *from)
    {
        fid_ep *ep = nullptr;
        bool opened = fi_endpoint(domain, from, &ep, nullptr) == 0 &&
                      fi_ep_bind(ep, &eq->fid, 0) == 0 &&
                      fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) == 0 && fi_enable(ep) == 0;
        return opened ? ep : nullptr;
    }

    bool connect()
    {
        fi_info *to = fi_dupinfo(info);
        free(to->src_addr);
        to->src_addr = nullptr;
        to->src_addrlen = 0;
        fid_ep *client = open(to);
        fi_freeinfo(to);
        if (!client || fi_connect(client, &here, nullptr, 0) != 0) {
            return false;
        }
        for (int connected = 0; connected < 2;) {
            alignas(fi_eq_cm_entry) char buffer[512];
            auto *entry = reinterpret_cast<fi_eq_cm_entry *>(buffer);
            uint32_t event = 0;
            ssize_t ret = fi_eq_sread(eq, &event, buffer, sizeof(buffer), 1000, 0);
            if (ret < 0 && ret != -FI_EAGAIN) {
                return false;
            }
            if (ret > 0 && event == FI_CONNREQ) {
                fid_ep *server = open(entry->info);
                fi_freeinfo(entry->info);
                if (!server || fi_accept(server, nullptr, 0) != 0) {
                    return false;
                }
            } else if (ret > 0 && event == FI_CONNECTED) {
                ++connected;
            }
        }
        return true;
    }
};

} // namespace

bool open_core_pairs(unsigned pairs)
{
    static core all;
    if (!all.info && !all.listen()) {
        return false;
    }
    for (unsigned i = 0; i < pairs; ++i) {
        if (!all.connect()) {
            return false;
        }
    }
    return true;
}
