#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# What the libraries export is the interface and nothing else: nm's list of each must equal the
# committed one. libucxlike.so has the names of libucp, libuct and its own list of ucs names. The
# drop-ins must not carry symbol versions (UCX's own have none, so programs ask for none) and none of
# UCX's ucs_ or ucm_ names, which would take the place of those in UCX's libraries.

here=${top_srcdir:-.}/fabtests-ext/abi
libs=${top_builddir:-.}/.libs
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

fail()
{
    echo "FAIL: $*"
    failed=1
}

# check <library> <soname or -> <list>...
check()
{
    library=$1
    soname=$2
    shift 2
    [ -e "$libs/$library" ] || { fail "$library was not built"; return; }
    sort -u "$@" | sed '/^#/d' >"$work/expected"
    # Versions appear as name@@VERSION.
    nm -D --defined-only "$libs/$library" | awk '$2 != "A" { print $NF }' | sort -u >"$work/actual"
    comm -13 "$work/expected" "$work/actual" >"$work/extra"
    comm -23 "$work/expected" "$work/actual" >"$work/missing"
    [ -s "$work/extra" ] && fail "$library exports what it should not:" $(cat "$work/extra")
    [ -s "$work/missing" ] && fail "$library does not export:" $(cat "$work/missing")
    if [ "$soname" != - ]; then
        readelf -d "$libs/$library" | grep -q "SONAME.*\[$soname\]" ||
            fail "the soname of $library is not $soname"
    fi
    echo "$library: $(wc -l <"$work/actual") names"
}

size()
{
    actual=$(readelf --dyn-syms -W "$libs/$1" | awk -v name="$2" '$8 == name { print $3 }')
    [ "$actual" = "$3" ] || fail "$2 in $1 has ${actual:-no} bytes, programs copy $3"
}

check libucp.so.0 libucp.so.0 "$here/libucp.exports"
check libuct.so.0 libuct.so.0 "$here/libuct.exports"
check libucxlike.so.0 libucxlike.so.0 "$here/libucp.exports" "$here/libuct.exports" \
    "$here/libucxlike-ucs.exports"
check libucxlike-fi.so - "$here/libucxlike-fi.exports"
check libucs.so.0 libucs.so.0 "$here/libucs.exports"
check libucm.so.0 libucm.so.0 "$here/libucm.exports"

# Copy relocations: programs reserve the size of the version they were linked with.
for library in libuct.so.0 libucxlike.so.0; do
    size $library uct_device_type_names 32
    size $library uct_alloc_method_names 48
done
exit $failed
