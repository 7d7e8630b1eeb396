#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Mutants of the library over strict cores. Each entry of the file `mutants` beside this one breaks a copy of some
# sources, which a program of a suite is linked with in place of those of the library. A case of it has to end as the
# entry says; with the library as it is, the case has to pass.
# Usage: mutants.sh [NAME...]    (all otherwise)

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
top=$(cd "$here/../.." && pwd)
build=$(cd "${top_builddir:-.}" && pwd)
[ -e "$build/fabtests-ext/strict/.libs/strict-worst-fi.so" ] || skip_all "the strict cores are not built"
# A suite finds the strict cores from where it is.
scratch=$(mktemp -d "$build/fabtests-ext/strict/mutant.XXXXXX") || exit 99
trap 'rm -rf "$scratch"' EXIT
library=$build/.libs/libucxlike-core.a
members=$(ar t "$library") || exit 99

# values KEY: those of the entry.
values() { sed -n "s/^$1 //p" <<<"$entry"; }

# change SOURCE EXPRESSION: breaks the copy. What changes nothing is no mutant.
change()
{
    local copy=$scratch/$1
    mkdir -p "$(dirname "$copy")"
    [ -e "$copy" ] || cp "$top/$1" "$copy"
    sed -E -e "$2" "$copy" >"$copy.changed" || return
    if cmp -s "$copy" "$copy.changed"; then
        echo "this changes nothing in $1: $2"
        return 1
    fi
    mv "$copy.changed" "$copy"
}

# translation_unit SOURCE: what is compiled in place of the object that the library has of it. unity.mk makes one object
# of a folder.
translation_unit()
{
    local unit
    unit=$(dirname "$1")
    unit=${unit//\//_}
    if grep -qx "$unit.o" <<<"$members" && grep -q "/$1\"" "$build/unity/$unit.cc"; then
        [ -e "$scratch/$unit.cc" ] || cp "$build/unity/$unit.cc" "$scratch/$unit.cc"
        sed -i "s|\"[^\"]*/$1\"|\"$scratch/$1\"|" "$scratch/$unit.cc"
        echo "$scratch/$unit.cc"
    else
        echo "$scratch/$1"
    fi
}

# link SUITE SOURCE...: the program of the suite with these.
link()
{
    local suite=$1
    shift
    make -s -C "$build" mutant="$scratch/suite" mutant_of="${suite#"$build"/}" mutant_changed="$*" "$scratch/suite"
}

# run PROGRAM FILTER: the one case.
run()
{
    local setting
    local -a with=()
    while read -r setting; do
        with+=("$setting")
    done < <(values with)
    env IPATH_NO_BACKTRACE=1 FI_STRICT_DESCRIPTOR=0 "${with[@]}" \
        timeout -k 5 120 "$1" --gtest_filter="$2" 2>&1 </dev/null
}

# passes SUITE FILTER: as the library is. 77: the case does not run here.
passes()
{
    local output
    output=$(run "$1" "$2") || {
        echo "fails without the change:"
        tail -n 20 <<<"$output"
        return 1
    }
    if grep -q '^\[  SKIPPED \]' <<<"$output"; then
        [ "$(values without)" = skip ] && return
        echo "$2 is skipped here"
        return 77
    fi
    grep -q '^\[  PASSED  \] 1 test' <<<"$output" || {
        echo "$2 is not one case"
        return 1
    }
}

# ends OUTPUT STATUS: as the entry says: the imitation ends the program with a line, or a check of the case does.
ends()
{
    local stops fails
    stops=$(values stops) fails=$(values fails)
    if [ -n "$stops" ]; then
        [ "$2" -eq 134 ] && grep -q "^strict [a-z0-9-]*: $stops" <<<"$1"
    else
        [ "$2" -eq 1 ] && grep -q '^\[  FAILED  \] 1 test' <<<"$1" && grep -qF -e "$fails" <<<"$1"
    fi
}

# is_stopped NAME: the mutant.
is_stopped()
{
    local entry suite filter source expression output status
    local -a sources=()
    rm -rf "${scratch:?}"/*
    entry=$(awk -v name="$1" 'BEGIN { RS = "" } $1 == "name" && $2 == name' "$here/mutants")
    [ -n "$entry" ] || { echo "no such mutant"; return 1; }
    read -r suite filter < <(values case)
    suite=$(built_suite "$suite")
    [ -n "$suite" ] || { echo "its suite is not built"; return 1; }
    suite=$build/${suite#"${top_builddir:-.}"/}
    passes "$suite" "$filter" || return
    while read -r source expression; do
        change "$source" "$expression" || return
    done < <(values change)
    while read -r source _; do
        sources+=("$(translation_unit "$source")")
    done < <(values change)
    mapfile -t sources < <(printf '%s\n' "${sources[@]}" | sort -u)
    link "$suite" "${sources[@]}" >"$scratch/compiler" 2>&1 || {
        cat "$scratch/compiler"
        return 1
    }
    output=$(run "$scratch/suite" "$filter")
    status=$?
    ends "$output" "$status" && return
    echo "exit status $status of the mutant, and not: $(values stops)$(values fails)"
    tail -n 30 <<<"$output"
    return 1
}

for name in ${*:-$(sed -n 's/^name //p' "$here/mutants")}; do
    check "$name" is_stopped "$name"
done
finish
