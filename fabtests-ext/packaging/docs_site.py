#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
#
# For docs_site_test.sh:
#   docs_site.py frames SITE WIDTH...   prints a page with a frame of each width for each page of the site; its script
#                                       writes a line about the layout of each frame
#   docs_site.py layout SITE WIDTH...   reads that page after the browser, and holds the lines against what is meant
#   docs_site.py picture FILE WIDTH     holds a screenshot against what a page of text looks like
import collections
import os
import re
import struct
import sys
import zlib

SCRIPT = """
const box = (page, choice) => page.querySelector(choice).getBoundingClientRect();
onload = () => {
    const lines = [];
    for (const frame of document.querySelectorAll("iframe")) {
        const page = frame.contentDocument, title = page.querySelector("main h1");
        lines.push("LAYOUT " + [frame.title, frame.width, page.documentElement.scrollWidth,
            title ? Math.round(title.getBoundingClientRect().top) : -1, title ? title.innerText.length : 0,
            box(page, "nav").left < box(page, "main").left ? "beside" : "below",
            page.querySelectorAll("nav a").length].join(" "));
    }
    document.body.innerText = lines.join("\\n");
};
"""


def pages(site):
    return sorted(os.path.relpath(os.path.join(folder, name), site)
                  for folder, _, names in os.walk(site) for name in names if name.endswith(".html"))


def print_frames(site, *widths):
    print(f"<!DOCTYPE html><html><head><meta charset='utf-8'><script>{SCRIPT}</script></head><body>")
    for page in pages(site):
        for width in widths:
            print(f'<iframe title="{page}" width="{width}" height="800" src="file://{site}/{page}"></iframe>')
    print("</body></html>")


def check_layout(site, *widths):
    found = {}
    for line in re.findall(r"LAYOUT ([^<\n]*)", sys.stdin.read()):
        page, width, *values = line.split()
        found[page, width] = values
    faults = []
    for page in pages(site):
        for width in widths:
            if (page, width) not in found:
                faults.append(f"{page} was not shown at a width of {width}")
                continue
            real_width, top, title, navigation, links = found[page, width]
            place = "beside" if width == max(widths, key=int) else "below"
            if int(real_width) > int(width):
                faults.append(f"{page} is wider than its window: {real_width} of {width}")
            if not 0 <= int(top) < 300 or int(title) == 0:
                faults.append(f"{page}, width {width}: no heading in sight")
            if navigation != place:
                faults.append(f"{page}, width {width}: the list of pages is {navigation}, not {place}")
            if int(links) < len(pages(site)):
                faults.append(f"{page}: its list has {links} of {len(pages(site))} pages")
    print("\n".join(faults or [f"{len(found)} frames"]))
    return 1 if faults else 0


def unfilter(kind, row, above, step):
    for i in range(len(row)):
        left = row[i - step] if i >= step else 0
        up, corner = above[i], above[i - step] if i >= step else 0
        if kind == 1:
            row[i] = row[i] + left & 255
        elif kind == 2:
            row[i] = row[i] + up & 255
        elif kind == 3:
            row[i] = row[i] + (left + up) // 2 & 255
        elif kind == 4:
            nearest = left + up - corner
            order = abs(nearest - left), abs(nearest - up), abs(nearest - corner)
            row[i] = row[i] + (left, up, corner)[order.index(min(order))] & 255
    return row


def read_png(path):
    """Width, height and the rows of pixels, each a list of colours."""
    data = open(path, "rb").read()
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colours = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
        at += 12 + length
    assert depth == 8 and colours in (2, 6), f"bits {depth}, kind {colours}"
    step, raw = {2: 3, 6: 4}[colours], zlib.decompress(packed)
    line, rows, above = 1 + width * step, [], bytearray(width * step)
    for y in range(height):
        above = unfilter(raw[y * line], bytearray(raw[y * line + 1:(y + 1) * line]), above, step)
        rows.append([bytes(above[x:x + 3]) for x in range(0, width * step, step)])
    return width, height, rows


def check_picture(path, expected):
    width, height, rows = read_png(path)
    colours = collections.Counter(colour for row in rows for colour in row)
    white = colours[b"\xff\xff\xff"] / (width * height)
    dark = sum(count for colour, count in colours.items() if max(colour) < 0x60) / (width * height)
    written = sum(any(max(colour) < 0x60 for colour in row) for row in rows) / height
    print(f"{width} x {height}, {len(colours)} colours, white {white:.3f}, dark {dark:.3f}, rows with text {written:.3f}")
    good = width == int(expected) and white > 0.5 and 0.005 < dark < 0.3 and written > 0.3
    return 0 if good else 1


COMMANDS = {"frames": print_frames, "layout": check_layout, "picture": check_picture}
sys.exit(COMMANDS[sys.argv[1]](*sys.argv[2:]))
