#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What make_report.sh has measured, as report.json, report.csv and report.html.

Usage: report_page.py VALUES ABOUT FOLDER. A line of VALUES is "ROUND FIGURE SIDE SIZE VALUE", where VALUE may be
"failed: REASON"; a line of ABOUT is "KEY TEXT". Prints a summary; the exit status is 1 if anything has failed. The plots
are gnuplot's, inside the page.
"""
import collections
import csv
import html
import json
import re
import statistics
import subprocess
import sys

Figure = collections.namedtuple("Figure", "title unit most over")  # over: what "size" is, or nothing
PLACES = {"shm": "on one host", "tcp": "tcp, loopback"}
OVER_SIZE = {
    "tag_lat": ("UCP tag latency", "us", False),
    "tag_bw": ("UCP tag bandwidth", "MB/s", True),
    "tag_rate": ("UCP tag messages", "messages/s", True),
    "prov_lat": ("provider latency", "us", False),
    "prov_bw": ("provider bandwidth", "MB/s", True),
    "prov_rate": ("provider messages", "messages/s", True),
}
FIGURES = {
    f"{name}.{place}": Figure(f"{title}, {where}", unit, most, "bytes")
    for name, (title, unit, most) in OVER_SIZE.items()
    for place, where in PLACES.items()
}
FIGURES.update({
    "scale_connections": Figure("scale: UCP connections to one listener, tcp", "1/s", True, "connections"),
    "scale_memory": Figure("scale: resident memory of both ends of a connection, tcp", "KiB", False, "connections"),
    "ucp_connections": Figure("UCP connections, tcp", "1/s", True, ""),
    "prov_connections": Figure("MSG connections of the provider, tcp", "1/s", True, ""),
    "process_memory": Figure("resident memory of a process before connections", "KiB", False, ""),
    "connected_memory": Figure("resident memory of a process with all of them", "KiB", False, ""),
    "ep_memory": Figure("heap of a connected client-server endpoint", "bytes", False, ""),
})
SIDES = {"ucxlike": "ucxlike", "ucx": "UCX", "core": "raw core"}
COLORS = {"ucxlike": "#1f5fa8", "ucx": "#c2571a", "core": "#3d7d3d"}
RATIO_COLORS = ["#1f5fa8", "#7a3f98"]


def read_values(path):
    """{figure: {side: {size: [value or reason]}}}"""
    values = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
    for line in open(path, encoding="utf-8", errors="replace"):
        _, figure, side, size, value = line.rstrip("\n").split(" ", 4)
        values[figure][side][int(size)].append(value)
    return values


def point(size, rounds, most):
    """What the rounds of one size come to. A failed round makes the point a failed one: no hole, no lucky rest."""
    failures = [value for value in rounds if value.startswith("failed")]
    numbers = [float(value) for value in rounds if not value.startswith("failed")]
    failures += [f"failed: measured {value}" for value in numbers if value <= 0]
    result = {"size": size}
    if failures:
        return {**result, "failed": failures[0].removeprefix("failed: "), "rounds": numbers}
    best = max(numbers) if most else min(numbers)
    return {**result, "best": best, "median": statistics.median(numbers), "rounds": numbers}


def make_figure(name, sides):
    about = FIGURES[name]
    points = {side: [point(size, rounds, about.most) for size, rounds in sorted(sizes.items())]
              for side, sizes in sides.items()}
    other = next((side for side in points if side != "ucxlike"), None)
    theirs = {p["size"]: p for p in points.get(other, [])}
    ratio = []
    for ours in points.get("ucxlike", []):
        against = theirs.get(ours["size"], {"failed": "not measured"})
        if "failed" in ours or "failed" in against:
            ratio.append({"size": ours["size"], "failed": ours.get("failed") or against.get("failed")})
        else:
            ratio.append({"size": ours["size"], "best": ours["best"] / against["best"],
                          "median": ours["median"] / against["median"]})
    return {"name": name, "title": about.title, "unit": about.unit, "better": "more" if about.most else "less",
            "over": about.over, "over_size": about.over == "bytes", "against": other, "series": points, "ratio": ratio}


def plot(title, over, unit, lines, log_y):
    """An SVG element of LINES, (label, color, points), over what OVER says. A red line is where one has failed."""
    data, curves = [], []
    failed = sorted({p["size"] for _, _, points in lines for p in points if "failed" in p})
    marks = [f"set arrow from {size}, graph 0 to {size}, graph 1 nohead dt 3 lw 2 lc rgb '#b00020'" for size in failed]
    for i, (label, color, points) in enumerate(lines):
        if any("failed" not in p for p in points):
            # An empty line interrupts the curve.
            rows = "\n".join("" if "failed" in p else f"{p['size']} {p['best']:.6g}" for p in points)
            data.append(f"$line{i} << END\n{rows}\nEND")
            curves.append(f"$line{i} using 1:2 with linespoints lw 2 pt 7 ps 0.4 lc rgb '{color}' title '{label}'")
    if not curves:
        return "<p class='failed'>failed: nothing to draw</p>"
    script = "\n".join(data + marks + [
        "set terminal svg size 520,320 dynamic font 'sans-serif,12'",
        f"set ylabel '{unit}'", f"set xlabel '{over}'", "set logscale x 2",
        "set format x '%.0b%B'" if over == "bytes" else "set format x '%.0f'", "set key outside top left horizontal", "set grid",
        "set logscale y" if log_y else "set yrange [0:*]; set arrow from graph 0, first 1 to graph 1, first 1 nohead dt 2",
        "plot " + ", ".join(curves), ""])
    run = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True, check=False)
    if run.returncode != 0 or "<svg" not in run.stdout:
        sys.exit(f"gnuplot failed on '{title}': {run.stderr.strip()}")
    svg = run.stdout[run.stdout.index("<svg"):]
    # Names inside are the same in every plot; in one page each must be one plot's.
    ids = re.sub(r"[^a-z0-9]", "_", f"{title}_{unit}".lower())
    svg = re.sub(r'\b(id=["\'])', rf"\1{ids}_", svg)
    svg = re.sub(r'(xlink:href=["\']#|url\(#)', rf"\1{ids}_", svg)
    return svg


def cell(p, digits=4):
    if "failed" in p:
        return f"<td class='failed' title='{html.escape(p['failed'], quote=True)}'>failed</td>"
    return f"<td>{p['best']:,.{digits}g}</td>" if p["best"] < 1000 else f"<td>{p['best']:,.0f}</td>"


def table(figures, with_size):
    """Rows of what the figures have, ours beside the other with the ratio."""
    rows = []
    for f in figures:
        empty = {"failed": "not measured"}
        for i, ours in enumerate(f["series"].get("ucxlike", [])):
            others = f["series"].get(f["against"], [])
            first = f"<td>{ours['size']}</td>" if with_size else \
                f"<td>{html.escape(f['title'])}, {f['unit']}</td>"
            rows.append(f"<tr>{first}{cell(ours)}{cell(others[i] if i < len(others) else empty)}"
                        f"{cell(f['ratio'][i], 3)}</tr>")
    other = SIDES.get(figures[0]["against"], "other") if with_size else "UCX or raw core"
    return ("<table><tr><th>" + (figures[0]["over"] if with_size else "") + f"</th><th>ucxlike</th><th>{other}</th>"
            "<th>ratio</th></tr>" + "".join(rows) + "</table>")


def failures(figures):
    return [(f, side, p) for f in figures for side, points in f["series"].items() for p in points if "failed" in p]


STYLE = """body { max-width: 72em; margin: 2em auto; padding: 0 1em; font: 15px/1.5 sans-serif; color: #222; background: #fff }
.plots { display: flex; flex-wrap: wrap; gap: 1em } .plots > * { flex: 1 1 26em; max-width: 36em }
h2::first-letter, td:first-child::first-letter { text-transform: uppercase } svg { height: auto }
table { border-collapse: collapse; margin: 1em 0 } th, td { border: 1px solid #ccc; padding: .2em .6em; text-align: right }
td:first-child { text-align: left } .failed { color: #fff; background: #b00020; padding: 0 .4em }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1em } dd { margin: 0 }"""


def sections(drawn, single):
    for f in drawn:
        lines = [(SIDES[side], COLORS[side], points) for side, points in sorted(f["series"].items())]
        yield f"<h2>{html.escape(f['title'])}</h2><div class='plots'>"
        yield plot(f["title"], f["over"], f["unit"], lines, True)
        yield plot(f["title"], f["over"], f"ucxlike / {SIDES.get(f['against'], 'other')}",
                   [("ratio", RATIO_COLORS[0], f["ratio"])], False)
        yield f"</div><p>{f['unit']}; {f['better']} is better.</p><details><summary>numbers</summary>{table([f], True)}</details>"
    if single:
        yield f"<h2>Connections and memory</h2>{table(single, False)}"


def write_page(path, about, figures):
    drawn = [f for f in figures if f["over"]]
    single = [f for f in figures if not f["over"]]
    failed = failures(figures)
    parts = ["<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><title>ucxlike: report</title>",
             f"<style>{STYLE}</style></head><body><h1>ucxlike beside UCX and the raw core providers</h1>",
             "<p>The best of all rounds, which were taken in turns. Other work on the machine only adds time. "
             "ratio: ours divided by theirs.</p>"]
    if crowded(about):
        parts.append(f"<p><strong>{crowded(about)}</strong></p>")
    if failed:
        parts.append("<h2>Failed</h2><ul>" + "".join(
            f"<li><span class='failed'>failed</span> {html.escape(f['title'])}, {SIDES[side]}"
            + (f", {p['size']} {f['over']}" if f["over"] else "") + f": {html.escape(p['failed'])}</li>"
            for f, side, p in failed) + "</ul>")
    parts += sections(drawn, single)
    parts.append("<h2>Where</h2><dl>" + "".join(
        f"<dt>{html.escape(key)}</dt><dd>{html.escape(text)}</dd>" for key, text in about.items()) + "</dl></body></html>\n")
    with open(path, "w", encoding="utf-8") as page:
        page.write("\n".join(parts))


def write_csv(path, figures):
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["figure", "unit", "better", "over", "size", "side", "best", "median", "failed"])
        for f in figures:
            for side, points in f["series"].items():
                rows.writerows([f["name"], f["unit"], f["better"], f["over"], p["size"], side,
                                p.get("best"), p.get("median"), p.get("failed")] for p in points)


def crowded(about):
    """Says so where more ran than the machine has processors for: the load before the page is made."""
    load, processors = about.get("load", "0").split()[0], about.get("processors", "1")
    if float(load) <= int(processors):
        return ""
    return f"The load was {load} on {processors} processors: these figures say little."


def summary(figures):
    def text(p):
        return "failed" if "failed" in p else f"{p['best']:.4g}" if p["best"] < 1000 else f"{p['best']:.0f}"
    print(f"{'':62} {'size':>9} {'ucxlike':>10} {'other':>10} {'ratio':>7}")
    for f in figures:
        points = f["series"].get("ucxlike", [])
        others = {p["size"]: p for p in f["series"].get(f["against"], [])}
        for i, p in enumerate(points):
            name = f"{f['title']}, {f['unit']}, against {SIDES.get(f['against'])}"
            print(f"{name:62} {p['size'] or '':>9} {text(p):>10} {text(others.get(p['size'], {'failed': ''})):>10} "
                  f"{text(f['ratio'][i]):>7}")


def main():
    values_path, about_path, folder = sys.argv[1:]
    values = read_values(values_path)
    about = dict(line.rstrip("\n").split(" ", 1) for line in open(about_path, encoding="utf-8") if " " in line)
    figures = [make_figure(name, values[name]) for name in FIGURES if name in values]
    count = len(failures(figures))
    with open(f"{folder}/report.json", "w", encoding="utf-8") as file:
        json.dump({"format": 1, "about": about, "failed": count, "figures": figures}, file, indent=1)
        file.write("\n")
    write_csv(f"{folder}/report.csv", figures)
    write_page(f"{folder}/report.html", about, figures)
    summary(figures)
    if crowded(about):
        print(crowded(about))
    print(f"{folder}/report.json\n{folder}/report.csv\n{folder}/report.html")
    if count:
        print(f"{count} measurements failed; the page says why")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
