#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# html.sh SOURCE_TREE FOLDER: the pages and the man pages as an HTML site that needs no network, and ends with an error
# if a link between them leads nowhere. `make docs` calls it. Needs pandoc and mandoc.
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
mkdir -p "$out/docs" "$out/man" || exit 1

cat >"$out/style.css" <<'CSS'
body { max-width: 52em; margin: 2em auto; padding: 0 1em; font: 16px/1.5 sans-serif; color: #222; background: #fff; }
nav { border-bottom: 1px solid #ccc; padding-bottom: .5em; margin-bottom: 1em; }
nav a { margin-right: 1em; }
pre, code { font-family: monospace; background: #f4f4f4; }
pre { padding: .6em; overflow-x: auto; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid #ccc; padding: .25em .6em; text-align: left; vertical-align: top; }
CSS

# page TITLE DEPTH: a page around its standard input; DEPTH is the way back to the root, "" or "../".
page()
{
    cat <<HEAD
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>$1</title><link rel="stylesheet" href="$2style.css"></head><body>
<nav><a href="$2index.html">ucxlike</a><a href="$2docs/tutorial.html">Tutorial</a><a
href="$2docs/migration.html">Migration</a><a href="$2docs/troubleshooting.html">Troubleshooting</a><a
href="$2man/index.html">Man pages</a></nav>
HEAD
    cat
    echo '</body></html>'
}

# Links between pages name the sources: they get the names of what is made of these.
rename_links()
{
    sed -E -e 's,href="(\.\./)?README\.md,href="\1index.html,g' -e 's,(href="[^":]*)\.md([#"]),\1.html\2,g' \
        -e 's,(href="(\.\./)?man/[^":]*\.[137])",\1.html",g'
}

for source in "$top"/*.md "$top"/docs/*.md; do
    name=${source#"$top"/}
    depth=""
    [ "${name#docs/}" = "$name" ] || depth=../
    target=$out/${name%.md}.html
    [ "$name" != README.md ] || target=$out/index.html
    pandoc -f gfm -t html "$source" | rename_links | page "$(sed -n '1s/^# *//p' "$source")" "$depth" >"$target" || exit 1
done

for source in "$top"/man/*.[137]; do
    name=${source##*/}
    mandoc -T html -O fragment,man=%N.%S.html "$source" | page "${name%.*}(${name##*.})" ../ >"$out/man/$name.html" || exit 1
done
{
    echo '<h1>Man pages</h1><ul>'
    for source in "$top"/man/*.[137]; do
        name=${source##*/}
        echo "<li><a href=\"$name.html\">${name%.*}(${name##*.})</a>: $(sed -n 's/^\.Nd //p' "$source")</li>"
    done
    echo '</ul>'
} | page "Man pages" ../ >"$out/man/index.html"

# What pages name of the tree, as examples and recipes, comes along.
mkdir -p "$out/examples" && cp -r "$top/packaging" "$out/" && cp "$top"/examples/*.c "$out/examples/" && cp "$top/LICENSE" "$out/"

broken=0
while IFS=: read -r file link; do
    target=${link#*\"}
    target=${target%%[\"#]*}
    case $target in
    "" | http*:* | mailto:*) continue ;;
    esac
    case ${target##*/} in
    uc* | fi_ucxlike*) ;;
    *.[1-8].html) continue ;; # man pages of other packages
    esac
    [ -e "$(dirname "$file")/$target" ] || {
        echo "make docs: ${file#"$out"/}: $target does not exist" >&2
        broken=1
    }
done < <(grep -roE 'href="[^"]*"' --include='*.html' "$out")
[ $broken -eq 0 ] || exit 1
echo "made $(find "$out" -name '*.html' | wc -l) pages: $out/index.html"
