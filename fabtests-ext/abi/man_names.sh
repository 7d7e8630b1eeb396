#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Each public function is in the NAME section of a manual page, where man -k finds it, each page
# names only what exists, and groff has nothing to complain of.

srcdir=${top_srcdir:-.}
here=$srcdir/fabtests-ext/abi
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

{
    echo ucp_init
    sed '/^#/d;/_names$/d' "$here/libucp.exports" "$here/libuct.exports"
    sed -n 's/^\(UCT_INLINE_API\|static UCS_F_ALWAYS_INLINE\) .*[ *]\(uct_[a-z0-9_]*\)(.*/\2/p' \
        "$srcdir/include/uct/api/uct.h"
} | sort -u >"$work/functions"
sed -n 's/^\.Nm \(uc[pt]_[a-z0-9_]*\).*/\1/p' "$srcdir"/man/*.3 | sort -u >"$work/pages"

comm -23 "$work/functions" "$work/pages" >"$work/missing"
comm -13 "$work/functions" "$work/pages" >"$work/extra"
if [ -s "$work/missing" ]; then
    echo "FAIL: in no manual page:" $(cat "$work/missing")
    failed=1
fi
if [ -s "$work/extra" ]; then
    echo "FAIL: in a manual page but not public:" $(cat "$work/extra")
    failed=1
fi
if command -v groff >/dev/null; then
    for page in "$srcdir"/man/*.[1-9]; do
        groff -mandoc -Tutf8 -ww "$page" 2>&1 >/dev/null | grep . && failed=1
    done
else
    echo "NOTE: no groff, the markup was not checked"
fi
echo "$(wc -l <"$work/functions") functions"
exit $failed
