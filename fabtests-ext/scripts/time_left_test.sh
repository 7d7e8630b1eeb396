#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# time_left.sh by a clock that this test sets, and what `./quickstart run` shows of it in a tree of stand-ins.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
top=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

# The clock of time_left.sh, which stands still: once unset, SECONDS is a variable like any other.
stop_clock()
{
    unset SECONDS
    SECONDS=0
}

# at SECONDS TEXT: what is left then.
at()
{
    SECONDS=$1
    [ "$(time_left)" = "$2" ] || {
        echo "after $1 seconds: '$(time_left)', not '$2'"
        return 1
    }
}

corrects_what_is_left()
(
    . "$here/time_left.sh"
    stop_clock
    expect compile 60 && expect test 120 && expect report 20
    at 0 '3:20 left' && begin_step compile && at 0 '3:20 left' && at 30 '2:50 left' || return
    # Twice as long as known: so will the rest.
    at 120 '4:40 left' && begin_step test && at 120 '4:40 left' && at 180 '3:40 left' || return
    # This one is as fast as known: half of the factor is left for the last.
    at 240 '2:40 left' && begin_step report && at 240 '0:26 left' && begin_step 'what nobody expected' && at 250 ''
)

tells_nothing_of_what_is_not_expected()
(
    . "$here/time_left.sh"
    stop_clock
    begin_step compile
    at 100 ''
)

tells_what_ends_in_time()
(
    . "$here/time_left.sh"
    stop_clock
    expect compile 60 && expect test 120 && expect report 20
    ends_by 200 compile test report && ! ends_by 199 compile test report || return
    # Twice as long as known: so will the rest.
    begin_step compile && SECONDS=120 && ends_by 400 test report && ! ends_by 399 test report && ends_by 360 test ||
        return
    leave_out test && at 120 '0:40 left' && ends_by 160 test report || return
    # What nobody expected to take time takes none.
    ends_by 120 'what nobody expected'
)

# stand_in FILE LINE...: a program.
stand_in()
{
    mkdir -p "$(dirname "$1")" && printf '%s\n' '#!/bin/sh' "${@:2}" >"$1" && chmod +x "$1"
}

# Nothing of it compiles; its packages are all there.
stand_in_tree()
{
    local tree=$scratch/tree
    mkdir -p "$tree/fabtests-ext/scripts" && cp "$top/quickstart" "$tree/" &&
        cp "$here/time_left.sh" "$here/steps.sh" "$here/check_steps.sh" "$tree/fabtests-ext/scripts/" && touch "$tree/configure.ac" "$tree/unity.mk" &&
        stand_in "$tree/autogen.sh" 'cp make_it configure' &&
        stand_in "$tree/make_it" 'touch config.status' \
            'printf "all install report fabtests-ext/functional/ucp_cm_demo:\n\t@echo writing the page\n" >Makefile' &&
        stand_in "$tree/fabtests-ext/interop/pingpong.sh" 'echo 64 10 20 1k 0.00s 1.0 2.0 3.0' &&
        stand_in "$tree/build/fabtests-ext/functional/ucp_cm_demo" 'echo accepted' &&
        stand_in "$scratch/bin/fi_info" 'echo provider: ucxlike' &&
        stand_in "$scratch/bin/dpkg" 'echo "Status: install ok installed"'
}

quickstart_says_it()
{
    stand_in_tree && PATH="$scratch/bin:$PATH" "$scratch/tree/quickstart" run >"$scratch/output" 2>&1 || {
        echo "exit status $?"
        cat "$scratch/output"
        return 1
    }
    # Each step but the first and the last, which is "done".
    grep ' == ' "$scratch/output" | sed '1d; $d' >"$scratch/steps"
    [ "$(wc -l <"$scratch/steps")" -ge 5 ] && ! grep -vE '^\[[0-9]+:[0-9]{2}, [0-9]+:[0-9]{2} left\] == ' "$scratch/steps" &&
        grep -qE '^\[[0-9]+:[0-9]{2}\] == done' "$scratch/output" || {
        cat "$scratch/output"
        return 1
    }
}

check "what steps have taken corrects what is left" corrects_what_is_left
check "steps that end too late are known before they begin" tells_what_ends_in_time
check "where nothing is expected nothing is told" tells_nothing_of_what_is_not_expected
check "every step of ./quickstart run says how much time is left" quickstart_says_it
finish
