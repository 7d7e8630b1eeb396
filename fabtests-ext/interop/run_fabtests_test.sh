#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The runner of a developer's fabtests, with programs that do as their name says in place of fabtests:
# what it counts as what, and that it ends what it started and nothing else.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/report.sh"
runner=$here/../scripts/run-fabtests
command -v setpriv >/dev/null || skip_all "setpriv is not installed (package util-linux)"
scratch=$(mktemp -d) || exit 99
bystander=
trap '[ -z "$bystander" ] || kill $bystander; rm -rf "$scratch"' EXIT

# program NAME BODY
program()
{
    printf '#!/bin/sh\necho "$0 $*" >>%q\n%s\n' "$scratch/calls" "$2" >"$scratch/bin/$1"
    chmod +x "$scratch/bin/$1"
}

mkdir -p "$scratch/bin" "$scratch/configs"
program fi_good 'exit 0'
program fi_bad 'exit 1'
program fi_none 'exit 61'
program fi_minus 'exit 195' # what exit(-61) gives
program fi_half 'for a; do last=$a; done; [ "$last" = 127.0.0.1 ] && [ $# -gt 4 ] && exit 61; exit 0'
program fi_left '[ $# -gt 4 ] && exit 107; exit 61' # the server ends, and the client with it
program fi_lost '[ $# -gt 4 ] && exit 107; exit 0'
program fi_hangs 'sleep 1000'
# As many cases as its file says, the errors in the last ones; the server is told no file.
program fi_ubertest '
[ "$1" = -u ] || exit 0
read -r cases errors <"$2"
n=$((${6} < cases ? ${6} - $4 + 1 : cases - $4 + 1))
[ $n -gt 0 ] || n=0
bad=$((${6} < cases ? 0 : n < errors ? n : errors))
printf "Success: %s\nSkipped: 0\nENODATA: 0\nENOSYS : 0\nEIO    : 0\nERROR  : %s\n" $((n - bad)) $bad'
cat >"$scratch/bin/runfabtests.sh" <<'LIST'
neg_unit_tests=(
	"fi_none g00n13s"
)
unit_tests=(
	"fi_good -a SERVER_ADDR"
)
functional_tests=(
	"fi_good -e rdm"
	"fi_none"
	"fi_minus"
	"fi_good -x"
)
short_tests=(
	"fi_bad"
)
standard_tests=(
	"fi_half"
	"fi_left"
	"fi_lost"
)
regression_tests=(
	"fi_hangs"
)
complex_tests=(
	"fi_ubertest"
)
LIST
echo '^fi_good -x' >"$scratch/configs/any.exclude"

run()
{
    "$runner" -p any -c "$scratch/configs" -T 60 "$@" "$scratch"
}

# sums EXPECTED STATUS OPTION...
sums()
{
    local expected=$1 status=$2 output
    shift 2
    output=$(run "$@")
    [ $? -eq "$status" ] && [ "$(tail -n 1 <<<"$output")" = "$expected" ] || {
        echo "$output"
        return 1
    }
}

gives_address()
{
    run -t unit >/dev/null && grep -q 'fi_good -a 127.0.0.1 -p any$' "$scratch/calls"
}

# ubertest CASES ERRORS EXPECTED: what the runner says of a file with so many.
ubertest()
{
    local output
    echo "$1 $2" >"$scratch/configs/all.test"
    output=$(run -t complex)
    grep -qx "fi_ubertest $scratch/configs/all.test *$3" <<<"$output" || {
        echo "$output"
        return 1
    }
}

# A program that hangs is ended, a process of the same kind that was there before is not.
ends_only_its_own()
{
    local before after
    before=$(pgrep -cf "$scratch/bin/fi_hangs")
    sums "0 passed, 1 failed, 0 skipped (0 not offered, 0 excluded)" 1 -t regression -T 2 || return
    after=$(pgrep -cf "$scratch/bin/fi_hangs")
    kill -0 $bystander && [ "$before" = "$after" ]
}

check "counts what passes, is not offered and is excluded" \
    sums "3 passed, 0 failed, 3 skipped (2 not offered, 1 excluded)" 0 -t unit,functional
check "puts the address into the arguments" gives_address
check "counts what fails" sums "3 passed, 1 failed, 3 skipped (2 not offered, 1 excluded)" 1 -t quick
check "one side that is not offered what the other is fails, one that is left by such a server does not" \
    sums "0 passed, 2 failed, 1 skipped (1 not offered, 0 excluded)" 1 -t standard
check "nothing that ran is no success" \
    sums "0 passed, 0 failed, 1 skipped (1 not offered, 0 excluded)" 1 -t functional -m none
check "runs ubertest in parts and adds them up" \
    ubertest 450 0 "Pass (450 passed, 0 failed, 0 not offered, exit status 0)"
check "runs ubertest in parts that come out even" \
    ubertest 400 0 "Pass (400 passed, 0 failed, 0 not offered, exit status 0)"
check "finds the failures of the last part of ubertest" \
    ubertest 450 2 "Fail (448 passed, 2 failed, 0 not offered, exit status 0)"
(exec -a fi_bystander sleep 1000) >/dev/null 2>&1 &
bystander=$!
check "ends what hangs and nothing else" ends_only_its_own
finish
