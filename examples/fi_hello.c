/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One message each way over a connection of the libfabric provider. docs/tutorial.md walks through
 * it.
 *
 *   cc fi_hello.c -o fi_hello -lfabric
 *   FI_PROVIDER=ucxlike ./fi_hello                  # the server; prints its port and address
 *   FI_PROVIDER=ucxlike ./fi_hello ADDRESS PORT     # the client; ADDRESS is numeric
 *
 * Nothing here is of ucxlike alone: any provider with FI_EP_MSG serves it.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_eq *eq;
static struct fid_cq *cq;
static struct fid_ep *ep;

static void check(ssize_t result, const char *what)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-result));
        exit(1);
    }
}

static void find_provider(const char *address, const char *port)
{
    struct fi_info *hints = fi_allocinfo();
    hints->ep_attr->type = FI_EP_MSG;
    hints->caps = FI_MSG;
    hints->addr_format = FI_SOCKADDR_IN;
    check(fi_getinfo(FI_VERSION(1, 14), address, port, address ? 0 : FI_SOURCE, hints, &info),
          "fi_getinfo");
    fi_freeinfo(hints);
    fprintf(stderr, "provider %s\n", info->fabric_attr->prov_name);
}

static void open_fabric(void)
{
    struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
    check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    check(fi_eq_open(fabric, &eq_attr, &eq, NULL), "fi_eq_open");
}

static void open_endpoint(struct fi_info *from)
{
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_NONE};
    check(fi_domain(fabric, from, &domain, NULL), "fi_domain");
    check(fi_endpoint(domain, from, &ep, NULL), "fi_endpoint");
    check(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
    check(fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind to the event queue");
    check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind to the completion queue");
    check(fi_enable(ep), "fi_enable");
}

/* Waits for the one event that comes next in a connection's life. */
static struct fi_info *await(uint32_t expected, const char *what)
{
    struct fi_eq_cm_entry entry;
    struct fi_eq_err_entry error = {0};
    uint32_t event;
    ssize_t result = fi_eq_sread(eq, &event, &entry, sizeof(entry), -1, 0);
    if (result == -FI_EAVAIL) {
        fi_eq_readerr(eq, &error, 0);
        check(-error.err, what);
    }
    check(result, what);
    if (event != expected) {
        fprintf(stderr, "%s: event %u came instead\n", what, event);
        exit(1);
    }
    return entry.info;
}

static void finish(const char *what)
{
    struct fi_cq_entry entry;
    ssize_t result;
    while ((result = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN) {
    }
    check(result, what);
}

static void send_text(const char *text)
{
    ssize_t result;
    while ((result = fi_send(ep, text, strlen(text) + 1, NULL, 0, NULL)) == -FI_EAGAIN) {
        fi_cq_read(cq, NULL, 0); /* makes progress */
    }
    check(result, "fi_send");
    finish("send");
}

static void receive_text(void)
{
    char text[256];
    check(fi_recv(ep, text, sizeof(text), NULL, 0, NULL), "fi_recv");
    finish("receive");
    printf("%s\n", text);
}

static void serve(void)
{
    struct sockaddr_in own;
    size_t length = sizeof(own);
    char address[INET_ADDRSTRLEN];
    struct fid_pep *listener;
    struct fi_info *request;

    check(fi_passive_ep(fabric, info, &listener, NULL), "fi_passive_ep");
    check(fi_pep_bind(listener, &eq->fid, 0), "fi_pep_bind");
    check(fi_listen(listener), "fi_listen");
    check(fi_getname(&listener->fid, &own, &length), "fi_getname");
    inet_ntop(AF_INET, &own.sin_addr, address, sizeof(address));
    printf("port %u at %s\n", ntohs(own.sin_port), address);
    fflush(stdout);

    request = await(FI_CONNREQ, "waiting for a client");
    open_endpoint(request);
    check(fi_accept(ep, NULL, 0), "fi_accept");
    await(FI_CONNECTED, "accepting");
    receive_text();
    send_text("hello, client");
    await(FI_SHUTDOWN, "waiting for the client to close");
    fi_freeinfo(request);
    fi_close(&listener->fid);
}

static void ask(void)
{
    open_endpoint(info);
    check(fi_connect(ep, info->dest_addr, NULL, 0), "fi_connect");
    await(FI_CONNECTED, "connecting");
    send_text("hello, server");
    receive_text();
    check(fi_shutdown(ep, 0), "fi_shutdown");
}

int main(int argc, char **argv)
{
    if (argc != 1 && argc != 3) {
        fprintf(stderr, "usage: %s [ADDRESS PORT]\n", argv[0]);
        return 2;
    }
    find_provider(argc == 3 ? argv[1] : NULL, argc == 3 ? argv[2] : NULL);
    open_fabric();
    if (argc == 1) {
        serve();
    } else {
        ask();
    }
    fi_close(&ep->fid);
    fi_close(&cq->fid);
    fi_close(&domain->fid);
    fi_close(&eq->fid);
    fi_close(&fabric->fid);
    fi_freeinfo(info);
    return 0;
}
