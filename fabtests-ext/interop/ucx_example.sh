# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced by the tests that build one of UCX's own examples, unchanged, with our headers and library.

. "$(dirname "$0")/report.sh"
. "$(dirname "$0")/pair.sh"
. "$(dirname "$0")/installed.sh"

examples=${UCX_EXAMPLES:-/usr/share/doc/libucx-dev/examples}
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

export PAIR_EXPECT="TEST SUCCESS"

# What to run over, and where the server listens. The guest with RDMA devices sets others.
transports=${EXAMPLE_TRANSPORTS:-sm ofi_shm tcp}
address=${EXAMPLE_ADDRESS:-127.0.0.1}

# build_example NAME: sets $example to the program, built with ucx.pc as UCX's users would. Where
# EXAMPLE_PROGRAMS has it already (a compiler is slow in the guest), that is taken.
build_example()
{
    find_installed || skip_all "nothing is installed to build against"
    if [ -n "${EXAMPLE_PROGRAMS:-}" ]; then
        example=$EXAMPLE_PROGRAMS/$1
        [ -x "$example" ] || skip_all "$example was not built"
        return
    fi
    example=$scratch/$1
    [ -r "$examples/$1.c" ] || skip_all "$examples/$1.c is not there (package libucx-dev)"
    check "$1.c compiles with ucxlike.pc" build ucxlike "$examples/$1.c" "$example.own"
    check "$1.c compiles with ucx.pc" build ucx "$examples/$1.c" "$example"
    [ -x "$example" ] || finish
}

# pair NAME SERVER_OPTIONS CLIENT_OPTIONS: the example with itself; @PORT@ is replaced in both.
pair()
{
    local name=$1
    next_port
    # Unquoted: lists of options.
    check "$name" with_library run_pair "$pair_port" "$example" ${2//@PORT@/$pair_port} -- \
        "$example" ${3//@PORT@/$pair_port}
}
