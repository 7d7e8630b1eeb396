#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ucxlike_selftest of the build tree: it passes over transports that are here and over strict cores, as one command and
# as client and server; and it fails over a core that damages data and when its peer is killed.

. "$(dirname "$0")/../interop/report.sh"
export IPATH_NO_BACKTRACE=1
selftest=$PWD/ucxlike_selftest
strict=$PWD/fabtests-ext/strict/.libs
[ -x "$selftest" ] || skip_all "ucxlike_selftest was not built"
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
unset UCX_TLS

# fails TEXT COMMAND...: the command fails and prints the text.
fails()
{
    local text=$1
    shift
    "$@" >"$scratch/output" 2>&1 && {
        echo "exit status 0"
        cat "$scratch/output"
        return 1
    }
    grep -qe "$text" "$scratch/output" || {
        echo "no '$text' in:"
        cat "$scratch/output"
        return 1
    }
}

# Every test has a line, and the last one counts them.
passes_all()
{
    local transport=$1 name
    prints "^transport $transport$" '^12 passed, 0 failed, 0 unsupported$' -- "$selftest" -t "$transport" || return
    while read -r name; do
        grep -q "^    $name  *pass" "$scratch/output" || {
            echo "no line of '$name'"
            return 1
        }
    done < <("$selftest" --list)
}

# passes_strictly PROFILE TEXT...: nothing is missing, and the texts say what is supplied.
passes_strictly()
{
    local profile=$1
    shift
    [ -e "$strict/strict-$profile-fi.so" ] || { echo "the strict core was not built"; return 77; }
    FI_PROVIDER_PATH=$strict prints '^12 passed, 0 failed, 0 unsupported$' 'a timer wakes a worker' "$@" \
        -- "$selftest" -t "$profile"
}

does_not_sleep()
{
    [ -e "$strict/strict-psm3-fi.so" ] || { echo "the strict core was not built"; return 77; }
    FI_PROVIDER_PATH=$strict UCX_WAKEUP_INTERVAL=0 prints '^11 passed, 0 failed, 1 unsupported$' \
        'sleep and wakeup  *unsupported (.*busy' -- "$selftest" -t psm3
}

passes_without_order()
{
    passes_strictly opx 'supplied: order of messages' 'order of sends  *none'
}

# Starts a server at a free port, in $port and $server. Each case is a subshell, whose end is that of its processes.
server=''
client=''
starts_server()
{
    trap 'kill $server $client 2>/dev/null' EXIT
    for port in 23338 23339 23340 23341 23342; do
        "$selftest" --server -p $port >"$scratch/server" 2>&1 &
        server=$!
        timeout 20 bash -c "until grep -q port '$scratch/server'; do :; done"
        grep -q 'waiting for a client' "$scratch/server" && return
    done
    cat "$scratch/server"
    return 1
}

meets_a_server()
{
    starts_server || return
    fails "port $port: it is in use" "$selftest" --server -p "$port" || return
    prints '^  server .*libfabric' '^2 passed, 0 failed' -- \
        "$selftest" -p "$port" -t sm -t tcp -T 'put and get' 127.0.0.1 || return
    wait "$server" # the run is over: 0
}

refuses_names()
{
    fails "'nosuch' is no transport .* there are:.* tcp" "$selftest" -t nosuch &&
        fails "'ofi_rxm' is no transport .*it is a layer above" "$selftest" -t ofi_rxm &&
        fails "no test is named 'nosuch'" "$selftest" -T nosuch && fails "'0' is not a number" "$selftest" -p 0 &&
        fails '^usage' "$selftest" --nosuch
}

misses_a_server()
{
    # Its own port, where nothing listens any more.
    starts_server || return
    kill "$server"
    wait "$server" 2>/dev/null
    fails "no server at 127.0.0.1, port $port: Connection refused" "$selftest" -p "$port" 127.0.0.1
}

notices_damage()
{
    [ -e "$strict/strict-cxi-fi.so" ] || { echo "the strict core was not built"; return 77; }
    export FI_PROVIDER_PATH=$strict FI_STRICT_DAMAGE=1000
    fails 'tag eager  *fail (.*byte 999 of 1000 is wrong' "$selftest" -t cxi -T 'tag eager' &&
        fails 'put and get  *fail (.*is wrong' "$selftest" -t cxi -T 'put and get'
    local result=$?
    unset FI_PROVIDER_PATH FI_STRICT_DAMAGE
    return $result
}

notices_a_killed_peer()
{
    starts_server || return
    "$selftest" -p "$port" -t tcp 127.0.0.1 >"$scratch/client" 2>&1 &
    client=$!
    timeout 60 bash -c "until grep -q '  pass' '$scratch/client'; do :; done"
    kill -KILL "$server"
    wait "$client" && {
        echo "exit status 0"
        cat "$scratch/client"
        return 1
    }
    grep -qE '  fail \((the other process has gone|no server at)' "$scratch/client" || {
        cat "$scratch/client"
        return 1
    }
}

prints_json()
{
    command -v python3 >/dev/null || { echo "python3 is not installed"; return 77; }
    "$selftest" --json -t tcp -T stream >"$scratch/all.json" 2>"$scratch/errors" || return
    python3 - "$scratch/all.json" <<'CHECK'
import json, sys
all = json.load(open(sys.argv[1]))
assert all["passed"] == 1 and all["failed"] == 0, all
device = all["transports"][0]["devices"][0]
wanted = {"mr_mode", "order of sends", "inject size", "max message", "iov limits", "waiting", "capabilities"}
assert wanted <= set(device["offered"]), device
assert any("atomics" in line for line in device["supplied"]), device
assert all["transports"][0]["tests"] == [{"test": "stream", "status": "pass", "note": ""}]
CHECK
}

check "everything over tcp" passes_all tcp
check "everything over shared memory" passes_all sm
check "everything over libfabric's shared memory" passes_all shm
check "a strict core with regions of an endpoint" passes_strictly cxi 'supplied: one endpoint of the domain' \
    'mr_mode  *.*FI_MR_ENDPOINT'
check "a strict core with order on request" passes_strictly efa 'order of sends  *FI_ORDER_SAS'
check "a strict core without order" passes_without_order
check "a core without descriptor, and no timer" does_not_sleep
check "client and server, and a port in use" meets_a_server
check "names that are not there" refuses_names
check "a server that is not there" misses_a_server
check "a core that damages data fails" notices_damage
check "a peer that is killed in the middle fails" notices_a_killed_peer
check "JSON" prints_json
finish
