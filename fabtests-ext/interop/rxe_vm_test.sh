#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What the other tests rely on when they run something through scripts/rxe-vm: status, output, devices,
# a timeout that is one, and nothing left behind.

. "$(dirname "$0")/report.sh"
rxe_vm=$(dirname "$0")/../scripts/rxe-vm
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
# rxe-vm's own temporary files go here, so that what it leaves can be seen.
export TMPDIR=$scratch/tmp
mkdir "$TMPDIR"

vm()
{
    timeout 200 "$rxe_vm" --timeout 150 "$@" </dev/null
}

equal()
{
    [ "$1" = "$2" ] || {
        printf 'expected: %s\ngot:      %s\n' "$2" "$1"
        return 1
    }
}

nothing_left()
{
    local left
    left=$(ls -A "$TMPDIR") # one boot that hangs is enough of a proof: no QEMU may have our initramfs
    equal "$left" "" && ! grep -azq -- "$TMPDIR/rxe-vm" /proc/[0-9]*/cmdline 2>/dev/null
}

# Boots are what takes time here, so one guest answers several questions.
status_and_output()
{
    vm --devices 2 --env "GREETING=a 'b' \$c" bash -c 'echo "out $GREETING"; pwd; echo err >&2
        for i in $(seq 20000); do echo "line $i"; done; fi_info -p verbs -t FI_EP_MSG; exit 7' \
        >"$scratch/out" 2>"$scratch/err"
    equal $? 7
}

stdout_is_exact()
{
    equal "$(sed -n 1p "$scratch/out")" "out a 'b' \$c" && equal "$(sed -n 2p "$scratch/out")" "$PWD" &&
        equal "$(grep -c '^line [0-9]*$' "$scratch/out")" 20000
}

stderr_is_exact()
{
    equal "$(cat "$scratch/err")" err
}

both_devices_are_listed()
{
    equal "$(grep -o 'domain: rxe[0-9]$' "$scratch/out" | sort -u | tr '\n' ' ')" "domain: rxe0 domain: rxe1 "
}

timeout_is_reported()
{
    local output
    output=$(vm --timeout 9 sleep 100 2>&1)
    equal $? 124 && grep -q 'no end after 9 seconds' <<<"$output" && nothing_left
}

a_signal_ends_everything()
{
    local pid
    "$rxe_vm" sleep 100 </dev/null >/dev/null 2>&1 &
    pid=$!
    sleep 3
    kill "$pid"
    wait "$pid"
    equal $? 143 && nothing_left
}

unknown_command_is_127()
{
    vm /nonexistent/program >/dev/null 2>&1
    equal $? 127
}

missing_parts_are_named()
{
    local output mask=$scratch/mask part
    mkdir "$mask"
    for part in bash basename dirname grep sort; do
        ln -s "$(command -v $part)" "$mask/"
    done
    output=$(sed 's|^PATH=.*||' "$rxe_vm" | PATH=$mask bash -s -- true 2>&1)
    equal $? 77 && grep -q 'qemu-system-x86' <<<"$output"
}

check "missing parts are named, with status 77" missing_parts_are_named
vm true >"$scratch/first" 2>&1
case $? in
0) ok "status 0 passes" ;;
77) skip_all "$(tail -n 1 "$scratch/first")" ;;
*) not_ok "status 0 passes: $(cat "$scratch/first")" ;;
esac
check "a status passes" status_and_output
check "stdout passes whole" stdout_is_exact
check "stderr passes, and nothing else is in it" stderr_is_exact
check "fi_info -p verbs lists both devices" both_devices_are_listed
check "a command that is not there is 127" unknown_command_is_127
check "the timeout works and leaves nothing" timeout_is_reported
check "a signal ends everything" a_signal_ends_everything
finish
