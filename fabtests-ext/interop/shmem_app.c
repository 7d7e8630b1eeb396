/* SPDX-License-Identifier: BSD-3-Clause
 * What OpenSHMEM applications ask of the UCX below them, every value checked: put, get, strided and
 * single-element access, atomics, ordering by fence, waiting, locks, and collective operations. The
 * first wrong value ends the job with status 1; PE 0 prints "PASS shmem". */
#include <shmem.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 40000, ROUNDS = 100 };

static int me, pes;
static long sync_words[SHMEM_REDUCE_SYNC_SIZE];
static long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static long counter, word, lock, total, reduced;
static long flag;

static void check(int ok, const char *format, ...)
{
    va_list args;
    if (ok) {
        return;
    }
    va_start(args, format);
    fprintf(stderr, "FAIL PE %d: ", me);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    shmem_global_exit(1);
}

static void put_and_get(void)
{
    int next = (me + 1) % pes, previous = (me + pes - 1) % pes;
    int *heap = shmem_malloc(sizeof(int) * COUNT), *local = malloc(sizeof(int) * COUNT);
    check(heap != NULL && local != NULL, "no memory");
    for (int i = 0; i < COUNT; ++i) {
        local[i] = me * COUNT + i;
    }
    shmem_int_put(heap, local, COUNT, next);
    shmem_barrier_all();
    for (int i = 0; i < COUNT; ++i) {
        check(heap[i] == previous * COUNT + i, "put: element %d is %d", i, heap[i]);
    }
    shmem_int_get(local, heap, COUNT, next);
    for (int i = 0; i < COUNT; ++i) {
        check(local[i] == me * COUNT + i, "get: element %d is %d", i, local[i]);
    }
    shmem_barrier_all();
    shmem_int_iput(heap, local, 3, 1, 100, next);
    shmem_quiet();
    shmem_barrier_all();
    for (int i = 0; i < 100; ++i) {
        check(heap[3 * i] == previous * COUNT + i, "strided put: element %d is %d", i, heap[3 * i]);
    }
    check(shmem_int_g(&heap[3], next) == me * COUNT + 1, "single get is wrong");
    shmem_barrier_all();
    free(local);
    shmem_free(heap);
}

static void atomics(void)
{
    long last = -1, won;
    for (int i = 0; i < ROUNDS; ++i) {
        long old = shmem_long_atomic_fetch_add(&counter, 1, 0);
        check(old > last && old < (long)ROUNDS * pes, "the counter went from %ld to %ld", last,
              old);
        last = old;
        shmem_long_atomic_add(&total, i, (me + i) % pes);
    }
    won = shmem_long_atomic_compare_swap(&word, 0, me + 1, 0) == 0;
    shmem_barrier_all();
    check(shmem_long_atomic_fetch(&counter, 0) == (long)ROUNDS * pes, "the counter ends wrong");
    check((shmem_long_atomic_fetch(&word, 0) == me + 1) == won, "compare-and-swap says %ld", won);
    shmem_barrier_all();
}

/* Data, fence, flag: who sees the flag sees the data. A lock serialises what is no atomic. */
static void ordering(void)
{
    int next = (me + 1) % pes, previous = (me + pes - 1) % pes;
    long *slot = shmem_malloc(sizeof(long) * 2);
    slot[0] = 0;
    shmem_barrier_all();
    shmem_long_p(&slot[0], me + 1000, next);
    shmem_fence();
    shmem_long_p(&flag, 1, next);
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    check(slot[0] == previous + 1000, "the flag came before the data");
    shmem_barrier_all();
    slot[1] = 0;
    shmem_barrier_all();
    for (int i = 0; i < 10; ++i) {
        shmem_set_lock(&lock);
        long value = shmem_long_g(&slot[1], 0);
        shmem_long_p(&slot[1], value + 1, 0);
        shmem_quiet();
        shmem_clear_lock(&lock);
    }
    shmem_barrier_all();
    check(shmem_long_g(&slot[1], 0) == 10L * pes, "the lock let two in");
    shmem_barrier_all();
    shmem_free(slot);
}

static void collectives(void)
{
    long sum = (long)ROUNDS * (ROUNDS - 1) / 2 * pes;
    shmem_long_sum_to_all(&reduced, &total, 1, 0, 0, pes, work, sync_words);
    check(reduced == sum, "the sum is %ld, expected %ld", reduced, sum);
    shmem_barrier_all();
    if (me == 0) {
        total = 4711;
    }
    shmem_broadcast64(&reduced, &total, 1, 0, 0, 0, pes, sync_words);
    shmem_barrier_all();
    check(me == 0 || reduced == 4711, "the broadcast brought %ld", reduced);
}

int main(void)
{
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; ++i) {
        sync_words[i] = SHMEM_SYNC_VALUE;
    }
    shmem_init();
    me = shmem_my_pe();
    pes = shmem_n_pes();
    put_and_get();
    atomics();
    ordering();
    collectives();
    shmem_barrier_all();
    if (me == 0) {
        printf("PASS shmem\n");
    }
    shmem_finalize();
    return 0;
}
