#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What our layers cost: 8-byte ping-pong of Debian's fi_pingpong over our provider and over the raw core
# provider, in turns, so that both meet the same machine. The best round counts: all noise only adds.
# Usage: overhead.sh [ROUNDS]; printed by `make bench`. A report, not a test.

here=$(cd "$(dirname "$0")" && pwd)
pingpong=$here/../interop/pingpong.sh
rounds=${1:-5}

module=${top_builddir:-.}/.libs/libucxlike-fi.so
[ -e "$module" ] || {
    echo "the provider module is not built"
    exit 77
}
provider_dir=$(cd "$(dirname "$module")" && pwd)

# usec TRANSPORTS|raw PROVIDER TYPE MODE ITERATIONS: microseconds for one transfer
usec()
{
    local transports=$1
    shift
    local -a settings=()
    [ "$transports" = raw ] ||
        settings=(FI_PROVIDER_PATH="$provider_dir" FI_PROVIDER=ucxlike FI_UCXLIKE_TLS="$transports")
    env "${settings[@]}" PAIR_TIMEOUT=60 "$pingpong" 127.0.0.1 -p "$1" -e "$2" -m "$3" -S 8 -I "$4" 2>/dev/null |
        awk '$1 == 8 { print $7 }'
}

best()
{
    grep . | sort -g | head -n 1
}

# compare NAME LIMIT TRANSPORTS TYPE MODE RAW_PROVIDER RAW_TYPE RAW_MODE ITERATIONS
compare()
{
    local ours="" raw="" round
    for ((round = 0; round < rounds; round++)); do
        raw+=$(usec raw "$6" "$7" "$8" "$9")$'\n'
        ours+=$(usec "$3" ucxlike "$4" "$5" "$9")$'\n'
    done
    ours=$(best <<<"$ours") raw=$(best <<<"$raw")
    awk -v name="$1" -v limit="$2" -v ours="$ours" -v raw="$raw" 'BEGIN {
        ratio = ours > 0 && raw > 0 ? sprintf("%.2f", ours / raw) : "-"
        printf "%-34s %8s %8s %7s   %s\n", name, ours == "" ? "failed" : ours, raw == "" ? "failed" : raw, ratio, limit
    }'
}

echo "8-byte ping-pong, us per transfer, the best of $rounds rounds"
printf '%-34s %8s %8s %7s   %s\n' "" ucxlike raw ratio "aim"
compare "RDM tagged, sm : raw shm" 2.0 sm,tcp rdm tagged shm rdm tagged 50000
compare "RDM tagged, ofi_shm : raw shm" 2.0 ofi_shm,tcp rdm tagged shm rdm tagged 50000
compare "RDM tagged, tcp : raw tcp MSG" 1.3 tcp rdm tagged tcp msg msg 10000
compare "MSG, sm : raw tcp MSG" 1.3 sm,tcp msg msg tcp msg msg 10000
compare "MSG, ofi_shm : raw tcp MSG" 1.3 ofi_shm,tcp msg msg tcp msg msg 10000
compare "MSG, tcp : raw tcp MSG" 1.3 tcp msg msg tcp msg msg 10000
