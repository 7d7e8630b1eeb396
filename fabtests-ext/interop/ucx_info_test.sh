#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Debian's ucx_info: what it lists of our transports, contexts, workers and endpoints.

. "$(dirname "$0")/drop_in.sh"
need ucx_info ucx-utils

ucx_info_on_ours()
{
    on_ours timeout 60 ucx_info "$@"
}

# Every TEXT before "-- ucx_info_on_ours OPTION..." is printed, and the libraries are ours.
says_on_ours()
{
    prints "$@" && only_ours 1
}

private=$(private_calls ucx_info)
if [ -n "$private" ]; then
    skip "ucx_info -d" "this ucx_info needs ${private}of its own UCX"
else
    check "ucx_info -d lists transports and devices" says_on_ours '#      Transport: sm' '#      Transport: shm' \
        '#      Transport: tcp' \
        '#         Device: lo' '#      Transport: self' 'connection:  *to ep, to iface' -- ucx_info_on_ours -d
fi
# Debian's libucs prints its own settings, whichever libucp is loaded; those of UCP and UCT come from the
# library that has them. Ours leaves theirs out, and ucxlike_info prints its own.
lists_no_settings_of_another_library()
{
    local foreign
    says_on_ours '^UCX_LOG_LEVEL=' -- ucx_info_on_ours -c || return
    foreign=$(grep -E '^UCX_(TLS|RNDV_|TCP_|SELF_)' "$scratch/output")
    [ -z "$foreign" ] || {
        echo "settings of another libucp or libuct: $foreign"
        return 1
    }
}

own_tool_lists_settings()
{
    on_ours LD_LIBRARY_PATH="$libdir:$libraries" UCX_RNDV_THRESH=4321 "$prefix/bin/ucxlike_info" -c >"$scratch/output" &&
        grep -qx 'UCX_RNDV_THRESH=4321' "$scratch/output" && grep -q '^UCX_TLS=' "$scratch/output"
}

check "ucx_info -c lists no settings of another library" lists_no_settings_of_another_library
check "ucxlike_info -c lists settings" own_tool_lists_settings
check "ucx_info -p prints a context" says_on_ours '# UCP context' '#  *resource 0 ' -- ucx_info_on_ours -p -u tarsw
check "ucx_info -w prints a worker" says_on_ours '# UCP worker' -- ucx_info_on_ours -w -u tarsw
check "ucx_info -e prints an endpoint" says_on_ours '# UCP endpoint' 'lane\[0\]' -- ucx_info_on_ours -e -u tarsw
check "ucx_info -m prints an allocation" says_on_ours 'allocated' -- ucx_info_on_ours -m 1M -u tarsw
finish
