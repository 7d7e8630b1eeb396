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

# What a program finds that names no provider but ours.
provider_lists_itself_alone()
{
    local output
    output=$(timeout 60 fi_info -p ucxlike) || return
    echo "$output"
    grep -q 'type: FI_EP_RDM' <<<"$output" && grep -q 'type: FI_EP_MSG' <<<"$output" &&
        ! grep '^provider:' <<<"$output" | grep -qv '^provider: ucxlike$'
}

check "fi_info lists ucxlike, RDM and MSG, and nothing layered on it" provider_lists_itself_alone
for type in rdm msg; do
    for mode in msg tagged; do
        # fi_pingpong asks for FI_TAGGED on both endpoint types.
        check "fi_pingpong -e $type -m $mode" "$here/pingpong.sh" 127.0.0.1 -p ucxlike -e $type -m $mode -S all -I 20
    done
done
finish
