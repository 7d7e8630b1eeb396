#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The same ucx_perftest, of Debian's ucx-utils, over our libucp and over UCX's own, in turns, so that both
# meet the same machine. The best round of each side counts: all noise only adds. The medians stand
# beside them.
# Usage: ucx_compare.sh [ROUNDS]; printed by `make bench`. A report, not a test.
# BENCH_PREFIX is put in front of both sides, as "chrt -f 5" where other work shares the cores.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/perftest.sh"
. "$here/figures.sh"
rounds=${1:-3}

command -v ucx_perftest >/dev/null || {
    echo "ucx_perftest is not installed"
    exit 77
}
ours=$(mktemp -d) || exit 99
trap 'rm -rf "$ours"' EXIT
built_libraries "$ours" || exit 77

# result LIBRARIES TRANSPORTS TEST SIZE ITERATIONS COLUMN: one figure of the line of sums. A TEST of several words has
# options of ucx_perftest after its name.
result()
{
    perftest "${@:1:5}" |
        awk -v column="$6" '$1 == "Final:" { print $column }'
}

# compare NAME AIM TRANSPORTS UCX_TRANSPORTS TEST SIZE ITERATIONS COLUMN least|most
compare()
{
    local mine="" theirs="" median round order=-g
    [ "$9" = least ] || order=-gr
    for ((round = 0; round < rounds; round++)); do
        theirs+=$(result "" "$4" "$5" "$6" "$7" "$8")$'\n'
        mine+=$(result "$ours" "$3" "$5" "$6" "$7" "$8")$'\n'
    done
    mine=$(grep . <<<"$mine" | sort $order)
    theirs=$(grep . <<<"$theirs" | sort $order)
    median=$(ratio "$(middle "$mine")" "$(middle "$theirs")")
    mine=$(head -n 1 <<<"$mine")
    theirs=$(head -n 1 <<<"$theirs")
    printf '%-30s %12s %12s %9s %9s   %s\n' "$1" "${mine:-failed}" "${theirs:-failed}" \
        "$(ratio "$mine" "$theirs")" "$median" "$2"
}

# Columns of ucx_perftest: 3 the 50th percentile in us, 4 the average, 7 MB/s, 9 messages/s.
echo "ucx_perftest over ucxlike and over UCX $(ucx_info -v 2>/dev/null | awk '/Version|version/ { print $NF; exit }'), the best of $rounds rounds"
printf '%-30s %12s %12s %9s %9s   %s\n' "" ucxlike UCX ratio "of medians" "aim"
# The target of ucx_perftest's one-sided tests waits at a barrier, where it polls its worker once in a
# millisecond: that is when UCX answers a get over tcp, while ours has a thread that answers at once.
# 1000 turns, because at first the target still polls all the time, until it has flushed.
compare "tcp ucp_get 8 B, us" "at most 0.05" tcp tcp ucp_get 8 1000 3 least
compare "tcp ucp_put_lat 8 B, us" "at most 0.6" tcp tcp ucp_put_lat 8 5000 3 least
compare "tcp ucp_fadd 8 B, us" "" tcp tcp ucp_fadd 8 5000 3 least
compare "tcp tag_lat 8 B, us" "at most 1.1" tcp tcp tag_lat 8 20000 3 least
compare "tcp tag_lat 8 B asleep, us" "at most 1" tcp tcp "tag_lat -E sleep" 8 5000 3 least
compare "  on average, us" "at most 1" tcp tcp "tag_lat -E sleep" 8 5000 4 least
compare "tcp tag_bw 8 B, messages/s" "at least 2" tcp tcp tag_bw 8 200000 9 most
compare "tcp tag_bw 1 MiB, MB/s" "at least 1" tcp tcp tag_bw 1048576 500 7 most
for transport in sm ofi_shm; do
    compare "$transport tag_lat 8 B, us" "at most 2" $transport posix,cma tag_lat 8 200000 3 least
    compare "$transport tag_bw 8 B, messages/s" "" $transport posix,cma tag_bw 8 500000 9 most
    compare "$transport tag_bw 1 MiB, MB/s" "at least 1" $transport posix,cma tag_bw 1048576 1000 7 most
done
compare "sm tag_lat 8 B asleep, us" "at most 1" sm posix,cma "tag_lat -E sleep" 8 20000 3 least
compare "  on average, us" "at most 1" sm posix,cma "tag_lat -E sleep" 8 20000 4 least
