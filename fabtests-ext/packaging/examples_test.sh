#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The installed examples, built as docs/tutorial.md says: each as a server and a client.

here=$(dirname "$0")
. "$here/../interop/report.sh"
. "$here/../interop/installed.sh"
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
export IPATH_NO_BACKTRACE=1

# hello PROGRAM: the server says its port, and where if not everywhere, then what the client asked; the client says
# the answer.
hello()
{
    local port address answer question server status=0
    exec 7< <(exec timeout 200 "$1" 2>"$scratch/server.err")
    server=$!
    read -r -u 7 _ port _ address || status=1
    [ $status -ne 0 ] || answer=$(timeout 200 "$1" "${address:-127.0.0.1}" "$port") || status=1
    [ $status -eq 0 ] || kill "$server"
    read -r -u 7 question
    wait "$server" || status=1
    exec 7<&-
    [ $status -eq 0 ] && [ "$question" = "hello, server" ] && [ "$answer" = "hello, client" ] || {
        echo "status $status, port '$port', the server got '$question', the client got '$answer'"
        cat "$scratch/server.err"
        return 1
    }
}

ucp_hello()
{
    build ucxlike "$examples/ucp_hello.c" "$scratch/ucp_hello" -std=c99 -Wall -Wextra -Werror &&
        with_library hello "$scratch/ucp_hello"
}

fi_hello()
{
    # shellcheck disable=SC2046 # options
    ${CC:-cc} -std=c99 -Wall -Wextra -Werror "$examples/fi_hello.c" -o "$scratch/fi_hello" \
        $(pkg-config --cflags --libs libfabric) || return
    FI_PROVIDER=ucxlike FI_PROVIDER_PATH=$libdir/libfabric hello "$scratch/fi_hello" &&
        grep -qx 'provider ucxlike' "$scratch/server.err"
}

find_installed || skip_all "nothing is installed to build against"
examples=$(find "$root" -path '*/doc/*/examples/ucp_hello.c' | head -n 1)
examples=${examples%/ucp_hello.c}
check "ucp_hello" ucp_hello
check "fi_hello" fi_hello
finish
