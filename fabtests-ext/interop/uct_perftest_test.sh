#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Debian's ucx_info and ucx_perftest, unmodified, on our libuct.so.0: every UCT test of ucx_perftest over
# each transport, in each form that ucx_info says the transport has; a form that it has not must be refused.

. "$(dirname "$0")/report.sh"
. "$(dirname "$0")/pair.sh"
. "$(dirname "$0")/installed.sh"

for program in ucx_info ucx_perftest; do
    command -v $program >/dev/null || skip_all "$program is not installed (package ucx-utils)"
done
find_installed || skip_all "nothing is installed to run with"
private=$(private_calls ucx_info)
[ -z "$private" ] || skip_all "this ucx_info needs ${private}of its own UCX"
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
transports=${PERFTEST_TRANSPORTS:-self sm shm tcp}
address=${PERFTEST_ADDRESS:-127.0.0.1}
iterations=${PERFTEST_ITERATIONS:-40}
export PAIR_TIMEOUT=${PAIR_TIMEOUT:-200}

# Only what we replace: the rest of UCX stays Debian's.
with_dropin()
{
    LD_LIBRARY_PATH=$dropin "$@"
}

device_of()
{
    case $1 in
    self | sm | shm) echo memory ;;
    tcp) echo lo ;;
    verbs) echo rxe0 ;;
    esac
}

# What ucx_info -d says of a transport on its device.
section()
{
    with_dropin timeout "$PAIR_TIMEOUT" ucx_info -d 2>/dev/null </dev/null | awk -v transport="$1" -v device="$(device_of "$1")" '
        $2 == "Transport:" { current = $3 }
        $2 == "Device:" { on = current == transport && $3 == device }
        $2 == "Memory" && $3 == "domain:" { on = 0 }
        on'
}

is_listed()
{
    grep "Transport: $1$" <<<"$(with_dropin ucx_info -d 2>/dev/null)" && [ -n "$(section "$1")" ]
}

# plan CAPABILITY OPTION...: one more test; CAPABILITY is how ucx_info calls what it needs. In the batch file of
# ucx_perftest, which runs all tests in one pair of processes, its name is its number.
plan()
{
    capabilities+=("$1")
    shift
    tests+=("$*")
    echo "test${#tests[@]} $*" >>"$scratch/batch"
}

plan_all()
{
    local form
    for form in short bcopy zcopy; do
        plan am_$form -t am_lat -D $form
        plan am_$form -t am_bw -D $form -s 100
        plan put_$form -t put_lat -D $form
        plan put_$form -t put_bw -D $form -s 100
    done
    for form in bcopy zcopy; do # ucx_perftest 1.13 has no short get
        plan get_$form -t get -D $form
    done
    plan put_zcopy -t put_bw -D zcopy -s 1000000
    plan atomic_add -t add_lat
    plan atomic_add -t add_mr -s 4
    plan atomic_fadd -t fadd
    plan atomic_swap -t swap
    plan atomic_cswap -t cswap
}

# perftest TRANSPORT: both sides of the batch; self has only one.
perftest()
{
    local transport=$1
    local -a options=(-d "$(device_of "$transport")" -x "$transport" -n "$iterations" -w 4 -b "$scratch/batch" -v)
    if [ "$transport" = self ]; then
        with_dropin timeout -k 2 $PAIR_TIMEOUT ucx_perftest -l "${options[@]}"
    else
        next_port
        with_dropin run_pair "$pair_port" ucx_perftest -p "$pair_port" "${options[@]}" -- \
            ucx_perftest -p "$pair_port" -f "${options[@]}" "$address"
    fi
}

# ends_well TRANSPORT: the output stays in $scratch/output.
ends_well()
{
    local status
    perftest "$1" >"$scratch/output" 2>&1
    status=$?
    cat "$scratch/output"
    return $status
}

# A test that was refused has no line; that of one that ran has its iterations.
reports_its_iterations()
{
    grep -E "^test$1, *$iterations,[0-9]" "$scratch/output"
}

is_refused()
{
    ! reports_its_iterations "$@"
}

tests=() capabilities=()
# "exactly 2 processes in p2p case (actual: 1)" is what that of UCX 1.18 says of a batch between two.
ucx=$(ucx_info -v | sed -nE 's/^# (Library version:|Version) ([0-9]+\.[0-9]+).*/\2/p')

plan_all
for transport in $transports; do
    check "ucx_info -d lists $transport" is_listed "$transport"
    if [ "$transport" != self ] && [ "$ucx" != 1.13 ]; then
        skip "ucx_perftest -x $transport" "ucx_perftest $ucx takes two processes with a batch for one"
        continue
    fi
    caps=$(section "$transport")
    check "ucx_perftest -x $transport runs ${#tests[@]} tests to the end" ends_well "$transport"
    for i in "${!tests[@]}"; do
        if grep -q "^# *${capabilities[i]}:" <<<"$caps"; then
            check "ucx_perftest -x $transport ${tests[i]}" reports_its_iterations $((i + 1))
        else
            check "ucx_perftest -x $transport ${tests[i]} is refused" is_refused $((i + 1))
        fi
    done
done
finish
