#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# docs/tutorial.md as a stranger follows it who has built from source: each command in an empty home, with the
# installed tree where the page installs it, and each line that is printed as the page shows it.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
. "$here/../interop/installed.sh"
top=$(cd "${top_srcdir:-$here/../..}" && pwd)
need python3 python3
need pkg-config pkg-config
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT

# The tree at ~/ucxlike: links to the installed one, but for what has its prefix in it.
settle_in()
{
    local installed tree=$scratch/home/ucxlike
    installed=$(realpath -e "$prefix") && mkdir -p "$tree" && cp -rs "$installed"/* "$tree/" || return
    [ -e "$tree/lib/pkgconfig/ucxlike.pc" ] || ln -s "$(realpath "$libdir")" "$tree/lib" || return
    rm "$tree/lib/pkgconfig/ucxlike.pc" &&
        sed "s,^prefix=.*,prefix=$tree," "$libdir/pkgconfig/ucxlike.pc" >"$tree/lib/pkgconfig/ucxlike.pc"
}

# follow PAGE
follow()
{
    (cd "$scratch/home" && env -i HOME="$scratch/home" PATH="$PATH" IPATH_NO_BACKTRACE=1 \
        "$here/tutorial.py" "$1" source)
}

# One line that is not as it is printed.
wrong_page_is_found()
{
    sed 's/^    hello, client$/    hello, clients/' "$top/docs/tutorial.md" >"$scratch/wrong.md"
    rm -rf "$scratch/home" && settle_in && ! follow "$scratch/wrong.md" >"$scratch/wrong.log" 2>&1 &&
        [ "$(tail -n 1 "$scratch/wrong.log")" = "the page shows: hello, clients" ] || {
        cat "$scratch/wrong.log"
        return 1
    }
}

find_installed || skip_all "nothing is installed to build against"
check "a home with the installed tree" settle_in
check "docs/tutorial.md, from source" follow "$top/docs/tutorial.md"
check "a line that is not printed is found" wrong_page_is_found
finish
