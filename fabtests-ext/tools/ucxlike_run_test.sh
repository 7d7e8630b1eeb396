#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ucxlike-run: a program whose RPATH leads to Debian's UCX runs on ucxlike; one that another UCX would
# serve in spite of it fails with a reason.

here=$(dirname "$0")
. "$here/../interop/report.sh"
. "$here/../interop/installed.sh"
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

write_program()
{
    cat <<'PROGRAM'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
void ucp_get_version(unsigned *major, unsigned *minor, unsigned *release);
int main(int argc, char **argv)
{
    unsigned major, minor, release;
    Dl_info where;
    char line[64] = "";
    ucp_get_version(&major, &minor, &release);
    if (!dladdr((void *)ucp_get_version, &where)) {
        return 1;
    }
    if (argc > 1 && fgets(line, sizeof(line), stdin)) {
        printf("%s %s", argv[1], line);
    }
    printf("%s\n", where.dli_fname);
    return argc > 2 ? atoi(argv[2]) : 0;
}
PROGRAM
}

# The library that served the last program.
served_by()
{
    readlink -f "$(tail -n 1 "$scratch/output")"
}

run()
{
    UCXLIKE_LIBRARIES=$dropin "$prefix/bin/ucxlike-run" "$@" >"$scratch/output" 2>&1
}

expect_served_by()
{
    [ "$(served_by)" = "$(readlink -f "$1")" ] || {
        echo "expected $1 to serve the program, but:"
        cat "$scratch/output"
        return 1
    }
}

rpath_wins_over_the_library_path()
{
    LD_LIBRARY_PATH=$dropin "$scratch/program" >"$scratch/output" && expect_served_by "$debian"
}

runs_on_ours()
{
    run "$scratch/program" && expect_served_by "$dropin/libucp.so.0"
}

keeps_arguments_input_and_status()
{
    run "$scratch/program" "two words" 7 <<<"a line"
    [ $? -eq 7 ] && grep -qx 'two words a line' "$scratch/output"
}

scripts_run_on_ours()
{
    printf '#!/bin/sh\nexec %s\n' "$scratch/program" >"$scratch/script"
    chmod +x "$scratch/script"
    run "$scratch/script" && expect_served_by "$dropin/libucp.so.0"
}

# refused TEXT COMMAND...
refused()
{
    local text=$1
    shift
    run "$@"
    [ $? -eq 126 ] && grep -q "$text" "$scratch/output" || {
        cat "$scratch/output"
        return 1
    }
}

another_ucx_is_refused()
{
    mkdir "$scratch/other"
    echo 'void ucp_get_version(unsigned *a, unsigned *b, unsigned *c) { *a = *b = *c = 0; }' >"$scratch/other.c"
    # Without a name of its own it is loaded by its path, whatever was loaded before.
    ${CC:-cc} -shared -fPIC "$scratch/other.c" -o "$scratch/other/libucp.so.0" &&
        ${CC:-cc} "$scratch/program.c" "$scratch/other/libucp.so.0" -ldl -o "$scratch/tied" &&
        refused "would load $scratch/other/libucp.so.0" "$scratch/tied"
}

static_program_is_refused()
{
    echo 'int main(void) { return 0; }' >"$scratch/static.c"
    ${CC:-cc} -static "$scratch/static.c" -o "$scratch/static" && refused 'not linked dynamically' "$scratch/static"
}

find_installed || skip_all "nothing is installed to run with"
debian=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p | sed -n 's/.*libucp\.so\.0 .*=> //p' | head -n 1)
[ -n "$debian" ] || skip_all "libucx0 is not installed"
write_program >"$scratch/program.c"
${CC:-cc} "$scratch/program.c" "$debian" -ldl -Wl,--disable-new-dtags "-Wl,-rpath,${debian%/*}" \
    -o "$scratch/program" || exit 99
check "an RPATH wins over LD_LIBRARY_PATH" rpath_wins_over_the_library_path
check "a program with an RPATH runs on ours" runs_on_ours
check "arguments, input and exit status are the program's" keeps_arguments_input_and_status
check "a script's programs run on ours" scripts_run_on_ours
check "a program tied to another UCX is refused" another_ucx_is_refused
check "a static program is refused" static_program_is_refused
check "a program that does not exist is refused" refused 'no such program' "$scratch/nowhere"
finish
