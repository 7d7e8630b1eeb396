/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ucxlike beside UCX, libfabric and MPI in one process: opened in each order and used at the same
 * time, opened and closed a thousand times, across fork and exec. The program is linked with none
 * of them.
 */
#include <ucp/api/ucp.h>

#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int passed, failed, skipped;

static void report(int ok, const char *what)
{
    printf("%s - %s\n", ok ? "ok" : "not ok", what);
    passed += ok;
    failed += !ok;
    fflush(stdout);
}

/* ---- libraries, and how each is used ----------------------------------------------------------
 */

/* What a UCX program calls, of one library. */
typedef struct {
    ucs_status_t (*init)(unsigned, unsigned, const ucp_params_t *, const ucp_config_t *,
                         ucp_context_h *);
    void (*cleanup)(ucp_context_h);
    ucs_status_t (*worker_create)(ucp_context_h, const ucp_worker_params_t *, ucp_worker_h *);
    void (*worker_destroy)(ucp_worker_h);
    unsigned (*progress)(ucp_worker_h);
    ucs_status_t (*get_address)(ucp_worker_h, ucp_address_t **, size_t *);
    void (*release_address)(ucp_worker_h, ucp_address_t *);
    ucs_status_t (*ep_create)(ucp_worker_h, const ucp_ep_params_t *, ucp_ep_h *);
    ucs_status_ptr_t (*ep_close)(ucp_ep_h, const ucp_request_param_t *);
    ucs_status_ptr_t (*send)(ucp_ep_h, const void *, size_t, ucp_tag_t,
                             const ucp_request_param_t *);
    ucs_status_ptr_t (*receive)(ucp_worker_h, void *, size_t, ucp_tag_t, ucp_tag_t,
                                const ucp_request_param_t *);
    ucs_status_t (*check)(void *);
    void (*free_request)(void *);
    const char *(*version)(void);
} ucp_calls_t;

/* Object pointers to function pointers, which C does not convert. */
static int look_up(void *library, const char *name, void *call)
{
    void *symbol = dlsym(library, name);

    if (symbol == NULL) {
        printf("    no %s\n", name);
        return 0;
    }
    memcpy(call, &symbol, sizeof(symbol));
    return 1;
}

static int find_ucp(void *library, ucp_calls_t *c)
{
    return look_up(library, "ucp_init_version", &c->init) &&
           look_up(library, "ucp_cleanup", &c->cleanup) &&
           look_up(library, "ucp_worker_create", &c->worker_create) &&
           look_up(library, "ucp_worker_destroy", &c->worker_destroy) &&
           look_up(library, "ucp_worker_progress", &c->progress) &&
           look_up(library, "ucp_worker_get_address", &c->get_address) &&
           look_up(library, "ucp_worker_release_address", &c->release_address) &&
           look_up(library, "ucp_ep_create", &c->ep_create) &&
           look_up(library, "ucp_ep_close_nbx", &c->ep_close) &&
           look_up(library, "ucp_tag_send_nbx", &c->send) &&
           look_up(library, "ucp_tag_recv_nbx", &c->receive) &&
           look_up(library, "ucp_request_check_status", &c->check) &&
           look_up(library, "ucp_request_free", &c->free_request) &&
           look_up(library, "ucp_get_version_string", &c->version);
}

static int finish(const ucp_calls_t *c, ucp_worker_h worker, void *request)
{
    ucs_status_t status = UCS_OK;

    if (UCS_PTR_IS_ERR(request)) {
        return 0;
    }
    if (request != NULL) {
        while ((status = c->check(request)) == UCS_INPROGRESS) {
            c->progress(worker);
        }
        c->free_request(request);
    }
    return status == UCS_OK;
}

static int message_to_itself(const ucp_calls_t *c, ucp_worker_h worker)
{
    static const char text[] = "from a library to itself";
    ucp_request_param_t none = {0};
    ucp_ep_params_t params = {0};
    ucp_address_t *address;
    char got[sizeof(text)] = {0};
    ucs_status_ptr_t receive;
    size_t length;
    ucp_ep_h ep;
    int ok;

    if (c->get_address(worker, &address, &length) != UCS_OK) {
        return 0;
    }
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = address;
    ok = c->ep_create(worker, &params, &ep) == UCS_OK;
    c->release_address(worker, address);
    if (!ok) {
        return 0;
    }
    receive = c->receive(worker, got, sizeof(got), 7, ~(ucp_tag_t)0, &none);
    ok = finish(c, worker, c->send(ep, text, sizeof(text), 7, &none));
    ok = finish(c, worker, receive) && ok && strcmp(got, text) == 0;
    return finish(c, worker, c->ep_close(ep, &none)) && ok;
}

static int use_ucp(void *library, const char *version)
{
    ucp_worker_params_t worker_params = {0};
    ucp_params_t params = {0};
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_calls_t c;
    int ok;

    if (!find_ucp(library, &c)) {
        return 0;
    }
    if (version != NULL && strncmp(c.version(), version, strlen(version)) != 0) {
        printf("    %s answers for %s\n", c.version(), version);
        return 0;
    }
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    if (c.init(1, 13, &params, NULL, &context) != UCS_OK) {
        return 0;
    }
    ok = c.worker_create(context, &worker_params, &worker) == UCS_OK;
    if (ok) {
        ok = message_to_itself(&c, worker);
        c.worker_destroy(worker);
    }
    c.cleanup(context);
    return ok;
}

static char ours_path[4096];
static char own_version[32];

static int use_ours(void *library)
{
    return use_ucp(library, own_version);
}

static int use_ucx(void *library)
{
    ucp_calls_t c;

    if (!find_ucp(library, &c) || strncmp(c.version(), own_version, strlen(own_version)) == 0) {
        printf("    it is no UCX of its own\n");
        return 0;
    }
    return use_ucp(library, NULL);
}

static int use_libfabric(void *library)
{
    int (*getinfo)(unsigned, const char *, const char *, unsigned long, const void *, void **);
    void (*freeinfo)(void *);
    void *list = NULL;

    if (!look_up(library, "fi_getinfo", &getinfo) || !look_up(library, "fi_freeinfo", &freeinfo) ||
        getinfo(1U << 16 | 14, NULL, NULL, 0, NULL, &list) != 0) {
        return 0;
    }
    freeinfo(list);
    return 1;
}

static int use_mpi(void *library)
{
    int (*init)(int *, char ***);
    int (*finalize)(void);

    return look_up(library, "MPI_Init", &init) && look_up(library, "MPI_Finalize", &finalize) &&
           init(NULL, NULL) == 0 && finalize() == 0;
}

typedef struct {
    const char *name;
    const char *file;
    int (*use)(void *);
} library_t;

static const library_t libraries[] = {{"ucxlike", ours_path, use_ours},
                                      {"UCX", "libucp.so.0", use_ucx},
                                      {"libfabric", "libfabric.so.1", use_libfabric},
                                      {"MPICH", "libmpich.so.12", use_mpi}};
enum { ours, ucx, libfabric, mpi, library_count };

/* ---- cases ------------------------------------------------------------------------------------
 */

static int in_child(int (*run)(const void *), const void *arg)
{
    pid_t pid;
    int status;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        int result = run(arg) ? 0 : 1;
        exit(result); /* with what the libraries have registered for the end */
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return 0;
    }
    if (WIFSIGNALED(status)) {
        printf("    ended by signal %d\n", WTERMSIG(status));
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

typedef struct {
    const library_t *order[library_count];
    int count;
    int mode;
} opening_t;

/* How many of the ucp_ functions that a library calls are ours; -1: that cannot be told. */
static int served_by_ours(void *library, const void *any_of_ours)
{
    const ElfW(Rela) * tables[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0}, i, k;
    const ElfW(Sym) *symbols = NULL;
    const char *names = NULL;
    const ElfW(Dyn) * entry;
    struct link_map *map;
    Dl_info own, server;
    int count = 0;

    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || dladdr(any_of_ours, &own) == 0) {
        return -1;
    }
    for (entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
        switch (entry->d_tag) {
        case DT_SYMTAB:
            symbols = (const void *)entry->d_un.d_ptr;
            break;
        case DT_STRTAB:
            names = (const void *)entry->d_un.d_ptr;
            break;
        case DT_JMPREL:
            tables[0] = (const void *)entry->d_un.d_ptr;
            break;
        case DT_PLTRELSZ:
            sizes[0] = entry->d_un.d_val;
            break;
        case DT_RELA:
            tables[1] = (const void *)entry->d_un.d_ptr;
            break;
        case DT_RELASZ:
            sizes[1] = entry->d_un.d_val;
            break;
        }
    }
    if (symbols == NULL || names == NULL) {
        return -1;
    }
    for (k = 0; k < 2; ++k) {
        for (i = 0; i < sizes[k] / sizeof(ElfW(Rela)); ++i) {
            const ElfW(Rela) *r = &tables[k][i];
            const char *name = names + symbols[r->r_info >> 32].st_name; /* 64 bits */
            void *target;

            if (strncmp(name, "ucp_", 4) == 0) {
                memcpy(&target, (const char *)map->l_addr + r->r_offset, sizeof(target));
                count += dladdr(target, &server) != 0 && server.dli_fbase == own.dli_fbase;
            }
        }
    }
    return count;
}

/* A UCX whose calls to its own functions reach ours gets an error. Plain calls of a program are
 * ours. */
static int is_refused(void *library)
{
    ucs_status_t (*read)(const char *, const char *, ucp_config_t **);
    ucp_config_t *config = NULL;
    ucp_params_t params = {0};
    ucp_context_h context;
    ucs_status_t with, without;
    ucp_calls_t c;

    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    if (!find_ucp(library, &c) || !look_up(library, "ucp_config_read", &read) ||
        read(NULL, NULL, &config) != UCS_OK) {
        return 0;
    }
    without = c.init(1, 13, &params, NULL, &context);
    /* The configuration is leaked: the call that releases it is ours. */
    with = c.init(1, 13, &params, config, &context);
    if (without != UCS_ERR_UNSUPPORTED || with != UCS_ERR_UNSUPPORTED) {
        printf("    ucp_init: %d, with a configuration %d\n", without, with);
        return 0;
    }
    return use_ucp(RTLD_DEFAULT, own_version);
}

static int is_loaded_with_ucp(const library_t *l)
{
    return l == &libraries[ucx] || l == &libraries[mpi];
}

/* A library that is opened for all to see serves the calls of those that are opened after it. */
static int use_opened(const opening_t *o, int i, void **handles, int ours_at)
{
    int ours_first = o->mode == RTLD_GLOBAL && ours_at >= 0 && ours_at < i, served;

    if (ours_at >= 0 && is_loaded_with_ucp(o->order[i])) {
        served = served_by_ours(handles[i], dlsym(handles[ours_at], "ucp_init_version"));
        if (ours_first ? served <= 0 : served != 0) {
            printf("    %d of its calls are ours\n", served);
            return 0;
        }
    }
    return ours_first && o->order[i] == &libraries[ucx] ? is_refused(handles[i])
                                                        : o->order[i]->use(handles[i]);
}

/* UCX's libucs pushes one when it is loaded; in ours each line would be printed twice. */
static int has_one_log_handler(void *library)
{
    unsigned (*count)(void);

    if (!look_up(library, "ucs_log_num_handlers", &count)) {
        return 0;
    }
    if (count() != 1) {
        printf("    %u log handlers\n", count());
    }
    return count() == 1;
}

static int run_opening(const void *arg)
{
    const opening_t *o = arg;
    void *handles[library_count];
    int i, round, ours_at = -1, ok = 1;

    for (i = 0; i < o->count; ++i) {
        handles[i] = dlopen(o->order[i]->file, o->mode | RTLD_NOW);
        if (handles[i] == NULL) {
            printf("    %s\n", dlerror());
            return 0;
        }
        ours_at = o->order[i] == &libraries[ours] ? i : ours_at;
    }
    ok = ours_at < 0 || has_one_log_handler(handles[ours_at]);
    for (round = 0; round < 2; ++round) {
        for (i = 0; i < o->count; ++i) {
            if (round == 1 && o->order[i]->use == use_mpi) {
                continue; /* once for each process */
            }
            if (!use_opened(o, i, handles, ours_at)) {
                printf("    %s does not work\n", o->order[i]->name);
                ok = 0;
            }
        }
    }
    for (i = 0; i < o->count; ++i) {
        dlclose(handles[i]);
    }
    return ok;
}

static int run_is_here(const void *arg)
{
    const library_t *l = arg;

    return dlopen(l->file, RTLD_LAZY | RTLD_LOCAL) != NULL;
}

static const char *name_of_mode(int mode)
{
    return mode == RTLD_LOCAL    ? "RTLD_LOCAL"
           : mode == RTLD_GLOBAL ? "RTLD_GLOBAL"
                                 : "RTLD_DEEPBIND";
}

static void try_opening(const opening_t *o)
{
    char what[256];
    int i;

    snprintf(what, sizeof(what), "%s:", name_of_mode(o->mode));
    for (i = 0; i < o->count; ++i) {
        size_t used = strlen(what);
        snprintf(what + used, sizeof(what) - used, "%s %s", i ? "," : "", o->order[i]->name);
    }
    report(in_child(run_opening, o), what);
}

/* All orders of three, by choosing the first and the second. */
static void orders_of(const library_t *a, const library_t *b, const library_t *c, int mode)
{
    const library_t *all[3] = {a, b, c};
    int first, second;

    for (first = 0; first < 3; ++first) {
        for (second = 0; second < 3; ++second) {
            if (first != second) {
                opening_t o = {{all[first], all[second], all[3 - first - second], NULL}, 3, mode};
                try_opening(&o);
            }
        }
    }
}

static unsigned descriptors(void)
{
    DIR *list = opendir("/proc/self/fd");
    unsigned count = 0;

    while (list != NULL && readdir(list) != NULL) {
        ++count;
    }
    closedir(list);
    return count;
}

static unsigned mappings(void)
{
    FILE *list = fopen("/proc/self/maps", "r");
    unsigned count = 0;
    int c;

    while (list != NULL && (c = fgetc(list)) != EOF) {
        count += c == '\n';
    }
    fclose(list);
    return count;
}

enum { times = 1000, warm = 100, uses_every = 50 };

static int run_thousand_times(const void *arg)
{
    unsigned i, fds = 0, maps = 0;

    /* It stays: to load it takes much longer than us, because it loads the libraries of its
     * providers. */
    (void)dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
    (void)arg;
    for (i = 1; i <= times; ++i) {
        void *library = dlopen(ours_path, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            printf("    round %u: %s\n", i, dlerror());
            return 0;
        }
        if (i % uses_every == 0 && !use_ours(library)) {
            printf("    round %u: it does not work\n", i);
            return 0;
        }
        dlclose(library);
        if (i == warm) {
            fds = descriptors();
            maps = mappings();
        }
    }
    if (descriptors() != fds || mappings() > maps + times / 100) {
        printf("    descriptors %u and %u, mappings %u and %u after %d and %d rounds\n", fds,
               descriptors(), maps, mappings(), warm, times);
        return 0;
    }
    return 1;
}

/* Children of a process that has used the library: one that uses it as well, and one that starts a
 * program. */
static int run_fork_and_exec(const void *arg)
{
    void *library = dlopen(ours_path, RTLD_NOW | RTLD_LOCAL);
    pid_t pid;
    int i, status, ok = library != NULL && use_ours(library);

    (void)arg;
    for (i = 0; ok && i < 10; ++i) {
        pid = fork();
        if (pid == 0) {
            if (i % 2 == 0) {
                _exit(use_ours(library) ? 0 : 1);
            }
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        ok = pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
             WEXITSTATUS(status) == 0;
    }
    return ok && use_ours(library);
}

int main(void)
{
    static const int modes[] = {RTLD_LOCAL, RTLD_LOCAL | RTLD_DEEPBIND, RTLD_GLOBAL};
    const char *folder = getenv("top_builddir");
    size_t i;

    snprintf(ours_path, sizeof(ours_path), "%s/.libs/libucxlike.so.0", folder ? folder : ".");
    snprintf(own_version, sizeof(own_version), "%u.%u", UCP_API_MAJOR, UCP_API_MINOR);
    setenv("UCX_TLS", "self,tcp,shm,posix",
           1); /* names that both know; warnings of others are noise */
    setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 1);

    report(in_child(run_thousand_times, NULL), "opened and closed 1000 times");
    report(in_child(run_fork_and_exec, NULL), "fork and exec");
    for (i = ucx; i < library_count; ++i) {
        if (!in_child(run_is_here, &libraries[i])) {
            printf("skip - %s: it is not installed\n", libraries[i].name);
            ++skipped;
        }
    }
    for (i = 0; skipped == 0 && i < sizeof(modes) / sizeof(modes[0]); ++i) {
        opening_t last = {{&libraries[ours], &libraries[mpi], NULL, NULL}, 2, modes[i]};
        opening_t first = {{&libraries[mpi], &libraries[ours], NULL, NULL}, 2, modes[i]};
        orders_of(&libraries[ours], &libraries[ucx], &libraries[libfabric], modes[i]);
        try_opening(&first);
        try_opening(&last);
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
