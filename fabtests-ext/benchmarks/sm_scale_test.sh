#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Shared memory between tens of processes: silent ones attached to a pair, many senders to one receiver, all to all.
# Every message arrives once. `sm_scale` without arguments has the figures of hundreds.

. "$(dirname "$0")/../interop/report.sh"

small()
{
    timeout -k 5 300 "$top_builddir/fabtests-ext/benchmarks/sm_scale" small >"$scratch/output" 2>&1 &&
        [ "$(grep -c 'all arrived' "$scratch/output")" = 3 ]
}

# Where the machine lets us have such a priority.
refuses_real_time()
{
    chrt -f 1 true 2>/dev/null || return 0
    timeout -k 5 60 chrt -f 1 "$top_builddir/fabtests-ext/benchmarks/sm_scale" alltoall 2 >"$scratch/refused" 2>&1
    [ $? = 2 ] && grep -q "priority of real time" "$scratch/refused"
}

scratch=$(mktemp -d) || exit 99
trap 'cat "$scratch/output"; rm -rf "$scratch"' EXIT
check "every message of 24, 21 and 32 processes" small
check "no processes that poll with a priority of real time" refuses_real_time
finish
