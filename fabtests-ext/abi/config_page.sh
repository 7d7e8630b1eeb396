#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# ucxlike_config(7) says what the tables say. To renew it: config_page.sh --write

srcdir=${top_srcdir:-.}
page=$srcdir/man/ucxlike_config.7
program=${top_builddir:-.}/man/config_page

if [ "$1" = --write ]; then
    "$program" >"$page.new" || {
        rm -f "$page.new"
        exit 1
    }
    exec mv "$page.new" "$page"
fi
if ! "$program" | diff "$page" -; then
    echo "FAIL: $page is not what the tables say; make it anew by $0 --write"
    exit 1
fi
