# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced by the benchmarks that compare with UCX: the same program of its, over our libraries and over its own.

. "$(dirname "${BASH_SOURCE[0]}")/../interop/pair.sh"

# built_libraries FOLDER: puts links into it to libucp and libuct of the build tree, for LD_LIBRARY_PATH. Only these are
# ours: the program has its libucs from UCX.
built_libraries()
{
    local built
    built=${top_builddir:-.}/.libs/libucp.so.0
    [ -e "$built" ] || {
        echo "libucp.so.0 is not built"
        return 1
    }
    built=$(cd "$(dirname "$built")" && pwd)
    ln -s "$built/libucp.so.0" "$built/libuct.so.0" "$1"
}

# perftest LIBRARIES TRANSPORTS TEST SIZE ITERATIONS: the output of ucx_perftest between two processes. LIBRARIES is
# empty for UCX's own. TEST may have options after it. BENCH_PREFIX is put in front of both sides. Small messages have
# the warm-up that ucx_perftest has by itself: in some milliseconds the system moves two processes that began on one
# processor apart.
perftest()
{
    local -a run=(env UCX_TLS="$2")
    local warm=$(($5 / 10))
    [ "$4" -gt 4096 ] || warm=10000
    [ -z "$1" ] || run+=(LD_LIBRARY_PATH="$1")
    [ "$2" != tcp ] || run+=(UCX_NET_DEVICES=lo)
    run+=(${BENCH_PREFIX:-} ucx_perftest)
    next_port
    PAIR_TIMEOUT=60 run_pair "$pair_port" "${run[@]}" -p "$pair_port" -- \
        "${run[@]}" 127.0.0.1 -p "$pair_port" -t $3 -s "$4" -n "$5" -w "$warm" 2>&1
}
