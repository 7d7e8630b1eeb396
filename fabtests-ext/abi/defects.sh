#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Every case and script that docs/defects.md names for a defect is there.
here=$(dirname "$0")
. "$here/../interop/report.sh"
top=$(cd "${top_srcdir:-$here/../..}" && pwd)
page=$top/docs/defects.md

# The cases as "SUITE CASE", as the sources declare them.
declared()
{
    find "$top"/fabtests-ext/unit "$top"/fabtests-ext/conformance -name '*_test.cc' -exec cat {} + | tr '\n' ' ' |
        grep -oE 'TEST(_[FP])?\( *[a-z_0-9]+, *[a-z_0-9]+' | sed -E 's/TEST(_[FP])?\( *//; s/, */ /'
}

cases_are_there()
{
    local case status=0
    declared | sort -u >"$scratch/declared"
    grep -oE '`[a-z_0-9]+` `[a-z_0-9]+`' "$page" | tr -d '`' | sort -u >"$scratch/named"
    while read -r case; do
        echo "docs/defects.md: there is no case $case"
        status=1
    done < <(comm -13 "$scratch/declared" "$scratch/named")
    [ "$(wc -l <"$scratch/named")" -ge 50 ] && return $status
}

files_are_there()
{
    local file status=0
    for file in $(grep -oE '`fabtests-ext/[a-z_/]+\.sh`' "$page" | tr -d '`'); do
        [ -x "$top/$file" ] || {
            echo "docs/defects.md: there is no $file"
            status=1
        }
    done
    return $status
}

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
check "every case is there" cases_are_there
check "every script is there" files_are_there
