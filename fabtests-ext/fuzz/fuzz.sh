#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the libFuzzer targets of this build, one after the other, on the corpus of the repository and on
# what they find. An input that fails stays in the folder that is named, with the command to repeat it.
#
# Usage: fuzz.sh [--time SECONDS | --runs INPUTS]     of each target; default: 20000 inputs

set -u -o pipefail

limit=-runs=20000
case ${1:-} in
--time) limit=-max_total_time=$2 ;;
--runs) limit=-runs=$2 ;;
esac
readonly targets="ucp_messages ucp_parsers ucp_rkeys"
readonly from=${top_srcdir:-$PWD/..}/fabtests-ext/fuzz/corpus
readonly in=${top_builddir:-$PWD}/fabtests-ext/fuzz

passed=0 failed=0
for target in $targets; do
    found=$in/found/$target
    mkdir -p "$found" || exit 1
    log=$found.log
    command=("$in/${target}_fuzz" "$limit" -max_len=4096 -print_final_stats=1 -artifact_prefix="$found/"
        "$found" "$from/$target")
    if "${command[@]}" >"$log" 2>&1; then
        sed -n 's/^stat::number_of_executed_units: */    inputs: /p' "$log"
        grep -o 'cov: [0-9]*' "$log" | tail -n 1 | sed 's/cov:/    edges reached:/'
        echo "ok - $target"
        passed=$((passed + 1))
    else
        tail -n 60 "$log" | sed 's/^/    /'
        echo "    repeat with: $in/${target}_fuzz FILE (one of $found/crash-*, leak-*, timeout-*)"
        echo "not ok - $target"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
