#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Every numbered behaviour of UCX has a case: by a number in the case's name, or by a line of behaviours.txt.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
readonly COUNT=218

# Prints "PROGRAM CASE" for all cases, those that macros make among them, and "PROGRAM bNUMBER" for numbers
# that the message of an assertion names.
cases()
{
    local file
    for file in $(find "$here" "$here/../unit" -name '*_test.cc'); do
        {
            sed -nE 's/^ *[A-Z_]*TEST[A-Z_]*\((.*)\).*/\1/p' "$file" | tr ', ' '\n\n'
            grep -oE '"[^"]*\bb[0-9]{3}' "$file" | grep -oE 'b[0-9]{3}$'
        } | sed "s/^/$(basename "$file" .cc) /"
    done
}

# carried NUMBER: in the name of a case.
carried()
{
    grep -qE "[ _]b?$1(_|$)" <<<"$all"
}

has_carrier()
{
    local program case
    ! carried "$1" || return 0
    read -r _ program case < <(grep "^$1 " "$here/behaviours.txt")
    case $program in
    '') echo "no case has $1 in its name, and behaviours.txt has no line for it"; return 1 ;;
    -) echo "$case"; return 77 ;;
    esac
    grep -qx "$program $case" <<<"$all" || { echo "there is no case '$case' in $program"; return 1; }
}

all=$(cases)
for number in $(seq 1 $COUNT); do
    check "behaviour $number" has_carrier "$(printf %03d "$number")"
done
finish
