#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What `make check-debian13` runs: everything of `make check` built and run on Debian 13, in ./debian13/build,
# and there the provider of this build tree, which was built with this system's libfabric.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/report.sh"
. "$here/installed.sh"

# ---- on Debian 13 --------------------------------------------------------------------------------

# libfabric 2 marks as deprecated what we go on offering to programs built for 1.x, and test.
configure()
{
    "$top_srcdir/configure" --enable-werror CFLAGS="-O1" CXXFLAGS="-O1 -Wno-deprecated-declarations"
}

carried_by_ours()
{
    FI_PROVIDER=ucxlike fi_info -p ucxlike | grep 'provider: ucxlike'
}

# The provider that was built elsewhere: this system's programs, and the suites that were compiled here.
foreign_provider()
{
    local type suite
    export FI_PROVIDER_PATH=$foreign_provider top_builddir=$PWD UCXLIKE_OLDER_PROVIDER=yes
    check "fi_info: the provider built with libfabric $foreign_version, on $(fi_info --version | sed -n 's/^libfabric: //p')" \
        carried_by_ours
    for type in rdm msg; do
        FI_PROVIDER=ucxlike check "fi_pingpong -e $type: the same" \
            env PAIR_TIMEOUT=150 "$here/pingpong.sh" 127.0.0.1 -p ucxlike -e $type -S all -I 20 -c
    done
    for suite in fabtests-ext/conformance/prov/prov_*_test; do
        [ -x "$suite" ] || continue
        check "$(basename "$suite"): the same" timeout -k 5 300 "$suite" --gtest_brief=1
    done
    finish
}

# Leaves a log as those of `make check`.
foreign_provider_test()
{
    local status=0
    (foreign_provider) >foreign-provider.log 2>&1 || status=1
    echo ":global-test-result: $(tail -n 1 foreign-provider.log | grep -q ' 0 failed,' && echo PASS || echo FAIL)" \
        >foreign-provider.trs
    return $status
}

# One thing after the other, the foreign provider's tests would take as long as all others: they run beside. Most
# tests wait more than they compute.
guest()
{
    local status=0 foreign
    export IPATH_NO_BACKTRACE=1 MAKEFILES=$top_srcdir/unity.mk
    { [ -f config.status ] || configure; } >configure.log 2>&1 || { tail -n 30 configure.log; exit 1; }
    make -k -j "$JOBS" check TESTS= TEST_CXXFLAGS=-O0 PCH=yes >make.log 2>&1 ||
        { grep -E 'error|warning' make.log; tail -n 30 make.log; exit 1; }
    foreign_provider_test &
    foreign=$!
    make -k -j "$((JOBS + 3))" check || status=1
    wait $foreign || status=1
    cat foreign-provider.log
    exit $status
}

# ---- here ----------------------------------------------------------------------------------------

host()
{
    local folder=${DEBIAN13_FOLDER:-$PWD/debian13/root} tree=$PWD/debian13/build
    find_installed || exit 1
    mkdir -p "$tree" || exit 1
    cd "$tree" || exit 1
    exec "$here/../scripts/debian13" --folder "$folder" --bind "$top_srcdir" --bind "$root" \
        --env top_srcdir="$top_srcdir" --env JOBS="${JOBS:-$(nproc)}" --env foreign_provider="$libdir/libfabric" \
        --env foreign_version="$(pkg-config --modversion libfabric)" run "$here/debian13.sh" guest
}

if [ "${1:-}" = guest ]; then
    guest
else
    top_srcdir=$(cd "${top_srcdir:-.}" && pwd)
    host
fi
