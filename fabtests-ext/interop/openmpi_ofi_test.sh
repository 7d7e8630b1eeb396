#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Debian's Open MPI over our provider: messages by pml/cm and mtl/ofi, windows by osc/rdma and btl/ofi,
# every byte checked (mpi_app.c).

here=$(cd "$(dirname "$0")" && pwd)
. "$here/report.sh"
module=${top_builddir:-.}/.libs/libucxlike-fi.so
[ -e "$module" ] || skip_all "the provider module is not built"
command -v mpirun.openmpi >/dev/null || skip_all "mpirun.openmpi is not installed (package openmpi-bin)"
command -v mpicc.openmpi >/dev/null || skip_all "mpicc.openmpi is not installed (package libopenmpi-dev)"
ompi_info --parsable 2>/dev/null | grep -q '^mca:mtl:ofi:' || skip_all "this Open MPI was built without libfabric"
FI_PROVIDER_PATH=$(cd "$(dirname "$module")" && pwd)
export FI_PROVIDER_PATH IPATH_NO_BACKTRACE=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

# No other provider and no other way is left: what cannot be had over ucxlike ends the job.
readonly MPI="mpirun.openmpi --oversubscribe -n 4 --mca opal_common_ofi_provider_include ucxlike
    --mca opal_common_ofi_verbose 5 --mca mtl_base_verbose 5 --mca btl_base_verbose 20 --mca osc rdma --mca btl self,ofi"
readonly MESSAGES="--mca pml cm --mca mtl ofi" ours_carries_messages='mtl:ofi:provider: ucxlike'
# Open MPI 5 opens btl/ofi for windows only where messages go over it, too.
case $(ompi_info --version) in
*"Open MPI v4"*) readonly WINDOWS=$MESSAGES ours_carries_windows=$ours_carries_messages ;;
*) readonly WINDOWS="--mca pml ob1 --mca btl_ofi_mode 2" ours_carries_windows='Using ofi btl for send' ;;
esac

# passes TRANSPORTS OPTIONS PROOF PART...: mpi_app does, and Open MPI says that it has chosen our provider.
passes()
{
    local tls=$1 options=$2 proof=$3 part status
    shift 3
    FI_UCXLIKE_TLS=$tls timeout -k 5 "${JOB_TIMEOUT:-300}" $MPI $options "$scratch/mpi_app" "$@" >"$scratch/output" 2>&1
    status=$?
    grep -a -v 'not in include list' "$scratch/output" | tail -n 30
    [ $status -eq 0 ] && grep -a -q "$proof" "$scratch/output" || return 1
    for part in "$@"; do
        grep -a -q "^PASS $part$" "$scratch/output" || return 1
    done
}

messages()
{
    passes "$1" "$MESSAGES" "$ours_carries_messages" "${@:2}"
}

windows()
{
    passes "$1" "$WINDOWS" "$ours_carries_windows" rma
}

check "mpi_app.c compiles with Open MPI" \
    mpicc.openmpi -DOPEN_MPI_OFI -std=c11 -O2 -w "$here/mpi_app.c" -o "$scratch/mpi_app" -lpthread
if [ -x "$scratch/mpi_app" ]; then
    for tls in sm,tcp ofi_shm,tcp tcp; do
        check "Open MPI, mtl/ofi over $tls: point-to-point, collectives" messages $tls p2p coll
        check "Open MPI, mtl/ofi over $tls: MPI_THREAD_MULTIPLE" messages $tls threads
        check "Open MPI, btl/ofi over $tls: windows" windows $tls
    done
fi
finish
