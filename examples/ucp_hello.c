/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One message each way between a UCP client and a server that listens. docs/tutorial.md walks
 * through it.
 *
 *   cc ucp_hello.c -o ucp_hello $(pkg-config --cflags --libs ucxlike)
 *   ./ucp_hello                  # the server; prints the port that it got
 *   ./ucp_hello ADDRESS PORT     # the client; ADDRESS is numeric
 *
 * Nothing here is of ucxlike alone: it builds against any UCX from 1.13 on.
 */
#include <ucp/api/ucp.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { tag_question = 1, tag_answer = 2 };

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

/* An operation is an error, done at once (NULL), or a request that ends while the worker makes
 * progress. */
static void finish(ucp_worker_h worker, void *request, const char *what)
{
    ucs_status_t status = UCS_OK;
    if (UCS_PTR_IS_ERR(request)) {
        status = UCS_PTR_STATUS(request);
    } else if (request) {
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
            ucp_worker_progress(worker);
        }
        ucp_request_free(request);
    }
    check(status, what);
}

static void send_text(ucp_worker_h worker, ucp_ep_h ep, ucp_tag_t tag, const char *text)
{
    ucp_request_param_t param = {0};
    finish(worker, ucp_tag_send_nbx(ep, text, strlen(text) + 1, tag, &param), "send");
}

static ucs_status_t peer_status = UCS_OK; /* an error when the peer is gone */

/* A peer that is gone fails what is under way to it; the handler is told once. A peer that has
 * closed its endpoint, as both sides do here at the end, is gone as well. */
static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)arg;
    (void)ep;
    peer_status = status;
}

/* A receive takes messages of any peer, so it does not end when the only peer is gone. */
static void receive_text(ucp_worker_h worker, ucp_tag_t tag)
{
    char text[256];
    ucp_request_param_t param = {0};
    void *request = ucp_tag_recv_nbx(worker, text, sizeof(text), tag, ~(ucp_tag_t)0, &param);
    while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS) {
        check(peer_status, "the peer is gone");
        ucp_worker_progress(worker);
    }
    finish(worker, request, "receive");
    printf("%s\n", text);
}

static ucp_ep_h create_ep(ucp_worker_h worker, ucp_ep_params_t *params)
{
    ucp_ep_h ep;
    params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params->err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params->err_handler.cb = on_error;
    check(ucp_ep_create(worker, params, &ep), "ucp_ep_create");
    return ep;
}

static void close_ep(ucp_worker_h worker, ucp_ep_h ep)
{
    ucp_request_param_t param = {0};
    finish(worker, ucp_ep_close_nbx(ep, &param), "close");
}

static void on_connection(ucp_conn_request_h request, void *arg)
{
    *(ucp_conn_request_h *)arg =
        request; /* kept for the loop below, which makes an endpoint of it */
}

static void serve(ucp_worker_h worker)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    ucp_conn_request_h request = NULL;
    ucp_listener_params_t params = {0};
    ucp_listener_attr_t attr = {0};
    ucp_ep_params_t ep_params = {0};
    ucp_listener_h listener;
    ucp_ep_h ep;

    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr.addr = (const struct sockaddr *)&any;
    params.sockaddr.addrlen = sizeof(any);
    params.conn_handler.cb = on_connection;
    params.conn_handler.arg = &request;
    check(ucp_listener_create(worker, &params, &listener), "ucp_listener_create");
    attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    check(ucp_listener_query(listener, &attr), "ucp_listener_query");
    printf("port %u\n", ntohs(((struct sockaddr_in *)&attr.sockaddr)->sin_port));
    fflush(stdout);

    while (!request) {
        ucp_worker_progress(worker);
    }
    ep_params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    ep_params.conn_request = request;
    ep = create_ep(worker, &ep_params);
    receive_text(worker, tag_question);
    send_text(worker, ep, tag_answer, "hello, client");
    close_ep(worker, ep);
    ucp_listener_destroy(listener);
}

static void ask(ucp_worker_h worker, const char *address, const char *port)
{
    struct sockaddr_in server = {.sin_family = AF_INET};
    ucp_ep_params_t params = {0};
    ucp_ep_h ep;

    server.sin_port = htons((uint16_t)atoi(port));
    if (inet_pton(AF_INET, address, &server.sin_addr) != 1) {
        fprintf(stderr, "%s is no numeric IPv4 address\n", address);
        exit(1);
    }
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr.addr = (const struct sockaddr *)&server;
    params.sockaddr.addrlen = sizeof(server);
    ep = create_ep(worker, &params);
    send_text(worker, ep, tag_question, "hello, server");
    receive_text(worker, tag_answer);
    close_ep(worker, ep);
}

int main(int argc, char **argv)
{
    ucp_params_t params = {0};
    ucp_worker_params_t worker_params = {0};
    ucp_context_h context;
    ucp_worker_h worker;

    if (argc != 1 && argc != 3) {
        fprintf(stderr, "usage: %s [ADDRESS PORT]\n", argv[0]);
        return 2;
    }
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    check(ucp_init(&params, NULL, &context), "ucp_init");
    check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
    if (argc == 1) {
        serve(worker);
    } else {
        ask(worker, argv[1], argv[2]);
    }
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    return 0;
}
