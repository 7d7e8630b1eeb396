#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The suites of UCT, UCP and the provider over strict cores: what `make check-strict` runs. A case here is a suite over
# a profile. The file `skipped` beside this one has what cannot hold there, with reasons.
# Usage: suites.sh [PROFILE[/SUITE]...]    (such as: cxi worst/ucp_tag_test; all suites over all profiles otherwise)
# A transport that is no imitation, as sockets or tcprdm, may be asked for like a profile.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
build=$(cd "${top_builddir:-.}" && pwd)
# Without a descriptor to wait for a poll of the inner core is a call; with one, it would be a thread that answers late.
export FI_PROVIDER_PATH=$build/fabtests-ext/strict/.libs FI_STRICT_DESCRIPTOR=0
[ -e "$FI_PROVIDER_PATH/strict-worst-fi.so" ] || skip_all "the strict cores are not built"

all_profiles="cxi efa opx psm3 worst"
all_suites="uct_test ucp_allocation_test ucp_am_test ucp_buffers_test ucp_client_server_test ucp_compat_test ucp_crowd_test
    ucp_ep_test ucp_failure_test ucp_fence_test ucp_lanes_test ucp_limits_test ucp_listener_test ucp_memory_test ucp_mt_test
    ucp_probe_test ucp_reconnect_test ucp_rma_test ucp_schedule_test ucp_shared_connection_test ucp_stats_test
    ucp_stats_report_test ucp_stream_test ucp_tag_test ucp_thread_test ucp_wakeup_test prov_atomic_test prov_cm_test
    prov_exit_test prov_mc_test prov_memory_test prov_message_test prov_queue_test prov_rdm_test prov_restart_test
    prov_rma_test prov_schedule_test prov_srx_test ucp_huge"

# providers SUITE: where libfabric finds the cores, and for suites of the provider that.
providers()
{
    case $1 in
    prov_*) echo "$build/.libs:$FI_PROVIDER_PATH" ;;
    *) echo "$FI_PROVIDER_PATH" ;;
    esac
}

# skipped_cases PROFILE SUITE: "PATTERN REASON" lines.
skipped_cases()
{
    awk -v profile="$1" -v suite="$2" -v all=" $all_profiles " '
        !/^#/ && ($1 == profile || $1 == "all" && index(all, " " profile " ")) && $2 == suite {
        pattern = $3; $1 = $2 = $3 = ""; sub(/^ */, ""); print pattern, $0 }' "$here/skipped"
}

# passes PROFILE SUITE: prints how many cases passed; that none did is a failure.
passes()
{
    local patterns filter output status count
    patterns=$(skipped_cases "$1" "$2" | cut -d ' ' -f 1 | paste -sd :)
    # Suites of the provider have cases that run over what the variable says.
    [[ $2 == prov_* ]] && filter="*" || filter="*/$1"
    output=$(UCXLIKE_TEST_TLS=$1 FI_UCXLIKE_TLS=$1 FI_PROVIDER_PATH=$(providers "$2") \
        timeout -k 5 900 "$(built_suite "$2")" --gtest_brief=1 --gtest_filter="$filter${patterns:+-$patterns}" 2>&1 </dev/null)
    status=$?
    count=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' <<<"$output")
    if [ $status -ne 0 ] || [ "${count:-0}" -eq 0 ]; then
        echo "exit status $status of $2 over $1"
        grep -A 20 -E '^\[  FAILED  \]|Failure$|strict' <<<"$output" | head -n 60
        tail -n 3 <<<"$output"
        return 1
    fi
    echo "$count"
}

# over PROFILE SUITE
over()
{
    local pattern reason details
    while read -r pattern reason; do
        skip "$2 over $1, $pattern" "$reason"
    done < <(skipped_cases "$1" "$2")
    if details=$(passes "$1" "$2"); then
        ok "$2 over $1: $details cases"
    else
        not_ok "$2 over $1"
        sed 's/^/    /' <<<"$details"
    fi
}

for asked in ${*:-$all_profiles}; do
    case $asked in
    */*) over "${asked%/*}" "${asked#*/}" ;;
    *)
        for suite in $all_suites; do
            over "$asked" "$suite"
        done
        ;;
    esac
done
finish
