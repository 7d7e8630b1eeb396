# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced by the benchmarks of MPICH, which run one program over our libucp and over UCX's own.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/figures.sh"
. "$here/perftest.sh"

# prepare SOURCE: compiles it to $scratch/program, beside links to our libraries. Ends the script with 77 where
# something is missing.
prepare()
{
    local tool
    for tool in mpicc.mpich mpirun.mpich; do
        command -v $tool >/dev/null || {
            echo "$tool is not installed"
            exit 77
        }
    done
    scratch=$(mktemp -d) || exit 99
    trap 'rm -rf "$scratch"' EXIT
    built_libraries "$scratch" || exit 77
    mpicc.mpich -O2 -w "$here/$1" -o "$scratch/program" || exit 99
}
