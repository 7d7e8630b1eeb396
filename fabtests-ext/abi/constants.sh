#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Nothing is accepted and ignored by oversight: each constant of the public headers is named in a
# source file, which honours or refuses it, or stands with a reason in unused_constants. A new
# constant is in neither, and fails.

srcdir=${top_srcdir:-.}
here=$srcdir/fabtests-ext/abi
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

# The upper-case names in files, without what is in comments.
names()
{
    for file; do
        sed -e ':a' -e '$!{N;ba' -e '}' -e 's,/\*\([^*]\|\*\**[^*/]\)*\*\**/, ,g' -e 's,//[^\n]*,,g' \
            "$file"
    done | grep -ow 'UC[PST]_[A-Z0-9_]*' | sort -u
}

# What abi_probe.c does not print is no constant.
sed '/^#/d;s/ .*//' "$here/not_probed" >"$work/others"
names $(find "$srcdir/include" "${top_builddir:-.}/include" -name '*.h' 2>/dev/null) |
    grep -vxf "$work/others" >"$work/constants"
names $(find "$srcdir/src" "$srcdir/prov" -name '*.cc' -o -name '*.h' -o -name '*.c') >"$work/used"
comm -23 "$work/constants" "$work/used" >"$work/unused"

failed=0
sed '/^#/d;s/ .*//' "$here/unused_constants" >"$work/patterns"
if grep -vxEf "$work/patterns" "$work/unused" >"$work/unknown"; then
    echo "FAIL: named in no source file, nor in unused_constants:"
    cat "$work/unknown"
    failed=1
fi
while read -r pattern; do
    if ! grep -qxE "$pattern" "$work/unused"; then
        echo "FAIL: unused_constants explains '$pattern', which stands for none"
        failed=1
    fi
done <"$work/patterns"
if grep -vE '^#|^[^ ]+ .+' "$here/unused_constants"; then
    echo "FAIL: no reason is given"
    failed=1
fi
echo "$(wc -l <"$work/constants") constants, $(wc -l <"$work/unused") of them explained"
exit $failed
