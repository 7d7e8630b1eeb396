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
transports=${PERFTEST_TRANSPORTS:-self shm tcp}
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
    self | shm) echo memory ;;
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

# perftest TRANSPORT OPTION...: both sides; self has only one.
perftest()
{
    local transport=$1
    shift
    set -- -d "$(device_of "$transport")" -x "$transport" -n "$iterations" -w 4 "$@"
    if [ "$transport" = self ]; then
        with_dropin timeout -k 2 $PAIR_TIMEOUT ucx_perftest -l "$@"
    else
        next_port
        with_dropin run_pair "$pair_port" ucx_perftest -p "$pair_port" "$@" -- \
            ucx_perftest -p "$pair_port" -f "$@" "$address"
    fi
}

# A test that says nothing was refused; the last line of one that ran begins with its iterations.
reports_its_iterations()
{
    local output
    output=$(perftest "$@" 2>&1) || {
        echo "$output"
        return 1
    }
    echo "$output"
    grep -Eq "^(Final:)? *$iterations  *[0-9]" <<<"$output"
}

is_refused()
{
    ! reports_its_iterations "$@"
}

# run TRANSPORT CAPABILITY OPTION...: CAPABILITY is how ucx_info calls it.
run()
{
    local transport=$1 capability=$2
    shift 2
    if grep -q "^# *$capability:" <<<"$caps"; then
        check "ucx_perftest -x $transport $*" reports_its_iterations "$transport" "$@"
    else
        check "ucx_perftest -x $transport $* is refused" is_refused "$transport" "$@"
    fi
}

for transport in $transports; do
    check "ucx_info -d lists $transport" is_listed "$transport"
    caps=$(section "$transport")
    for form in short bcopy zcopy; do
        run "$transport" am_$form -t am_lat -D $form
        run "$transport" am_$form -t am_bw -D $form -s 100
        run "$transport" put_$form -t put_lat -D $form
        run "$transport" put_$form -t put_bw -D $form -s 100
    done
    for form in bcopy zcopy; do # ucx_perftest 1.13 has no short get
        run "$transport" get_$form -t get -D $form
    done
    run "$transport" put_zcopy -t put_bw -D zcopy -s 1000000
    run "$transport" atomic_add -t add_lat
    run "$transport" atomic_add -t add_mr -s 4
    run "$transport" atomic_fadd -t fadd
    run "$transport" atomic_swap -t swap
    run "$transport" atomic_cswap -t cswap
done
finish
