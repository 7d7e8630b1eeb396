#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The recipes in packaging/ against what is installed and what configure wants. debian_package_test.sh and
# rpm_package_test.sh build those for which every tool is in Debian; recipes.py looks through the others. Each of its
# rules is shown a recipe with a mistake as well.

here=$(dirname "$0")
. "$here/../interop/report.sh"
. "$here/../interop/installed.sh"
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

recipe()
{
    command -v python3 >/dev/null || {
        echo "python3 is not installed"
        return 77
    }
    python3 "$here/recipes.py" "$@"
}

# with_mistake WHAT COMPLAINT FILE EDIT: once sed has made EDIT, recipes.py complains of it.
with_mistake()
{
    local name tree=$scratch/tree status
    rm -rf "$tree" && mkdir "$tree" || return 1
    for name in Makefile.am autogen.sh cmake fabtests-ext include LICENSE man precompiled.inc prov src; do
        ln -s "$top/$name" "$tree/"
    done
    cp -r "$top"/{CHANGELOG.md,configure.ac,debian,docs,packaging,*.pc.in} "$tree/" && chmod -R u+w "$tree" &&
        sed -i "$4" "$tree/$3" || return 1
    recipe "$tree" "$1" >"$scratch/complaints"
    status=$?
    cat "$scratch/complaints"
    [ $status -ne 77 ] || return 77
    [ $status -eq 1 ] && grep -qF -- "$2" "$scratch/complaints"
}

spec_with_a_mistake()
{
    local spec=$scratch/mistake.spec
    sed 's,^%{_bindir}/ucxlike-run,%{_bindir}/nothing,' "$top/packaging/rpm/ucxlike.spec" >"$spec"
    ! rpm_lists_what_is_installed >"$scratch/complaints" && grep -q 'lists bin/nothing' "$scratch/complaints" &&
        grep -q 'bin/ucxlike-run is listed 0 times' "$scratch/complaints"
}

# names PACKAGES FILE: each of them, as a word.
names()
{
    local package status=0
    for package in $1; do
        grep -qE -- "(^|[^a-z0-9+-])${package//+/\\+}([^a-z0-9+-]|\$)" "$2" || {
            echo "${2#"$top"/} does not name $package"
            status=1
        }
    done
    return $status
}

# What quickstart installs to build, but the runtime parts of the tools and the tests.
build_packages()
{
    sed -n '/^readonly BUILD_PACKAGES="/,/"$/{ s/^readonly BUILD_PACKAGES="//; s/"$//; p }' "$top/quickstart" |
        tr ' ' '\n' | grep -v -e '^$' -e '^libgtest-dev$' -e '^libfabric-bin$'
}

all_name_what_the_build_needs()
{
    local page asked status=0
    [ -n "$(build_packages)" ] || return 1
    for page in README.md docs/tutorial.md packaging/container/Containerfile; do
        names "$(build_packages)" "$top/$page" || status=1
    done
    asked=$(sed -n 's/^Needed from Debian: `\(.*\)`, and$/\1/p' "$top/README.md")
    build_packages >"$scratch/packages"
    [ -n "$asked" ] && names "$asked" "$scratch/packages" || status=1
    return $status
}

# dpkg-buildpackage refuses to begin without them; the page builds without tests.
tutorial_installs_what_debian_needs()
{
    local packages
    packages=$(sed -n '/^Build-Depends:/,/^[^ B]/{ s/^Build-Depends://; /^[^ ]/d; s/([^)]*)//g; /<!nocheck>/d; p }' "$top/debian/control" |
        tr ',' '\n' | sed 's/debhelper-compat/debhelper/; s/ //g')
    [ -n "$packages" ] && names "$packages" "$top/docs/tutorial.md"
}

find_installed || skip_all "nothing is installed to look at"
check "the RPM lists what is installed" rpm_lists_what_is_installed
check "... and a wrong list is noticed" spec_with_a_mistake
check "the RPM's file is well formed" rpm_is_well_formed
check "README, tutorial and container install what the build needs" all_name_what_the_build_needs
check "the tutorial installs what dpkg-buildpackage needs" tutorial_installs_what_debian_needs
for what in spack conda container versions dependencies configure; do
    check "recipes.py: $what" recipe "$top" $what
done
while IFS='|' read -r what complaint file edit; do
    check "recipes.py notices: $complaint" with_mistake "$what" "$complaint" "$file" "$edit"
done <<'MISTAKES'
spack|no Python|packaging/spack/ucxlike/package.py|s/prefix):/prefix)/
spack|depend_on is no directive|packaging/spack/ucxlike/package.py|s/depends_on("libf/depend_on("libf/
spack|configure has no option --enable-gpu|packaging/spack/ucxlike/package.py|$a\    def configure_args(self):\n        return ["--enable-gpu"]
spack|Executabel is not known|packaging/spack/ucxlike/package.py|s/Executable/Executabel/
spack|Spack 1.0: NameError|packaging/spack/ucxlike/package.py|s/^    from spack_repo.*/    pass/
spack|Spack before 1.0: ModuleNotFoundError|packaging/spack/ucxlike/package.py|s/^except ImportError/except NameError/
spack|did not call ('append', 'FI_PROVIDER_PATH'|packaging/spack/ucxlike/package.py|s/FI_PROVIDER_PATH/FI_PROVIDERS_PATH/
conda|no template: 'pin' is undefined|packaging/conda/meta.yaml|s/compiler('c')/pin('c')/
conda|fi_info is in libfabric-bin, which is not required|packaging/conda/meta.yaml|s/- libfabric-bin/- libfabric/
conda|no YAML|packaging/conda/meta.yaml|s/^about:/about/
conda|about: license_file is missing|packaging/conda/meta.yaml|/license_file/d
conda|./boot.sh is not in the tree|packaging/conda/meta.yaml|s/autogen.sh/boot.sh/
container|Debian has no package libhwloc99|packaging/container/Containerfile|s/libhwloc15/libhwloc99/
container|there is no program mak|packaging/container/Containerfile|s/make -j/mak -j/
container|COPY --from=builder|packaging/container/Containerfile|s/from=build/from=builder/
container|RUNN ldconfig is not known|packaging/container/Containerfile|s/^RUN ldconfig/RUNN ldconfig/
versions|debian/changelog has version 0.0.1|debian/changelog|1s/(.*-1)/(0.0.1-1)/
dependencies|debian/control has no libfabric-dev (>= 9.9)|configure.ac|s/libfabric >= 1.17/libfabric >= 9.9/
configure|the conditional UNUSED is not used|configure.ac|$a AM_CONDITIONAL([UNUSED], [true])
configure|zlib is looked for and no Makefile uses it|configure.ac|$a PKG_CHECK_MODULES([ZLIB], [zlib >= 1.2])
configure|--enable-nothing has no effect|configure.ac|$a AC_ARG_ENABLE([nothing])
MISTAKES
finish
