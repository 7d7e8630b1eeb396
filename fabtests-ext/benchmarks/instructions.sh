#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Instructions that an 8-byte tagged message takes, the sender's and the receiver's thread together, over sm and tcp: by
# callgrind (package valgrind), so that what else the machine does is not in them.
# Usage: instructions.sh [OTHER_BUILD_DIRECTORY]: beside it the same of another build, such as of the commit before; the
# exit status is then 1 if ours takes more than 1 % more. "counted" is with UCX_STATS_DEST.

set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
ours=$(cd "${top_builddir:-.}" && pwd) || exit 99
other=${1:-}
messages=1000
. "$here/figures.sh"
command -v valgrind >/dev/null || {
    echo "valgrind is not installed (package valgrind)"
    exit 77
}
for build in "$ours" ${other:+"$other"}; do
    [ -e "$build/.libs/libucxlike.so.0" ] || {
        echo "$build/.libs/libucxlike.so.0 is not built"
        exit 77
    }
done
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
${CC:-cc} -O2 -rdynamic -I"$here/../../include" -o "$scratch/ucp_message" "$here/ucp_message.c" \
    "$ours/.libs/libucxlike.so.0" || exit 1

# count BUILD TRANSPORT DESTINATION: instructions for each message, the least of three runs: a poll that comes too early
# over tcp only adds some.
count()
{
    local run
    for run in 1 2 3; do
        env LD_LIBRARY_PATH="$1/.libs" UCX_TLS="$2" UCX_NET_DEVICES="${devices[$2]}" UCX_STATS_DEST="$3" \
            IPATH_NO_BACKTRACE=1 timeout 300 valgrind --tool=callgrind --callgrind-out-file=/dev/null \
            --toggle-collect=exchange "$scratch/ucp_message" $messages >"$scratch/log" 2>&1 || {
            cat "$scratch/log" >&2
            return 1
        }
        awk -v messages=$messages '/Collected :/ { printf "%.1f\n", $NF / messages }' "$scratch/log"
    done | sort -n | head -n 1
}

declare -A devices=([sm]=all [tcp]=lo)
status=0
printf '%-28s %10s %10s %8s\n' "instructions a message" "" counted ratio
for transport in sm tcp; do
    plain=$(count "$ours" $transport "") || exit 1
    counted=$(count "$ours" $transport "file:$scratch/report") || exit 1
    printf '%-28s %10s %10s %8s\n' $transport "$plain" "$counted" "$(ratio "$counted" "$plain")"
    [ -n "$other" ] || continue
    before=$(count "$other" $transport "") || exit 1
    printf '%-28s %10s %10s %8s\n' "$transport, other build" "$before" "" "$(ratio "$plain" "$before")"
    awk -v a="$plain" -v b="$before" 'BEGIN { exit !(a <= b * 1.01) }' || status=1
done
exit $status
