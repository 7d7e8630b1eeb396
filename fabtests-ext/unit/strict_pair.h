// SPDX-License-Identifier: BSD-3-Clause
// Two endpoints of a strict core, each with a domain of its own, as a program of libfabric's has
// them.
#pragma once

#include "fabtests-ext/common/strict_cores.h"

#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace strict_test {

constexpr int every_mode =
    FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;

struct info_list {
    fi_info *first = nullptr;
    ~info_list() { fi_freeinfo(first); }
};

// Asks for the provider with all modes and the given order; edit may change the hints.
inline void ask(const std::string &provider, info_list *list, uint64_t order = 0,
                const std::function<void(fi_info *)> &edit = {})
{
    fi_info *hints = fi_allocinfo();
    hints->fabric_attr->prov_name = strdup(provider.c_str());
    hints->domain_attr->mr_mode = every_mode;
    hints->tx_attr->msg_order = order;
    hints->rx_attr->msg_order = order;
    if (edit) {
        edit(hints);
    }
    fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &list->first);
    fi_freeinfo(hints);
}

// An endpoint with its own queue, address vector and domain.
struct station {
    fid_fabric *fabric = nullptr;
    fid_domain *domain = nullptr;
    fid_cq *cq = nullptr;
    fid_av *av = nullptr;
    fid_ep *ep = nullptr;
    std::vector<fid_mr *> regions;

    explicit station(fi_info *info, bool enable = true)
    {
        EXPECT_EQ(0, fi_fabric(info->fabric_attr, &fabric, nullptr));
        EXPECT_EQ(0, fi_domain(fabric, info, &domain, nullptr));
        fi_cq_attr queue{};
        queue.format = FI_CQ_FORMAT_DATA;
        queue.wait_obj = FI_WAIT_NONE;
        EXPECT_EQ(0, fi_cq_open(domain, &queue, &cq, nullptr));
        fi_av_attr names{};
        EXPECT_EQ(0, fi_av_open(domain, &names, &av, nullptr));
        EXPECT_EQ(0, fi_endpoint(domain, info, &ep, nullptr));
        EXPECT_EQ(0, fi_ep_bind(ep, &av->fid, 0));
        EXPECT_EQ(0, fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
        if (enable) {
            EXPECT_EQ(0, fi_enable(ep));
        }
    }
    station(const station &) = delete;
    ~station()
    {
        for (fid_mr *region : regions) {
            fi_close(&region->fid);
        }
        fi_close(&ep->fid);
        fi_close(&av->fid);
        fi_close(&cq->fid);
        EXPECT_EQ(0, fi_close(&domain->fid));
        fi_close(&fabric->fid);
    }

    std::string name() const
    {
        char address[64];
        size_t length = sizeof(address);
        EXPECT_EQ(0, fi_getname(&ep->fid, address, &length));
        return {address, length};
    }
    fi_addr_t insert(const std::string &address) const
    {
        fi_addr_t added = FI_ADDR_UNSPEC;
        EXPECT_EQ(1, fi_av_insert(av, address.data(), 1, &added, 0, nullptr));
        return added;
    }
    fid_mr *reg(void *buffer, size_t length)
    {
        fid_mr *region = nullptr;
        uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
        EXPECT_EQ(0, fi_mr_reg(domain, buffer, length, access, 0, regions.size() + 1, 0, &region,
                               nullptr));
        regions.push_back(region);
        return region;
    }
    // Reads one completion; false: none yet.
    bool poll(fi_cq_data_entry *entry) const
    {
        ssize_t n = fi_cq_read(cq, entry, 1);
        if (n == -FI_EAVAIL) {
            fi_cq_err_entry error{};
            fi_cq_readerr(cq, &error, 0);
            throw std::runtime_error(fi_strerror(error.err));
        }
        return n == 1;
    }
};

// Two stations over one core.
struct pair {
    info_list list;
    std::unique_ptr<station> a;
    std::unique_ptr<station> b;
    fi_addr_t to_b = FI_ADDR_UNSPEC;

    explicit pair(const std::string &provider, uint64_t order = 0)
    {
        setenv("FI_STRICT_EAGAIN", "0", 1);
        ask(provider, &list, order);
        for (fi_info *i = list.first; i; i = i->next) {
            if (std::string(i->fabric_attr->name) == provider) {
                a = std::make_unique<station>(i);
                b = std::make_unique<station>(i);
            }
        }
        if (a) {
            to_b = a->insert(b->name());
        }
    }

    bool local() const { return list.first->domain_attr->mr_mode & FI_MR_LOCAL; }
    bool by_endpoint() const { return list.first->domain_attr->mr_mode & FI_MR_ENDPOINT; }
    static fid_mr *enable(station &at, fid_mr *region)
    {
        EXPECT_EQ(0, fi_mr_bind(region, &at.ep->fid, 0));
        EXPECT_EQ(0, fi_mr_enable(region));
        return region;
    }
    // Registered as the core wants it.
    fid_mr *region(station &at, void *buffer, size_t length) const
    {
        fid_mr *made = at.reg(buffer, length);
        return by_endpoint() ? enable(at, made) : made;
    }

    // Sends numbers and returns them as they arrive.
    std::vector<uint64_t> run(uint64_t count) const
    {
        std::vector<uint64_t> in(count);
        fid_mr *mr = region(*b, in.data(), count * sizeof(uint64_t));
        for (uint64_t &slot : in) {
            EXPECT_EQ(0,
                      fi_recv(b->ep, &slot, sizeof(slot), fi_mr_desc(mr), FI_ADDR_UNSPEC, &slot));
        }
        std::vector<uint64_t> arrived;
        fi_cq_data_entry entry;
        for (uint64_t i = 0; i < count; ++i) {
            ssize_t ret;
            while ((ret = fi_inject(a->ep, &i, sizeof(i), to_b)) == -FI_EAGAIN) {
                a->poll(&entry);
            }
            EXPECT_EQ(0, ret);
        }
        while (arrived.size() < count) {
            a->poll(&entry);
            if (b->poll(&entry)) {
                arrived.push_back(*static_cast<uint64_t *>(entry.op_context));
            }
        }
        return arrived;
    }
};

} // namespace strict_test
