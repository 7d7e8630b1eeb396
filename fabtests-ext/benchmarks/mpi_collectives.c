// SPDX-License-Identifier: BSD-3-Clause
// Times MPI_Barrier and an MPI_Allreduce of 8 bytes. Prints "barrier us, allreduce us", means over
// the rounds that fit the time. Usage: mpi_collectives [SECONDS]
#include <mpi.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(void)
{
    double mine = 1, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

// Microseconds a call. The first rank decides when the time is up, after blocks of ten calls.
static double measure(void (*call)(void), double seconds)
{
    double begin = MPI_Wtime();
    int64_t calls = 0;
    for (int more = 1; more;) {
        for (int i = 0; i < 10; ++i) {
            call();
        }
        calls += 10;
        more = MPI_Wtime() - begin < seconds;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - begin) / (double)calls * 1e6;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double us[2] = {measure(barrier, seconds), measure(allreduce, seconds)};
    if (rank == 0) {
        printf("%.2f %.2f\n", us[0], us[1]);
    }
    MPI_Finalize();
    return 0;
}
