#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Every link of the documentation to a file of the tree finds it, and every page is in the list of README.md.
here=$(dirname "$0")
. "$here/../interop/report.sh"
top=$(cd "${top_srcdir:-$here/../..}" && pwd)

# links FILE: targets of its links that are no addresses of the network, without the part after #.
links()
{
    grep -oE '\]\([^)]+\)' "$1" | sed -e 's/^](//; s/)$//; s/#.*//' | grep -vE '^(https?:|mailto:|$)'
}

links_lead_somewhere()
{
    local page=$1 link status=0
    while read -r link; do
        [ -e "$(dirname "$page")/$link" ] || {
            echo "${page#"$top"/}: $link does not exist"
            status=1
        }
    done < <(links "$page")
    return $status
}

# page_is_listed PAGE LIST NAME: by a link of the list, under that name
page_is_listed()
{
    grep -qF "($3)" "$2" || {
        echo "${2#"$top"/} has no link to ${1#"$top"/}"
        return 1
    }
}

man_pages_refer_to_man_pages()
{
    local page name section status=0
    while IFS=: read -r page name; do
        read -r _ name section _ <<<"$name"
        [ -e "$top/man/$name.$section" ] || {
            echo "man/$page refers to $name($section), which does not exist"
            status=1
        }
    done < <(cd "$top/man" && grep -oE '^\.Xr (uc|fi_ucxlike)[^ ]* [1-8]' ./*.[137])
    return $status
}

check "man pages refer to man pages" man_pages_refer_to_man_pages
for page in "$top"/*.md "$top"/docs/*.md "$top"/docs/*/*.md; do
    check "links of ${page#"$top"/}" links_lead_somewhere "$page"
done
for page in "$top"/docs/*.md; do
    check "README.md leads to ${page##*/}" page_is_listed "$page" "$top/README.md" "docs/${page##*/}"
done
for page in "$top"/docs/*/*.md; do
    folder=$(dirname "$page")
    name=${folder##*/}/${page##*/}
    check "docs/${folder##*/}.md leads to $name" page_is_listed "$page" "$folder.md" "$name"
done
finish
