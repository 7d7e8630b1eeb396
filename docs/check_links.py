#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
#
# check_links.py FOLDER: each link of the HTML pages below it, with its anchor, and each image and style sheet finds
# what it names; from index.html, links lead to every page. Addresses of the network are not tried.
import html.parser
import os
import sys
import urllib.parse

LINKS = {"a": "href", "link": "href", "img": "src", "script": "src"}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids = set()
        self.links = []
        with open(path, encoding="utf-8") as text:
            self.feed(text.read())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.add(attrs.get("id"))
        if attrs.get(LINKS.get(tag)):
            self.links.append(attrs[LINKS[tag]])


def read_pages(top):
    found = {}
    for folder, _, names in os.walk(top):
        for name in names:
            path = os.path.normpath(os.path.join(folder, name))
            if name.endswith(".html"):
                found[path] = Page(path)
    return found


def fault(pages, path, link):
    """What is wrong with a link of the page at path, and the page that it leads to: None where there is none."""
    address = urllib.parse.urlsplit(link)
    if address.scheme or address.netloc:
        return None, None
    target = path
    if address.path:
        target = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(address.path)))
    if not os.path.exists(target):
        return "does not exist", None
    anchor = urllib.parse.unquote(address.fragment)
    if anchor and (target not in pages or anchor not in pages[target].ids):
        return "has no such anchor", target
    return None, target


def main(top):
    pages = read_pages(top)
    reached, waiting = set(), [os.path.normpath(os.path.join(top, "index.html"))]
    faults, links = [], 0
    while waiting:
        path = waiting.pop()
        if path in reached or path not in pages:
            continue
        reached.add(path)
        for link in pages[path].links:
            links += 1
            wrong, target = fault(pages, path, link)
            if wrong:
                faults.append(f"{os.path.relpath(path, top)}: {link} {wrong}")
            if target:
                waiting.append(target)
    faults += [f"no link leads to {os.path.relpath(path, top)}" for path in sorted(set(pages) - reached)]
    for line in faults:
        print(line, file=sys.stderr)
    print(f"{len(reached)} pages, {links} links, {len(faults)} wrong")
    return 1 if faults or not links else 0


sys.exit(main(sys.argv[1]))
