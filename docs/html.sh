#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# html.sh SOURCE_TREE FOLDER: the pages and the man pages as an HTML site that needs no network and no script. Each page
# has the list of all pages beside it, or below it where the window is narrow. `make docs` calls it, and check_links.py
# afterwards. Needs pandoc and mandoc.
set -u -o pipefail
top=$(cd "$1" && pwd) || exit 1
out=$2

for tool in pandoc mandoc; do
    command -v $tool >/dev/null || {
        echo "make docs: $tool is not installed (package $tool)" >&2
        exit 1
    }
done
rm -rf "$out"
mkdir -p "$out/docs/fabrics" "$out/man" && cp "$top/docs/style.css" "$out/" || exit 1

# title PAGE: its heading
title()
{
    sed -n '1s/^# *//p' "$top/$1"
}

# html PAGE: the name of what is made of it
html()
{
    case $1 in
    README.md) echo index.html ;;
    *) echo "${1%.md}.html" ;;
    esac
}

# entry ADDRESS TEXT: one of a list
entry()
{
    echo "<li><a href=\"$1\">$2</a></li>"
}

# manual NAME.SECTION: as a manual page is quoted
manual()
{
    echo "${1%.*}(${1##*.})"
}

# list_parts FOLDER: the pages of a folder below the page that has its name
list_parts()
{
    local source part
    [ -d "$top/$1" ] || return 0
    echo "<li><ul>"
    for source in "$top/$1"/*.md; do
        part=${source#"$top"/}
        entry "@$(html "$part")" "$(title "$part")"
    done
    echo "</ul></li>"
}

# In the order of the tables of README.md, and then of its text, which have a link to each page.
list_pages()
{
    local page
    echo "<h2>Pages</h2><ul>"
    entry "@index.html" "ucxlike"
    while read -r page; do
        entry "@$(html "$page")" "$(title "$page")"
        list_parts "${page%.md}"
    done < <(cat <(grep '^| \[' "$top/README.md") "$top/README.md" |
        grep -oE '\]\((docs/[a-z-]+|[A-Z]+)\.md\)' | sed 's/^](//; s/)$//' | awk '!seen[$0]++')
    entry "@CONTRIBUTING.html" "$(title CONTRIBUTING.md)"
    echo "</ul>"
}

list_manuals()
{
    local section source name
    echo "<h2>Man pages</h2><ul>"
    entry "@man/index.html" "what each is about"
    for section in 1 7 3; do
        for source in "$top"/man/*."$section"; do
            name=${source##*/}
            entry "@man/$name.html" "$(manual "$name")"
        done
    done
    echo "</ul>"
}

# page TITLE DEPTH: a page around its standard input; DEPTH is the way back to the root, "", "../" or "../../".
page()
{
    cat <<HEAD
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>$1</title><link rel="stylesheet" href="$2style.css"></head><body>
<header><a href="$2index.html">ucxlike</a> <a class="narrow" href="#pages">All pages</a></header>
<main>
HEAD
    cat
    echo '</main><nav id="pages">'
    sed "s,\"@,\"$2," <<<"$navigation"
    echo '</nav></body></html>'
}

# adapt DEPTH: links between pages name the sources and get the names of what is made of these; a man page that is quoted
# becomes a link. A table may be wider than a window, and then moves in a box of its own.
adapt()
{
    sed -E -e 's,href="((\.\./)*)README\.md,href="\1index.html,g' -e 's,(href="[^":]*)\.md([#"]),\1.html\2,g' \
        -e 's,(href="(\.\./)*man/[^":]*\.[137])",\1.html",g' \
        -e "s#(^|[ (])((ucp|uct|ucxlike|fi_ucxlike)[a-z_-]*)\\(([137])\\)#\\1<a href=\"$1man/\\2.\\4.html\">\\2(\\4)</a>#g" \
        -e 's,<table>,<div class="wide"><table>,g' -e 's,</table>,</table></div>,g'
}

make_pages()
{
    local source name depth
    for source in "$top"/*.md "$top"/docs/*.md "$top"/docs/*/*.md; do
        name=${source#"$top"/}
        depth=$(sed 's,[^/],,g; s,/,../,g' <<<"$name")
        pandoc -f gfm -t html "$source" | adapt "$depth" | page "$(title "$name")" "$depth" >"$out/$(html "$name")" || return 1
    done
}

# A manual of another package is a link to Debian's collection.
make_manuals()
{
    local source name
    for source in "$top"/man/*.[137]; do
        name=${source##*/}
        (cd "$top/man" && mandoc -T html -O "fragment,man=%N.%S.html;https://manpages.debian.org/%N.%S" "$name") |
            page "$(manual "$name")" ../ >"$out/man/$name.html" || return 1
    done
    {
        echo '<h1>Man pages</h1><ul>'
        for source in "$top"/man/*.[137]; do
            name=${source##*/}
            echo "<li><a href=\"$name.html\">$(manual "$name")</a>: $(sed -n 's/^\.Nd //p' "$source")</li>"
        done
        echo '</ul>'
    } | page "Man pages" ../ >"$out/man/index.html"
}

navigation=$(list_pages && list_manuals)
make_pages && make_manuals || exit 1

# What pages name of the tree, as examples and recipes, comes along.
mkdir -p "$out/examples" && cp -r "$top/packaging" "$out/" && cp "$top"/examples/*.c "$out/examples/" &&
    cp "$top/LICENSE" "$out/" || exit 1
echo "made $(find "$out" -name '*.html' | wc -l) pages: $out/index.html"
