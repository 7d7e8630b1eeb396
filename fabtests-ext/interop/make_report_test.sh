#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# make report in its short form: every figure is a number, the page needs no network, and a side that fails is seen to
# have failed. Says nothing of how fast anything is.

. "$(dirname "$0")/report.sh"
here=$(cd "$(dirname "$0")" && pwd)
need gnuplot gnuplot-nox
need python3 python3
need ucx_perftest ucx-utils
need make make
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
make_report=$here/../benchmarks/make_report.sh
echo '#include <ucp/api/ucp.h>' | ${CC:-cc} -fsyntax-only -x c - 2>/dev/null ||
    skip_all "UCX's headers are not installed (package libucx-dev)"
(cd "${top_builddir:-.}" && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make report-programs) >"$scratch/make" 2>&1 </dev/null || {
    tail -n 20 "$scratch/make"
    not_ok "what make report needs is built"
    finish
}

# report NAME VARIABLE=VALUE...: the short form, in a folder of its own; its output is there as "out"
report()
{
    local folder=$scratch/$1
    shift
    mkdir -p "$folder"
    env REPORT_SHORT=yes REPORT_DIR="$folder" "$@" "$make_report" >"$folder/out" 2>&1 </dev/null
}

short_form_ends_well()
{
    report whole || {
        cat "$scratch/whole/out"
        return 1
    }
    grep -q "^$scratch/whole/report.html$" "$scratch/whole/out" && grep -q 'steps.*left' "$scratch/whole/out"
}

every_figure_is_a_number()
{
    python3 - "$scratch/whole/report.json" <<'CHECK'
import json, sys
report = json.load(open(sys.argv[1]))
figures = {f["name"]: f for f in report["figures"]}
over_size = {f"{name}.{place}": other for place in ("shm", "tcp") for name, other in (
    ("tag_lat", "ucx"), ("tag_bw", "ucx"), ("tag_rate", "ucx"), ("prov_lat", "core"), ("prov_bw", "core"),
    ("prov_rate", "core"))}
over_count = {"scale_connections": "ucx", "scale_memory": "ucx"}
single = {"ucp_connections": "ucx", "process_memory": "ucx", "connected_memory": "ucx", "prov_connections": "core",
          "ep_memory": "core"}
expected = over_size | over_count | single
assert figures.keys() == expected.keys(), figures.keys() ^ expected.keys()
for name, other in expected.items():
    figure = figures[name]
    sizes = [8, 4096, 1048576] if name in over_size else [8, 32] if name in over_count else [0]
    assert figure["over"] == ("bytes" if name in over_size else "connections" if name in over_count else ""), name
    assert figure["series"].keys() == {"ucxlike", other}, (name, figure["series"].keys())
    for points in [*figure["series"].values(), figure["ratio"]]:
        assert [p["size"] for p in points] == sizes, (name, points)
        for p in points:
            assert p["best"] > 0 and p["median"] > 0 and "failed" not in p, (name, p)
assert report["failed"] == 0
assert report["about"]["rounds"] == "1"
CHECK
}

# A row for each point of report.json, failed ones with their reason.
table_has_every_point()
{
    python3 - "$scratch/$1/report.json" "$scratch/$1/report.csv" <<'CHECK'
import csv, json, sys
text = lambda value: "" if value is None else str(value)
wanted = [[f["name"], f["unit"], f["better"], f["over"], str(p["size"]), side]
          + [text(p.get(key)) for key in ("best", "median", "failed")]
          for f in json.load(open(sys.argv[1]))["figures"] for side, points in f["series"].items() for p in points]
head, *rows = csv.reader(open(sys.argv[2], newline=""))
assert head == ["figure", "unit", "better", "over", "size", "side", "best", "median", "failed"], head
assert rows == wanted and rows, [row for row in rows if row not in wanted]
CHECK
}

# says_the_load LOAD: of a page that is made anew, with that load on 2 processors.
says_the_load()
{
    local folder=$scratch/load-$1
    mkdir -p "$folder"
    echo "0 ep_memory ucxlike 0 100" >"$folder/values"
    printf 'processors 2\nload %s 9.00 9.00\n' "$1" >"$folder/about"
    python3 "$here/../benchmarks/report_page.py" "$folder/values" "$folder/about" "$folder" >"$folder/out"
    grep -qx "The load was $1 on 2 processors: these figures say little." "$folder/out" &&
        grep -q "The load was $1 on 2 processors" "$folder/report.html"
}

load_is_told_where_it_matters()
{
    says_the_load 2.01 && ! says_the_load 2.00
}

# The namespaces of SVG are names that nothing is fetched from.
page_refers_to_nothing_outside()
{
    python3 - "$scratch/whole/report.html" <<'CHECK'
import html.parser, re, sys

class Links(html.parser.HTMLParser):
    plots = 0
    ids = []
    def handle_starttag(self, tag, attributes):
        self.plots += tag == "svg"
        assert tag not in ("script", "link", "iframe", "object", "embed", "img", "base"), tag
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            elif name in ("src", "href", "xlink:href", "srcset", "data", "action"):
                assert value.startswith("#"), (tag, name, value)
            elif not name.startswith("xmlns"):
                assert "//" not in (value or ""), (tag, name, value)

page = open(sys.argv[1], encoding="utf-8").read()
links = Links()
links.feed(page)
assert links.plots == 28, links.plots
assert len(set(links.ids)) == len(links.ids), "an id is there twice"
assert not re.search(r"@import|url\((?!['\"]?#)", page)
assert ">failed</" not in page
CHECK
}

# browse OPTION...: chromium on the page, in a profile of its own. No name of a host resolves; what was asked for is in
# $scratch/net.
browse()
{
    timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
        --disable-background-networking --disable-component-update --disable-sync --user-data-dir="$scratch/profile" \
        --log-net-log="$scratch/net" --host-resolver-rules="MAP * ~NOTFOUND" --hide-scrollbars --window-size=1250,1500 \
        "$@" "file://$scratch/whole/report.html" 2>"$scratch/browser"
}

page_renders_in_a_browser()
{
    command -v chromium >/dev/null || { echo "chromium is not installed (package chromium)"; return 77; }
    browse --dump-dom >"$scratch/dom" && browse --screenshot="$scratch/shot.png" || {
        cat "$scratch/browser"
        return 1
    }
    python3 - "$scratch/whole/report.json" "$scratch/dom" "$scratch/shot.png" "$scratch/net" <<'CHECK'
import html, json, re, struct, sys, zlib
report, dom = json.load(open(sys.argv[1])), open(sys.argv[2], encoding="utf-8").read()
headings = [html.unescape(h) for h in re.findall(r"<h[12]>(.*?)</h[12]>", dom)]
titles = [f["title"] for f in report["figures"] if f["over"]]
assert headings == ["ucxlike beside UCX and the raw core providers", *titles, "Connections and memory", "Where"], headings

png = open(sys.argv[3], "rb").read()
data, at = b"", 8
while at < len(png):
    length, kind = struct.unpack(">I4s", png[at:at + 8])
    data += png[at + 8:at + 8 + length] if kind == b"IDAT" else b""
    at += 12 + length
# A line is one byte for the filter and the differences to its neighbours: a blank page has next to none.
width, height = struct.unpack(">II", png[16:24])
drawn = sum(1 for byte in zlib.decompress(data) if byte)
assert (width, height) == (1250, 1500) and drawn > width * height // 100, (width, height, drawn)

# The initiator of what the browser asks for itself is "not an origin".
net = open(sys.argv[4], encoding="utf-8", errors="replace").read()
asked = re.findall(r'"initiator":"(?!not an origin).*', net)
assert '"constants"' in net and not asked, asked
CHECK
}

# A ucx_perftest that fails where it has UCX's own libraries.
one_side_that_fails_is_seen()
{
    local real
    real=$(command -v ucx_perftest)
    mkdir -p "$scratch/bin"
    cat >"$scratch/bin/ucx_perftest" <<STANDIN
#!/bin/sh
[ -n "\${LD_LIBRARY_PATH:-}" ] || { printf '%s\n' "<made to fail>" "+------+" "  8  1.00"; exit 3; }
exec "$real" "\$@"
STANDIN
    chmod +x "$scratch/bin/ucx_perftest"
    report half PATH="$scratch/bin:$PATH" LD_LIBRARY_PATH= REPORT_ONLY=tag_lat.tcp REPORT_SIZES="8 64"
    [ $? -eq 1 ] || { echo "exit status is not 1"; cat "$scratch/half/out"; return 1; }
    grep -q '^2 measurements failed' "$scratch/half/out" || { cat "$scratch/half/out"; return 1; }
    [ "$(grep -o "<span class='failed'>failed</span> UCP tag latency, tcp, loopback, UCX, [0-9]* bytes" \
        "$scratch/half/report.html" | wc -l)" -eq 2 ] || { echo "the page does not say it"; return 1; }
    python3 - "$scratch/half/report.json" <<'CHECK'
import json, sys
report = json.load(open(sys.argv[1]))
[figure] = report["figures"]
assert report["failed"] == 2
assert all(p["best"] > 0 for p in figure["series"]["ucxlike"]), figure
for points in (figure["series"]["ucx"], figure["ratio"]):
    assert [p["size"] for p in points] == [8, 64]
    assert all("<made to fail>" in p["failed"] and "best" not in p for p in points), points
CHECK
}

rounds_end_in_time()
{
    report bounded REPORT_MINUTES=0 REPORT_ROUNDS=2 REPORT_ONLY=prov_lat.tcp REPORT_SIZES=8 &&
        grep -q '1 of 2 rounds were taken$' "$scratch/bounded/out" &&
        grep -q '"rounds": "1"' "$scratch/bounded/report.json" || {
        cat "$scratch/bounded/out"
        return 1
    }
}

time_is_kept_within_a_round()
{
    report short REPORT_MINUTES=0 REPORT_ONLY=prov_lat.tcp REPORT_SIZES="8 64" &&
        grep -qx '0 minutes are over: 1 of 2 steps of round 1 were taken' "$scratch/short/out" &&
        grep -q '"steps": "1 of 2"' "$scratch/short/report.json" &&
        [ "$(grep -c '^prov_lat.tcp,us,less,bytes,8,' "$scratch/short/report.csv")" -eq 2 ] &&
        ! grep -q ',64,' "$scratch/short/report.csv" || {
        cat "$scratch/short/out"
        return 1
    }
}

# The parts of the report that README.md gives for its figures have them.
readme_names_measurements()
{
    local count=0 settings
    while read -r settings; do
        # shellcheck disable=SC2086 # several variables
        report "readme$count" $settings REPORT_COUNTS=2 || {
            cat "$scratch/readme$count/out"
            return 1
        }
        count=$((count + 1))
    done < <(sed -n 's/^| .*`make report \([^`]*\)` |$/\1/p' "$here/../../README.md")
    cat "$scratch"/readme*/report.csv >"$scratch/figures" &&
        grep -q '^process_memory,KiB,less,,0,ucx,[0-9]' "$scratch/figures" &&
        grep -q '^prov_lat.tcp,us,less,bytes,8,core,[0-9]' "$scratch/figures" || {
        echo "$count commands"
        cat "$scratch/figures"
        return 1
    }
}

wrong_name_is_told_the_names()
{
    report nothing REPORT_ONLY=nosuch
    [ $? -eq 1 ] && grep -q "matches 'nosuch': ep_memory .* scale tag_bw" "$scratch/nothing/out" || {
        cat "$scratch/nothing/out"
        return 1
    }
}

missing_tool_is_named()
{
    mkdir -p "$scratch/few"
    ln -sf "$(command -v bash)" "$(command -v dirname)" "$scratch/few"
    env PATH="$scratch/few" REPORT_DIR="$scratch/without" "$(command -v bash)" "$make_report" >"$scratch/named" 2>&1
    [ $? -eq 77 ] && grep -q 'needs these packages.* gnuplot-nox python3 ucx-utils' "$scratch/named" ||
        { cat "$scratch/named"; return 1; }
}

check "the short form ends well, shows what is left and where the page is" short_form_ends_well
check "every figure asked for is a number above 0" every_figure_is_a_number
check "report.csv has every point" table_has_every_point whole
check "a load above the number of processors is told" load_is_told_where_it_matters
check "the page refers to nothing outside and has a plot of each figure and ratio" page_refers_to_nothing_outside
check "the page renders in a browser, which asks nobody for anything" page_renders_in_a_browser
check "a side that fails is failed in both files, and the exit status says so" one_side_that_fails_is_seen
check "report.csv has the reason of what failed" table_has_every_point half
check "no round is begun that would end too late" rounds_end_in_time
check "no step is begun when the time is over" time_is_kept_within_a_round
check "the report has the figures that README.md takes from it" readme_names_measurements
check "a name that no measurement has is told the names" wrong_name_is_told_the_names
check "what has to be installed is named" missing_tool_is_named
finish
