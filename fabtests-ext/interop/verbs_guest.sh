#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs in the guest that verbs_guest_test.sh boots: rxe0 is 10.9.9.1, rxe1 is 10.9.10.1. What runs there
# is emulated, so a case here shows that something works, never how fast. To add one, add a line below.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/report.sh"
tests=$top_builddir/fabtests-ext
server=10.9.9.1
# Emulated on cores that other tests want, too, all of it is slow: a limit is for what hangs.
export PAIR_TIMEOUT=300
limit=900
[ -n "${VERBS_ALL:-}" ] && schedules=200 || schedules=5

# program NAME PROGRAM [ARG...]: a test program of the build tree.
program()
{
    local name=$1 path=$tests/$2
    shift 2
    if [ -x "$path" ]; then
        check "$name" timeout $limit "$path" "$@"
    else
        not_ok "$name: ${path#"$top_builddir"/} is not built"
    fi
}

# gtest SUITE FILTER: a filter that matches nothing is no pass.
gtest()
{
    local path
    path=$(built_suite "$1")
    [ -x "$path" ] || { not_ok "$1 over verbs: not built"; return; }
    check "$1 $2" gtest_cases "$path" "$2"
}

gtest_cases()
{
    local output status
    output=$(timeout $limit "$1" --gtest_filter="$2" --gtest_brief=0 2>&1)
    status=$?
    echo "$output"
    [ $status -eq 0 ] || echo "exit status $status" # 124: the time was up; above 128: a signal
    [ $status -eq 0 ] && grep -q '^\[  PASSED  \] [1-9]' <<<"$output"
}

# pingpong PROVIDER TYPE OPTION...: Debian's fi_pingpong over a provider.
pingpong()
{
    local provider=$1 type=$2
    shift 2
    [ "$provider" != ucxlike ] ||
        export FI_PROVIDER=ucxlike FI_PROVIDER_PATH=$provider_dir FI_UCXLIKE_TLS=verbs
    check "fi_pingpong -p $provider -e $type $*" \
        "$here/pingpong.sh" $server -p "$provider" -e "$type" "$@"
    unset FI_PROVIDER FI_PROVIDER_PATH FI_UCXLIKE_TLS
}

sees_device()
{
    fi_info -p verbs -t FI_EP_MSG | grep "domain: rxe0$"
}

module=$(find "$top_builddir" -path '*/.libs/libucxlike-fi.so' -not -path '*/stage/*' | head -n 1)
provider_dir=$(dirname "$module")

# example NAME: one of UCX's examples through its own test, over verbs.
example()
{
    check "$1 over verbs" env EXAMPLE_TRANSPORTS=verbs EXAMPLE_ADDRESS=$server "$here/$1_test.sh"
}

check "verbs lists rxe0" sees_device
check "docs/fabrics.md has what verbs can do" "$here/../scripts/core-matrix" --check verbs
# The client's verdict alone: the core's own server now and then waits for ever for the answer to its last message.
PAIR_ENDLESS=yes pingpong verbs msg -S 64
gtest uct_test '*verbs*'
UCXLIKE_RANDOM_STEPS=300 gtest uct_cm_test 'verbs/*'
gtest uct_sockaddr_test '*verbs*'
gtest uct_network_test '*verbs*'
check "ucx_perftest over verbs" env PERFTEST_TRANSPORTS=verbs PERFTEST_ADDRESS=$server PERFTEST_ITERATIONS=10 \
    PAIR_TIMEOUT=$limit "$here/uct_perftest_test.sh"
example uct_hello_world
example ucp_hello_world
example ucp_client_server
check "io_demo over verbs" env EXAMPLE_TRANSPORTS=verbs EXAMPLE_ADDRESS=$server IO_DEMO_FEW=2 "$here/io_demo_test.sh"
check "ucx_perftest of UCP over verbs" env EXAMPLE_TRANSPORTS=verbs EXAMPLE_ADDRESS=$server PERFTEST_BRIEF=yes \
    "$here/ucx_perftest_test.sh"
check "MPICH over verbs" env EXAMPLE_TRANSPORTS=verbs MPI_RANKS=2 JOB_TIMEOUT=$limit "$here/mpich_test.sh"
pingpong ucxlike msg -S 64
pingpong ucxlike msg -S 100000
UCXLIKE_TEST_VERBS_ADDRESS=$server gtest prov_cm_schedule_test '*verbs*'
UCXLIKE_TEST_TLS=verbs UCXLIKE_TEST_SCHEDULES=$schedules gtest prov_schedule_test '*verbs*'

# UCP's suites over verbs. With shared memory beside it, which then carries nearly everything, those of which each kind
# of lane has a part; with VERBS_ALL all.
export UCXLIKE_TEST_ADDRESS=$server
for suite in am buffers client_server compat ep fence listener memory probe rma stream tag wakeup; do
    beside=""
    case ${VERBS_ALL:+all}$suite in
    all* | ep | rma | tag) beside=ofi_shm,verbs ;;
    esac
    UCXLIKE_TEST_TLS="verbs $beside" gtest ucp_${suite}_test '*verbs'
done
UCXLIKE_TEST_TLS=verbs gtest ucp_region_cache_test '*verbs'
UCXLIKE_TEST_TLS=verbs UCXLIKE_TEST_SCHEDULES=$schedules gtest ucp_schedule_test '*verbs'
export UCXLIKE_TEST_TLS="verbs ofi_shm,verbs"
export UCX_MAX_RMA_RAILS=2
for suite in rma fence; do
    check "ucp_${suite}_test, large puts and gets over both devices" \
        gtest_cases "$(built_suite "ucp_${suite}_test")" '*verbs'
done
unset UCX_MAX_RMA_RAILS
# In processes of their own, which have no device open when they fork their peers: these could not use it.
alone="b196 killed_server_of_many what_is_under_way a_receive_that_had_begun a_receive_after_the_death"
alone+=" an_active_message a_stream"
gtest ucp_failure_test "*verbs-*.${alone// /*:*.}*"
for case in $alone; do
    gtest ucp_failure_test "*.$case*verbs"
done
for suite in rma tag wakeup; do
    UCXLIKE_TEST_TLS=sm,verbs gtest ucp_${suite}_test '*verbs'
done
unset UCXLIKE_TEST_TLS UCXLIKE_TEST_ADDRESS

UCX_TLS=verbs program "UCP connections over verbs" functional/ucp_cm_demo $server
finish
