#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Our layers over verbs: boots the guest once and runs everything of verbs_guest.sh in it.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/report.sh"
. "$here/installed.sh"
top_builddir=$(cd "${top_builddir:-.}" && pwd)
scratch=$(mktemp -d "$PWD/verbs_guest.XXXXXX") || exit 99
trap 'rm -rf "$scratch"' EXIT

# UCX's examples and the MPI program are compiled here: the guest would take a minute for them.
build_examples()
{
    local name examples=${UCX_EXAMPLES:-/usr/share/doc/libucx-dev/examples}
    find_installed || return
    for name in uct_hello_world ucp_hello_world ucp_client_server; do
        [ ! -r "$examples/$name.c" ] || build ucx "$examples/$name.c" "$scratch/$name" || return
    done
    ! command -v mpicc.mpich >/dev/null ||
        mpicc.mpich -std=c11 -O2 -w "$here/mpi_app.c" -o "$scratch/mpi_app" -lpthread
}

build_examples >"$scratch/build.log" 2>&1 || cat "$scratch/build.log"
timeout 2970 "$here/../scripts/rxe-vm" --timeout 2950 --devices 2 --env top_builddir="$top_builddir" \
    --env EXAMPLE_PROGRAMS="$scratch" --env UCXLIKE_PREFIX="${UCXLIKE_PREFIX:-$stage}" \
    --env IPATH_NO_BACKTRACE=1 --env VERBS_ALL="${VERBS_ALL:-}" "$here/verbs_guest.sh" </dev/null 2>&1 | tee "$scratch/output"
status=${PIPESTATUS[0]}
[ "$status" -ne 77 ] || grep -q ' passed, ' "$scratch/output" || skip_all "$(tail -n 1 "$scratch/output")"
exit "$status"
