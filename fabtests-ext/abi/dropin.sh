#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# A program compiled with an installed UCX's headers and linked with its libraries runs with our
# drop-ins instead: same source as c_app_test, once beside UCX's own libucs, once beside ours. So does
# one that handles log lines: those of the drop-ins reach it through either libucs.

srcdir=${top_srcdir:-.}
libs=$(cd "${top_builddir:-.}/.libs" && pwd)
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

if ! ${CC:-cc} -w "$srcdir/fabtests-ext/abi/c_app_test.c" -o "$work/app" -lucp -luct -lucs \
    2>/dev/null; then
    echo "SKIP: no UCX is installed to build a program with"
    exit 77
fi
if readelf -d "$libs/libucp.so.0" | grep -q 'NEEDED.*lib[a-z]*san'; then
    echo "SKIP: the libraries are built with a sanitizer, which the program lacks"
    exit 77
fi

${CC:-cc} -w "$srcdir/fabtests-ext/abi/log_handler_app.c" -o "$work/log_app" -lucp -lucs || exit 1

# run <label> <program> <libraries>...
run()
{
    label=$1
    program=$2
    shift 2
    mkdir -p "$work/$label"
    for library; do
        ln -sf "$libs/$library" "$work/$label/$library"
    done
    if LD_LIBRARY_PATH=$work/$label timeout 60 "$work/$program" >"$work/output" 2>&1 &&
        grep -q '^PASS' "$work/output"; then
        echo "$label: $(grep -c '^message over' "$work/output") transports, $(grep interface "$work/output")"
    else
        echo "FAIL: $label:"
        cat "$work/output"
        failed=1
    fi
}

for program in app log_app; do
    run "$program-beside-ucx" $program libucp.so.0 libuct.so.0
    run "$program-alone" $program libucp.so.0 libuct.so.0 libucs.so.0 libucm.so.0
done
exit $failed
