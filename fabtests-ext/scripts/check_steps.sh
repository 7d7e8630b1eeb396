# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced by quickstart, whose folders and settings it uses: the steps of `./quickstart check`, and how their results are
# counted.

passed=0 failed=0 skipped=0
failures=()
declare -A said=() # by failure: what its log says of it

# A step that is one test of its own.
single()
{
    local name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        failures+=("$name")
    fi
}

# Prints "passed failed skipped" of one test log: the cases of GoogleTest or of our scripts, else one
# for the whole. RESULT is Automake's: a program that crashed has printed no sum.
count_log()
{
    awk -v result="$2" '
        /^\[  PASSED  \] [0-9]+ test/ { passed += $4 }
        /^\[  FAILED  \] [0-9]+ test/ { failed += $4 }
        /^\[  SKIPPED \] [0-9]+ test/ { skipped += $4 }
        /^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { passed += $1; failed += $3; skipped += $5 }
        END {
            if ((result == "FAIL" || result == "ERROR") && !failed) failed = 1
            if (result == "PASS" && !passed && !skipped) passed = 1
            if (result == "SKIP" && !skipped) skipped = 1
            print passed + 0, failed + 0, skipped + 0
        }' "$1"
}

# "name: reason" for every skipped case in a log.
skip_reasons()
{
    awk '
        /^\[ RUN      \]/ { reason = ""; taking = 0 }
        taking && !/^\[/ { reason = reason (reason == "" ? "" : " ") $0 }
        /: Skipped$/ { taking = 1 }
        /^\[  SKIPPED \] .* \([0-9]+ ms\)$/ { print $4 ": " reason; reason = ""; taking = 0 }
        /^skip - / { sub(/^skip - /, ""); print }' "$1"
}

# What a log says of its failed cases and what the sanitizers reported between them, or its end if it says neither.
failed_cases()
{
    awk '
        /^ *\[ RUN      \]/ { lines = 0 }
        { line[lines++] = $0 }
        /^ *\[  FAILED  \] .* \([0-9]+ ms\)$/ { for (i = 0; i < lines; i++) print line[i]; found = 1; next }
        /WARNING: ThreadSanitizer|ERROR: [A-Za-z]*Sanitizer|: runtime error: / { if (reported <= 0 && lines > 1) print line[0]; reported = 40 }
        /^not ok - / { script = 1 }
        /^(ok|skip) - / { script = 0 }
        reported > 0 || script { print; found = 1; reported--; lines = 1 }
        /^SUMMARY: / { reported = 0 }
        END { exit !found }' "$1" | head -n 100
    [ "${PIPESTATUS[0]}" -ne 1 ] || tail -n 30 "$1"
}

# Adds up the logs of one `make check`, wherever below DIR they are.
collect()
{
    local name=$1 dir=$2 trs log result failure p f s sum_p=0 sum_f=0 sum_s=0 reasons=""
    while read -r trs; do
        log=${trs%.trs}.log
        result=$(sed -n 's/^:global-test-result: //p' "$trs")
        read -r p f s < <(count_log "$log" "$result")
        sum_p=$((sum_p + p)) sum_f=$((sum_f + f)) sum_s=$((sum_s + s))
        if [ "$result" != PASS ] && [ "$result" != SKIP ]; then
            failure="$name: ${log#"$dir"/}"
            failures+=("$failure")
            said[$failure]=$(failed_cases "$log" | sed 's/^/    | /')
            note "FAILED: $log says"
            echo "${said[$failure]}"
        fi
        reasons+=$(skip_reasons "$log" && echo .)
        reasons=${reasons%.}
    done < <(find "$dir" -name '*.trs' | sort)
    passed=$((passed + sum_p)) failed=$((failed + sum_f)) skipped=$((skipped + sum_s))
    note "$name: $sum_p passed, $sum_f failed, $sum_s skipped"
    # One line per reason, with the number of cases that gave it.
    [ -z "$reasons" ] || sed 's/^[^:]*: //' <<<"$reasons" | grep . | sort | uniq -c | sort -rn |
        sed 's/^/           skipped: /'
    longest "$dir"
}

# The tests below DIR that took most of the processors' time.
longest()
{
    grep -Hr --include='*.log' '^took [0-9]* s, processor time' "$1" | sed 's/.*\/\(.*\)\.log:/\1 /' |
        awk '{ spent[$1] = $7 + $10 } END { for (test in spent) print spent[test], test }' | sort -rn |
        awk '{ sum += $1 }
            NR <= 8 { list = list (NR > 1 ? ", " : "") $2 " " $1 }
            END { if (NR) printf "           processor time of the tests: %d s (%s)\n", sum, list }'
}

# A step whose tests come from `make check`. If there are no results at all, the step itself failed.
tested_step()
{
    local name=$1 dir=$2 log=$3
    shift 3
    begin "$log" "$@"
    finish_tests "$begun" "$name" "$dir" "$log" "$@"
}

# finish_tests PID NAME DIR LOG COMMAND...: the same for one that was begun before.
finish_tests()
{
    local pid=$1 name=$2 dir=$3 log=$4 status before=$failed
    shift 4
    finish "$pid" "$log" "$@"
    status=$?
    collect "$name" "$dir"
    if [ $status -ne 0 ] && [ "$failed" -eq "$before" ]; then
        failed=$((failed + 1))
        failures+=("$name (see build/logs/$log)")
    fi
}

# The release build with all tests, from the tarball. The library's objects are those of the build tree: it has the same
# flags, and the same sources, which has_same_sources shows. distcheck removes its tree when it is content, so the hook of
# `make installcheck` keeps the logs; when it is not, they are still in the tree.
distcheck()
{
    local version flags="--enable-werror CC='$(compiler "${CC:-gcc}")' CXX='$(compiler "${CXX:-g++}")' CFLAGS=-O2 CXXFLAGS=-O2"
    version=$("$build/config.status" --version | sed -n '1s/.* //p')
    # shellcheck source=fabtests-ext/packaging/tarball.sh
    . "$top/fabtests-ext/packaging/tarball.sh"
    (cd "$build" && rm -rf given && give_objects "$build/given" unity src prov) || return 1
    # The second file that MAKEFILES names is in the tarball: what has built here already does not read it.
    # shellcheck disable=SC2046 # nothing, or one argument
    MAKEFILES="$build/given/take.mk $build/ucxlike-$version/unity.mk" XZ_OPT=-0 setpriv --pdeathsig TERM make -C "$build" \
        -j "$jobs" distcheck DISTCHECK_CONFIGURE_FLAGS="$flags" KEEP_TEST_LOGS="$kept_logs" TEST_CXXFLAGS=-O0 \
        $(precompiling) && return
    find "$build"/ucxlike-*/_build/sub -name '*.trs' | while read -r trs; do
        cp "$trs" "${trs%.trs}.log" "$kept_logs/"
    done
    return 1
}

# The machine that one of its tests emulates for verbs is busy for longer than all the others, and no reason to
# wait: what follows runs beside it.
begin_release()
{
    note "beside what follows until A: ${CXX:-g++} release build from the tarball (make distcheck)"
    kept_logs=$build/release-logs
    rm -rf "$kept_logs"
    mkdir -p "$kept_logs"
    begin_long distcheck.log distcheck
    releasing=$begun
}

# The tarball has what the library is compiled from, as it is here.
has_same_sources()
{
    local folder unpacked=$build/unpacked status=0
    rm -rf "$unpacked" && mkdir "$unpacked" && tar -C "$unpacked" --strip-components=1 -xf "$build"/ucxlike-*.tar.xz || return 1
    for folder in include src prov; do
        diff -rq "$top/$folder" "$unpacked/$folder" || status=1
    done
    rm -rf "$unpacked"
    return $status
}

check_release()
{
    step release "A: ${CXX:-g++} release build from the tarball, all tests (make distcheck)"
    finish_tests "$releasing" release "$kept_logs" distcheck.log distcheck
    single "the tarball has the sources" quietly sources-of-tarball.log has_same_sources
}

# Address space randomisation of newer kernels leaves no room where the thread sanitizer wants it.
fixed_addresses()
{
    if setarch -R true 2>/dev/null; then
        setarch -R "$@"
    else
        "$@"
    fi
}

# sanitized DIR CC CXX OPTION TARGET: each folder of the library compiled as one file. The compilers take twice as long
# for the tests when they optimise them, and a third longer when they keep line numbers: a report names the functions of
# tests, and the lines of the library.
sanitized()
{
    rm -rf "$1"
    configure_in "$1" "$2" "$3" "-O1 -g1" "$4" || return 1
    # shellcheck disable=SC2046 # nothing, or one argument
    MAKEFILES=$top/unity.mk fixed_addresses setpriv --pdeathsig TERM make -j "$test_jobs" "$5" TEST_CXXFLAGS="-O0 -g0" \
        $(precompiling)
}

check_asan()
{
    step asan "B: clang++ with the address and undefined behaviour sanitizers, all suites"
    if ! command -v clang++ >/dev/null; then
        skip_step "clang++ build" "clang is not installed"
        return
    fi
    tested_step asan "$build/asan" asan.log \
        sanitized "$build/asan" clang clang++ --enable-asan check-suites
}

check_tsan()
{
    step tsan "C: ${CXX:-g++} with the thread sanitizer, the suites with threads"
    tested_step tsan "$build/tsan" tsan.log \
        sanitized "$build/tsan" "${CC:-gcc}" "${CXX:-g++}" --enable-tsan check-threaded
}

skip_step()
{
    skipped=$((skipped + 1))
    note "skipped: $1: $2"
}

formatted()
{
    git ls-files '*.cc' '*.h' '*.c' | xargs -r -n 40 -P "$jobs" clang-format --dry-run --Werror
}

check_format()
{
    step format "D: clang-format over the tree"
    if ! command -v clang-format >/dev/null || ! git rev-parse --git-dir >/dev/null 2>&1; then
        skip_step clang-format "needs clang-format and a git tree"
        return
    fi
    single clang-format quietly format.log formatted
}

installed_tests()
{
    local script status=0
    for script in packaging/install_test interop/uct_hello_world_test interop/ucp_hello_world_test \
        interop/ucp_client_server_test; do
        UCXLIKE_PREFIX=$prefix "$top/fabtests-ext/$script.sh" || [ $? -eq 77 ] || status=1
    done
    return $status
}

check_installed()
{
    local p f s
    step installed "E: each source by itself; programs built against the installed tree, UCX's examples among them"
    single "each source by itself" quietly sources.log make -C "$build" check-sources
    quietly installed.log installed_tests
    read -r p f s < <(count_log "$logs/installed.log" NONE)
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    note "installed: $p passed, $f failed, $s skipped"
    skip_reasons "$logs/installed.log" | sed 's/^/           skipped: /'
    [ "$f" -eq 0 ] || failures+=("installed (see build/logs/installed.log)")
    [ $((p + f + s)) -gt 0 ] || single installed false
}

# Debian 13 is unpacked beside what comes before its tests; that waits for network and disk more than it computes.
begin_debian13()
{
    debian13=$build/debian13
    mkdir -p "$debian13" || exit 1
    begin_long debian13-setup.log setpriv --pdeathsig TERM timeout "$debian13_setup_limit" \
        fabtests-ext/scripts/debian13 --folder "$debian13/root" setup
    setting_up=$begun
}

debian13_suites()
{
    export UCXLIKE_PREFIX=$prefix DEBIAN13_FOLDER=$debian13/root JOBS=$test_jobs
    exec setpriv --pdeathsig TERM make -C "$build" check-debian13
}

# Without a Debian 13 there is nothing to test; once it is there, everything counts.
check_debian13()
{
    local status
    step debian13 "F: everything built and run on Debian 13 in a folder, and there the provider built here"
    [ -n "$setting_up" ] || begin_debian13
    ended "$setting_up" debian13-setup.log
    status=$?
    if [ $status -eq 124 ]; then
        skip_step "Debian 13" "the set-up took more than $debian13_setup_limit seconds"
    elif [ $status -ne 0 ]; then
        skip_step "Debian 13" "$(tail -n 1 "$logs/debian13-setup.log")"
    else
        note "left out there: the sanitizers and verbs in a virtual machine"
        rm -rf "$debian13/build"
        tested_step debian13 "$debian13/build" debian13.log debian13_suites
    fi
}

# The units and two processes, built for another processor. What follows has the processors first.
aarch64_suites()
{
    local aarch64=$top/fabtests-ext/scripts/aarch64
    "$aarch64" --folder "$build/aarch64/root" setup >"$logs/aarch64-setup.log" 2>&1 || return 77
    rm -rf "$build/aarch64/build"
    mkdir -p "$build/aarch64/build" || return 1
    cd "$build/aarch64/build" || return 1
    "$aarch64" --folder "$build/aarch64/root" configure --enable-werror CFLAGS="-O1 -g0" CXXFLAGS="-O1 -g0" || return 1
    # shellcheck disable=SC2046 # nothing, or one argument
    MAKEFILES=$top/unity.mk setpriv --pdeathsig TERM nice -n 19 "$aarch64" --folder "$build/aarch64/root" check \
        -j "$test_jobs" TEST_CXXFLAGS=-O0 $(precompiling)
}

# Most of it compiles. The tests for Debian 13 wait more than they compute.
begin_aarch64()
{
    note "begun, and waited for in G: for aarch64 with Debian's cross compiler"
    mkdir -p "$build/aarch64" || exit 1
    begin_long aarch64.log aarch64_suites
    emulating=$begun
}

check_aarch64()
{
    local status
    step aarch64 "G: for aarch64 with Debian's cross compiler: the units and two processes, under qemu"
    [ -n "$emulating" ] || begin_aarch64
    ended "$emulating" aarch64.log
    status=$?
    if [ $status -eq 77 ]; then
        skip_step aarch64 "$(tail -n 1 "$logs/aarch64-setup.log")"
    else
        finish_tests "$emulating" aarch64 "$build/aarch64/build" aarch64.log aarch64_suites
    fi
}

verdict()
{
    local failure
    step result "result"
    # Once more, for of a long output the end alone may have been kept.
    for failure in "${failures[@]}"; do
        printf '           failed: %s\n' "$failure"
        [ -z "${said[$failure]-}" ] || echo "${said[$failure]}"
    done
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}

# libfabric's verbs looks through the names of all functions of the kernel in every process, for the support of
# graphics cards, which is most of the processor time of suites with many processes. Where we may have mounts of
# our own, it finds an empty list, which says the same. hide_symbols COMMAND: of quickstart, begun anew there.
hide_symbols()
{
    local hide='mount --bind /dev/null /proc/kallsyms && exec "$@"'
    [ ! -c /proc/kallsyms ] && unshare --mount sh -c "$hide" sh true 2>/dev/null || return 0
    exec unshare --mount sh -c "$hide" sh "$top/quickstart" "$1"
}
