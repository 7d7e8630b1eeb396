#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The recipes in packaging/ against what is installed and what configure wants. debian_package_test.sh builds the one
# for which every tool is in Debian; the others are looked through.

here=$(dirname "$0")
. "$here/report.sh"
. "$here/installed.sh"
top=$(cd "${top_srcdir:-$here/../..}" && pwd)
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
spec=$top/packaging/rpm/ucxlike.spec
version=$(sed -n 's/^AC_INIT(\[ucxlike\], \[\([^]]*\)\].*/\1/p' "$top/configure.ac")

# Folders and patterns of %files, relative to the prefix. Documentation and licence are taken from the sources.
listed()
{
    sed -n '/^%files/,$p' "$spec" | sed -n -e 's/^%dir .*//' \
        -e "s,^%{_bindir},bin,p; s,^%{_libdir},${libdir#"$prefix"/},p; s,^%{_mandir},share/man,p" \
        -e 's,^%{_includedir},include,p; s,^%{_docdir},share/doc,p'
}

# Each installed file is in the list once, and each line of the list has something.
rpm_lists_what_is_installed()
{
    local file pattern matches status=0
    local -A used=()
    local -a patterns
    mapfile -t patterns < <(listed)
    while read -r file; do
        matches=0
        for pattern in "${patterns[@]}"; do
            # shellcheck disable=SC2254 # patterns
            case $file in
            $pattern | $pattern/*)
                matches=$((matches + 1))
                used[$pattern]=yes
                ;;
            esac
        done
        [ $matches -eq 1 ] || {
            echo "$file is listed $matches times in ${spec#"$top"/}"
            status=1
        }
    done < <(cd "$prefix" && find bin include "${libdir#"$prefix"/}" share -not -type d -not -name '*.la')
    for pattern in "${patterns[@]}"; do
        [ -n "${used[$pattern]:-}" ] || {
            echo "${spec#"$top"/} lists $pattern, which is not installed"
            status=1
        }
    done
    return $status
}

rpm_is_well_formed()
{
    command -v rpmspec >/dev/null || {
        echo "rpmspec is not installed (package rpm)"
        return 77
    }
    rpmspec --parse "$spec" >"$scratch/parsed" && grep -qx "Version: *$version" "$scratch/parsed"
}

versions_are_those_of_configure()
{
    grep -qx "Version: *$version" "$spec" && grep -qx "  version: $version" "$top/packaging/conda/meta.yaml"
}

spack_recipe_is_python()
{
    command -v python3 >/dev/null || {
        echo "python3 is not installed"
        return 77
    }
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$top/packaging/spack/ucxlike/package.py"
}

# What quickstart installs to build, but the runtime parts of the tools and the tests, is what the image installs.
container_has_what_the_build_needs()
{
    local package status=0
    for package in $(sed -n '/^readonly BUILD_PACKAGES="/,/"$/{ s/^readonly BUILD_PACKAGES="//; s/"$//; p }' \
        "$top/quickstart"); do
        case $package in
        libgtest-dev | libfabric-bin) continue ;;
        esac
        grep -qw -- "$package" "$top/packaging/container/Containerfile" || {
            echo "the Containerfile does not install $package"
            status=1
        }
    done
    return $status
}

find_installed || skip_all "nothing is installed to look at"
check "the RPM lists what is installed" rpm_lists_what_is_installed
check "the RPM's file is well formed" rpm_is_well_formed
check "versions are those of configure" versions_are_those_of_configure
check "the Spack recipe is Python" spack_recipe_is_python
check "the container has what the build needs" container_has_what_the_build_needs
finish
