#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# UCP connections per second to one listener: one program on the installed UCX and on our drop-ins, in
# turns. Best and median of the rounds. Usage: ucp_cm_rate.sh [ROUNDS [CONNECTIONS]]; a report, not a test.

here=$(cd "$(dirname "$0")" && pwd)
rounds=${1:-9} connections=${2:-200}
ours=${top_builddir:-.}/.libs/libucp.so.0
[ -e "$ours" ] || { echo "the drop-in libraries are not built"; exit 77; }
ours=$(cd "$(dirname "$ours")" && pwd)
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
if ! cc -O2 -o "$scratch/ucp_cm_rate" "$here/ucp_cm_rate.c" -lucp -lucs 2>"$scratch/log"; then
    echo "no installed UCX to build against: $(tail -n 1 "$scratch/log")"
    exit 77
fi

# rate NAME [VARIABLE=VALUE...]: one round, noted in a file of that name
rate()
{
    local name=$1
    shift
    env UCX_TLS=tcp,self UCX_WARN_UNUSED_ENV_VARS=n IPATH_NO_BACKTRACE=1 "$@" timeout 120 \
        "$scratch/ucp_cm_rate" 127.0.0.1 "$connections" 2>>"$scratch/log" >>"$scratch/$name"
}

for ((round = 0; round < rounds; round++)); do
    rate ucx
    rate ucxlike LD_LIBRARY_PATH="$ours"
done
printf '%-10s %8s %8s   UCP connections per second, tcp, %d rounds of %d\n' '' best median "$rounds" "$connections"
for name in ucx ucxlike; do
    sort -n "$scratch/$name" | awk -v name=$name '{ v[NR] = $1 }
        END { printf "%-10s %8.0f %8.0f\n", name, v[NR], v[int((NR + 1) / 2)] }'
done
