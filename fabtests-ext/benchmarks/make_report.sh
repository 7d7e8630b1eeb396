#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# `make report`: ours, UCX and the raw core providers in turns over all sizes, written as report.json, report.csv and one
# HTML page (report_page.py) that needs no network. A measurement that fails stands there as failed, and the exit status is 1.
# docs/report.md says what is measured how.
#
# From the environment:
#   REPORT_SHORT=yes   one round of three sizes, in less than a minute; the three below still count
#   REPORT_ROUNDS      number of rounds (3)
#   REPORT_MINUTES     no round is begun that would end later than that, and no step after it but the first (30)
#   REPORT_SIZES       message sizes in bytes (the powers of two from 1 to 16777216)
#   REPORT_COUNTS      numbers of connections to one listener (16 64 256)
#   REPORT_ONLY        a regular expression: the measurements whose names it matches alone
#   REPORT_DIR         folder for the three files (report in the build directory)

set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/perftest.sh"
top_builddir=$(cd "${top_builddir:-.}" && pwd) || exit 99
export top_builddir

short=${REPORT_SHORT:-no}
if [ "$short" = yes ]; then
    rounds=${REPORT_ROUNDS:-1} sizes=${REPORT_SIZES:-8 4096 1048576}
    counts=${REPORT_COUNTS:-8 32}
    bytes=$((8 << 20)) most_latency=5000 most_bandwidth=50000 milliseconds=50 connections=50 endpoints=100
else
    rounds=${REPORT_ROUNDS:-3} sizes=${REPORT_SIZES:-$(for ((i = 0; i <= 24; i++)); do echo $((1 << i)); done)}
    counts=${REPORT_COUNTS:-16 64 256}
    bytes=$((256 << 20)) most_latency=20000 most_bandwidth=200000 milliseconds=300 connections=200 endpoints=1000
fi
folder=${REPORT_DIR:-$top_builddir/report}

missing=""
need()
{
    command -v "$1" >/dev/null || missing+=" $2"
}
need gnuplot gnuplot-nox
need python3 python3
need ucx_perftest ucx-utils
echo '#include <ucp/api/ucp.h>' | ${CC:-cc} -fsyntax-only -x c - 2>/dev/null || missing+=" libucx-dev"
[ -z "$missing" ] || {
    echo "make report needs these packages, which are not installed:$missing (apt-get install$missing)"
    exit 77
}
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP
mkdir "$scratch/ours" && mkdir -p "$folder" || exit 99
built_libraries "$scratch/ours" || exit 77
${CC:-cc} -O2 -o "$scratch/ucp_cm_rate" "$here/ucp_cm_rate.c" -lucp -lucs || exit 1

# Each list of measurements below is one line "NAME COMMAND...", where COMMAND is a function that prints one line
# "FIGURE SIDE SIZE VALUE" for each thing it has measured. Names and titles of figures: report_page.py.
plan()
{
    local size medium count
    for size in $sizes; do
        for medium in shm tcp; do
            echo "tag_lat.$medium measure_tag tag_lat $medium $size"
            echo "tag_bw.$medium measure_tag tag_bw $medium $size"
            echo "prov_lat.$medium measure_provider latency $medium $size"
            echo "prov_bw.$medium measure_provider bandwidth $medium $size"
        done
    done
    for count in $counts; do
        echo "scale measure_ucp_connections $count"
    done
    echo "prov_connections measure_provider_connections"
    echo "ep_memory measure_endpoint_memory"
}

# The last line that says something, of an output: a table's border and numbers say nothing.
reason()
{
    grep -v '^+-' | grep '[[:alpha:]]' | tail -n 1
}

# attempt "FIGURE SIDE SIZE"... -- FILTER COMMAND...: one measurement of a round. FILTER, a program of awk, prints of the
# command's output a line "VALUE..." with one number for each of the first; else each is failed, with the output's end.
attempt()
{
    local -a what=() value=()
    local filter output status line i try
    while [ "$1" != -- ]; do
        what+=("$1")
        shift
    done
    filter=$2
    shift 2
    # Once more: on a busy machine a program can give up before its peer has begun.
    for try in 1 2; do
        output=$("$@" 2>&1 </dev/null)
        status=$?
        [ $status -ne 0 ] || break
    done
    [ $status -ne 0 ] || read -ra value < <(awk "$filter" <<<"$output" | tr '\n' ' ')
    for ((i = 0; i < ${#what[@]}; i++)); do
        if [[ ${value[i]:-} =~ ^[0-9.]+(e[+-]?[0-9]+)?$ ]]; then
            line="${value[i]}"
        else
            line="failed: exit status $status: $(reason <<<"$output" | tr -c '[:print:]\n' ' ' | cut -c 1-200)"
        fi
        printf '%s %s %s\n' "$round" "${what[i]}" "$line" >>"$scratch/values"
    done
}

# iterations MOST SIZE
iterations()
{
    local n=$((bytes / $2))
    [ $n -lt "$1" ] || n=$1
    [ $n -gt 10 ] || n=10
    echo $n
}

# In every second round the other side is first.
sides()
{
    [ $((round % 2)) -eq 1 ] && echo "ucx ucxlike" || echo "ucxlike ucx"
}

# Columns of ucx_perftest's line of sums: 3 the 50th percentile in us, 7 MB/s, 9 messages/s.
measure_tag()
{
    local test=$1 medium=$2 size=$3 side libraries transports
    for side in $(sides); do
        libraries="" transports=$medium
        [ $side = ucx ] || libraries=$scratch/ours
        [ "$side $medium" != "ucx shm" ] || transports=posix,cma
        if [ "$test" = tag_lat ]; then
            attempt "tag_lat.$medium $side $size" -- '$1 == "Final:" { print $3 }' \
                perftest "$libraries" "$transports" tag_lat "$size" "$(iterations $most_latency "$size")"
        else
            attempt "tag_bw.$medium $side $size" "tag_rate.$medium $side $size" -- \
                '$1 == "Final:" { print $7, $9 }' \
                perftest "$libraries" "$transports" tag_bw "$size" "$(iterations $most_bandwidth "$size")"
        fi
    done
}

# Both sides are in one program, which takes turns by itself.
measure_provider()
{
    local kind=$1 medium=$2 size=$3
    if [ "$kind" = latency ]; then
        attempt "prov_lat.$medium ucxlike $size" "prov_lat.$medium core $size" -- 'NF == 2' \
            "$top_builddir/fabtests-ext/benchmarks/prov_lat" latency "$medium" "$size" $milliseconds
    else
        attempt "prov_bw.$medium ucxlike $size" "prov_bw.$medium core $size" \
            "prov_rate.$medium ucxlike $size" "prov_rate.$medium core $size" -- \
            "NF == 2 { printf \"%s %s %.0f %.0f\", \$1, \$2, \$1 * 1e6 / $size, \$2 * 1e6 / $size }" \
            "$top_builddir/fabtests-ext/benchmarks/prov_lat" bandwidth "$medium" "$size" $milliseconds
    fi
}

# Of the last number of connections also what stands in the table. One process has both ends and their descriptors.
measure_ucp_connections()
{
    local count=$1 side descriptors=$(($1 * 8 + 200))
    local -a ours single
    [ "$(ulimit -Sn)" = unlimited ] || [ "$(ulimit -Sn)" -ge $descriptors ] || ulimit -Sn $descriptors
    for side in $(sides); do
        ours=() single=()
        [ $side = ucx ] || ours=(LD_LIBRARY_PATH="$scratch/ours")
        [ "$count" -ne "${counts##* }" ] ||
            single=("ucp_connections $side 0" "process_memory $side 0" "connected_memory $side 0")
        attempt "scale_connections $side $count" "scale_memory $side $count" "${single[@]}" -- \
            "NF == 3 { print \$1, (\$3 - \$2) / $count, \$0 }" \
            env UCX_TLS=tcp,self UCX_WARN_UNUSED_ENV_VARS=n "${ours[@]}" \
            timeout 120 "$scratch/ucp_cm_rate" 127.0.0.1 "$count"
    done
}

measure_provider_connections()
{
    attempt "prov_connections core 0" "prov_connections ucxlike 0" -- \
        '$1 == "tcp" { core = $2 } /^ucxlike MSG / { ours = $3 } END { print core, ours }' \
        timeout 120 "$top_builddir/fabtests-ext/benchmarks/cm_rate" tcp 127.0.0.1 $connections 2
}

# The heap: what was resident before is used again, so that a few endpoints may show none of it.
measure_endpoint_memory()
{
    attempt "ep_memory ucxlike 0" "ep_memory core 0" -- '
        /^client-server / { ours = value($0) }
        /^core alone / { core = value($0) }
        END { print ours, core }
        function value(line) { sub(/ bytes of heap.*/, "", line); sub(/.* /, "", line); return line }' \
        timeout 120 "$top_builddir/fabtests-ext/benchmarks/ep_memory" tcp $endpoints
}

# progress DONE OF NAME: the time left is that of as many steps as are left. To a file a line at most every ten seconds.
told=-10
progress()
{
    local left=""
    [ "$1" -eq 0 ] || left=$((SECONDS * ($2 - $1) / $1))
    [ -z "$left" ] || left=$(printf ', %d:%02d left' $((left / 60)) $((left % 60)))
    if [ -t 1 ]; then
        printf '\r%-70s' "$(($1 * 100 / $2)) %$left: $3"
    elif [ $((SECONDS - told)) -ge 10 ] || [ "$1" -eq "$2" ]; then
        told=$SECONDS
        echo "$1 of $2 steps$left: $3"
    fi
}

plan | grep -E "^[^ ]*(${REPORT_ONLY:-})[^ ]* " >"$scratch/plan"
steps=$(wc -l <"$scratch/plan")
[ "$steps" -gt 0 ] || {
    echo "no measurement has a name that matches '${REPORT_ONLY:-}': $(plan | cut -d ' ' -f 1 | sort -u | xargs)"
    exit 1
}
SECONDS=0 done=0 minutes=${REPORT_MINUTES:-30}
for ((round = 0; round < rounds; round++)); do
    [ $round -eq 0 ] || [ $((SECONDS * (round + 1) / round)) -lt $((minutes * 60)) ] || {
        echo "another round would end after $minutes minutes: $round of $rounds rounds were taken"
        rounds=$round
        break
    }
    while read -r name command <&3; do
        [ $done -eq 0 ] || [ $SECONDS -lt $((minutes * 60)) ] || {
            echo "$minutes minutes are over: $((done - round * steps)) of $steps steps of round $((round + 1)) were taken"
            rounds=$((round + 1))
            break 2
        }
        progress $done $((steps * rounds)) "round $((round + 1)) of $rounds, $command"
        $command
        done=$((done + 1))
    done 3<"$scratch/plan"
done
progress $done $((steps * rounds)) "writing the page"
[ ! -t 1 ] || echo

{
    echo "date $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    echo "seconds $SECONDS"
    echo "rounds $rounds"
    echo "steps $done of $((steps * rounds))"
    echo "ucp_connections ${counts##* }"
    echo "prov_connections $connections"
    echo "endpoints $endpoints"
    echo "processor $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
    echo "processors $(nproc)"
    echo "load $(cut -d ' ' -f 1-3 /proc/loadavg)"
    echo "kernel $(uname -sr)"
    echo "ucx $(ucx_info -v 2>/dev/null | sed -n 's/^# .*[Vv]ersion[: ]*//p' | head -n 1)"
    echo "libfabric $(fi_info --version 2>/dev/null | sed -n 's/^libfabric: *//p')"
    echo "ucxlike $("$top_builddir/config.status" --version 2>/dev/null | sed -n '1s/.* //p')"
    echo "commit $(git -C "$here" rev-parse --short HEAD 2>/dev/null || echo unknown)"
} >"$scratch/about"
python3 "$here/report_page.py" "$scratch/values" "$scratch/about" "$folder"
