#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Programs built for UCX must run with our library: what abi_probe.c and the compiler's list of
# function prototypes say about our headers is compared with the same from the installed UCX.
# All names that both have must agree, but for those in known_differences. Where no UCX is installed
# there still is abi_probe.expected: what the probe prints on a 64-bit machine, which must not change
# unawares.
# Usage: abi_compare.sh [include folder of a UCX], by default the compiler's own.

srcdir=${top_srcdir:-.}
here=$srcdir/fabtests-ext/abi
ours="-I$srcdir/include -I${top_builddir:-.}/include"
theirs=${1:+-I$1}
cc=${CC:-cc}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
LC_ALL=C
export LC_ALL

# Writes $1.values (name=value lines) and, with GCC, $1.protos (name=prototype lines).
probe()
{
    $cc -std=gnu99 -w $2 "$here/abi_probe.c" -o "$work/$1" || return 1
    "$work/$1" | sort >"$work/$1.values"
    : >"$work/$1.aux"
    $cc -std=gnu99 -w $2 -aux-info "$work/$1.aux" -fsyntax-only "$here/abi_probe.c" 2>/dev/null
    sed -n 's,^/\*.*:N*C \*/ extern \(.*[ *]\)\(uc[pst]_[a-z0-9_]*\) (\(.*\));.*$,\2=\1(\3),p' \
        "$work/$1.aux" | sort -u >"$work/$1.protos"
}

probe ours "$ours" || { echo "FAIL: the probe does not compile with our headers"; exit 1; }
if grep -q '^sizeof(ucp_ep_h)=8$' "$work/ours.values"; then
    if ! diff "$here/abi_probe.expected" "$work/ours.values"; then
        echo "FAIL: the interface is not what it was (< abi_probe.expected, > now)"
        exit 1
    fi
    echo "$(wc -l <"$work/ours.values") names as expected"
fi

echo '#include <ucp/api/ucp.h>' >"$work/has.c"
echo '#include <uct/api/uct.h>' >>"$work/has.c"
if ! $cc $theirs -fsyntax-only "$work/has.c" 2>/dev/null; then
    echo "SKIP: the comparison, no UCX headers (ucp/api/ucp.h, uct/api/uct.h) are installed"
    exit 77
fi

probe theirs "$theirs" || { echo "FAIL: the probe does not compile with UCX's headers"; exit 1; }

awk -F= -v known="$here/known_differences" '
    BEGIN {
        while ((getline line < known) > 0) {
            if (line ~ /^#/) continue
            split(line, word, " ")
            rule[word[1]] = word[2]
        }
    }
    { if (/WRONG TYPE/) { print "FAIL: " FILENAME ": " $0; bad = 1 } }
    FNR == NR { theirs[$1] = $2; next }
    !($1 in theirs) { added++; next }
    { both++; seen[$1] = 1 }
    theirs[$1] == $2 { next }
    rule[$1] == "differs" { next }
    rule[$1] == "grew" && $2 + 0 > theirs[$1] + 0 { next }
    { print "FAIL: " $1 " is " $2 " here and " theirs[$1] " in UCX"; bad = 1 }
    END {
        for (name in theirs)
            if (!(name in seen)) { print "FAIL: " name " is missing here"; bad = 1 }
        print both " names compared, " added + 0 " are newer than the installed UCX"
        exit bad || both < 500
    }' "$work/theirs.values" "$work/ours.values" || exit 1

# Every function that an older UCX declares exists here with the same prototype.
if [ -s "$work/ours.protos" ]; then
    grep '^uc[pt]_' "$work/theirs.protos" | comm -23 - "$work/ours.protos" >"$work/changed"
    if [ -s "$work/changed" ]; then
        echo "FAIL: prototypes of UCX that are missing or different here:"
        cat "$work/changed"
        exit 1
    fi
    echo "$(grep -c '^uc[pt]_' "$work/theirs.protos") prototypes compared"
else
    echo "NOTE: prototypes not compared, the compiler has no -aux-info"
fi
