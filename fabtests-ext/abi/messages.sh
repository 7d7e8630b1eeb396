#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# The messages that docs/troubleshooting.md explains are those that the sources have.

srcdir=${top_srcdir:-.}
page=$srcdir/docs/troubleshooting.md
work=$(mktemp) || exit 99
trap 'rm -f "$work"' EXIT
failed=0

sed -n '/^## Messages/,$ s/^| `\([^`]*\)` |.*/\1/p' "$page" >"$work"
while IFS= read -r message; do
    grep -rqF -e "$message" "$srcdir/src" "$srcdir/prov" --include='*.cc' --include='*.h' || {
        echo "FAIL: no source says '$message'"
        failed=1
    }
done <"$work"
count=$(wc -l <"$work")
echo "$count messages"
[ "$count" -ge 10 ] || failed=1
exit $failed
