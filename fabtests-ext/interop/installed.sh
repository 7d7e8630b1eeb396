# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced by the tests that look at ucxlike as its users do, from outside: sets $libdir and the compiler
# flags for an installed tree. That is UCXLIKE_PREFIX if set, else the build tree (the working directory,
# as in `make check`) installed to a staging folder in it.

stage=$PWD/fabtests-ext/interop/stage

# True if nothing that is installed is newer than the staged tree.
staged()
{
    [ -e "$stage.stamp" ] &&
        [ -z "$(find ./*.la include "${top_srcdir:-..}/include" \( -name '*.la' -o -name '*.h' \) \
            -newer "$stage.stamp" -print -quit)" ]
}

# Several tests need it, perhaps at the same time; the first makes it.
stage_build_tree()
{
    mkdir -p "${stage%/*}"
    exec 8>"$stage.lock"
    flock 8
    if ! staged; then
        rm -rf "$stage" "$stage.stamp"
        env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make install DESTDIR="$stage" >"$stage.log" 2>&1 8>&- || {
            tail -n 30 "$stage.log"
            echo "make install DESTDIR=$stage failed"
            exec 8>&-
            return 1
        }
        touch "$stage.stamp"
    fi
    exec 8>&-
}

# Sets root (where the tree is), libdir and prefix (as the tree has them, below root when staged).
find_installed()
{
    local header
    root=${UCXLIKE_PREFIX:-$stage}
    [ -n "${UCXLIKE_PREFIX:-}" ] || stage_build_tree || return 1
    header=$(find "$root" -path '*/include/ucxlike/ucp/api/ucp.h' | head -n 1)
    libdir=$(find "$root" -name ucxlike.pc | head -n 1)
    [ -n "$header" ] && [ -n "$libdir" ] || {
        echo "no ucxlike.pc and ucp/api/ucp.h below $root"
        return 1
    }
    prefix=${header%/include/ucxlike/ucp/api/ucp.h}
    libdir=${libdir%/pkgconfig/ucxlike.pc}
    dropin=$libdir/ucxlike
}

# flags ucxlike|ucx: what pkg-config says, for where the tree is now.
flags()
{
    PKG_CONFIG_PATH=$libdir/pkgconfig:$dropin/pkgconfig pkg-config --define-variable=prefix="$prefix" \
        --define-variable=libdir="$libdir" --cflags --libs "$1"
}

# build ucxlike|ucx SOURCE PROGRAM [COMPILER_OPTION...]
build()
{
    local flags source=$2 program=$3
    flags=$(flags "$1") || return 1
    shift 3
    # Unquoted: the compiler may be "ccache gcc", the flags are a list.
    ${CC:-cc} "$@" "$source" -o "$program" $flags
}

# Runs a program with the installed libraries, and no others of these names.
with_library()
{
    LD_LIBRARY_PATH=$dropin:$dropin/base:$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}

# private_calls PROGRAM: the functions that it calls and neither our libraries nor those of its UCX beside them
# have. Of those that no installed header of UCX declares ours have what the tools of UCX 1.18 call.
private_calls()
{
    with_library ldd -r "$(command -v "$1")" 2>/dev/null |
        sed -n 's/^undefined symbol: \(uct_[a-z0-9_]*\).*/\1/p' | sort | tr '\n' ' '
}
