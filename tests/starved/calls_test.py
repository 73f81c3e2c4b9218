#!/usr/bin/env python3
"""Every member function of the public headers, and every free one that may need memory, has an entry
in the table of tests/starved, and every member that takes a number, alone or in a structure, in that
of the numbers at their ends."""

import pathlib
import re
import subprocess
import sys

HEADERS = ("lib/api/include/rnic", "lib/verbs/include/rnic")
# Made by the compiler, or a value of a few octets: nothing in them asks the machine for anything,
# and what their numbers come to is asked where they are used.
NOTHING_ASKED = {"error_of(Fault)", "Fault::failed", "FramingOptions::plain", "ReceivePaths::slow_share", "TimeLimit::span", *(
    f"{name}::{call}" for name, calls in (
        ("FrameFormat", "head length_of opaque tells_length"),
        ("AccessSet", "all bits contains without"),
        ("IpAddress", "as_v4 high is_link_local is_unicast is_unspecified is_v4 low v4"),
        ("SgeList", "empty length push_back size too_long view ~SgeList"),
    ) for call in calls.split())}


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def bodies(text):
    """Name, base or None, and body of each class and struct that is defined in `text`."""
    for match in re.finditer(r"\b(?:class|struct)\s+(?:\[\[nodiscard\]\]\s+)?(\w+)\s*"
                             r"(?::\s*public\s+(\w+)\s*)?\{", text):
        depth, at = 1, match.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield match[1], match[2], text[match.end() : at - 1]


def with_bases(texts):
    """Name and body of each class: what a base offers stands in the body of those that have it."""
    found = [entry for text in texts for entry in bodies(text)]
    public = {name: re.split(r"\b(?:private|protected):", body)[0] for name, _, body in found}
    bases = {base for _, base, _ in found} & set(public)
    for name, base, body in found:
        if name in bases:
            continue
        if base in bases:
            body = f"{public[base]}; ~{name}(); {body}"
        yield name, body


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


def free_functions(text):
    """The free functions that may need memory, as "name(type/type)": all but those that are
    computed at compile time, or return a word of their own, a reference or a pointer."""
    for _, _, body in bodies(text):
        text = text.replace(body, "")
    text = re.sub(r"\bnamespace [\w:]+ \{|^\s*#.*$", "", text, flags=re.MULTILINE)
    while (less := re.sub(r"\{[^{}]*\}", ";", text)) != text:
        text = less
    for match in re.finditer(r"(?:^|[;}])\s*([^;{}()=]*?[\s>])(\w+)\(([^()]*)\)\s*(?=;)", text):
        returned = match[1].replace("[[nodiscard]]", "").strip()
        if "constexpr" in returned or returned.endswith(("&", "*")) or not returned:
            continue
        if returned.split()[0] in ("using", "friend", "return"):
            continue
        kinds = [re.sub(r"\bconst\b|std::|&|=.*|\w+\s*$", "", part.split("=")[0]).strip()
                 for part in match[3].split(",") if part.strip()]
        yield f"{match[2]}({'/'.join(kinds)})"


# A time and a length are numbers, too.
NUMBER = r"\b(?:u?int(?:8|16|32|64)_t|size_t|double|duration|MemorySpan)\b"


def structures_with_numbers(texts):
    """Names, aliases too, of those that a program fills in: of one that has no functions of its
    own."""
    found = set()
    for text in texts:
        for name, _, body in bodies(text):
            fields = re.sub(r"\([^()]*\)", "()", re.sub(r"(span|vector|array)<[^<>]*>", "", body))
            if re.search(NUMBER + r"[^(;]*;", fields) and "private:" not in body:
                found.add(name)
    for alias, name in re.findall(r"\busing (\w+) = (\w+);", "\n".join(texts)):
        if name in found:
            found.add(alias)
    return found


def takes_numbers(name, body, structures):
    """Public members of which an argument is a number, or a structure with one."""
    public = re.sub(r"\{[^{}]*\}", "", re.split(r"\bprivate:", body)[0])
    public = public.replace("std::span<std::byte>", "MemorySpan")
    public = re.sub(r"(span|vector|function)<[^<>()]*(?:\(\))?>", "", public)
    kinds = NUMBER + r"(?!&)|\bconst (?:" + "|".join(sorted(structures)) + r")&"
    for match in re.finditer(r"(~?\w+)\(([^()]*)\)", public):
        if match[1] != name and re.search(kinds, match[2]):
            yield f"{name}::{match[1]}"


def listed_by(program):
    return set(subprocess.run([program, "--list"], check=True, capture_output=True,
                              text=True).stdout.split())


def main():
    source, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    texts = [without_comments(path.read_text())
             for folder in HEADERS for path in sorted((source / folder).glob("*.hpp"))]
    structures = structures_with_numbers(texts)
    found, with_numbers = set(), set()
    for name, body in with_bases(texts):
        found.update(members(name, body))
        with_numbers.update(takes_numbers(name, body, structures))
    free = {call for text in texts for call in free_functions(text)}
    found |= free
    listed = listed_by(program)
    missing, unknown = found - listed - NOTHING_ASKED, listed - found
    for call in sorted(missing):
        print(f"{call} has no entry in tests/starved/calls.cpp: what does it do without memory?")
    for call in sorted(unknown):
        print(f"{call} stands in tests/starved/calls.cpp, but in no public header")
    extremes = listed_by(sys.argv[3])
    with_numbers -= NOTHING_ASKED
    for call in sorted(with_numbers - extremes):
        print(f"{call} has no entry in tests/starved/arguments.cpp: what does it do at the end of "
              "its numbers' types?")
    for call in sorted(extremes - with_numbers):
        print(f"{call} stands in tests/starved/arguments.cpp, but takes no number")
    print(f"{len(found)} calls, {len(listed)} entries; {len(with_numbers)} with numbers")
    wrong = missing or unknown or with_numbers != extremes
    return 1 if wrong or len(found) < 80 or len(with_numbers) < 20 or len(free) < 8 else 0


if __name__ == "__main__":
    sys.exit(main())
