#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The HTML site that `make docs` makes: no link, anchor or image in it is dead, and a browser shows its pages as they
# are meant, in a wide and in a narrow window. With DOCS_SITE_FOLDER the site and the screenshots are kept there.

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../interop/report.sh"
top=$(cd "${top_srcdir:-$here/../..}" && pwd)
look=$here/docs_site.py
need pandoc pandoc
need mandoc mandoc
need python3 python3
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
folder=$(realpath -m "${DOCS_SITE_FOLDER:-$scratch}")
site=$folder/site
wide=1024 narrow=390

# A site of four faults, each of which is told, and one link that is right.
checker_finds_faults()
{
    local bad=$scratch/bad line
    mkdir -p "$bad"
    echo '<a href="b.html#there">' '<a href="b.html#gone">' '<a href="c.html">' '<img src="d.png">' >"$bad/index.html"
    echo '<p id="there">' >"$bad/b.html"
    echo '<p>' >"$bad/lonely.html"
    ! "$top/docs/check_links.py" "$bad" >"$scratch/faults" 2>&1 || return 1
    for line in "index.html: b.html#gone has no such anchor" "index.html: c.html does not exist" \
        "index.html: d.png does not exist" "no link leads to lonely.html" "2 pages, 4 links, 4 wrong"; do
        grep -qxF "$line" "$scratch/faults" || {
            echo "no '$line' in:"
            cat "$scratch/faults"
            return 1
        }
    done
}

# browse OPTION...: without network, and with a profile of its own.
browse()
{
    timeout -k 5 200 chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync \
        --user-data-dir="$scratch/profile" "$@" 2>"$scratch/chromium.log" || {
        echo "chromium: exit status $?"
        tail -n 20 "$scratch/chromium.log"
        return 1
    }
}

# One page has all others in frames of both widths, and writes down what their layout is.
layout()
{
    "$look" frames "$1" "$wide" "$narrow" >"$scratch/frames.html" &&
        browse --allow-file-access-from-files --dump-dom "file://$scratch/frames.html" >"$scratch/layout" &&
        "$look" layout "$1" "$wide" "$narrow" <"$scratch/layout"
}

# A page with a line that is wider than any window is told, and only that.
layout_finds_a_wide_page()
{
    mkdir -p "$scratch/wide/docs" && cp "$site/index.html" "$site/style.css" "$scratch/wide/" &&
        cp "$site/docs/faq.html" "$scratch/wide/docs/" || return
    sed -i 's,<main>,&<p style="width: 3000px">wide</p>,' "$scratch/wide/docs/faq.html"
    ! layout "$scratch/wide" >"$scratch/wide.log" 2>&1 || return 1
    [ "$(cut -d: -f1 "$scratch/wide.log" | uniq -c | xargs)" = "2 docs/faq.html is wider than its window" ] || {
        cat "$scratch/wide.log"
        return 1
    }
}

# shown PAGE WIDTH
shown()
{
    local name=${1%.html} picture
    picture=$folder/${name//\//-}-$2.png
    rm -f "$picture"
    browse --hide-scrollbars --window-size="$2,600" --screenshot="$picture" "file://$site/$1" >/dev/null &&
        "$look" picture "$picture" "$2"
}

check "docs/html.sh" "$top/docs/html.sh" "$top" "$site"
check "no dead link" "$top/docs/check_links.py" "$site"
check "dead links are found" checker_finds_faults
if command -v chromium >/dev/null; then
    check "layout of all pages" layout "$site"
    check "a page that is too wide is found" layout_finds_a_wide_page
    for page in index.html docs/tutorial.html man/ucp_ep.3.html; do
        for width in $wide $narrow; do
            check "$page at a width of $width" shown "$page" "$width"
        done
    done
else
    skip "in a browser" "chromium is not installed (package chromium)"
fi
finish
