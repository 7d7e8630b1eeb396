// SPDX-License-Identifier: BSD-3-Clause
// What a rank costs before it sends anything. The first rank prints: milliseconds from a time of
// CLOCK_REALTIME to the end of the first barrier, nanoseconds of an MPI_Iprobe that finds nothing
// while the other ranks sleep, proportional memory of a rank in KiB (mean), descriptors of a rank
// (most).
// Usage: mpi_start SECONDS_SINCE_1970 LOCK_FILE
#include <mpi.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static void must(int good, const char *what)
{
    if (!good) {
        perror(what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double iprobe_ns(void)
{
    enum { CALLS = 1000000 };
    double begin = now(CLOCK_MONOTONIC);
    for (int i = 0; i < CALLS; ++i) {
        int found = 0;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        must(!found, "a message came");
    }
    return (now(CLOCK_MONOTONIC) - begin) / CALLS * 1e9;
}

static double pss_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    must(file != NULL, "/proc/self/smaps_rollup");
    while (kib < 0 && fgets(line, sizeof(line), file)) {
        (void)sscanf(line, "Pss: %ld", &kib);
    }
    fclose(file);
    must(kib >= 0, "/proc/self/smaps_rollup has no Pss");
    return (double)kib;
}

static int descriptors(void)
{
    int count = -3; // ".", "..", and the one of this list
    DIR *list = opendir("/proc/self/fd");
    must(list != NULL, "/proc/self/fd");
    while (readdir(list)) {
        ++count;
    }
    closedir(list);
    return count;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: mpi_start SECONDS_SINCE_1970 LOCK_FILE\n");
        return 2;
    }
    int rank = 0, size = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    double start_ms = (now(CLOCK_REALTIME) - atof(argv[1])) * 1e3;
    int files = descriptors();

    // The others sleep in flock() until the first rank has probed.
    int lock = open(argv[2], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    must(lock >= 0, argv[2]);
    must(rank != 0 || flock(lock, LOCK_EX) == 0, "flock");
    MPI_Barrier(MPI_COMM_WORLD);
    double ns = 0;
    if (rank == 0) {
        ns = iprobe_ns();
    }
    must(flock(lock, rank == 0 ? LOCK_UN : LOCK_SH) == 0, "flock");
    close(lock);

    MPI_Barrier(MPI_COMM_WORLD);
    double pss = pss_kib(), all_pss = 0;
    int most_files = 0;
    MPI_Reduce(&pss, &all_pss, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&files, &most_files, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.0f %.1f %.0f %d\n", start_ms, ns, all_pss / size, most_files);
    }
    MPI_Finalize();
    return 0;
}
