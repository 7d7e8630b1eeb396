#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
#
# tutorial.py PAGE WAY [SHELL...]: runs the code blocks of a page in the current folder, one shell for all, as a reader types them,
# and holds what the terminal shows against what the page shows. In a block with lines that begin with "$ ", these are
# the commands and the others what is printed; a block without such lines is all commands, which print nothing.
# A comment stands before a block that is not as it is everywhere:
#   <!-- way: NAME -->         only for readers who take this way
#   <!-- by hand: REASON -->   not run, unless SHELL is given: the command that starts a shell in which this does no harm.
#                              What such a block prints is not compared. "by hand (NAME)" is for those who take this way
#   <!-- differs: WORD... -->  anywhere in the page: these words are others in each run, the same ones wherever they stand
import os
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import time

END = "end of the command"
PATIENCE = 120
PATIENCE_BY_HAND = 3600


def blocks(page):
    """The indented blocks with the comment before each, and the words that differ."""
    found, differs, comment, block = [], [], "", []
    for line in page.splitlines() + ["end"]:
        if line.startswith("    ") or (block and not line):
            block.append(line[4:])
            continue
        if block:
            while not block[-1]:
                block.pop()
            found.append((comment, block))
            comment, block = "", []
        remark = re.fullmatch(r"<!-- (.*) -->", line)
        if remark and remark[1].startswith("differs: "):
            differs += remark[1].split()[1:]
        elif remark:
            comment = remark[1]
        elif line:
            comment = ""
    return found, differs


def steps(block):
    """Commands, each with the lines that are printed after it."""
    if not any(line.startswith("$ ") for line in block):
        return [("\n".join(block), [])]
    found = []
    for line in block:
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


class Reader:
    """Types commands and reads the terminal."""

    def __init__(self, differs, shell=None):
        self.differs = differs
        self.patience = PATIENCE if not shell else PATIENCE_BY_HAND
        self.log = "/tmp/by_hand.log"
        self.seen = {}
        self.text = ""
        self.terminal, other = pty.openpty()
        self.shell = subprocess.Popen(shell or ["bash"], stdin=subprocess.PIPE, stdout=other, stderr=other, text=True,
                                      start_new_session=True)
        os.close(other)

    def parts(self, line):
        """Text and words that differ, in turns."""
        words = "|".join(map(re.escape, sorted(self.differs, key=len, reverse=True)))
        return re.split(rf"(?<!\w)({words})(?!\w)", line) if words else [line]

    def known(self, command):
        return "".join(self.seen.get(part, part) for part in self.parts(command))

    def pattern(self, line):
        """A regular expression for a line of the page, and the words that it finds."""
        words, expression = [], ""
        for i, part in enumerate(self.parts(line)):
            if i % 2 == 0 or part in self.seen:
                expression += re.escape(self.seen.get(part, part))
            elif part in words:
                expression += rf"\{words.index(part) + 1}"
            else:
                words.append(part)
                expression += r"(\S+?)"
        return expression, words

    def next_line(self):
        limit = time.monotonic() + self.patience
        while "\n" not in self.text:
            if not select.select([self.terminal], [], [], max(0, limit - time.monotonic()))[0]:
                raise SystemExit(f"nothing more was printed for {self.patience} seconds")
            self.text += os.read(self.terminal, 65536).decode(errors="replace").replace("\r", "")
        line, self.text = self.text.split("\n", 1)
        return line

    def run(self, command, expected):
        """The shell's own end mark may come before the output of what runs in the background."""
        command = self.known(command)
        print("$", command, flush=True)
        self.shell.stdin.write(f"{command}\necho '{END}' $?\n")
        self.shell.stdin.flush()
        expected, status = list(expected), None
        while status is None or expected:
            line = self.next_line()
            if line.startswith(END):
                status = int(line.split()[-1])
                if status != 0:
                    raise SystemExit(f"exit status {status}")
                continue
            print(line, flush=True)
            if not expected:
                raise SystemExit(f"the page does not show this line: {line}")
            pattern, words = self.pattern(expected[0])
            match = re.fullmatch(pattern, line)
            if not match:
                raise SystemExit(f"the page shows: {expected[0]}")
            self.seen.update(zip(words, match.groups()))
            expected.pop(0)

    def run_by_hand(self, block):
        """A whole block, which succeeds, whatever it prints: what that was is shown when it fails."""
        print("\n".join(block), flush=True)
        commands = " &&\n".join(block)
        self.shell.stdin.write(f"{{ {commands}; }} >{self.log} 2>&1 || {{ tail -n 30 {self.log}; false; }}\n"
                               f"echo '{END}' $?\n")
        self.shell.stdin.flush()
        while not (line := self.next_line()).startswith(END):
            print(line, flush=True)
        if line.split()[-1] != "0":
            raise SystemExit(f"exit status {line.split()[-1]}")

    def close(self):
        """What was started in the background has ended by itself, without another word."""
        self.run("wait", [])

    def processor_minutes(self):
        """Of all that the shell has waited for: it has to end by itself."""
        self.shell.stdin.close()
        self.shell.wait(PATIENCE)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (used.ru_utime + used.ru_stime) / 60

    def end(self):
        """Nothing that was started in the background stays."""
        if self.shell.poll() is None:
            os.killpg(self.shell.pid, signal.SIGKILL)
            self.shell.wait()


def follow(reader, found, way, by_hand):
    """The number of commands and of the lines that they print."""
    ran, shown, begin = 0, 0, time.monotonic()
    for comment, block in found:
        kind, of, what = re.fullmatch(r"(?:(by hand|way)(?: \((\w+)\))?: (.*)|.*)", comment).groups()
        if (kind == "way" and what != way) or (kind == "by hand" and (not by_hand or of not in (None, way))):
            continue
        if kind == "by hand":
            reader.run_by_hand(block)
            ran += len(block)
        else:
            for command, expected in steps(block):
                reader.run(command, expected)
                ran += 1
                shown += len(expected)
        if by_hand:
            print(f"== {(time.monotonic() - begin) / 60:.1f} minutes", flush=True)
    return ran, shown


def main(page, way, *shell):
    with open(page, encoding="utf-8") as text:
        found, differs = blocks(text.read())
    reader = Reader(differs, shell)
    try:
        ran, shown = follow(reader, found, way, bool(shell))
        reader.close()
        if shell:
            print(f"== {reader.processor_minutes():.1f} minutes of processor time")
    finally:
        reader.end()
    unseen = [word for word in differs if word not in reader.seen]
    if unseen or not shown:
        raise SystemExit(f"no line of the page has {unseen}" if unseen else "the page shows nothing that is printed")
    print(f"{ran} commands, {shown} lines as the page shows them")


main(*sys.argv[1:])
