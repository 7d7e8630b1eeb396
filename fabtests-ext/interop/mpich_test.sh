#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Debian's MPICH, whose only network is UCX: four ranks, every byte checked (mpi_app.c).

. "$(dirname "$0")/drop_in.sh"
need mpirun.mpich mpich
ldd "$(ldconfig -p | sed -n 's/.*libmpich\.so\.12.* => //p' | head -n 1)" | grep -q libucp ||
    skip_all "MPICH is not built on UCX"
export MPIR_CVAR_NOLOCAL=1 # MPICH's own shared memory would take the messages within a host

# Where EXAMPLE_PROGRAMS has the program already (a compiler is slow in the guest), that is taken.
program=${EXAMPLE_PROGRAMS:-$scratch}/mpi_app
ranks=${MPI_RANKS:-4}
[ -n "${EXAMPLE_PROGRAMS:-}" ] || need mpicc.mpich libmpich-dev
[ -n "${EXAMPLE_PROGRAMS:-}" ] || check "mpi_app.c compiles with MPICH" \
    mpicc.mpich -std=c11 -O2 -w "$here/mpi_app.c" -o "$program" -lpthread
[ -x "$program" ] || skip_all "$program was not built"
for tls in $transports; do
    check "MPICH over $tls: point-to-point, collectives, windows" \
        job_on_ours $tls $ranks "p2p coll rma" mpirun.mpich -n $ranks "$program" p2p coll rma
    [ -z "${MPI_BRIEF:-}" ] || continue
    check "MPICH over $tls: MPI_THREAD_MULTIPLE" \
        job_on_ours $tls $ranks threads mpirun.mpich -n $ranks "$program" threads
done
[ -n "${MPI_BRIEF:-}" ] || check "MPICH on one node opens no network" \
    job_without_networks $ranks "p2p coll" mpirun.mpich -n $ranks "$program" p2p coll
[ -n "${MPI_BRIEF:-}" ] || check "MPICH over ${transports%% *} without a library of UCX's" \
    alone job_on_ours "${transports%% *}" 2 p2p mpirun.mpich -n 2 "$program" p2p
finish
