#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Milliseconds from nothing loaded to a UCP worker: ours by shared memory alone, over tcp and with all transports,
# beside libfabric's own first fi_getinfo and the installed UCX, in turns. Best and median of the rounds.
# Usage: start_up.sh [ROUNDS]; a report, not a test.

here=$(cd "$(dirname "$0")" && pwd)
rounds=${1:-15}
ours=${top_builddir:-.}/.libs/libucp.so.0
[ -e "$ours" ] || { echo "the drop-in libraries are not built"; exit 77; }
ours=$(cd "$(dirname "$ours")" && pwd)
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
cc -O2 -I "$here/../../include" -I "${top_builddir:-.}/include" -o "$scratch/start_up" "$here/start_up.c" -ldl || exit 1
export UCX_WARN_UNUSED_ENV_VARS=n IPATH_NO_BACKTRACE=1

# one NAME VARIABLE=VALUE ARGUMENT...: one start, noted in a file of that name
one()
{
    local name=$1 setting=$2
    shift 2
    env "$setting" timeout 60 "$scratch/start_up" "$@" 2>>"$scratch/log" >>"$scratch/$name"
}

names=(ours_sm ours_tcp ours_all libfabric)
ldconfig -p | grep -q 'libucp\.so\.0' && names+=(ucx_sm ucx_all)
for ((round = 0; round < rounds; round++)); do
    one ours_sm 'UCX_TLS=sm,self' "$ours/libucp.so.0"
    one ours_tcp 'UCX_TLS=tcp,self' "$ours/libucp.so.0"
    one ours_all UCX_TLS=all "$ours/libucp.so.0"
    one libfabric UCX_TLS=all libfabric.so.1 fi_getinfo
    [ ${#names[@]} -eq 4 ] || {
        one ucx_sm 'UCX_TLS=posix,cma,self' libucp.so.0
        one ucx_all UCX_TLS=all libucp.so.0
    }
done
declare -A title=([ours_sm]="ucxlike, UCX_TLS=sm,self" [ours_tcp]="ucxlike, UCX_TLS=tcp,self"
    [ours_all]="ucxlike, all" [libfabric]="libfabric, fi_getinfo" [ucx_sm]="UCX, UCX_TLS=posix,cma,self"
    [ucx_all]="UCX, all")
printf '%-28s %8s %8s   ms to a worker, %d rounds\n' '' best median "$rounds"
for name in "${names[@]}"; do
    sort -n "$scratch/$name" | awk -v name="${title[$name]}" '{ v[NR] = $1 }
        END { printf "%-28s %8.1f %8.1f\n", name, v[1], v[int((NR + 1) / 2)] }'
done
