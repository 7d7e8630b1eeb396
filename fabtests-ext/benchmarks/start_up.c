/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Milliseconds from nothing loaded to a UCP worker, or to libfabric's first list of what is here.
 * The library is loaded within the time, as a program that is linked with it loads it.
 *
 * Usage: start_up PATH_OF_LIBUCP | start_up PATH_OF_LIBFABRIC fi_getinfo
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucp/api/ucp.h>

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void *symbol(void *library, const char *name)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

static void check(int status, const char *what)
{
    if (status != 0) {
        fprintf(stderr, "%s: %d\n", what, status);
        exit(1);
    }
}

static void start_ucp(void *library)
{
    ucs_status_t (*init)(unsigned, unsigned, const ucp_params_t *, const ucp_config_t *,
                         ucp_context_h *);
    ucs_status_t (*create)(ucp_context_h, const ucp_worker_params_t *, ucp_worker_h *);
    ucp_worker_params_t worker_params = {0};
    ucp_params_t params = {0};
    ucp_context_h context;
    ucp_worker_h worker;

    *(void **)&init = symbol(library, "ucp_init_version");
    *(void **)&create = symbol(library, "ucp_worker_create");
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    check(init(1, 10, &params, NULL, &context), "ucp_init_version");
    check(create(context, &worker_params, &worker), "ucp_worker_create");
}

static void ask_libfabric(void *library)
{
    int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const void *, void **);
    void *list = NULL;

    *(void **)&getinfo = symbol(library, "fi_getinfo");
    check(getinfo(1u << 16 | 17, NULL, NULL, 0, NULL, &list), "fi_getinfo");
}

int main(int argc, char **argv)
{
    double begin = now_ms();
    void *library = dlopen(argc > 1 ? argv[1] : "libucp.so.0", RTLD_NOW);

    if (argc > 2) {
        ask_libfabric(library);
    } else {
        start_ucp(library);
    }
    printf("%.2f\n", now_ms() - begin);
    fflush(stdout);
    _Exit(0); /* what ends with the process is not measured */
}
