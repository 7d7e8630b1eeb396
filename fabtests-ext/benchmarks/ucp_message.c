/* SPDX-License-Identifier: BSD-3-Clause
 *
 * 8-byte tagged messages between two workers of this process, one at a time, in exchange(), whose
 * instructions instructions.sh counts. Usage: ucp_message MESSAGES
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucp/api/ucp.h>

static ucp_worker_h from, to;

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

static void finish(ucs_status_ptr_t request)
{
    if (UCS_PTR_IS_PTR(request)) {
        while (ucp_request_check_status(request) == UCS_INPROGRESS) {
            ucp_worker_progress(from);
            ucp_worker_progress(to);
        }
        check(ucp_request_check_status(request), "message");
        ucp_request_free(request);
    } else {
        check(UCS_PTR_STATUS(request), "message");
    }
}

/* What is counted. Exported, and kept as one function, so that its name is known. */
__attribute__((noinline)) void exchange(ucp_ep_h ep, uint64_t word)
{
    ucp_request_param_t none = {0};
    uint64_t arrived = 0;
    ucs_status_ptr_t receive =
        ucp_tag_recv_nbx(to, &arrived, sizeof(arrived), 1, UINT64_MAX, &none);
    finish(ucp_tag_send_nbx(ep, &word, sizeof(word), 1, &none));
    finish(receive);
    if (arrived != word) {
        fprintf(stderr, "another message arrived\n");
        exit(1);
    }
}

static void warm_up(ucp_ep_h ep)
{
    ucp_request_param_t none = {0};
    uint64_t word = 1;
    int i;
    for (i = 0; i < 100; ++i) {
        ucs_status_ptr_t receive = ucp_tag_recv_nbx(to, &word, sizeof(word), 1, UINT64_MAX, &none);
        finish(ucp_tag_send_nbx(ep, &word, sizeof(word), 1, &none));
        finish(receive);
    }
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1000, i;
    ucp_params_t params = {0};
    ucp_worker_params_t worker_params = {0};
    ucp_ep_params_t ep_params = {0};
    ucp_request_param_t none = {0};
    ucp_context_h context;
    ucp_address_t *address;
    size_t length;
    ucp_ep_h ep;

    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    check(ucp_init(&params, NULL, &context), "ucp_init");
    check(ucp_worker_create(context, &worker_params, &from), "ucp_worker_create");
    check(ucp_worker_create(context, &worker_params, &to), "ucp_worker_create");
    check(ucp_worker_get_address(to, &address, &length), "ucp_worker_get_address");
    ep_params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    ep_params.address = address;
    check(ucp_ep_create(from, &ep_params, &ep), "ucp_ep_create");
    warm_up(ep);
    for (i = 0; i < count; ++i) {
        exchange(ep, (uint64_t)i);
    }
    finish(ucp_ep_close_nbx(ep, &none));
    ucp_worker_release_address(to, address);
    ucp_worker_destroy(from);
    ucp_worker_destroy(to);
    ucp_cleanup(context);
    return 0;
}
