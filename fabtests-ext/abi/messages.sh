#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# The messages that docs/troubleshooting.md explains are those that the sources have, outside of comments.

srcdir=${top_srcdir:-.}
page=$srcdir/docs/troubleshooting.md
work=$(mktemp) || exit 99
trap 'rm -f "$work"' EXIT
failed=0

said()
{
    grep -rhF -e "$1" "$srcdir/src" "$srcdir/prov" --include='*.cc' --include='*.h' --include='*.in' |
        grep -qvE '^[[:space:]]*(//|#|\*)'
}

sed -n '/^## Messages/,$ s/^| `\([^`]*\)` |.*/\1/p' "$page" >"$work"
while IFS= read -r message; do
    said "$message" || {
        echo "FAIL: no source says '$message'"
        failed=1
    }
done <"$work"
count=$(wc -l <"$work")
echo "$count messages"
[ "$count" -ge 10 ] || failed=1
# A sentence that a comment alone has.
if said "Starts a program that was built for UCX on ucxlike"; then
    echo "FAIL: a comment passes for a message"
    failed=1
fi
exit $failed
