#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What it costs to put messages in order where the core does not: ping-pong of Debian's fi_pingpong over our provider and
# the RDM endpoints of tcp, which keep order, with the numbers forced on and without, in turns. The best round counts.
# Usage: sequence.sh [ROUNDS]; printed by `make bench`. A report, not a test.

pingpong=$(cd "$(dirname "$0")" && pwd)/../interop/pingpong.sh
rounds=${1:-5}
module=${top_builddir:-.}/.libs/libucxlike-fi.so
[ -e "$module" ] || {
    echo "the provider module is not built"
    exit 77
}
FI_PROVIDER_PATH=$(cd "$(dirname "$module")" && pwd)
export FI_PROVIDER_PATH FI_PROVIDER=ucxlike FI_UCXLIKE_TLS=tcprdm PAIR_TIMEOUT=60

# usec SEQUENCE SIZE ITERATIONS: microseconds for one transfer
usec()
{
    UCX_TCPRDM_SEQUENCE=$1 "$pingpong" 127.0.0.1 -p ucxlike -e rdm -m tagged -S "$2" -I "$3" 2>/dev/null |
        awk 'NF >= 8 && $1 != "bytes" { print $7 }'
}

echo "tcprdm, us per transfer, the best of $rounds rounds"
printf '%10s %10s %10s %7s\n' bytes plain numbered ratio
while read -r size iterations; do
    for ((round = 0; round < rounds; round++)); do
        for sequence in n y; do
            echo "$sequence $(usec $sequence "$size" "$iterations")"
        done
    done | awk -v size="$size" '
        NF == 2 && (!($1 in best) || $2 < best[$1]) { best[$1] = $2 }
        END {
            ratio = best["n"] > 0 && best["y"] > 0 ? sprintf("%.2f", best["y"] / best["n"]) : "-"
            printf "%10d %10s %10s %7s\n", size, best["n"] ? best["n"] : "failed", best["y"] ? best["y"] : "failed", ratio
        }'
done <<'SIZES'
8 10000
1024 10000
65536 1000
SIZES
