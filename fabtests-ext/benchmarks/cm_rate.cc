// SPDX-License-Identifier: BSD-3-Clause
// Connections per second to one listener, both sides in this process: what a program gets that
// calls fi_connect and fi_accept of the core provider, the same program over the provider ucxlike,
// and uct_cm. They take turns: first each connection is closed before the next one is made, then
// all of a round are kept until its end.
//
// Usage: cm_rate [component [address [connections [rounds]]]]
#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <string>
#include <uct/api/uct.h>
#include <vector>

namespace {

const char *component_name = "tcp";
sockaddr_in address{};

template <class T>
void check(T ret, const char *what)
{
    if (ret != 0) {
        fprintf(stderr, "%s: %d\n", what, static_cast<int>(ret));
        exit(1);
    }
}

template <class F>
double seconds(F &&work)
{
    auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// ---- A libfabric program

class libfabric {
  public:
    explicit libfabric(const char *provider)
    {
        fi_info *hints = fi_allocinfo();
        hints->fabric_attr->prov_name = strdup(provider);
        hints->ep_attr->type = FI_EP_MSG;
        hints->caps = FI_MSG;
        hints->mode = FI_CONTEXT | FI_CONTEXT2;
        hints->domain_attr->mr_mode =
            FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
        hints->addr_format = FI_SOCKADDR_IN;
        char host[INET_ADDRSTRLEN];
        inet_ntop(AF_INET, &address.sin_addr, host, sizeof(host));
        check(fi_getinfo(FI_VERSION(1, 17), host, nullptr, FI_SOURCE, hints, &info_), "fi_getinfo");
        fi_freeinfo(hints);
        check(fi_fabric(info_->fabric_attr, &fabric_, nullptr), "fi_fabric");
        fi_eq_attr eq_attr{};
        eq_attr.wait_obj = FI_WAIT_FD;
        check(fi_eq_open(fabric_, &eq_attr, &eq_, nullptr), "fi_eq_open");
        check(fi_domain(fabric_, info_, &domain_, nullptr), "fi_domain");
        fi_cq_attr cq_attr{};
        cq_attr.format = FI_CQ_FORMAT_MSG;
        cq_attr.wait_obj = FI_WAIT_FD;
        check(fi_cq_open(domain_, &cq_attr, &cq_, nullptr), "fi_cq_open");
        check(fi_passive_ep(fabric_, info_, &pep_, nullptr), "fi_passive_ep");
        check(fi_pep_bind(pep_, &eq_->fid, 0), "fi_pep_bind");
        check(fi_listen(pep_), "fi_listen");
        size_t length = sizeof(target_);
        check(fi_getname(&pep_->fid, &target_, &length), "fi_getname");
    }

    struct ends {
        fid_ep *client = nullptr;
        fid_ep *server = nullptr;
    };

    static void close(const ends &e)
    {
        check(fi_close(&e.client->fid), "fi_close");
        check(fi_close(&e.server->fid), "fi_close");
    }

    ends connect()
    {
        fi_info *to = fi_dupinfo(info_);
        free(to->src_addr);
        to->src_addr = nullptr;
        to->src_addrlen = 0;
        to->dest_addr = malloc(sizeof(target_));
        to->dest_addrlen = sizeof(target_);
        memcpy(to->dest_addr, &target_, sizeof(target_));
        fid_ep *client = open(to);
        fi_freeinfo(to);
        char data[32] = "what the client says";
        check(fi_connect(client, &target_, data, 20), "fi_connect");
        fid_ep *server = nullptr;
        for (int connected = 0; connected < 2;) {
            char buffer[512];
            auto *entry = reinterpret_cast<fi_eq_cm_entry *>(buffer);
            uint32_t event = 0;
            ssize_t ret = fi_eq_read(eq_, &event, buffer, sizeof(buffer), 0);
            if (ret == -FI_EAGAIN) {
                continue;
            }
            if (ret == -FI_EAVAIL) {
                fi_eq_err_entry error{};
                fi_eq_readerr(eq_, &error, 0);
                fprintf(stderr, "event queue: %s\n", fi_strerror(error.err));
                exit(1);
            }
            if (ret < 0) {
                fprintf(stderr, "fi_eq_read: %s\n", fi_strerror(static_cast<int>(-ret)));
                exit(1);
            }
            if (event == FI_CONNREQ) {
                server = open(entry->info);
                fi_freeinfo(entry->info);
                check(fi_accept(server, data, 20), "fi_accept");
            } else if (event == FI_CONNECTED) {
                ++connected;
            }
        }
        return {client, server};
    }

  private:
    fid_ep *open(fi_info *info)
    {
        fid_ep *ep = nullptr;
        check(fi_endpoint(domain_, info, &ep, nullptr), "fi_endpoint");
        check(fi_ep_bind(ep, &eq_->fid, 0), "fi_ep_bind");
        check(fi_ep_bind(ep, &cq_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
        check(fi_enable(ep), "fi_enable");
        return ep;
    }

    fi_info *info_ = nullptr;
    fid_fabric *fabric_ = nullptr;
    fid_eq *eq_ = nullptr;
    fid_domain *domain_ = nullptr;
    fid_cq *cq_ = nullptr;
    fid_pep *pep_ = nullptr;
    sockaddr_in target_{};
};

// ---- Ours

class managed {
  public:
    managed()
    {
        uct_component_h *list = nullptr;
        uct_component_h found = nullptr;
        unsigned count = 0;
        check(uct_query_components(&list, &count), "uct_query_components");
        for (unsigned i = 0; i < count; ++i) {
            uct_component_attr_t attr{};
            attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
            uct_component_query(list[i], &attr);
            if (strcmp(attr.name, component_name) == 0) {
                found = list[i];
            }
        }
        check(found == nullptr, "no such component");
        check(uct_worker_create(nullptr, UCS_THREAD_MODE_SINGLE, &worker_), "uct_worker_create");
        uct_cm_config_t *config = nullptr;
        check(uct_cm_config_read(found, nullptr, nullptr, &config), "uct_cm_config_read");
        check(uct_cm_open(found, worker_, config, &server_), "uct_cm_open");
        check(uct_cm_open(found, worker_, config, &client_), "uct_cm_open");
        uct_config_release(config);
        uct_release_component_list(list);

        uct_listener_params_t params{};
        params.field_mask =
            UCT_LISTENER_PARAM_FIELD_CONN_REQUEST_CB | UCT_LISTENER_PARAM_FIELD_USER_DATA;
        params.conn_request_cb = on_request;
        params.user_data = this;
        check(uct_listener_create(server_, reinterpret_cast<sockaddr *>(&address), sizeof(address),
                                  &params, &listener_),
              "uct_listener_create");
        uct_listener_attr_t attr{};
        attr.field_mask = UCT_LISTENER_ATTR_FIELD_SOCKADDR;
        uct_listener_query(listener_, &attr);
        memcpy(&target_, &attr.sockaddr, sizeof(target_));
    }

    ~managed()
    {
        uct_listener_destroy(listener_);
        uct_cm_close(server_);
        uct_cm_close(client_);
        uct_worker_destroy(worker_);
    }

    struct ends {
        uct_ep_h client = nullptr;
        uct_ep_h server = nullptr;
    };

    static void close(const ends &e)
    {
        uct_ep_destroy(e.client);
        uct_ep_destroy(e.server);
    }

    ends connect()
    {
        notified_ = false;
        ucs_sock_addr_t to{reinterpret_cast<sockaddr *>(&target_), sizeof(target_)};
        uct_ep_params_t params = common();
        params.field_mask |= UCT_EP_PARAM_FIELD_SOCKADDR | UCT_EP_PARAM_FIELD_SOCKADDR_PACK_CB |
                             UCT_EP_PARAM_FIELD_SOCKADDR_CONNECT_CB_CLIENT;
        params.cm = client_;
        params.sockaddr = &to;
        params.sockaddr_pack_cb = on_pack;
        params.sockaddr_cb_client = on_connect;
        uct_ep_h ep = nullptr;
        check(uct_ep_create(&params, &ep), "uct_ep_create");
        while (!notified_) {
            uct_worker_progress(worker_);
        }
        return {ep, server_ep_};
    }

  private:
    uct_ep_params_t common()
    {
        uct_ep_params_t params{};
        params.field_mask = UCT_EP_PARAM_FIELD_CM | UCT_EP_PARAM_FIELD_USER_DATA |
                            UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS;
        params.user_data = this;
        params.sockaddr_cb_flags = UCT_CB_FLAG_ASYNC;
        return params;
    }

    static ssize_t on_pack(void *, const uct_cm_ep_priv_data_pack_args_t *, void *out)
    {
        memcpy(out, "what the client says", 20);
        return 20;
    }

    static void on_request(uct_listener_h, void *arg,
                           const uct_cm_listener_conn_request_args_t *args)
    {
        auto *self = static_cast<managed *>(arg);
        uct_ep_params_t params = self->common();
        params.field_mask |= UCT_EP_PARAM_FIELD_CONN_REQUEST | UCT_EP_PARAM_FIELD_PRIV_DATA |
                             UCT_EP_PARAM_FIELD_PRIV_DATA_LENGTH |
                             UCT_EP_PARAM_FIELD_SOCKADDR_NOTIFY_CB_SERVER;
        params.cm = self->server_;
        params.conn_request = args->conn_request;
        params.private_data = "what the server says";
        params.private_data_length = 20;
        params.sockaddr_cb_server = on_notify;
        check(uct_ep_create(&params, &self->server_ep_), "uct_ep_create");
    }

    static void on_connect(uct_ep_h ep, void *, const uct_cm_ep_client_connect_args_t *args)
    {
        check(args->status, "connect callback");
        check(uct_cm_client_ep_conn_notify(ep), "uct_cm_client_ep_conn_notify");
    }

    static void on_notify(uct_ep_h, void *arg, const uct_cm_ep_server_conn_notify_args_t *args)
    {
        check(args->status, "notify callback");
        static_cast<managed *>(arg)->notified_ = true;
    }

    uct_worker_h worker_ = nullptr;
    uct_cm_h server_ = nullptr;
    uct_cm_h client_ = nullptr;
    uct_listener_h listener_ = nullptr;
    sockaddr_in target_{};
    uct_ep_h server_ep_ = nullptr;
    std::atomic<bool> notified_ = false;
};

double highest(const std::vector<double> &values)
{
    return *std::max_element(values.begin(), values.end());
}

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// Beside up to `kept` others.
template <class Subject>
double connections_a_second(Subject &subject, int connections, size_t kept)
{
    std::deque<typename Subject::ends> open;
    return connections / seconds([&] {
               for (int i = 0; i < connections; ++i) {
                   open.push_back(subject.connect());
                   if (open.size() > kept) {
                       Subject::close(open.front());
                       open.pop_front();
                   }
               }
               for (const auto &ends : open) {
                   Subject::close(ends);
               }
           });
}

void print(const std::vector<double> (&rate)[3])
{
    printf("%-12s %8s %6s %8s %6s\n", "", "best", "ratio", "median", "ratio");
    const char *names[] = {component_name, "ucxlike MSG", "uct_cm"};
    for (int i = 0; i < 3; ++i) {
        printf("%-12s %8.0f %6.2f %8.0f %6.2f\n", names[i], highest(rate[i]),
               highest(rate[i]) / highest(rate[0]), median(rate[i]),
               median(rate[i]) / median(rate[0]));
    }
}

} // namespace

int main(int argc, char **argv)
{
    component_name = argc > 1 ? argv[1] : "tcp";
    address.sin_family = AF_INET;
    inet_pton(AF_INET, argc > 2 ? argv[2] : "127.0.0.1", &address.sin_addr);
    int connections = argc > 3 ? atoi(argv[3]) : 100;
    int rounds = argc > 4 ? atoi(argv[4]) : 50;

    // Before libfabric looks for providers.
    if (const char *build = getenv("top_builddir")) {
        setenv("FI_PROVIDER_PATH", (std::string(build) + "/.libs").c_str(), 0);
    }
    setenv("FI_UCXLIKE_TLS", component_name, 0);

    libfabric core(component_name);
    libfabric provider("ucxlike");
    managed manager;
    for (size_t kept : {size_t(0), static_cast<size_t>(connections) - 1}) {
        std::vector<double> rate[3];
        for (int round = 0; round < rounds; ++round) {
            rate[0].push_back(connections_a_second(core, connections, kept));
            rate[1].push_back(connections_a_second(provider, connections, kept));
            rate[2].push_back(connections_a_second(manager, connections, kept));
        }
        printf("connections per second in %d rounds of %d, %s\n", rounds, connections,
               kept == 0 ? "one at a time" : "all at once");
        print(rate);
    }
    return 0;
}
