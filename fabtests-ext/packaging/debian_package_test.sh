#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The Debian packages: built from the tarball, then installed, tried and purged as debian/tests does it. Root does so in
# a copy of the system that is this test's own (a mount namespace with an overlay), so that nothing of it reaches the
# machine. Where that is not to be had, and for other users, dpkg has a folder for its root, without the packages that
# ours depend on, and the programs run from there.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
. "$here/tarball.sh"
need dpkg-buildpackage dpkg-dev
need dh debhelper
[ -e Makefile ] || skip_all "this is no build directory"
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
# Two of those that the package has: all of them have run on the same sources.
export UCXLIKE_SUITES="ucp_tag_test prov_message_test" IPATH_NO_BACKTRACE=1

unpack_tarball()
{
    make_tarball "$scratch" && tar -C "$scratch" -xf "$scratch"/ucxlike-*.tar.xz &&
        mv "$scratch"/ucxlike-*/ "$scratch/tree" && chmod -R u+w "$scratch/tree"
}

# Most of the time goes into compiling: what `make check` has compiled is taken, and of the rest each folder is one file,
# not optimised, and without what debuggers read. What is read once does not have to be small either.
build_packages()
{
    give_objects "$scratch" unity src prov fabtests-ext || return 1
    (cd "$scratch/tree" && unset MAKEFLAGS MAKELEVEL MFLAGS top_srcdir top_builddir &&
        export DEB_CFLAGS_STRIP=-g DEB_CXXFLAGS_STRIP=-g MAKEFILES="$scratch/take.mk $scratch/tree/unity.mk" \
            DPKG_DEB_COMPRESSOR_TYPE=none &&
        DEB_BUILD_OPTIONS="nocheck noautodbgsym noopt parallel=$(nproc)" dpkg-buildpackage -b -nc -us -uc -d) ||
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

depends_on()
{
    dpkg-deb --field "$scratch/$1"_*.deb Depends | grep -w -- "$2"
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
        mount --bind /dev/null "$1/copy/root/proc/kallsyms" # verbs would read it in every process: 0.2 s
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

# In the order in which debian/tests/control names them.
tests_of_the_package()
{
    sed -n 's/^Tests: //p' "$scratch/tree/debian/tests/control" | tr '\n' ' '
}

installs_runs_and_purges()
{
    # shellcheck disable=SC2046 # names
    in_a_copy bash -c '
        set -e
        cd /packages
        dpkg -i ./*.deb
        for test in "$@"; do
            command -v mpiexec.mpich >/dev/null || [ "$test" != mpich ] || continue
            command -v python3 >/dev/null || [ "$test" != tutorial ] || continue
            echo "== $test"
            timeout 900 /packages/tree/debian/tests/$test
        done
        ! dpkg -s libucxlike0' bash $(tests_of_the_package)
}

dpkg_in_a_folder()
{
    PATH=$PATH:/usr/sbin:/sbin dpkg --root="$root" --force-not-root --force-depends --log="$scratch/dpkg.log" "$@"
}

installs_into_a_folder()
{
    mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" && touch "$root/var/lib/dpkg/status" &&
        dpkg_in_a_folder -i "$scratch"/*.deb
}

# runs TEST of debian/tests, with what is in the folder.
runs()
{
    local libraries
    [ "$1" != mpich ] || command -v mpiexec.mpich >/dev/null || {
        echo "MPICH is not installed (package mpich)"
        return 77
    }
    [ "$1" != provider ] || command -v fi_pingpong >/dev/null || {
        echo "fi_pingpong is not installed (package libfabric-bin)"
        return 77
    }
    libraries=$(dirname "$root"/usr/lib/*/libucxlike.so.0)
    PATH=$root/usr/bin:$PATH LD_LIBRARY_PATH=$libraries FI_PROVIDER_PATH=$libraries/libfabric \
        UCXLIKE_LIBRARIES=$libraries/ucxlike UCXLIKE_TESTS=$libraries/ucxlike/tests \
        timeout 900 "$scratch/tree/debian/tests/$1"
}

purged_leaves_nothing()
{
    local left
    dpkg_in_a_folder --purge ucxlike-tests libucxlike-dev ucxlike libucxlike0 || return 1
    left=$(find "$root" -path "$root/var/lib/dpkg" -prune -o -not -type d -print
        find "$root/var/lib/dpkg/info" -name '*ucxlike*')
    [ -z "$left" ] || {
        echo "left behind: $left"
        return 1
    }
}

in_a_folder()
{
    local test
    root=$scratch/root
    check "dpkg installs into a folder" installs_into_a_folder
    for test in provider suites mpich; do
        check "debian/tests/$test" runs $test
    done
    check "what is purged leaves nothing" purged_leaves_nothing
}

check "make dist" unpack_tarball
check "dpkg-buildpackage of the tarball" build_packages
[ "$failed" -eq 0 ] || finish
check "libucxlike0: library, provider, drop-ins" has_files libucxlike0 /libucxlike.so.0 \
    /libfabric/libucxlike-fi.so /ucxlike/libucp.so.0 /ucxlike/base/libucs.so.0
check "libucxlike-dev: headers, pkg-config, CMake, examples" has_files libucxlike-dev ucxlike/ucp/api/ucp.h \
    /ucxlike.pc /ucx-config.cmake man3/ucp_ep 'examples/ucp_hello.c$' 'examples/fi_hello.c$'
check "ucxlike: tools and their pages" has_files ucxlike bin/ucxlike_info bin/ucxlike-run bin/ucxlike_selftest \
    man1/ucxlike_info man1/ucxlike_selftest
# libfabric, which the library loads when it needs it, comes with it.
check "libucxlike0 depends on libfabric" depends_on libucxlike0 libfabric1
# pkg-config refuses ucxlike.pc without the modules of Requires.private.
check "libucxlike-dev depends on libfabric's" depends_on libucxlike-dev libfabric-dev
check "libucxlike-dev depends on hwloc's" depends_on libucxlike-dev libhwloc-dev
check "ucxlike-tests: suites, runner, programs" has_files ucxlike-tests tests/ucp_tag_test tests/prov_message_test \
    bin/ucxlike-tests man1/ucxlike-tests tests/ucp_cm_demo tests/prov_lat
if [ "$(id -u)" -eq 0 ] && copy_works 2>/dev/null; then
    check "install, debian/tests, purge" installs_runs_and_purges
else
    in_a_folder
fi
finish
