#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Barrier and small allreduce of Debian's MPICH with 2 ranks and with more ranks than two processors can run at
# once, over our libucp and over UCX's own in turns. Prints the medians in microseconds and their ratio.
# Usage: mpi_crowded.sh [ROUNDS]; printed by `make bench`. A report, not a test.

. "$(dirname "$0")/mpi.sh"
rounds=${1:-3}

prepare mpi_collectives.c
# Two processors, whatever the machine has; MPICH's own shared memory would take the messages.
processors=$(taskset -pc $$ | sed 's/.*: //' | tr ',' '\n' | awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }' |
    head -n 2 | paste -sd,)

# times LIBRARIES RANKS: "barrier allreduce"
times()
{
    local -a run=(env MPIR_CVAR_NOLOCAL=1 UCX_TLS=self,sm IPATH_NO_BACKTRACE=1)
    [ -z "$1" ] || run+=(LD_LIBRARY_PATH="$1")
    "${run[@]}" timeout 120 taskset -c "$processors" mpirun.mpich -n "$2" "$scratch/program" 1
}

printf '%-22s %12s %12s %9s\n' "us, medians of $rounds" ucxlike UCX ratio
for ranks in 2 3 4 8; do
    for ((round = 0; round < rounds; round++)); do
        times "" $ranks >>"$scratch/theirs.$ranks"
        times "$scratch" $ranks >>"$scratch/mine.$ranks"
    done
    for column in 1 2; do
        mine=$(middle "$(cut -d' ' -f$column "$scratch/mine.$ranks" | sort -g)")
        theirs=$(middle "$(cut -d' ' -f$column "$scratch/theirs.$ranks" | sort -g)")
        name=barrier
        [ $column = 1 ] || name="allreduce, 8 bytes"
        printf '%-22s %12s %12s %9s\n' "$name, $ranks ranks" "$mine" "$theirs" "$(ratio "$mine" "$theirs")"
    done
done
