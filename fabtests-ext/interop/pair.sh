# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced: client and server programs of two processes, as UCX's and libfabric's tools come. Every
# server gets a port of its own, so that tests can run side by side and a port in TIME_WAIT is no error.

# libfabric loads libinfinipath, which would turn the signal that ends a server into exit status 1.
export IPATH_NO_BACKTRACE=1

# has_socket PORT STATES: some socket of TCP at the port is in one of the states, a regular expression.
has_socket()
{
    awk -v port="$(printf ':%04X' "$1")" -v states="$2" '
        substr($2, length($2) - 4) == port && $4 ~ states { found = 1 }
        END { exit !found }' /proc/net/tcp /proc/net/tcp6 2>/dev/null
}

# A port outside the range that the kernel gives to clients, different for every call, that no test beside
# this one uses; 06 is TIME_WAIT.
next_port()
{
    pair_port=${pair_port:-$((13000 + $$ % 1500 * 10))}
    while pair_port=$((pair_port + 1)) && has_socket $pair_port '0[^6]'; do
        :
    done
}

# Waits until PID listens on PORT, which the kernel shows of TCP (0A) and only LOG of verbs; until it has
# ended; or for LIMIT seconds.
wait_for_listener()
{
    local pid=$1 port=$2 log=$3 end=$((SECONDS + $4))
    until has_socket "$port" 0A || grep -qE 'server is listening|started listener' "$log"; do
        kill -0 "$pid" 2>/dev/null && [ $SECONDS -lt $end ] || return 1
        sleep 0.05
    done
}

# run_pair PORT SERVER_COMMAND... -- CLIENT_COMMAND...: prints the client's output; if either side
# fails, also the server's. Both sides are ended after PAIR_TIMEOUT seconds (default 200). A server that
# never ends by itself (PAIR_ENDLESS=yes) is ended when the client is done. If PAIR_EXPECT is set, one of
# the two must say it: UCX's examples end with status 0 where a transport is missing. PAIR_OUTPUT is a
# folder to leave both outputs in, as files "client" and "server".
run_pair()
{
    local port=$1 limit=${PAIR_TIMEOUT:-200} output server_pid client_status server_status
    local -a server=()
    shift
    while [ "$1" != -- ]; do
        server+=("$1")
        shift
    done
    shift
    output=${PAIR_OUTPUT:-$(mktemp -d)} || return 99
    # By line: what an endless server has said must not be lost in its buffer when it is ended.
    : >"$output/server"
    timeout -k 2 "$limit" stdbuf -oL "${server[@]}" >"$output/server" 2>&1 </dev/null &
    server_pid=$!
    wait_for_listener $server_pid "$port" "$output/server" "$limit"
    timeout -k 2 "$limit" "$@" </dev/null 2>&1 | tee "$output/client"
    client_status=${PIPESTATUS[0]}
    # A server whose client failed may wait for ever.
    [ $client_status -eq 0 ] && [ "${PAIR_ENDLESS:-no}" = no ] || kill $server_pid 2>/dev/null
    wait $server_pid
    server_status=$?
    # 143: ended by our own TERM, as timeout(1) passes it on.
    [ $client_status -eq 0 ] && [ "${PAIR_ENDLESS:-no}" = yes ] && [ $server_status -eq 143 ] && server_status=0
    if [ $client_status -eq 0 ] && ! grep -q "${PAIR_EXPECT:-}" "$output/client" "$output/server"; then
        echo "neither side said '$PAIR_EXPECT'"
        client_status=1
    fi
    if [ $client_status -ne 0 ] || [ $server_status -ne 0 ]; then
        echo "client status $client_status, server status $server_status; the server said:"
        tail -n 30 "$output/server"
    fi
    [ -n "${PAIR_OUTPUT:-}" ] || rm -rf "$output"
    [ $client_status -eq 0 ] && [ $server_status -eq 0 ]
}
