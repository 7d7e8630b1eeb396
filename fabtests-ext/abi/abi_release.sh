#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The binary interface against that of the last release, by abidiff of libabigail: libucxlike.abi is what abidw said of
# it then. What is looked at is a stub in C that has every name the libraries export (exports.sh holds the lists to
# the libraries), with the types of the public headers, and the SONAME of the built library: the same for every compiler
# and option the library itself was built with, and without the types behind the interface. libucxlike.so has all the
# names of libucp.so and libuct.so. CONTRIBUTING.md says what may change when.
# Usage: abi_release.sh [--write]; --write is for a release, and writes libucxlike.abi.

here=${top_srcdir:-.}/fabtests-ext/abi
libs=${top_builddir:-.}/.libs
cc=${CC:-cc}
for tool in abidw abidiff; do
    command -v $tool >/dev/null || { echo "$tool is not installed (package abigail-tools)"; exit 77; }
done
[ -e "$libs/libucxlike.so.0" ] || { echo "libucxlike.so.0 is not built"; exit 77; }
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

grep -q "architecture='elf-amd-x86_64'" "$here/libucxlike.abi" 2>/dev/null && [ "$(uname -m)" != x86_64 ] && {
    echo "libucxlike.abi was written on x86_64"
    exit 77
}

# The headers that are installed, each on a line of its own. include/Makefile.inc lists them.
headers()
{
    sed -n 's,.*\<include/\(uc[pst]/[a-z0-9_/]*\.h\).*,#include <\1>,p' "${top_srcdir:-.}/include/Makefile.inc" | sort -u
}

compile()
{
    $cc -std=gnu99 -w -g -I"${top_srcdir:-.}/include" -I"${top_builddir:-.}/include" "$@"
}

# Every enumeration and structure with a name as the parameter of a function: no prototype has ucp_feature, whose values
# callers put in a mask.
types()
{
    headers | compile -E -x c - | grep -oE '\<(enum|struct) uc[pst]_[a-z0-9_]+ *(\{|$)' | sed 's/ *{//' | sort -u |
        while read -r kind name; do
            echo "void type_of_$name($kind $name *type) { __builtin_trap(); }"
        done
}

# The definition of every exported name: a function by its prototype, as GCC tells it, a variable by the type it is
# declared with. A name that no installed header declares is there without a type.
stub()
{
    headers
    types
    headers | compile -aux-info "$work/aux" -fsyntax-only -x c - >&2 || return 1
    sed -n 's,^/\*.*:N*C \*/ extern \(.*[ *]\)\(_*uc[pst]_[a-z0-9_]*\) (\(.*\));.*$,\2=\1\2 (\3),p' "$work/aux" |
        sort -u -t= -k1,1 >"$work/prototypes"
    nm -D --defined-only "$libs/libucxlike.so.0" | awk -v file="$work/prototypes" '
        BEGIN {
            while ((getline line < file) > 0) {
                name = line
                sub(/=.*/, "", name)
                sub(/^[^=]*=/, "", line)
                prototype[name] = line
            }
        }
        $2 == "A" { next }
        { name = $NF; sub(/@.*/, "", name) }
        name in prototype { print prototype[name] " { __builtin_trap(); }"; next }
        $2 == "T" { print "void " name "(void) { __builtin_trap(); }"; next }
        { print "__typeof__(" name ") " name " = {0};" }'
}

counted()
{
    awk '/<elf-symbol name=.type_of_/ { types++; next } /<elf-symbol / { names++ }
        END { print names " names and " types " types" }' "$here/libucxlike.abi"
}

soname=$(readelf -d "$libs/libucxlike.so.0" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
echo 'int word(int);' | compile -aux-info "$work/aux" -fsyntax-only -x c - 2>"$work/log" && [ -s "$work/aux" ] || {
    echo "$cc does not list prototypes: it has no -aux-info (GCC has)"
    exit 77
}
stub >"$work/stub.c" || exit 1
compile -shared -fPIC -fdebug-prefix-map="$work"=. "$work/stub.c" \
    -Wl,-soname,"$soname" -o "$work/libucxlike.so" || exit 1
if [ "${1:-}" = --write ]; then
    abidw --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed "$work/libucxlike.so" \
        --out-file "$here/libucxlike.abi" || exit 1
    echo "wrote $here/libucxlike.abi: $(counted)"
    exit
fi

# Names and enumerators may be added without a word.
abidiff --no-added-syms --suppressions "$here/libucxlike.suppr" "$here/libucxlike.abi" "$work/libucxlike.so" \
    >"$work/changes"
status=$?
if [ $status -ne 0 ]; then
    cat "$work/changes"
    echo "FAIL: the binary interface is not that of the last release (abidiff ended with $status)."
    echo "CONTRIBUTING.md, \"The binary interface\", says what to do about it."
    exit 1
fi
echo "$(counted) of $soname are what they were in the last release"
