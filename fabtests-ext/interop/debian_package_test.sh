#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The Debian packages: built from this tree, then installed, tried and purged as debian/tests does it, in a copy of the
# system that is this test's own (a mount namespace with an overlay), so that nothing of it reaches the machine.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/report.sh"
need dpkg-buildpackage dpkg-dev
need dh debhelper
[ "$(id -u)" -eq 0 ] || skip_all "root alone can install packages"
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/ucxlike

copy_tree()
{
    mkdir "$tree" && tar -C "${top_srcdir:-.}" --exclude=./build --exclude=./.git --exclude=autom4te.cache -cf - . |
        tar -C "$tree" -xf - && chmod -R u+w "$tree"
}

# Most of the time goes into compiling, which unity.mk makes short, and what debuggers read would make long.
build_packages()
{
    (cd "$tree" && unset MAKEFLAGS MAKELEVEL MFLAGS top_srcdir top_builddir &&
        export DEB_CFLAGS_STRIP=-g DEB_CXXFLAGS_STRIP=-g MAKEFILES=$tree/unity.mk &&
        DEB_BUILD_OPTIONS="nocheck noautodbgsym parallel=$(nproc)" dpkg-buildpackage -b -us -uc -d) ||
        return 1
    ls "$scratch"/*.deb
}

# of PACKAGE: whether it has FILE... (patterns of grep).
has_files()
{
    local package=$1 file list
    shift
    list=$(dpkg -c "$scratch/$package"_*.deb) || return 1
    for file in "$@"; do
        grep -q "$file" <<<"$list" || {
            echo "$package has no $file"
            return 1
        }
    done
}

# In a copy of the system: SYSTEM is a tmpfs for what the test writes.
in_a_copy()
{
    unshare --mount --pid --fork --mount-proc bash -c '
        set -e
        mount --make-rprivate /
        mkdir -p "$1/copy"
        mount -t tmpfs tmpfs "$1/copy"
        mkdir "$1/copy/upper" "$1/copy/work" "$1/copy/root"
        mount -t overlay overlay -o "lowerdir=/,upperdir=$1/copy/upper,workdir=$1/copy/work" "$1/copy/root"
        mount --rbind /proc "$1/copy/root/proc"
        mount --rbind /dev "$1/copy/root/dev"
        mount --rbind /sys "$1/copy/root/sys"
        mkdir -p "$1/copy/root/packages"
        mount --bind "$1" "$1/copy/root/packages"
        exec chroot "$1/copy/root" "${@:2}"' bash "$scratch" "$@"
}

copy_works()
{
    in_a_copy true
}

# What is purged leaves no file behind.
installs_runs_and_purges()
{
    in_a_copy bash -c '
        set -e
        cd /packages
        dpkg -i ./*.deb
        for test in provider programs mpich tutorial; do
            command -v mpiexec.mpich >/dev/null || [ $test != mpich ] || continue
            command -v python3 >/dev/null || [ $test != tutorial ] || continue
            echo "== $test"
            timeout 120 /packages/ucxlike/debian/tests/$test
        done
        dpkg --purge ucxlike-tests libucxlike-dev ucxlike libucxlike0
        left=$(find /usr /etc /var/lib -xdev -name "*ucxlike*" ! -path "/var/lib/dpkg/*" -newer /packages/ucxlike/debian/control)
        [ -z "$left" ] || { echo "left behind: $left"; exit 1; }'
}

check "the tree is copied" copy_tree
check "dpkg-buildpackage" build_packages
check "libucxlike0: library, provider, drop-ins" has_files libucxlike0 /libucxlike.so.0 \
    /libfabric/libucxlike-fi.so /ucxlike/libucp.so.0 /ucxlike/base/libucs.so.0
check "libucxlike-dev: headers, pkg-config, CMake" has_files libucxlike-dev ucxlike/ucp/api/ucp.h /ucxlike.pc \
    /ucx-config.cmake man3/ucp_ep
check "ucxlike: tools and their pages" has_files ucxlike bin/ucxlike_info bin/ucxlike-run bin/ucxlike_selftest \
    man1/ucxlike_info man1/ucxlike_selftest
check "ucxlike-tests: programs" has_files ucxlike-tests tests/ucp_cm_demo tests/prov_lat
if copy_works 2>/dev/null; then
    check "install, debian/tests, purge" installs_runs_and_purges
else
    skip "install, debian/tests, purge" "no overlay file system in a mount namespace here"
fi
finish
