#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# The table of what is supported is whole: docs/support.md has it as it is, and the library exports the
# functions it lists and no others. support_test looks at what the calls do.

root=${top_srcdir:-.}
build=${top_builddir:-.}
table=$root/fabtests-ext/abi/support.tsv
LC_ALL=C
export LC_ALL
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

# same <what> <file of the table> <file of the library>
same()
{
    if ! diff "$2" "$3" >"$work/diff"; then
        echo "FAIL: $1 (< in support.tsv, > in the library):"
        cat "$work/diff"
        failed=1
    fi
}

# rows <awk condition>: the functions of the rows that meet it
rows()
{
    awk -F '\t' "!/^#/ && NF && ($1) { print \$4 }" "$table" | sort
}

"$root/fabtests-ext/scripts/support-table" --check || failed=1

rows 1 | uniq -d >"$work/twice"
: >"$work/none"
same "functions listed twice" "$work/twice" "$work/none"

rows '$5 != "works" && $5 != "unsupported"' >"$work/odd"
same "rows that are neither works nor unsupported" "$work/odd" "$work/none"

rows '$3 == "exported"' >"$work/table"
nm -D --defined-only "$build/.libs/libucxlike.so" |
    awk '$2 == "T" && $3 ~ /^uc[pt]_/ { print $3 }' | sort >"$work/library"
same "exported functions" "$work/table" "$work/library"

# What is inline must be in the headers.
rows '$3 == "inline"' >"$work/table"
for name in $(cat "$work/table"); do
    grep -q "\\b$name(" "$root/include/ucp/api/ucp.h" "$root/include/uct/api/uct.h" && echo "$name"
done >"$work/library"
same "inline functions" "$work/table" "$work/library"

exit $failed
