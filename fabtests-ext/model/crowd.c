/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Many processes of one node, for the calibration of the model: what each pays, in processor time,
 * descriptors and memory, to have a UCP worker, to connect to the partners of a dissemination
 * barrier, for further barriers, and to close. Processor time is what is measured, and whoever
 * waits sleeps: what else the machine does is not in it.
 *
 * Usage: crowd PROCESSES BARRIERS [PARTNERS]; prints one JSON object. With PARTNERS each process
 * talks to so many neighbours instead.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum { address_room = 4096, most_rounds = 1024 };
enum phase { started, connected, ran, closed, phases };

struct member {
    double cpu[phases]; /* of this process, since it was forked */
    uint64_t descriptors, pss;
    size_t address_length;
    char address[address_room];
};

struct shared {
    pthread_barrier_t barrier;
    double poll;
    struct member members[];
};

static struct shared *all;
static unsigned processes, barriers, rounds, self, neighbours;
static ucp_worker_h worker;
static ucp_ep_h eps[most_rounds];

static void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "process %u: %s: %s\n", self, what, ucs_status_string(status));
        _exit(1);
    }
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void end_phase(enum phase p)
{
    all->members[self].cpu[p] = cpu_seconds();
    pthread_barrier_wait(&all->barrier);
}

static void finish(ucs_status_ptr_t request, const char *what)
{
    ucs_status_t status = UCS_PTR_STATUS(request);
    if (UCS_PTR_IS_PTR(request)) {
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
            if (ucp_worker_progress(worker) == 0) {
                check(ucp_worker_wait(worker), "ucp_worker_wait");
            }
        }
        ucp_request_free(request);
    }
    check(status, what);
}

static void start(void)
{
    ucp_worker_params_t worker_params = {0};
    ucp_worker_attr_t attr = {.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS};
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP};
    ucp_context_h context;
    struct member *me = &all->members[self];

    check(ucp_init(&params, NULL, &context), "ucp_init");
    check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
    check(ucp_worker_query(worker, &attr), "ucp_worker_query");
    if (attr.address_length > address_room) {
        check(UCS_ERR_BUFFER_TOO_SMALL, "the address");
    }
    me->address_length = attr.address_length;
    memcpy(me->address, attr.address, attr.address_length);
    ucp_worker_release_address(worker, attr.address);
}

static void barrier(uint64_t number)
{
    ucp_request_param_t param = {0};
    uint64_t out = 1, in = 0;

    for (unsigned r = 0; r < rounds; ++r) {
        uint64_t tag = number << 16 | r;
        ucs_status_ptr_t receive = ucp_tag_recv_nbx(worker, &in, sizeof(in), tag, ~0ull, &param);
        finish(ucp_tag_send_nbx(eps[r], &out, sizeof(out), tag, &param), "send");
        finish(receive, "receive");
    }
}

/* What a poll that finds nothing takes, with everybody else asleep. */
static double idle_poll(void)
{
    enum { polls = 2000 };
    double best = 1;

    for (int turn = 0; turn < 100; ++turn) {
        double begin = cpu_seconds();
        for (int i = 0; i < polls; ++i) {
            ucp_worker_progress(worker);
        }
        double each = (cpu_seconds() - begin) / polls;
        best = each < best ? each : best;
    }
    return best;
}

static uint64_t count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    uint64_t n = 0;

    while (dir && readdir(dir)) {
        ++n;
    }
    closedir(dir);
    return n - 3; /* ".", ".." and the folder itself */
}

static uint64_t proportional_bytes(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    unsigned long kib = 0;

    while (file && fgets(line, sizeof(line), file) && sscanf(line, "Pss: %lu kB", &kib) != 1) {
    }
    if (file) {
        fclose(file);
    }
    return (uint64_t)kib * 1024;
}

static void run(void)
{
    start();
    end_phase(started);
    for (unsigned r = 0; r < rounds; ++r) {
        unsigned distance = neighbours ? r + 1 : 1u << r;
        const struct member *peer = &all->members[(self + distance) % processes];
        ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                  .address = (const ucp_address_t *)peer->address};
        check(ucp_ep_create(worker, &params, &eps[r]), "ucp_ep_create");
    }
    barrier(0);
    end_phase(connected);
    for (unsigned i = 1; i <= barriers; ++i) {
        barrier(i);
    }
    end_phase(ran);
    if (self == 0) {
        all->poll = idle_poll();
    }
    all->members[self].descriptors = count_descriptors();
    all->members[self].pss = proportional_bytes();
    pthread_barrier_wait(&all->barrier);
    double before = cpu_seconds();
    for (unsigned r = 0; r < rounds; ++r) {
        ucp_request_param_t param = {0};
        finish(ucp_ep_close_nbx(eps[r], &param), "ucp_ep_close_nbx");
    }
    all->members[self].cpu[closed] = cpu_seconds() - before;
    pthread_barrier_wait(&all->barrier);
    _exit(0);
}

static void print(void)
{
    double sum[phases] = {0};
    uint64_t descriptors = 0, bytes = 0;

    for (unsigned i = 0; i < processes; ++i) {
        const struct member *m = &all->members[i];
        sum[started] += m->cpu[started];
        sum[connected] += m->cpu[connected] - m->cpu[started];
        sum[ran] += m->cpu[ran] - m->cpu[connected];
        sum[closed] += m->cpu[closed];
        descriptors += m->descriptors;
        bytes += m->pss;
    }
    printf("{\"processes\": %u, \"partners\": %u, \"barriers\": %u, \"start\": %.6f, "
           "\"connect\": %.6f, \"barrier\": %.6f, \"close\": %.6f, \"poll\": %.3e, "
           "\"descriptors\": %llu, \"bytes\": %llu, \"address\": %zu}\n",
           processes, rounds, barriers, sum[started], sum[connected], sum[ran] / barriers,
           sum[closed], all->poll, (unsigned long long)descriptors, (unsigned long long)bytes,
           all->members[0].address_length);
}

int main(int argc, char **argv)
{
    pthread_barrierattr_t attr;
    int status, bad = 0;

    processes = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
    barriers = argc > 2 ? (unsigned)atoi(argv[2]) : 10;
    neighbours = argc > 3 ? (unsigned)atoi(argv[3]) : 0;
    if (processes < 2 || barriers < 1 || neighbours >= processes || neighbours > most_rounds) {
        fprintf(stderr, "usage: crowd PROCESSES BARRIERS [PARTNERS]\n");
        return 2;
    }
    rounds = neighbours;
    while (!neighbours && 1u << rounds < processes) {
        ++rounds;
    }
    all = mmap(NULL, sizeof(*all) + processes * sizeof(struct member), PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    pthread_barrierattr_init(&attr);
    pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&all->barrier, &attr, processes);
    for (self = 0; self < processes; ++self) {
        pid_t child = fork();
        if (child == 0) {
            run();
        } else if (child < 0) {
            perror("fork");
            return kill(0, SIGTERM);
        }
    }
    /* One that fails leaves the others at a barrier: end them. */
    for (unsigned i = 0; i < processes; ++i) {
        if (wait(&status) > 0 && status != 0) {
            bad = 1;
            signal(SIGTERM, SIG_IGN);
            kill(0, SIGTERM);
        }
    }
    if (!bad) {
        print();
    }
    return bad;
}
