#!/usr/bin/env python3
"""Every member function of the public headers has an entry in the table of tests/starved."""

import pathlib
import re
import subprocess
import sys

HEADERS = "lib/verbs/include/rnic"
# Made by the compiler, or a constant: nothing in them asks the machine for anything.
NOTHING_ASKED = {"FrameFormat::opaque"}


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def bodies(text):
    """Name and body of each class and struct that is defined in `text`."""
    for match in re.finditer(r"\b(?:class|struct)\s+(?:\[\[nodiscard\]\]\s+)?(\w+)\s*\{", text):
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield match[1], text[match.end() : at - 1]


def members(name, body):
    """The functions that a program can call: constructors that only move are no calls."""
    public = re.split(r"\bprivate:", body)[0]
    public = re.sub(r"\{[^{}]*\}", ";", public)
    for match in re.finditer(r"(~?\w+)\(", public):
        before = public[: match.start()].rsplit(";", 1)[-1]
        if match[1] == name or "operator" in before or re.search(r"[=(]", before):
            continue
        if match[1] in ("for_each", "function", "alignas", "nodiscard"):
            continue
        yield f"{name}::{match[1]}"


def main():
    source, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    found = set()
    for path in sorted((source / HEADERS).glob("*.hpp")):
        for name, body in bodies(without_comments(path.read_text())):
            found.update(members(name, body))
    listed = set(subprocess.run([program, "--list"], check=True, capture_output=True,
                                text=True).stdout.split())
    missing, unknown = found - listed - NOTHING_ASKED, listed - found
    for call in sorted(missing):
        print(f"{call} has no entry in tests/starved/calls.cpp: what does it do without memory?")
    for call in sorted(unknown):
        print(f"{call} stands in tests/starved/calls.cpp, but in no public header")
    print(f"{len(found)} calls, {len(listed)} entries")
    return 1 if missing or unknown or len(found) < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
