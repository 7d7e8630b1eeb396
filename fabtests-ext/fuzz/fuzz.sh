#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the libFuzzer targets of this build, one after the other, on the corpus of the repository and on
# what they find. An input that fails stays in the folder that is named, with the command to repeat it.
#
# Usage: fuzz.sh [--time SECONDS | --runs INPUTS]     of each target
#        fuzz.sh --soak LIVE PARSERS                  so many inputs of each live target, and of the parsers
# The default is the short run of `make check`.

set -u -o pipefail

readonly targets="ucp_parsers ucp_rkeys ucp_messages ucp_wireup prov_messages sm_inbox"
readonly how=${1:-} first=${2:-} second=${3:-}

limit_of()
{
    case $how:$1 in
    --time:*) echo "-max_total_time=$first" ;;
    --runs:* | --soak:*_messages | --soak:*_rkeys | --soak:*_wireup | --soak:*_inbox) echo "-runs=$first" ;;
    --soak:*) echo "-runs=$second" ;;
    *:ucp_wireup) echo -runs=3000 ;;
    *:ucp_*) echo -runs=20000 ;;
    *:prov_*) echo -runs=1000 ;;
    *) echo -runs=3000 ;;
    esac
}

readonly from=${top_srcdir:-$PWD/..}/fabtests-ext/fuzz/corpus
readonly in=${top_builddir:-$PWD}/fabtests-ext/fuzz

passed=0 failed=0 inputs=0
for target in $targets; do
    found=$in/found/$target
    mkdir -p "$found" || exit 1
    log=$found.log
    command=("$in/${target}_fuzz" "$(limit_of "$target")" -max_len=4096 -timeout=60 -print_final_stats=1 -artifact_prefix="$found/"
        "$found" "$from/$target")
    if "${command[@]}" >"$log" 2>&1; then
        units=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        echo "    inputs: $units"
        inputs=$((inputs + units))
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
echo "inputs of all: $inputs"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
