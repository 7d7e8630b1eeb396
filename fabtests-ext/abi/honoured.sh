#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Each variable of UCX that is honoured has a case that sees it change what the library does: honoured_variables lists
# them all and no other, and the cases exist.

srcdir=${top_srcdir:-.}
list=$srcdir/fabtests-ext/abi/honoured_variables
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

# cases_of LIST: what is wrong with its rows.
cases_of()
{
    grep -v '^#' "$1" | while read -r variable suite name; do
        grep -qE "^TEST(_P|_F)?\(.*, $name\)" "$srcdir/fabtests-ext/$suite.cc" 2>/dev/null ||
            echo "$variable: $suite has no case $name"
    done
}

sed -n 's/^    {"\([A-Z0-9_]*\)", .*, honoured, .*/\1/p' "$srcdir"/src/ucs/config/ucx_variables*.cc | sort >"$work/honoured"
grep -v '^#' "$list" | cut -d ' ' -f 1 | sort >"$work/listed"
for variable in $(comm -23 "$work/honoured" "$work/listed"); do
    fail "UCX_$variable is honoured and has no case in ${list#"$srcdir"/}"
done
for variable in $(comm -13 "$work/honoured" "$work/listed"); do
    fail "${list#"$srcdir"/} lists UCX_$variable, which is not honoured"
done
wrong=$(cases_of "$list")
[ -z "$wrong" ] || fail "$wrong"
count=$(wc -l <"$work/honoured")
[ "$count" -ge 20 ] || fail "the sources name $count variables"
# A case that is not there is found.
echo "TLS unit/ucp/ucp_config_test carries_pigeons" >"$work/bad"
[ -n "$(cases_of "$work/bad")" ] || fail "a case that does not exist passes"
echo "$count variables"
exit $failed
