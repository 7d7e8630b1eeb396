#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Each public header compiles alone, as C99 and as C++, without a warning and without config.h.

LC_ALL=C
export LC_ALL
srcdir=${top_srcdir:-.}
builddir=${top_builddir:-.}
include="-I$srcdir/include -I$builddir/include"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

# A source file for each header, as programs see it.
count=0
for header in $(cd "$srcdir/include" && find . -name '*.h') \
    $(cd "$builddir/include" 2>/dev/null && find . -name '*.h'); do
    count=$((count + 1))
    printf '#include <%s>\nstruct not_empty;\n' "${header#./}" >"$work/$count.c"
done

# compile <compiler> <language> <standard>: skipped where the compiler is not there.
compile()
{
    command -v "$(echo "$1" | sed 's/^ccache //;s/ .*//')" >/dev/null || { echo "SKIP: no $1"; return; }
    if $1 -x $2 -std=$3 -Wall -Wextra -Wpedantic -Werror -fsyntax-only $include "$work"/*.c; then
        echo "$1 -std=$3: $count headers"
    else
        echo "FAIL: $1 -std=$3"
        failed=1
    fi
}

compile "${CC:-cc}" c c99
compile "${CXX:-c++}" c++ c++11
compile "${CXX:-c++}" c++ c++20
compile clang c c99
compile clang++ c++ c++11
compile clang++ c++ c++20
exit $failed
