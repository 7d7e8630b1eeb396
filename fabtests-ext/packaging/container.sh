#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The image of packaging/container/Containerfile: built by buildah, in a store of this test's own, and tried. It compiles
# the library and loads packages, so it is `make check-container` and not part of `make check`.
# Its base is not taken from a registry: it is DEBIAN12_TAR, which
# "mmdebstrap --variant=minbase bookworm FILE" has made before, or is made so.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
. "$here/tarball.sh"
top=$(cd "${top_srcdir:-$here/../..}" && pwd)
need buildah buildah
[ -e "${DEBIAN12_TAR:-}" ] || need mmdebstrap mmdebstrap
[ "$(id -u)" -eq 0 ] || skip_all "needs root"
scratch=$(mktemp -d) || exit 99
trap 'rm -rf --one-file-system "$scratch"' EXIT
# Without overlays and without a container runtime it works inside of another container and in any kernel.
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
tar=${DEBIAN12_TAR:-$scratch/base.tar}

own_buildah()
{
    buildah --root "$scratch/store" --runroot "$scratch/run" "$@"
}

base_image()
{
    local container
    [ -e "$tar" ] || mmdebstrap --variant=minbase bookworm "$tar" || return 1
    container=$(own_buildah from scratch) && own_buildah add "$container" "$tar" / &&
        own_buildah config --cmd /bin/bash "$container" &&
        own_buildah commit --rm "$container" docker.io/library/debian:bookworm
}

image()
{
    copy_tree "$top" "$scratch/tree" && cd "$scratch/tree" &&
        own_buildah bud --pull-never --env CFLAGS=-O0 --env CXXFLAGS=-O0 \
        -f packaging/container/Containerfile -t ucxlike . &&
        own_buildah from --pull-never localhost/ucxlike >"$scratch/container"
}

in_image()
{
    own_buildah run "$(cat "$scratch/container")" -- "$@"
}

says_its_version()
{
    prints '^# ucxlike version: [0-9]' '^# libfabric version: 1' -- in_image ucxlike_info -v
}

has_the_provider()
{
    prints 'provider: ucxlike' -- in_image fi_info -p ucxlike
}

runs_mpi()
{
    command -v mpicc.mpich >/dev/null || {
        echo "MPICH is not installed (package libmpich-dev)"
        return 77
    }
    mpicc.mpich "$here/../interop/mpi_app.c" -o "$scratch/mpi_app" &&
        own_buildah copy "$(cat "$scratch/container")" "$scratch/mpi_app" /usr/local/bin/mpi_app &&
        in_image mpiexec -n 2 ucxlike-run mpi_app
}

check "a base image" base_image
[ "$failed" -eq 0 ] || finish
check "buildah bud of the Containerfile" image
[ "$failed" -eq 0 ] || finish
check "ucxlike_info -v in the image" says_its_version
check "libfabric of the image finds the provider" has_the_provider
check "MPICH of the image, two processes" runs_mpi
finish
