#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ucxlike-tests on suites of this test's own, which print what GoogleTest prints. debian_package_test.sh runs the real
# ones.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
runner=$scratch/ucxlike-tests
sed 's,@testsdir@,/nowhere,; s,@providerdir@,/the/providers,' "$here/ucxlike-tests.in" >"$runner" && chmod +x "$runner"
export UCXLIKE_TESTS=$scratch/suites
unset UCXLIKE_TEST_TLS FI_PROVIDER_PATH

# suite NAME COMMANDS
suite()
{
    local file=$UCXLIKE_TESTS/$1_test
    mkdir -p "$UCXLIKE_TESTS" && printf '#!/bin/sh\n%s\n' "$2" >"$file" && chmod +x "$file"
}

# gives STATUS TEXT... -- OPTION...: the runner ends with STATUS and prints each text.
gives()
{
    local status=$1 text
    local -a texts=()
    shift
    while [ "$1" != -- ]; do
        texts+=("$1")
        shift
    done
    shift
    "$runner" "$@" >"$scratch/output" 2>&1
    local got=$?
    for text in "${texts[@]}"; do
        grep -qxe "$text" "$scratch/output" || got="$got, without the line '$text'"
    done
    [ "$got" = "$status" ] || {
        echo "exit status $got, not $status:"
        cat "$scratch/output"
        return 1
    }
}

# shellcheck disable=SC2016 # a script
suite good 'echo "[  PASSED  ] 3 tests."; echo "[  SKIPPED ] 2 tests, listed below:"
    echo "noise: $UCXLIKE_TEST_TLS $FI_PROVIDER_PATH"'
suite bad 'echo "[ RUN      ] a.b"; echo "why it failed"; echo "[  FAILED  ] a.b (1 ms)"; echo "[  PASSED  ] 1 test."
    echo "[  FAILED  ] 2 tests, listed below:"; exit 1'
suite crashing 'echo "[ RUN      ] a.c"; kill -SEGV $$'
suite endless 'sleep 1000'
suite empty 'echo "[  PASSED  ] 0 tests."'
suite skipping 'echo "[  PASSED  ] 0 tests."; echo "[  SKIPPED ] 1 test, listed below:"'

check "what passes is counted" gives 0 "ok - good_test: 3 passed, 0 failed, 2 skipped" \
    "3 passed, 0 failed, 2 skipped" -- good_test
check "what fails is counted and shown" gives 1 "not ok - bad_test: 1 passed, 2 failed, 0 skipped (exit status 1)" \
    "    why it failed" "4 passed, 2 failed, 2 skipped" -- good_test bad_test
check "a crash is a failure" gives 1 "not ok - crashing_test: 0 passed, 1 failed, 0 skipped (exit status 139)" \
    "    \[ RUN      \] a.c" -- crashing_test
check "a suite without a case is a failure" gives 1 "0 passed, 1 failed, 0 skipped" -- empty_test
check "skips alone are no success" gives 1 "0 passed, 0 failed, 1 skipped" -- skipping_test
check "what does not end is ended" gives 1 "    not over after 1 seconds" "0 passed, 1 failed, 0 skipped" -- \
    -w 1 endless_test
check "all suites" gives 1 "4 passed, 5 failed, 3 skipped" -- --limit 1
check "transports and the provider's folder reach a suite" gives 0 "noise: tcp sm,tcp /the/providers" -- -v \
    --transports "tcp sm,tcp" good_test
check "the list" gives 0 good_test endless_test -- -l
check "an unknown suite" gives 2 "ucxlike-tests: other_test is no suite.*" -- other_test
check "an unknown option" gives 2 "usage: .*" -- --other
check "an option without a value" gives 2 "ucxlike-tests: -t needs a value" -- -t
check "a limit that is no number" gives 2 "ucxlike-tests: 'x' is no number of seconds" -- -w x
UCXLIKE_TESTS=$scratch/none check "no suites" gives 2 "ucxlike-tests: no suites in .*" --
finish
