#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Programs of others over strict cores, as interop has them over the usual transports: ucx_perftest's UCP tests, io_demo,
# a job of MPICH, one of Open MPI, and fi_pingpong over the provider.
# Usage: tools.sh [PROFILE[/TOOL]...]    (all tools over all profiles otherwise)

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
build=$(cd "${top_builddir:-.}" && pwd)
export FI_PROVIDER_PATH=$build/fabtests-ext/strict/.libs FI_STRICT_DESCRIPTOR=0 top_builddir=$build
[ -e "$FI_PROVIDER_PATH/strict-worst-fi.so" ] || skip_all "the strict cores are not built"

all_profiles="cxi efa opx psm3 worst"
all_tools="perftest io_demo mpich openmpi pingpong"

# interop SCRIPT: its last lines; a script that skips itself is a skip.
interop()
{
    local status
    EXAMPLE_TRANSPORTS=$profile "$here/../interop/$1_test.sh" >"$scratch/output" 2>&1
    status=$?
    grep -vE '^ok ' "$scratch/output" | tail -n 40
    return $status
}

perftest() { PERFTEST_BRIEF=every interop ucx_perftest; }
io_demo() { IO_DEMO_FEW=20 interop io_demo; }
mpich() { MPI_BRIEF=yes interop mpich; }
openmpi() { MPI_BRIEF=yes interop openmpi; }
pingpong()
{
    local type
    for type in rdm msg; do
        FI_PROVIDER_PATH=$build/.libs:$FI_PROVIDER_PATH FI_PROVIDER=ucxlike FI_UCXLIKE_TLS=$profile \
            "$here/../interop/pingpong.sh" 127.0.0.1 -p ucxlike -e $type -m tagged -S all -I 10 || return
    done
}

scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
for asked in ${*:-$all_profiles}; do
    profile=${asked%/*}
    tools=$all_tools
    [ "$profile" = "$asked" ] || tools=${asked#*/}
    for tool in $tools; do
        check "$tool over $profile" "$tool"
    done
done
finish
