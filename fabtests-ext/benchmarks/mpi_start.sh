#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What a rank of Debian's MPICH costs with all transports allowed, over our libucp and over UCX's own in turns: time
# from mpirun to the end of the first barrier, an MPI_Iprobe that finds nothing, memory and descriptors. Prints medians
# and their ratio. Usage: mpi_start.sh [ROUNDS [RANKS...]]; printed by `make bench`. A report, not a test.

. "$(dirname "$0")/mpi.sh"
rounds=${1:-3}
shift
[ $# -gt 0 ] || set -- 2 8 16 32
prepare mpi_start.c

# costs LIBRARIES RANKS: "start iprobe memory descriptors"
costs()
{
    local -a run=(env UCX_TLS=all UCX_WARN_UNUSED_ENV_VARS=n IPATH_NO_BACKTRACE=1)
    [ -z "$1" ] || run+=(LD_LIBRARY_PATH="$1")
    "${run[@]}" timeout 120 mpirun.mpich -n "$2" "$scratch/program" "$(date +%s.%N)" "$scratch/lock"
}

names=("to the first barrier, ms" "idle MPI_Iprobe, ns" "memory of a rank (PSS), KiB" "descriptors of a rank")
printf '%-40s %12s %12s %9s\n' "medians of $rounds" ucxlike UCX ratio
for ranks; do
    for ((round = 0; round < rounds; round++)); do
        costs "" "$ranks" >>"$scratch/theirs.$ranks"
        costs "$scratch" "$ranks" >>"$scratch/mine.$ranks"
    done
    for column in 1 2 3 4; do
        mine=$(middle "$(cut -d' ' -f$column "$scratch/mine.$ranks" | sort -g)")
        theirs=$(middle "$(cut -d' ' -f$column "$scratch/theirs.$ranks" | sort -g)")
        printf '%-40s %12s %12s %9s\n' "$ranks ranks: ${names[column - 1]}" "$mine" "$theirs" \
            "$(ratio "$mine" "$theirs")"
    done
done
