/* SPDX-License-Identifier: BSD-3-Clause
 *
 * UCP connections per second to one listener, both sides in this process, through the public calls
 * alone, so that the same program runs on any implementation. The next is begun when the server has
 * its endpoint of the one before; the time ends when a flush of each client endpoint has completed.
 *
 * Usage: ucp_cm_rate [address [connections]]; prints connections per second, and the KiB of
 * resident memory of the process before the first connection and with all of them.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

static ucp_worker_h server_worker, client_worker;
static ucp_ep_h *server_eps;
static int accepted;

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)arg;
    (void)ep;
    (void)status; /* of the endpoints that end with a round */
}

static void on_request(ucp_conn_request_h request, void *arg)
{
    ucp_ep_params_t params = {0};
    (void)arg;
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                        UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.conn_request = request;
    params.err_handler.cb = on_error;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    check(ucp_ep_create(server_worker, &params, &server_eps[accepted]), "ucp_ep_create, server");
    ++accepted;
}

static void progress(void)
{
    ucp_worker_progress(server_worker);
    ucp_worker_progress(client_worker);
}

static void await(ucs_status_ptr_t request, const char *what)
{
    ucs_status_t status = UCS_PTR_STATUS(request);
    if (UCS_PTR_IS_PTR(request)) {
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
            progress();
        }
        ucp_request_free(request);
    }
    if (what) {
        check(status, what);
    }
}

static ucp_ep_h connect_once(const struct sockaddr_storage *to)
{
    ucp_ep_params_t params = {0};
    int before = accepted;
    ucp_ep_h ep;
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr.addr = (const struct sockaddr *)to;
    params.sockaddr.addrlen = sizeof(struct sockaddr_in);
    params.err_handler.cb = on_error;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    check(ucp_ep_create(client_worker, &params, &ep), "ucp_ep_create, client");
    while (accepted == before) {
        progress();
    }
    return ep;
}

static void end(ucp_ep_h ep)
{
    ucp_request_param_t force = {0};
    force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    force.flags = UCP_EP_CLOSE_FLAG_FORCE;
    await(ucp_ep_close_nbx(ep, &force), NULL);
}

static ucp_worker_h make_worker(ucp_context_h context)
{
    ucp_worker_params_t params = {0};
    ucp_worker_h worker;
    check(ucp_worker_create(context, &params, &worker), "ucp_worker_create");
    return worker;
}

static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1) {
        fprintf(stderr, "/proc/self/statm cannot be read\n");
        exit(1);
    }
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[2]) : 200;
    struct sockaddr_in at = {0};
    ucp_request_param_t none = {0};
    ucp_params_t params = {0};
    ucp_listener_params_t listen = {0};
    ucp_listener_attr_t bound = {0};
    struct timespec start, stop;
    ucp_context_h context;
    ucp_listener_h listener;
    long before;
    ucp_ep_h *client_eps = calloc((size_t)count, sizeof(*client_eps));

    server_eps = calloc((size_t)count, sizeof(*server_eps));
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    check(ucp_init(&params, NULL, &context), "ucp_init");
    server_worker = make_worker(context);
    client_worker = make_worker(context);

    at.sin_family = AF_INET;
    inet_pton(AF_INET, argc > 1 ? argv[1] : "127.0.0.1", &at.sin_addr);
    listen.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    listen.sockaddr.addr = (const struct sockaddr *)&at;
    listen.sockaddr.addrlen = sizeof(at);
    listen.conn_handler.cb = on_request;
    check(ucp_listener_create(server_worker, &listen, &listener), "ucp_listener_create");
    bound.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    check(ucp_listener_query(listener, &bound), "ucp_listener_query");

    before = resident_kib();
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < count; ++i) {
        client_eps[i] = connect_once(&bound.sockaddr);
    }
    for (int i = 0; i < count; ++i) {
        await(ucp_ep_flush_nbx(client_eps[i], &none), "ucp_ep_flush_nbx");
    }
    clock_gettime(CLOCK_MONOTONIC, &stop);
    printf("%.0f %ld %ld\n",
           count / ((double)(stop.tv_sec - start.tv_sec) +
                    (double)(stop.tv_nsec - start.tv_nsec) * 1e-9),
           before, resident_kib());

    for (int i = 0; i < count; ++i) {
        end(client_eps[i]);
        end(server_eps[i]);
    }
    ucp_listener_destroy(listener);
    ucp_worker_destroy(client_worker);
    ucp_worker_destroy(server_worker);
    ucp_cleanup(context);
    free(client_eps);
    free(server_eps);
    return 0;
}
