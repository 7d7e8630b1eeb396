# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced by the tests that build packages, after report.sh: they build from what `make dist` makes of this tree.

# make_tarball FOLDER: puts it there, and nothing else anywhere. `make dist` has one name for it and works in the build
# directory, which several tests have at the same time.
make_tarball()
{
    local status lock=fabtests-ext/interop/dist.lock
    mkdir -p "${lock%/*}" && exec 8>"$lock" && flock 8 || return 1
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL XZ_OPT=-0 make dist 8>&- && mv ./ucxlike-*.tar.xz "$1/"
    status=$?
    exec 8>&-
    return $status
}
