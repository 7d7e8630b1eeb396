#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Debian's Open MPI with pml/ucx and osc/ucx, and its OSHMEM with spml/ucx: four processes, every byte
# checked (mpi_app.c, shmem_app.c).

. "$(dirname "$0")/drop_in.sh"
need mpirun.openmpi openmpi-bin
need mpicc.openmpi libopenmpi-dev
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Open MPI takes UCX of itself only for devices that it knows; so it does with UCX's own libraries.
readonly ANY_DEVICE="--mca opal_common_ucx_tls any --mca opal_common_ucx_devices any"
readonly MPI="mpirun.openmpi --oversubscribe -n 4 --mca pml ucx --mca osc ucx $ANY_DEVICE"
# OSHMEM leaves a hook of a library behind that it has unloaded, and crashes at its end; also with UCX's own.
readonly SHMEM="oshrun --oversubscribe -n 4 --mca spml ucx $ANY_DEVICE --mca opal_common_ucx_opal_mem_hooks 0"

check "mpi_app.c compiles with Open MPI" \
    mpicc.openmpi -std=c11 -O2 -w "$here/mpi_app.c" -o "$scratch/mpi_app" -lpthread
if command -v oshcc >/dev/null; then
    check "shmem_app.c compiles with OSHMEM" oshcc -std=c11 -O2 -w "$here/shmem_app.c" -o "$scratch/shmem_app"
else
    skip "OSHMEM" "oshcc is not installed (package libopenmpi-dev)"
fi
for tls in $transports; do
    if [ -x "$scratch/mpi_app" ]; then
        check "Open MPI over $tls: point-to-point, collectives, windows" \
            job_on_ours $tls 4 "p2p coll rma" $MPI "$scratch/mpi_app" p2p coll rma
        [ -n "${MPI_BRIEF:-}" ] || check "Open MPI over $tls: MPI_THREAD_MULTIPLE" job_on_ours $tls 4 threads $MPI "$scratch/mpi_app" threads
    fi
    [ ! -x "$scratch/shmem_app" ] || [ -n "${MPI_BRIEF:-}" ] ||
        check "OSHMEM over $tls" job_on_ours $tls 4 shmem $SHMEM "$scratch/shmem_app"
done
[ ! -x "$scratch/mpi_app" ] || [ -n "${MPI_BRIEF:-}" ] || check "Open MPI on one node opens no network" \
    job_without_networks 4 "p2p coll" $MPI "$scratch/mpi_app" p2p coll
[ ! -x "$scratch/mpi_app" ] || [ -n "${MPI_BRIEF:-}" ] || check "Open MPI over sm without a library of UCX's" \
    alone job_on_ours sm 4 p2p $MPI "$scratch/mpi_app" p2p
finish
