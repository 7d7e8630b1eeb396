#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What `make check-versions` runs: builds ucxlike_selftest of another commit ($1; else the last release, else the commit
# before) in ./versions, and runs it with the one of the build tree, each as client and as server. They pass, or one of
# them logs the versions that differ (docs/wire.md).

. "$(dirname "$0")/report.sh"
export IPATH_NO_BACKTRACE=1
unset UCX_TLS
here=$top_builddir/ucxlike_selftest
history()
{
    git -C "$top_srcdir" "$@" 2>/dev/null
}

history rev-parse --git-dir >/dev/null || skip_all "there is no history of commits here"
other=${1:-$(history describe --tags --abbrev=0 || history rev-parse --short HEAD~1)}
[ -n "$other" ] || skip_all "there is no commit before this one"
tree=$top_builddir/versions/$other
there=$tree/build/ucxlike_selftest
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

build_other()
{
    [ ! -x "$there" ] || return 0
    rm -rf "$tree"
    mkdir -p "$tree/source" "$tree/build" || return
    history archive "$other" | tar -x -C "$tree/source" || return
    cd "$tree/source" && ./autogen.sh && cd "$tree/build" && ../source/configure CFLAGS=-O0 CXXFLAGS=-O0 || return
    [ ! -f ../source/unity.mk ] || export MAKEFILES=$tree/source/unity.mk
    make -j "${JOBS:-$(nproc)}" ucxlike_selftest
}

# meet SERVER CLIENT TRANSPORT: says how the two got on.
meet()
{
    local server=$1 client=$2 transport=$3 port pid status first
    rm -f "$scratch/pipe"
    mkfifo "$scratch/pipe" || return
    for port in 23348 23349 23350 23351 23352; do
        "$server" --server -p $port >"$scratch/pipe" 2>&1 &
        pid=$!
        exec 3<"$scratch/pipe"
        read -r -t 60 first <&3
        [[ $first != *'waiting for a client'* ]] || break
    done
    timeout 300 "$client" -p "$port" -t "$transport" --large 100000 127.0.0.1 >"$scratch/client" 2>&1
    status=$?
    kill $pid 2>/dev/null
    wait $pid
    cat <&3 >"$scratch/server"
    cat "$scratch/server" "$scratch/client"
    [ $status -eq 0 ] || grep -hE '(speaks|has) version [0-9]+' "$scratch/server" "$scratch/client"
}

if ! (build_other) >"$scratch/build" 2>&1; then
    tail -n 20 "$scratch/build"
    not_ok "the build of $other"
    finish
fi
for transport in sm tcp; do
    check "$other as client, over $transport" meet "$here" "$there" $transport
    check "$other as server, over $transport" meet "$there" "$here" $transport
done
finish
