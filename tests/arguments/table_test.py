#!/usr/bin/env python3
"""The table of arguments is whole: each argument of each public call has a row with the values that
its type asks for, each field of the structures that calls are given has a cell, each call of a
handle has one for the empty handle, and no row names what the public headers do not have. Then the
check is seen to fail: without any one of the rows, and with a row too many.

usage: table_test.py SOURCE PROGRAM
"""

import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "scripts"))
sys.path.insert(0, str(SOURCE / "tests/starved"))
sys.dont_write_bytecode = True
from calls_test import HEADERS, bodies, with_bases, without_comments  # noqa: E402

# Classes without rows, and why.
NO_ROWS = {
    "AccessSet": "a value: what a set of rights gives is asked where it is used",
    "Fault": "a report",
    "FrameFormat": "a value: what a format does is asked where it is used",
    "FramingOptions": "a value",
    "IpAddress": "a value: where an address leads is asked where it is used",
    "ReceivePaths": "a report",
    "SgeList": "a value: it is refused where it is posted",
    "TimeLimit": "a value",
    "Dispatcher": "it posts and polls by QueuePair and CompletionQueue, which have the rows",
    "Operation": "it posts by QueuePair",
    "Operations": "its calls are those of QueuePair, with the same arguments",
    # Given to an application, and to no call.
    "Counter": "a report",
}
# Handles that are never empty.
NEVER_EMPTY = {"Adapter", "Device"}
# Calls of an empty handle without a cell, and why.
NOT_OF_EMPTY = {
    "TcpHandle": "the base of two handles, which have the rows",
    "Config": "a value",
}
# Values that an argument cannot have, and why.
NO_VALUE = {
    ("Adapter::open context", "foreign"): "a context is nobody's",
    ("Adapter::connect_pair far", "empty"): "an adapter is never empty",
    ("Context::open config", "foreign"): "a configuration is a value",
    ("Context::open config", "empty"): "a configuration of no text is Config::from_text text",
}
# Structures that name something, as a whole: their numbers are the library's own or the peer's.
NAMES = {"ConnectionId", "Endpoint", "RemoteAddress", "RequestHandle", "Sge"}
INTEGER = re.compile(r"^(u?int(8|16|32|64)_t|size_t)$")
WHOLE = "whole type"  # kWholeType of table.hpp
ZERO = "an octet of 0"  # with_zero() of values.hpp


def arguments_of(text):
    """(type, name) of each parameter; `text` is what stands between the brackets."""
    parts, depth, at = [], 0, 0
    for i, char in enumerate(text):
        depth += {"<": 1, "(": 1, "{": 1, ">": -1, ")": -1, "}": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(text[at:i])
            at = i + 1
    parts.append(text[at:])
    for part in parts:
        part = re.sub(r"=.*$", "", " ".join(part.split())).strip()
        match = re.match(r"^(.*?[\s&*>])(\w+)$", part)
        if match:
            kind = match[1].strip()
            if not kind.startswith("const ") or "*" in kind:
                yield kind, match[2]
            else:
                yield kind.removeprefix("const ").removesuffix("&").strip(), match[2]


def calls_in(text, own=None):
    """(name, static?, arguments) of each function that `text`, without inline bodies, declares."""
    text = re.sub(r"=\s*\{\}", "", text)
    while (less := re.sub(r"\{[^{}]*\}", ";", text)) != text:
        text = less
    for match in re.finditer(r"(?<![~\w])(\w+)\(", text):
        before = re.split(r"[;:](?!:)(?<!::)", text[: match.start()])[-1]
        if match[1] in (own, "function", "alignas", "nodiscard") or "operator" in before:
            continue
        if re.search(r"[=(]", before) or not before.strip():
            continue
        depth, at = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        yield match[1], "static " in before, list(arguments_of(text[match.end() : at - 1]))


class Headers:
    def __init__(self, source):
        texts = [re.sub(r"^\s*#.*$", "", without_comments(path.read_text()), flags=re.MULTILINE)
                 for folder in HEADERS for path in sorted((source / folder).glob("*.hpp"))]
        whole = "\n".join(texts)
        self.enums = set(re.findall(r"\benum class (\w+)", whole))
        self.aliases = dict(re.findall(r"\busing (\w+) = (\w+);", whole))
        self.classes, self.structures = {}, {}
        for name, body in with_bases(texts):
            public = re.split(r"\b(?:private|protected):", body)[0]
            self.classes.setdefault(name, list(calls_in(public, name)))
            if "private:" not in body:
                self.structures[name] = self.fields_of(public)
        outside = whole
        for text in texts:
            for _, _, body in bodies(text):
                outside = outside.replace(body, "")
        self.free = [call for call in calls_in(re.sub(r"\bnamespace [\w:]+ \{", "", outside))
                     if re.search(rf"\b(?:Result<[^;]*>|Status) {call[0]}\(", outside)]

    @staticmethod
    def fields_of(body):
        """(name, type) of each field."""
        body = re.sub(r"\[\[[^\]]*\]\]|\bfriend [^;]*;", "", body)
        while (less := re.sub(r"\{[^{}]*\}", "@", body)) != body:
            body = less
        body = re.sub(r"(\)(?: const)?\s*)@", r"\1;", body).replace("@", "")
        fields = []
        for line in body.split(";"):
            line = " ".join(re.sub(r"=.*", "", line, flags=re.DOTALL).split())
            match = re.match(r"^(?!using|static|template|enum)([\w:<>,*& ]+?[ *>])"
                             r"((?:\w+)(?:, \w+)*)$", line)
            if match:
                kind = re.sub(r"^std::optional<(.*)>$", r"\1", match[1].strip())
                fields += [(name.strip(), kind) for name in match[2].split(",")]
        return fields

    def kind(self, of):
        return self.aliases.get(of, of)

    def all_calls(self):
        """(call, class or None, static?, arguments)"""
        for name, calls in self.classes.items():
            if name in NO_ROWS:
                continue
            for call, static, arguments in calls:
                yield f"{name}::{call}", name, static, arguments
        for call, _, arguments in self.free:
            yield call, None, True, arguments


def classes_of(kind, headers):
    """The classes of values that an argument of that type has."""
    kind = headers.kind(kind)
    bare = kind.rstrip("&* ")
    if kind == "bool":
        return {"at its limit"}
    if INTEGER.match(kind):
        return {"at its limit", "beyond"}
    if kind in headers.enums:
        return {"at its limit", "illegal"}
    if kind == "AccessSet":
        return {"at its limit", "empty", "illegal"}
    if "duration" in kind or kind == "TimeLimit":
        return {"at its limit", "empty", "beyond"}
    if bare in ("RemoteAddress", "RequestHandle", "ConnectionId", "Sge"):
        return {"at its limit", "empty", "foreign"}
    if bare in headers.structures and bare not in NAMES:
        return {"at its limit"}
    if bare in headers.classes and bare not in ("SgeList", "Endpoint"):
        return {"at its limit", "empty", "foreign"}
    return {"at its limit", "empty"}  # texts, lists, functions, pointers, endpoints


def fields_said(said):
    """The paths of fields that the words of a cell begin with: ".start.timeout most"."""
    for word in re.split(r"[\s,]+", said):
        if word.startswith(".") and re.match(r"^(\.[a-z]\w*)+$", word):
            yield word[1:].split(".")


def cover(path, structure, headers, covered):
    for field in path:
        known = dict(headers.structures.get(structure, []))
        if field not in known:
            return False
        covered.add(f"{structure}::{field}")
        structure = headers.kind(known[field])
    return True


def reachable(structure, headers, into):
    structure = headers.kind(structure.rstrip("&* "))
    if structure not in headers.structures or structure in NAMES or structure in into:
        return
    into.add(structure)
    for _, kind in headers.structures[structure]:
        reachable(kind, headers, into)


def check(cells, headers):
    """\\return what is missing or too much, a line each"""
    found = []
    rows = {}
    for argument, of, said in cells:
        rows.setdefault(argument, []).append((of, said))
    known, covered, structures = set(), set(), set()
    kinds = {}
    for call, owner, static, arguments in headers.all_calls():
        for kind, name in arguments:
            kinds.setdefault(f"{call} {name}", []).append(kind)
            inner = re.search(r"span<const (\w+)>", kind)  # another span is for an answer
            reachable(inner[1] if inner else kind, headers, structures)
        if static:
            continue
        known.add(f"{call} this")
        if owner in NEVER_EMPTY or owner in NOT_OF_EMPTY or owner in headers.structures:
            continue
        if not any(of == "empty" for of, _ in rows.get(f"{call} this", [])):
            found.append(f"{call} has no row of an empty handle: what does it answer?")
    for argument, types in kinds.items():
        known.add(argument)
        if argument not in rows:
            found.append(f"{argument} has no row")
            continue
        classes = {of for of, _ in rows[argument]}
        is_whole = any(said == WHOLE for _, said in rows[argument])
        for kind in types:
            wanted = classes_of(kind, headers) - ({"beyond"} if is_whole else set())
            if kind == "std::string" and ZERO not in {said for _, said in rows[argument]}:
                found.append(f"{argument} ({kind}) has no value \"{ZERO}\"")
            found += [f"{argument} ({kind}) has no value \"{of}\""
                      for of in sorted(wanted - classes) if (argument, of) not in NO_VALUE]
            bare = headers.kind(kind.rstrip("&* "))
            if bare not in headers.structures or bare in NAMES:
                continue
            for _, said in rows[argument]:
                for path in fields_said(said):
                    if not cover(path, bare, headers, covered):
                        found.append(f"{argument}: {bare} has no field .{'.'.join(path)}")
    found += [f"{structure}::{field} has no cell in any row of a call that takes it"
              for structure in sorted(structures) for field, _ in headers.structures[structure]
              if f"{structure}::{field}" not in covered]
    found += [f"{argument} has a row, but is in no public header" for argument in rows
              if argument not in known]
    return found


def see_it_fail(cells, headers):
    """Checks that the check names what is taken away, and what is too much."""
    found = []
    for argument in sorted({cell[0] for cell in cells}):
        call, name = argument.rsplit(" ", 1)
        if name == "this" and (call.split("::")[0] in NEVER_EMPTY or not any(
                cell[0] == argument and cell[1] == "empty" for cell in cells)):
            continue
        told = check([cell for cell in cells if cell[0] != argument], headers)
        missed = (f"{argument} has", f"{call} has no row of an")
        if not any(line.startswith(missed) for line in told):
            found.append(f"without the row of {argument} the check names nothing")
    for wrong in ("QueuePair::post_send nothing", "QueuePair::post_nothing id", "Nobody::call id"):
        told = check([*cells, (wrong, "empty", "0")], headers)
        if not any(line.startswith(wrong) for line in told):
            found.append(f"the check takes {wrong}")
    for structure, field in (("TcpOptions", "dscp"), ("StartPolicy", "timeout"),
                             ("ConnectOptions", "packing"), ("SendRequest", "inline_data")):
        told = check([cell for cell in cells if f".{field}" not in cell[2]], headers)
        if not any(line.startswith(f"{structure}::{field} has no cell") for line in told):
            found.append(f"without the cells of {structure}::{field} the check names nothing")
    return found


def main():
    lines = subprocess.run([sys.argv[2], "--list"], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    cells = [tuple(line.split("\t")) for line in lines]
    headers = Headers(SOURCE)
    found = check(cells, headers)
    if not found:
        found = see_it_fail(cells, headers)
    for line in found:
        print(line)
    calls = len({call for call, *_ in headers.all_calls()})
    rows = len({cell[0] for cell in cells})
    print(f"{calls} calls, {rows} rows, {len(cells)} cells, {len(found)} violations")
    return 1 if found or calls < 150 or rows < 200 else 0


if __name__ == "__main__":
    sys.exit(main())
