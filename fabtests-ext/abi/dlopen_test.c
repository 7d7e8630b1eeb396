/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The libraries as plugin loaders see them: opened with all symbols resolved at once and none of
 * them visible to others, used, closed, and that again. The program is not linked with them.
 */
#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the library finds out once for the process is lost with it at dlclose; not a leak that
 * grows, but the sanitizer cannot tell. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

static int failures;

#define FAIL(...)                                                                                  \
    do {                                                                                           \
        printf("FAIL: " __VA_ARGS__);                                                              \
        printf("\n");                                                                              \
        ++failures;                                                                                \
    } while (0)

static const char *folder(const char *variable)
{
    const char *value = getenv(variable);

    return value != NULL ? value : ".";
}

static void *open_library(const char *name)
{
    char path[4096];
    void *library;

    snprintf(path, sizeof(path), "%s/.libs/%s", folder("top_builddir"), name);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        FAIL("%s", dlerror());
    }
    return library;
}

/* Object pointers to function pointers, which C does not convert. */
#define LOOK_UP(_library, _function)                                                               \
    do {                                                                                           \
        void *symbol_ = dlsym(_library, #_function);                                               \
        if (symbol_ == NULL) {                                                                     \
            FAIL("no " #_function);                                                                \
            return;                                                                                \
        }                                                                                          \
        memcpy(&_function##_p, &symbol_, sizeof(symbol_));                                         \
    } while (0)

static void all_names_of_the_list_are_found(void *library, const char *list)
{
    char path[4096], line[256];
    unsigned count = 0;
    FILE *file;

    snprintf(path, sizeof(path), "%s/fabtests-ext/abi/%s", folder("top_srcdir"), list);
    file = fopen(path, "r");
    if (file == NULL) {
        FAIL("cannot read %s", path);
        return;
    }
    while (fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0') {
            continue;
        }
        ++count;
        if (dlsym(library, line) == NULL) {
            FAIL("%s of %s is not found", line, list);
        }
    }
    fclose(file);
    printf("%s: %u names\n", list, count);
}

static void names_are_not_visible_to_others(void)
{
    if (dlsym(RTLD_DEFAULT, "ucp_init_version") != NULL) {
        FAIL("ucp_init_version is visible outside of the library");
    }
    if (dlsym(RTLD_DEFAULT, "uct_query_components") != NULL) {
        FAIL("uct_query_components is visible outside of the library");
    }
}

static void version_is_that_of_the_headers(void *library)
{
    void (*ucp_get_version_p)(unsigned *, unsigned *, unsigned *);
    unsigned major = 0, minor = 0, release = 0;

    LOOK_UP(library, ucp_get_version);
    ucp_get_version_p(&major, &minor, &release);
    if (major != UCP_API_MAJOR || minor != UCP_API_MINOR) {
        FAIL("version is %u.%u, the headers' is %u.%u", major, minor, UCP_API_MAJOR, UCP_API_MINOR);
    }
}

static void components_are_listed(void *library)
{
    ucs_status_t (*uct_query_components_p)(uct_component_h **, unsigned *);
    void (*uct_release_component_list_p)(uct_component_h *);
    uct_component_h *components = NULL;
    unsigned count = 0;

    LOOK_UP(library, uct_query_components);
    LOOK_UP(library, uct_release_component_list);
    if (uct_query_components_p(&components, &count) != UCS_OK || count == 0) {
        FAIL("no components");
        return;
    }
    uct_release_component_list_p(components);
}

static void drop_request(ucp_conn_request_h request, void *arg)
{
    (void)request;
    (void)arg;
}

/* A context, a worker and a listener start whatever threads there are; none may outlive dlclose. */
static void worker_comes_and_goes(void *library)
{
    ucs_status_t (*ucp_init_version_p)(unsigned, unsigned, const ucp_params_t *,
                                       const ucp_config_t *, ucp_context_h *);
    ucs_status_t (*ucp_worker_create_p)(ucp_context_h, const ucp_worker_params_t *, ucp_worker_h *);
    void (*ucp_worker_destroy_p)(ucp_worker_h);
    void (*ucp_cleanup_p)(ucp_context_h);
    ucs_status_t (*ucp_listener_create_p)(ucp_worker_h, const ucp_listener_params_t *,
                                          ucp_listener_h *);
    void (*ucp_listener_destroy_p)(ucp_listener_h);
    ucp_listener_params_t listener_params;
    ucp_worker_params_t worker_params;
    struct sockaddr_in address;
    ucp_listener_h listener;
    ucp_params_t params;
    ucp_context_h context;
    ucp_worker_h worker;

    LOOK_UP(library, ucp_init_version);
    LOOK_UP(library, ucp_worker_create);
    LOOK_UP(library, ucp_worker_destroy);
    LOOK_UP(library, ucp_cleanup);
    LOOK_UP(library, ucp_listener_create);
    LOOK_UP(library, ucp_listener_destroy);

    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
    if (ucp_init_version_p(UCP_API_MAJOR, UCP_API_MINOR, &params, NULL, &context) != UCS_OK) {
        FAIL("ucp_init_version");
        return;
    }
    worker_params.field_mask = 0;
    if (ucp_worker_create_p(context, &worker_params, &worker) != UCS_OK) {
        FAIL("ucp_worker_create");
        ucp_cleanup_p(context);
        return;
    }
    memset(&address, 0, sizeof(address));
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener_params.field_mask =
        UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    listener_params.sockaddr.addr = (const struct sockaddr *)&address;
    listener_params.sockaddr.addrlen = sizeof(address);
    listener_params.conn_handler.cb = drop_request;
    listener_params.conn_handler.arg = NULL;
    if (ucp_listener_create_p(worker, &listener_params, &listener) == UCS_OK) {
        ucp_listener_destroy_p(listener);
    } else {
        FAIL("ucp_listener_create");
    }
    ucp_worker_destroy_p(worker);
    ucp_cleanup_p(context);
}

static void whole_library(void)
{
    void *library = open_library("libucxlike.so.0");

    if (library == NULL) {
        return;
    }
    all_names_of_the_list_are_found(library, "libucp.exports");
    all_names_of_the_list_are_found(library, "libuct.exports");
    all_names_of_the_list_are_found(library, "libucxlike-ucs.exports");
    names_are_not_visible_to_others();
    version_is_that_of_the_headers(library);
    components_are_listed(library);
    worker_comes_and_goes(library);
    dlclose(library);
}

static void drop_ins(void)
{
    void *ucp = open_library("libucp.so.0");
    void *uct = open_library("libuct.so.0");

    if (ucp != NULL) {
        all_names_of_the_list_are_found(ucp, "libucp.exports");
        version_is_that_of_the_headers(ucp);
        worker_comes_and_goes(ucp);
        dlclose(ucp);
    }
    if (uct != NULL) {
        all_names_of_the_list_are_found(uct, "libuct.exports");
        components_are_listed(uct);
        dlclose(uct);
    }
}

static void provider(void)
{
    void *library = open_library("libucxlike-fi.so");

    if (library == NULL) {
        return;
    }
    if (dlsym(library, "fi_prov_ini") == NULL) {
        FAIL("no fi_prov_ini");
    }
    dlclose(library);
}

int main(void)
{
    int round;

    for (round = 0; round < 2; ++round) {
        whole_library();
        drop_ins();
        provider();
    }
    /* Anything that still runs in a library that is gone gets the time to crash. */
    usleep(100000);
    if (failures == 0) {
        printf("PASS\n");
    }
    return failures != 0;
}
