#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# abi_probe.c must know every name: each constant and type in our public headers, and in those of an
# installed UCX, stands in one of its
# list_*.h or, with a reason, in not_probed.

srcdir=${top_srcdir:-.}
here=$srcdir/fabtests-ext/abi
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

# The upper-case names and the type names in files, without what is in comments.
names()
{
    for file; do
        sed -e ':a' -e '$!{N;ba' -e '}' -e 's,/\*\([^*]\|\*\**[^*/]\)*\*\**/, ,g' -e 's,//[^\n]*,,g' -e 's,<[a-z0-9_/]*[.]h>,,g' \
            "$file"
    done | grep -ow 'UC[PST]_[A-Z0-9_]*\|uc[pst]_[a-z0-9_]*_[th]' | sort -u
}

cat "$here"/list_*.h | grep -ow 'UC[PST]_[A-Z0-9_]*\|uc[pst]_[a-z0-9_]*_[th]' | sort -u >"$work/known"
sed '/^#/d;s/ .*//' "$here/not_probed" >"$work/patterns"

check()
{
    what=$1
    shift
    names "$@" | comm -23 - "$work/known" | grep -vxf "$work/patterns" >"$work/missing"
    if [ -s "$work/missing" ]; then
        echo "FAIL: names of $what that the probe does not know:"
        cat "$work/missing"
        failed=1
    fi
}

failed=0
check "our headers" $(find "$srcdir/include" "${top_builddir:-.}/include" -name '*.h' ! -path '*/v2/*' 2>/dev/null)
if [ -e /usr/include/ucp/api/ucp.h ]; then
    check "the installed UCX" /usr/include/ucp/api/*.h /usr/include/uct/api/*.h
else
    echo "NOTE: no UCX is installed, only our own headers are checked"
fi
exit $failed
