#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What ./quickstart check counts and repeats of the logs of tests: of those that this test writes.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

# log NAME RESULT: what a test that ended so printed, from the standard input.
log()
{
    mkdir -p "$scratch/$(dirname "$1")" && cat >"$scratch/$1.log" && echo ":global-test-result: $2" >"$scratch/$1.trs"
}

# What `verdict` prints of the logs below the folder $scratch/$1.
sum_up()
(
    . "$here/check_steps.sh"
    step() { :; }
    note() { :; }
    collect suite "$scratch/$1" >"$scratch/printed"
    verdict
)

# sums FOLDER TEXT: all that it prints. The first line of TEXT is left out.
sums()
{
    sum_up "$1" >"$scratch/verdict"
    diff -u <(tail -n +2 <<<"$2") "$scratch/verdict"
}

case_fails()
{
    log case/some_test FAIL <<'END'
[ RUN      ] fruit.is_ripe
[       OK ] fruit.is_ripe (0 ms)
[ RUN      ] fruit.is_round
some_test.cc:12: Failure
[  FAILED  ] fruit.is_round (3 ms)
[ RUN      ] fruit.is_red
[       OK ] fruit.is_red (0 ms)
[  PASSED  ] 2 tests.
[  FAILED  ] 1 test, listed below:
[  FAILED  ] fruit.is_round
END
    sums case '
           failed: suite: some_test.log
    | [ RUN      ] fruit.is_round
    | some_test.cc:12: Failure
    | [  FAILED  ] fruit.is_round (3 ms)
2 passed, 1 failed, 0 skipped'
}

# All of its cases pass, and its exit status is not zero.
sanitizer_reports()
{
    log report/some_test FAIL <<'END'
[ RUN      ] fruit.is_ripe
[       OK ] fruit.is_ripe (0 ms)
[ RUN      ] fruit.is_round
WARNING: ThreadSanitizer: data race
    #0 peel
SUMMARY: ThreadSanitizer: data race
[       OK ] fruit.is_round (3 ms)
[  PASSED  ] 2 tests.
END
    sums report '
           failed: suite: some_test.log
    | [ RUN      ] fruit.is_round
    | WARNING: ThreadSanitizer: data race
    |     #0 peel
    | SUMMARY: ThreadSanitizer: data race
2 passed, 1 failed, 0 skipped'
}

script_fails()
{
    log script/some_test.sh FAIL <<'END'
ok - the fruit is ripe
not ok - the fruit is round
    exit status 1 of: is_round
ok - the fruit is red
skip - the fruit is sold: no market here
2 passed, 1 failed, 1 skipped
END
    sums script '
           failed: suite: some_test.sh.log
    | not ok - the fruit is round
    |     exit status 1 of: is_round
2 passed, 1 failed, 1 skipped'
}

crash_says_its_end()
{
    { seq 100 && echo 'Segmentation fault'; } | log crash/some_test ERROR
    sum_up crash >"$scratch/verdict"
    [ "$(wc -l <"$scratch/verdict")" -eq 32 ] && [ "$(sed -n 31p "$scratch/verdict")" = '    | Segmentation fault' ] &&
        [ "$(tail -n 1 "$scratch/verdict")" = '0 passed, 1 failed, 0 skipped' ] || {
        cat "$scratch/verdict"
        return 1
    }
}

content_says_no_more()
{
    log content/some_test PASS <<'END'
[ RUN      ] fruit.is_ripe
[       OK ] fruit.is_ripe (0 ms)
[  PASSED  ] 1 test.
END
    sums content '
1 passed, 0 failed, 0 skipped' && sum_up content
}

check "a failed case is repeated with what it printed" case_fails
check "a sanitizer's report is repeated though all cases passed" sanitizer_reports
check "a failed case of a script is repeated with what it printed" script_fails
check "of a crash the end of its log is repeated" crash_says_its_end
check "if nothing failed there is one line, and success" content_says_no_more
finish
