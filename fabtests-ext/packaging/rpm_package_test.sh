#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The RPM packages: built from the tarball, installed into a folder, used from there and erased. rpm changes its root
# to that folder, which root may do, and anybody in a user namespace where the system allows those; else the packages
# are unpacked only. Debian has no packages of RPM's for rpm to depend on, hence --nodeps.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
. "$here/tarball.sh"
need rpmbuild rpm
need rpm2cpio rpm2cpio
need cpio cpio
[ -e Makefile ] || skip_all "this is no build directory"
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root
# Debian's rpm has its database in the home of its user, which is not this test's to change.
export HOME=$scratch IPATH_NO_BACKTRACE=1

# Compiling is most of the time: what `make check` has compiled is taken, and of the rest each folder is one file, not
# optimised.
build_packages()
{
    local tarball
    tarball=$(ls "$scratch"/ucxlike-*.tar.xz) || return 1
    tarball=${tarball%.tar.xz}
    give_objects "$scratch" unity src prov || return 1
    (unset MAKEFLAGS MAKELEVEL MFLAGS top_srcdir top_builddir
        export MAKEFILES="$scratch/take.mk $scratch/rpm/BUILD/${tarball##*/}/unity.mk"
        rpmbuild -tb --nodeps --nocheck --define "_topdir $scratch/rpm" --define '_docdir /usr/share/doc' \
            --define 'debug_package %{nil}' --define 'optflags -O0' --define '_binary_payload w1.gzdio' \
            "$tarball.tar.xz") || return 1
    packages=$(find "$scratch/rpm/RPMS" -name '*.rpm')
    echo "$packages"
    [ "$(wc -l <<<"$packages")" -eq 3 ]
}

# of PACKAGE: the built file.
file_of()
{
    find "$scratch/rpm/RPMS" -name "$1-[0-9]*.rpm"
}

# Others must not get the drop-ins for UCX's libraries by a dependency.
provides_what_it_should()
{
    local provided
    provided=$(rpm -qp --provides "$(file_of ucxlike-libs)") || return 1
    grep -q '^libucxlike\.so\.0()' <<<"$provided" && ! grep 'libuc[pstm]\.so\|libucxlike-fi' <<<"$provided"
}

requires_what_it_uses()
{
    local required
    required=$(rpm -qp --requires "$(file_of ucxlike-libs)") || return 1
    grep -q '^libfabric\.so\.1(' <<<"$required" && grep -q '^libhwloc\.so' <<<"$required" &&
        rpm -qp --requires "$(file_of ucxlike)" | grep -q '^ucxlike-libs(.*) = ' || {
        echo "$required"
        return 1
    }
}

rpm_in_root()
{
    "${as_root[@]}" rpm --root "$root" --define '_dbpath /var/lib/rpm' "$@"
}

install_packages()
{
    # shellcheck disable=SC2046 # several files
    mkdir -p "$root" && rpm_in_root --initdb &&
        rpm_in_root -i --nodeps --nosignature --nodigest $(find "$scratch/rpm/RPMS" -name '*.rpm')
}

unpack_packages()
{
    local package
    mkdir -p "$root"
    while read -r package; do
        rpm2cpio "$package" | (cd "$root" && cpio -id --quiet) || return 1
    done < <(find "$scratch/rpm/RPMS" -name '*.rpm')
}

# with_packages PROGRAM ARGUMENT...: on what is in the folder.
with_packages()
{
    LD_LIBRARY_PATH=$root/usr/lib64 FI_PROVIDER_PATH=$root/usr/lib64/libfabric "$@"
}

info_is_that_of_the_package()
{
    local version
    version=$(rpm -qp --queryformat '%{VERSION}' "$(file_of ucxlike)") || return 1
    prints "$version" -- with_packages "$root/usr/bin/ucxlike_info" -v
}

# on_packages TEST: one that looks at what is installed.
on_packages()
{
    UCXLIKE_PREFIX=$root "$here/$1"
}

# Two processes of UCP, and two of libfabric.
pair_over_ucp()
{
    prints '^1 passed, 0 failed' -- with_packages timeout 120 "$root/usr/bin/ucxlike_selftest" -t tcp -T 'tag rendezvous'
}

pair_over_the_provider()
{
    command -v fi_pingpong >/dev/null || {
        echo "fi_pingpong is not installed (package libfabric-bin)"
        return 77
    }
    with_packages env FI_PROVIDER=ucxlike "$here/../interop/pingpong.sh" 127.0.0.1 -p ucxlike -e rdm -I 10
}

# What is left is rpm's own, and folders that other packages have, too.
erase_leaves_nothing()
{
    local left
    rpm_in_root -e ucxlike ucxlike-libs ucxlike-devel || return 1
    left=$(find "$root" -path "$root/var/lib/rpm" -prune -o \( -name '*ucxlike*' -o -not -type d \) -print)
    [ -z "$left" ] || {
        echo "left behind: $left"
        return 1
    }
}

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(unshare --user --map-root-user)
check "make dist" make_tarball "$scratch"
check "rpmbuild of the tarball" build_packages
[ "$failed" -eq 0 ] || finish
check "the libraries provide libucxlike alone" provides_what_it_should
check "what is used is required" requires_what_it_uses
if "${as_root[@]}" chroot / true 2>/dev/null; then
    check "rpm installs the packages" install_packages
else
    check "the packages are unpacked" unpack_packages
fi
check "ucxlike_info" info_is_that_of_the_package
check "install_test.sh" on_packages install_test.sh
check "examples_test.sh" on_packages examples_test.sh
check "a pair over UCP" pair_over_ucp
check "a pair over the provider" pair_over_the_provider
if [ -e "$root/var/lib/rpm" ]; then
    check "erasing leaves nothing" erase_leaves_nothing
else
    skip "erasing leaves nothing" "rpm may not change its root here"
fi
finish
