#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The public-API suites of UCP, built with Debian's libucx-dev and run on UCX's own libraries: what the
# original does not do either is our mistake, unless original.exclude names its defect.
# Usage: original.sh [SUITE...]    (such as ucp_tag_test; default all)

here=$(cd "$(dirname "$0")" && pwd)
. "$here/report.sh"
top=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
jobs=${JOBS:-$(nproc)}
# Those that include nothing of the inside of a library. Not wrong arguments: what UCX does with them depends on how it
# was configured.
suites=${*:-$(cd "$top/fabtests-ext/conformance/ucp" && grep -rLE '^#include "uc[pst]/' --include='ucp_*_test.cc' . |
    sed 's/.*\///; s/\.cc$//' | grep -v invalid_args)}
excluded=$(sed -n '/^suite /d; s/^\([^# ][^ ]*\).*/\1/p' "$here/original.exclude" | paste -sd:)

build()
{
    ! grep -q "^suite $1 " "$here/original.exclude" || return 0
    # Unquoted: the compiler may be "ccache g++".
    ${CXX:-g++} -std=c++20 -w -I"$top" "$(find "$top/fabtests-ext/conformance/ucp" -name "$1.cc")" -o "$scratch/$1" \
        -lgtest -lgtest_main -lucp -lucs -lpthread >"$scratch/$1.log" 2>&1
}

build_all()
{
    local suite
    for suite in $suites; do
        while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do
            wait -n
        done
        build "$suite" &
    done
    wait
}

run()
{
    if grep -q "^suite $1 " "$here/original.exclude"; then
        sed -n "s/^suite $1 *//p" "$here/original.exclude"
        return 77
    fi
    [ -x "$scratch/$1" ] || {
        cat "$scratch/$1.log"
        return 1
    }
    # A crash of the library must not take its time to print a stack.
    UCX_HANDLE_ERRORS=none timeout -k 2 300 "$scratch/$1" --gtest_filter="-$excluded" >"$scratch/output" 2>&1
    local status=$?
    if grep -q '^\[==========\] 0 tests ' "$scratch/output"; then
        echo "original.exclude names all of its cases"
        return 77
    fi
    grep -q '^\[  PASSED  \] [1-9]' "$scratch/output" || status=1
    [ $status -eq 0 ] || grep -v '^\[       OK \]' "$scratch/output" | tail -n 60
    return $status
}

[ -r /usr/include/ucp/api/ucp.h ] || skip_all "UCX's headers are not there (package libucx-dev)"
[ -r /usr/include/gtest/gtest.h ] || skip_all "GoogleTest is not there (package libgtest-dev)"
build_all
for suite in $suites; do
    check "$suite on UCX $(pkg-config --modversion ucx)" run "$suite"
done
finish
