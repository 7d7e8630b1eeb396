// SPDX-License-Identifier: BSD-3-Clause
// What the UCT benchmarks measure with: two processes that exchange addresses over a socket pair,
// each with one UCT endpoint to the other and, for comparison, one of the bare core provider.
#pragma once

#include <uct/api/uct.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <string>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace uct_bench {

inline int oob = -1; // to the other process

inline void must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
}

inline void exchange(const void *mine, void *theirs, size_t length)
{
    must(write(oob, mine, length) == static_cast<ssize_t>(length), "write");
    must(recv(oob, theirs, length, MSG_WAITALL) == static_cast<ssize_t>(length), "recv");
}

inline void meet()
{
    char c = 0;
    exchange(&c, &c, 1);
}

// Ours.
class uct_side {
  public:
    explicit uct_side(const std::string &transport)
    {
        uct_component_h *list;
        unsigned count;
        must(uct_query_components(&list, &count) == UCS_OK, "uct_query_components");
        for (unsigned i = 0; i < count; ++i) {
            uct_component_attr_t attr{};
            attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
            uct_component_query(list[i], &attr);
            if (transport == attr.name) {
                component = list[i];
                uct_md_config_t *config;
                must(uct_md_config_read(list[i], nullptr, nullptr, &config) == UCS_OK, "config");
                must(uct_md_open(list[i], transport == "tcp" ? "lo" : transport.c_str(), config,
                                 &md) == UCS_OK,
                     "uct_md_open");
                uct_config_release(config);
            }
        }
        must(md != nullptr, "finding the transport");
        must(uct_worker_create(nullptr, UCS_THREAD_MODE_SINGLE, &worker) == UCS_OK, "worker");
        uct_tl_resource_desc_t *resource;
        must(uct_md_query_tl_resources(md, &resource, &count) == UCS_OK, "resources");
        uct_iface_config_t *config;
        must(uct_md_iface_config_read(md, resource->tl_name, nullptr, nullptr, &config) == UCS_OK,
             "config");
        uct_iface_params_t params{};
        params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
        params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
        params.mode.device.tl_name = resource->tl_name;
        params.mode.device.dev_name = resource->dev_name;
        must(uct_iface_open(md, worker, &params, config, &iface) == UCS_OK, "uct_iface_open");
        uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
        uct_iface_set_am_handler(
            iface, 1,
            [](void *arg, void *, size_t, unsigned) {
                ++*static_cast<unsigned *>(arg);
                return UCS_OK;
            },
            &received, 0);
        uct_iface_attr_t attr;
        uct_iface_query(iface, &attr);
        char mine[2][256] = {};
        char theirs[2][256];
        uct_iface_get_device_address(iface, reinterpret_cast<uct_device_addr_t *>(mine[0]));
        uct_iface_get_address(iface, reinterpret_cast<uct_iface_addr_t *>(mine[1]));
        exchange(mine, theirs, sizeof(mine));
        uct_ep_params_t to{};
        to.field_mask =
            UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
        to.iface = iface;
        to.dev_addr = reinterpret_cast<uct_device_addr_t *>(theirs[0]);
        to.iface_addr = reinterpret_cast<uct_iface_addr_t *>(theirs[1]);
        must(uct_ep_create(&to, &ep) == UCS_OK, "uct_ep_create");
    }

    ~uct_side()
    {
        uct_ep_destroy(ep);
        uct_iface_close(iface);
        uct_worker_destroy(worker);
        uct_md_close(md);
    }

    void poll() { uct_worker_progress(worker); }

    uct_component_h component = nullptr;
    uct_md_h md = nullptr;
    uct_worker_h worker = nullptr;
    uct_iface_h iface = nullptr;
    uct_ep_h ep = nullptr;
    unsigned received = 0; // messages
};

// The bare core: one endpoint, one posted receive for each message.
class bare_side {
  public:
    bare_side(const std::string &provider, bool first)
    {
        fi_info *hints = fi_allocinfo();
        hints->fabric_attr->prov_name = strdup(provider.c_str());
        hints->ep_attr->type = provider == "shm" ? FI_EP_RDM : FI_EP_MSG;
        hints->caps = FI_MSG | FI_RMA;
        hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
        hints->domain_attr->threading = FI_THREAD_COMPLETION;
        if (provider != "shm") {
            hints->addr_format = FI_SOCKADDR_IN;
        }
        fi_info *info;
        must(fi_getinfo(FI_VERSION(1, 17), provider == "shm" ? nullptr : "127.0.0.1", nullptr,
                        provider == "shm" ? 0 : FI_SOURCE, hints, &info) == 0,
             "fi_getinfo");
        fid_fabric *fabric;
        must(fi_fabric(info->fabric_attr, &fabric, nullptr) == 0, "fi_fabric");
        must(fi_domain(fabric, info, &domain, nullptr) == 0, "fi_domain");
        fi_cq_attr attr{};
        attr.format = FI_CQ_FORMAT_DATA;
        attr.size = 1024;
        attr.wait_obj = provider == "shm" ? FI_WAIT_NONE : FI_WAIT_FD;
        must(fi_cq_open(domain, &attr, &cq_, nullptr) == 0, "fi_cq_open");
        provider == "shm" ? connect_rdm(info) : connect_msg(fabric, info, first);
        for (int i = 0; i < 64; ++i) {
            post(buffers_[i]);
        }
    }

    ~bare_side() { fi_close(&ep->fid); } // which removes its file; the rest goes with the process

    fid_domain *domain;
    fid_ep *ep;
    fi_addr_t peer = FI_ADDR_UNSPEC;
    unsigned received = 0; // messages
    unsigned sent = 0;     // operations that are done

    void poll()
    {
        fi_cq_data_entry entries[16];
        ssize_t n = fi_cq_read(cq_, entries, 16);
        for (ssize_t i = 0; i < n; ++i) {
            if (entries[i].flags & FI_RECV) {
                ++received;
                post(static_cast<char *>(entries[i].op_context));
            } else {
                ++sent;
            }
        }
    }

  private:
    void post(char *buffer) { fi_recv(ep, buffer, 256, nullptr, FI_ADDR_UNSPEC, buffer); }

    void connect_rdm(fi_info *info)
    {
        fid_av *av;
        fi_av_attr attr{};
        attr.type = FI_AV_TABLE;
        must(fi_av_open(domain, &attr, &av, nullptr) == 0, "fi_av_open");
        must(fi_endpoint(domain, info, &ep, nullptr) == 0, "fi_endpoint");
        must(fi_ep_bind(ep, &av->fid, 0) == 0, "fi_ep_bind");
        must(fi_ep_bind(ep, &cq_->fid, FI_TRANSMIT | FI_RECV) == 0, "fi_ep_bind");
        must(fi_enable(ep) == 0, "fi_enable");
        char mine[256] = {};
        char theirs[256];
        size_t length = sizeof(mine);
        must(fi_getname(&ep->fid, mine, &length) == 0, "fi_getname");
        exchange(mine, theirs, sizeof(mine));
        must(fi_av_insert(av, theirs, 1, &peer, 0, nullptr) == 1, "fi_av_insert");
    }

    void connect_msg(fid_fabric *fabric, fi_info *info, bool first)
    {
        fid_eq *eq;
        fi_eq_attr attr{};
        attr.wait_obj = FI_WAIT_FD;
        must(fi_eq_open(fabric, &attr, &eq, nullptr) == 0, "fi_eq_open");
        char mine[64] = {};
        char theirs[64];
        uint32_t event;
        fi_eq_cm_entry entry;
        if (first) {
            fid_pep *pep;
            must(fi_passive_ep(fabric, info, &pep, nullptr) == 0, "fi_passive_ep");
            must(fi_pep_bind(pep, &eq->fid, 0) == 0, "fi_pep_bind");
            must(fi_listen(pep) == 0, "fi_listen");
            size_t length = sizeof(mine);
            must(fi_getname(&pep->fid, mine, &length) == 0, "fi_getname");
            exchange(mine, theirs, sizeof(mine));
            while (fi_eq_read(eq, &event, &entry, sizeof(entry), 0) < 0) {
            }
            info = entry.info;
        } else {
            exchange(mine, theirs, sizeof(mine));
        }
        must(fi_endpoint(domain, info, &ep, nullptr) == 0, "fi_endpoint");
        must(fi_ep_bind(ep, &eq->fid, 0) == 0, "fi_ep_bind");
        must(fi_ep_bind(ep, &cq_->fid, FI_TRANSMIT | FI_RECV) == 0, "fi_ep_bind");
        must(fi_enable(ep) == 0, "fi_enable");
        must((first ? fi_accept(ep, nullptr, 0) : fi_connect(ep, theirs, nullptr, 0)) == 0,
             "connecting");
        while (fi_eq_read(eq, &event, &entry, sizeof(entry), 0) < 0) {
        }
    }

    fid_cq *cq_;
    char buffers_[64][256];
};

inline double median(std::vector<double> v)
{
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

inline double best(const std::vector<double> &v)
{
    return *std::min_element(v.begin(), v.end());
}

// Both processes, each on a processor of its own; true in the first, which waits for the other at
// the end.
class processes {
  public:
    processes()
    {
        int pair[2];
        must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
        child_ = fork();
        must(child_ >= 0, "fork");
        if (child_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        }
        oob = pair[first()];
        close(pair[!first()]);
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        CPU_SET(first(), &cpus);
        sched_setaffinity(0, sizeof(cpus), &cpus);
    }
    processes(const processes &) = delete;
    processes &operator=(const processes &) = delete;
    ~processes()
    {
        if (first()) {
            waitpid(child_, nullptr, 0);
        }
    }

    bool first() const { return child_ != 0; }

  private:
    pid_t child_;
};

} // namespace uct_bench
