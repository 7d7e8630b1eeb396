# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced by the test scripts: one line for each case (ok, not ok, skip), which ./quickstart counts,
# and the exit status that Automake understands. A case that fails does not stop the ones after it.

passed=0 failed=0 skipped=0

ok()
{
    passed=$((passed + 1))
    echo "ok - $1"
}

not_ok()
{
    failed=$((failed + 1))
    echo "not ok - $1"
}

# skip NAME REASON
skip()
{
    skipped=$((skipped + 1))
    echo "skip - $1: $2"
}

# check NAME COMMAND...: the command's status decides; 77 is a skip, whose reason is the last line. What takes long says so.
check()
{
    local name=$1 output status begun=$SECONDS
    shift
    output=$("$@" 2>&1 </dev/null)
    status=$?
    [ $((SECONDS - begun)) -lt 5 ] || name+=" ($((SECONDS - begun)) s)"
    case $status in
    0) ok "$name" ;;
    77) skip "$name" "$(tail -n 1 <<<"$output")" ;;
    *)
        not_ok "$name"
        echo "    exit status $status of: $*"
        sed 's/^/    /' <<<"$output"
        ;;
    esac
}

# prints TEXT... -- COMMAND...: the command succeeds and prints each text, in $scratch/output.
prints()
{
    local -a texts=()
    local text
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    shift
    "$@" >"$scratch/output" 2>&1 || {
        echo "exit status $?"
        cat "$scratch/output"
        return 1
    }
    for text in "${texts[@]}"; do
        grep -qe "$text" "$scratch/output" || {
            echo "no '$text' in:"
            cat "$scratch/output"
            return 1
        }
    done
}

# built_suite NAME: the path of a conformance suite of the build tree; nothing where it is not built.
built_suite()
{
    find "${top_builddir:-.}/fabtests-ext/conformance" -name .libs -prune -o -name "$1" -type f -print
}

# skip_all REASON: the whole script cannot run here.
skip_all()
{
    skip "$(basename "$0" .sh)" "$1"
    exit 77
}

# need PROGRAM PACKAGE
need()
{
    command -v "$1" >/dev/null || skip_all "$1 is not installed (package $2)"
}

# The last line of every script. Nothing but skips is a skip.
finish()
{
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ] || exit 1
    [ $passed -gt 0 ] || exit 77
    exit 0
}
