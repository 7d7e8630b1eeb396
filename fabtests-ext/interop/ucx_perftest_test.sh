#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Debian's ucx_perftest between two processes: all of its UCP tests, and its options that reach other
# parts of the API. It does not look at the data; io_demo does. Few iterations: this shows that
# something works, never how fast.

. "$(dirname "$0")/drop_in.sh"
need ucx_perftest ucx-utils

# One that is built with MPI gets its peer from mpirun instead of an address. MPI's own messages stay away from
# UCX, so that what is seen of UCX is the test.
readonly MPIRUN="mpirun.openmpi --allow-run-as-root --oversubscribe -n 2 --mca pml ob1 --mca btl self,sm"
start=by_address
if ldd "$(command -v ucx_perftest)" | grep -q libmpi; then
    start=by_mpirun
    need mpirun.openmpi openmpi-bin
fi

readonly MESSAGE_TESTS="tag_lat tag_bw tag_sync_lat tag_sync_bw ucp_am_lat ucp_am_bw"
readonly STREAM_TESTS="stream_lat stream_bw"
readonly RMA_TESTS="ucp_put_lat ucp_put_bw ucp_get"
readonly AMO_TESTS="ucp_add ucp_fadd ucp_swap ucp_cswap"
readonly SIZES="1 8 1024 8192 65536 1048576 4194304"
readonly ITERATIONS=20

# batch FILE OPTION VALUE...: a batch file of ucx_perftest, a line "NAME OPTION VALUE" for each. The names
# come back in comma-separated results.
batch()
{
    local file=$scratch/$1 option=$2
    shift 2
    printf "%s $option %s\n" $(printf '%s %s ' $(for value; do echo "${value//,/+} $value"; done)) >"$file"
}

# ucx_perftest ends with status 0 even if tests of a batch failed, so the lines of results are counted:
# one for each test and size, with all iterations done.
all_ran()
{
    local expected=$1 ran
    ran=$(grep -cE "^[^ ,]+,[^ ,]+, *$ITERATIONS,[0-9]" "$PAIR_OUTPUT/client")
    [ "$ran" -eq "$expected" ] || {
        echo "$ran of $expected tests have a result"
        return 1
    }
}

# by_address, by_mpirun TLS OPTION...: both processes.
by_address()
{
    local tls=$1
    shift
    pair_on_ours "$tls" ucx_perftest -p @PORT@ "$@" -- ucx_perftest "$address" -p @PORT@ "$@"
}

by_mpirun()
{
    local tls=$1 status
    shift
    export PAIR_OUTPUT=$scratch/pair
    mkdir -p "$PAIR_OUTPUT"
    UCX_TLS=$tls on_ours timeout -k 5 "$PAIR_TIMEOUT" $MPIRUN ucx_perftest "$@" >"$PAIR_OUTPUT/client" 2>&1
    status=$?
    tail -n 30 "$PAIR_OUTPUT/client"
    [ $status -eq 0 ] && only_ours 2 && carried_by "$tls" "$PAIR_OUTPUT/client"
}

run_batch()
{
    local tls=$1 expected=$2
    local -a options
    shift 2
    options=(-b tests -b sizes -v -f -n $ITERATIONS -w 2 "$@")
    cd "$scratch" || return
    PAIR_TIMEOUT=${PERFTEST_TIMEOUT:-300} $start "$tls" "${options[@]}" && all_ran "$expected"
}

# perftest TLS TESTS SIZES OPTION...
perftest()
{
    local tls=$1 tests=$2 sizes=$3 expected
    shift 3
    batch tests -t $tests
    batch sizes -s $sizes
    expected=$(($(wc -l <"$scratch/tests") * $(wc -l <"$scratch/sizes")))
    check "ucx_perftest over $tls: $(wc -w <<<"$tests") tests ($(cut -c 1-20 <<<"$tests")...) $*" \
        run_batch "$tls" "$expected" "$@"
}

if [ "${PERFTEST_BRIEF:-}" = every ]; then # test, once
    for tls in $transports; do
        perftest $tls "$MESSAGE_TESTS $STREAM_TESTS $RMA_TESTS" "8 65536 1048576"
        perftest $tls "$AMO_TESTS" "4 8"
    done
    finish
elif [ -n "${PERFTEST_BRIEF:-}" ]; then # where everything is slow
    perftest "$transports" "tag_lat tag_bw ucp_put_bw ucp_get" "8 65536"
    finish
fi
for tls in $transports; do
    perftest $tls "$MESSAGE_TESTS $STREAM_TESTS $RMA_TESTS" "$SIZES"
    perftest $tls "$AMO_TESTS" "4 8"
done

readonly SOME_TESTS="tag_lat tag_sync_bw ucp_am_bw stream_bw ucp_put_lat ucp_get"
readonly SOME_SIZES="8 65536 1048576"
for tls in $transports; do
    [[ $tls != *,* ]] || continue
    perftest $tls "$SOME_TESTS" "$SOME_SIZES" -M multi
    perftest $tls "ucp_fadd ucp_cswap" "4 8" -M multi
    perftest $tls "$SOME_TESTS" "$SOME_SIZES" -z
    perftest $tls "$SOME_TESTS" "$SOME_SIZES" -e
    perftest $tls "$MESSAGE_TESTS $STREAM_TESTS" "$SOME_SIZES" -E sleep
    # The responder of the one-sided tests sleeps once for each operation until there is an event, which UCX
    # does not promise: over tcp Debian's own libraries hang there, too, as soon as one progress takes two
    # operations (it ends with -O 1 only). With -o the responder leaves that out; what sleeps then is the
    # initiator. The other one-sided tests hang on both even so: they wait for a number in the buffer.
    perftest $tls ucp_get "$SOME_SIZES" -E sleep -o
    # Not put: ucx_perftest 1.13 writes its sequence numbers into the list instead of the buffer.
    perftest $tls "$MESSAGE_TESTS" "100,20000,7 8,8 300,700000" -D iov,iov
done
finish
