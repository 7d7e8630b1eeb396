/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libfabric is loaded when something needs it and not before, what it brings along leaves no signal
 * handlers behind, and where it cannot be loaded the transports that need none of it work. Each
 * case is a process of its own.
 */
#include "check.h"

#include <ucp/api/ucp.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TAG = 0x1234, LIMIT = 100000000 };

static ucp_context_h context;
static ucp_worker_h worker;

static void start(void)
{
    ucp_worker_params_t worker_params;
    ucp_params_t params;

    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    CHECK(ucp_init(&params, NULL, &context) == UCS_OK);
    worker_params.field_mask = 0;
    CHECK(ucp_worker_create(context, &worker_params, &worker) == UCS_OK);
}

static void stop(void)
{
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

static void wait_for(void *request)
{
    unsigned long tries = 0;

    CHECK(!UCS_PTR_IS_ERR(request));
    if (request == NULL) {
        return;
    }
    while (ucp_request_check_status(request) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
        CHECK(++tries < LIMIT);
    }
    CHECK(ucp_request_check_status(request) == UCS_OK);
    ucp_request_free(request);
}

static void send_a_message_to_itself(void)
{
    const char sent[] = "hello";
    char received[sizeof(sent)] = "";
    ucp_request_param_t param;
    ucp_ep_params_t ep_params;
    ucp_address_t *address;
    ucp_ep_h ep;
    size_t length;
    void *receive;

    CHECK(ucp_worker_get_address(worker, &address, &length) == UCS_OK);
    ep_params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    ep_params.address = address;
    CHECK(ucp_ep_create(worker, &ep_params, &ep) == UCS_OK);
    ucp_worker_release_address(worker, address);
    param.op_attr_mask = 0;
    receive = ucp_tag_recv_nbx(worker, received, sizeof(received), TAG, (ucp_tag_t)-1, &param);
    wait_for(ucp_tag_send_nbx(ep, sent, sizeof(sent), TAG, &param));
    wait_for(receive);
    CHECK(memcmp(sent, received, sizeof(sent)) == 0);
    wait_for(ucp_ep_close_nbx(ep, &param));
}

static int libfabric_is_loaded(void)
{
    void *library = dlopen("libfabric.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (library != NULL) {
        dlclose(library);
    }
    return library != NULL;
}

/* ---- the cases, each in a process that has nothing else behind it ---- */

static void own_transports(void)
{
    CHECK(!libfabric_is_loaded());
    start();
    send_a_message_to_itself();
    CHECK(!libfabric_is_loaded());
    stop();
}

static void ignore_request(ucp_conn_request_h request, void *arg)
{
    (void)request;
    (void)arg;
}

static void listener(void)
{
    struct sockaddr_in address = {0};
    ucp_listener_params_t params;
    ucp_listener_h made;

    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    start();
    CHECK(!libfabric_is_loaded());
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr.addr = (struct sockaddr *)&address;
    params.sockaddr.addrlen = sizeof(address);
    params.conn_handler.cb = ignore_request;
    params.conn_handler.arg = NULL;
    CHECK(ucp_listener_create(worker, &params, &made) == UCS_OK);
    CHECK(libfabric_is_loaded());
    ucp_listener_destroy(made);
    stop();
}

static void own_handler(int number)
{
    _exit(number);
}

static void handlers(void)
{
    struct sigaction own, before[NSIG], after[NSIG];
    int number;

    memset(&own, 0, sizeof(own));
    own.sa_handler = own_handler;
    CHECK(sigaction(SIGTERM, &own, NULL) == 0);
    for (number = 1; number < NSIG; ++number) {
        memset(&before[number], 0, sizeof(before[number]));
        (void)sigaction(number, NULL, &before[number]);
    }
    start();
    CHECK(libfabric_is_loaded());
    for (number = 1; number < NSIG; ++number) {
        memset(&after[number], 0, sizeof(after[number]));
        (void)sigaction(number, NULL, &after[number]);
        if (after[number].sa_handler != before[number].sa_handler) {
            printf("FAIL: signal %d has another handler\n", number);
            exit(1);
        }
    }
    send_a_message_to_itself();
    stop();
}

static void no_libfabric(void)
{
    start();
    CHECK(!libfabric_is_loaded());
    send_a_message_to_itself();
    stop();
}

static void only_libfabric(void)
{
    ucp_params_t params;

    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    CHECK(ucp_init(&params, NULL, &context) == UCS_ERR_NO_DEVICE);
}

static const struct {
    const char *name;
    const char *tls; /* NULL: all */
    int without_libfabric;
    void (*run)(void);
} cases[] = {
    {"self_alone_does_not_load_libfabric", "self", 0, own_transports},
    {"shared_memory_does_not_load_libfabric", "\\sm", 0, own_transports},
    {"a_listener_loads_libfabric", "self", 0, listener},
    {"signal_handlers_stay_with_tcp", "tcp,self", 0, handlers},
    {"signal_handlers_stay_with_all_transports", NULL, 0, handlers},
    {"what_needs_no_libfabric_works_without", NULL, 1, no_libfabric},
    {"what_needs_libfabric_is_no_device_without", "tcp", 1, only_libfabric},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

/* A file of that name which is no library: the loader takes it for libfabric and gives up. */
static void hide_libfabric(const char *folder)
{
    const char *path = getenv("LD_LIBRARY_PATH");
    char text[4096];
    int fd;

    snprintf(text, sizeof(text), "%s/libfabric.so.1", folder);
    fd = open(text, O_CREAT | O_WRONLY, 0600);
    CHECK(fd >= 0);
    close(fd);
    snprintf(text, sizeof(text), "%s:%s", folder, path ? path : "");
    setenv("LD_LIBRARY_PATH", text, 1);
}

static int run_in_a_process(int index, const char *folder)
{
    int status = 0;
    pid_t child = fork();

    CHECK(child >= 0);
    if (child == 0) {
        /* Where it is set, the library that installs handlers does not. */
        unsetenv("IPATH_NO_BACKTRACE");
        if (cases[index].tls != NULL) {
            setenv("UCX_TLS", cases[index].tls, 1);
        } else {
            unsetenv("UCX_TLS");
        }
        if (cases[index].without_libfabric) {
            hide_libfabric(folder);
        }
        execl("/proc/self/exe", "late_loading_test", cases[index].name, (char *)NULL);
        _exit(127);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/late_loading_XXXXXX", file[64];
    int i, failed = 0;

    if (argc > 1) {
        for (i = 0; i < CASES; ++i) {
            if (strcmp(argv[1], cases[i].name) == 0) {
                cases[i].run();
                return 0;
            }
        }
        return 2;
    }
    CHECK(mkdtemp(folder) != NULL);
    for (i = 0; i < CASES; ++i) {
        int ok = run_in_a_process(i, folder);

        printf("%s - %s\n", ok ? "ok" : "not ok", cases[i].name);
        fflush(stdout);
        failed += !ok;
    }
    snprintf(file, sizeof(file), "%s/libfabric.so.1", folder);
    unlink(file);
    rmdir(folder);
    printf("%d passed, %d failed, 0 skipped\n", CASES - failed, failed);
    return failed != 0;
}
