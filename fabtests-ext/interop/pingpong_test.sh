#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Debian's fi_pingpong over our provider in the build tree, two processes, data checked.

here=$(dirname "$0")
. "$here/report.sh"
module=${top_builddir:-.}/.libs/libucxlike-fi.so
[ -e "$module" ] || skip_all "the provider module is not built"
command -v fi_pingpong >/dev/null || skip_all "fi_pingpong is not installed (package libfabric-bin)"
FI_PROVIDER_PATH=$(cd "$(dirname "$module")" && pwd)
export FI_PROVIDER_PATH FI_PROVIDER=ucxlike
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

# What a program finds that names no provider but ours.
provider_lists_itself_alone()
{
    local output
    output=$(timeout 60 fi_info -p ucxlike) || return
    echo "$output"
    grep -q 'type: FI_EP_RDM' <<<"$output" && grep -q 'type: FI_EP_MSG' <<<"$output" &&
        ! grep '^provider:' <<<"$output" | grep -qv '^provider: ucxlike$'
}

# 20 pings of 64 bytes and as many pongs: each process tells a lane that took its own, and its bytes, and what arrived.
statistics_show_lanes()
{
    local report
    UCX_STATS_DEST=file:$scratch/report.%p UCX_STATS_FORMAT=text FI_UCXLIKE_TLS=tcp \
        "$here/pingpong.sh" 127.0.0.1 -p ucxlike -e rdm -m tagged -S 64 -I 20 || return
    [ "$(find "$scratch" -name 'report.*' | wc -l)" -eq 2 ] || {
        echo "two processes left these reports:"
        ls "$scratch"
        return 1
    }
    for report in "$scratch"/report.*; do
        awk '
            /^[a-z]/ { tcp = /^tcp\// }
            /^  lane/ { lane = / peer / }
            tcp && / messages / && /bytes/ {
                for (i = 2; i <= NF; i++) {
                    if ($i == "messages") { messages = $(i - 1) }
                    if ($i == "payload") { payload = $(i - 1) }
                }
                enough = messages >= 20 && payload >= 20 * 64
                if ($1 == "sent" && lane && enough) { sent = 1 }
                if ($1 == "received" && enough) { received = 1 }
            }
            END { exit !(sent && received) }' "$report" || {
            echo "no lane with 20 messages of 64 bytes in"
            cat "$report"
            return 1
        }
    done
}

check "fi_info lists ucxlike, RDM and MSG, and nothing layered on it" provider_lists_itself_alone
for type in rdm msg; do
    for mode in msg tagged; do
        # fi_pingpong asks for FI_TAGGED on both endpoint types.
        check "fi_pingpong -e $type -m $mode" "$here/pingpong.sh" 127.0.0.1 -p ucxlike -e $type -m $mode -S all -I 20
    done
done
check "UCX_STATS_DEST tells the lanes of a libfabric program" statistics_show_lanes
finish
