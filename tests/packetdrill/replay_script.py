"""The language of packetdrill, as far as the scripts of this tree use it: a script becomes a list of
events. What is not known is a ScriptError that names the line, never a line that is passed over.
"""

import dataclasses
import re


class ScriptError(Exception):
    """The script is not understood."""


@dataclasses.dataclass
class Event:
    """`what` is a Packet, a Call or a Check; `at` and `until` are microseconds, from the event before
    when `relative`."""
    line: int
    at: int
    until: int
    relative: bool
    what: object


@dataclasses.dataclass
class Packet:
    """A TCP segment. `options` None: of any kind; `window` None: any; `ecn` None: any."""
    outbound: bool
    flags: str
    sequence: int
    length: int
    ack: int | None = None
    window: int | None = None
    urgent: int = 0
    options: list | None = None
    ecn: int | None = None


@dataclasses.dataclass
class Icmp:
    """An error message about a segment of ours, [sequence, sequence + length)."""
    kind: str
    code: str
    mtu: int
    sequence: int
    length: int


@dataclasses.dataclass
class Call:
    """A call of a socket function: what it returns, and errno's name."""
    name: str
    arguments: list
    result: int
    error: str | None


@dataclasses.dataclass
class Check:
    """Python that asserts something of TCP_INFO."""
    code: str


FLAGS = "FSRPEWU."
ECN = {"noecn": 0, "ect1": 1, "ect0": 2, "ce": 3}
TIME = re.compile(r"\s*(\+?)(\d*\.?\d+)(?:~(\+?)(\d*\.?\d+))?\s+(?=\S)")
SEGMENT = re.compile(r"([<>])\s*(?:\[(\w+)\]\s*)?([%s]+)\s+(\d+):(\d+)\((\d+)\)"
                     r"(?:\s+ack\s+(\d+))?(?:\s+win\s+(\d+))?(?:\s+urg\s+(\d+))?"
                     r"(?:\s+<([^>]*)>)?\s*$" % re.escape(FLAGS))
ICMP = re.compile(r"<\s*icmp\s+(\w+)(?:\s+(?!mtu\b)(\w+))?(?:\s+mtu\s+(\d+))?"
                  r"\s+\[(\d+):(\d+)\((\d+)\)\]\s*$")
CALL = re.compile(r"(\w+)\((.*)\)\s*=\s*(-?\d+)(?:\s+([A-Z]\w+)(?:\s+\([^)]*\))?)?\s*$")


def option(text):
    """One TCP option, as a tuple that begins with its name."""
    plain = {"nop": ("nop",), "eol": ("eol",), "sackOK": ("sackOK",)}
    if text in plain:
        return plain[text]
    for name, pattern in (("mss", r"mss (\d+)"), ("wscale", r"wscale (\d+)"),
                          ("TS", r"TS val (\d+) ecr (\d+)")):
        match = re.fullmatch(pattern, text)
        if match:
            return (name, *map(int, match.groups()))
    if re.fullmatch(r"sack( \d+:\d+)+", text):
        blocks = [tuple(map(int, block.split(":"))) for block in text.split()[1:]]
        return ("sack", tuple(blocks))
    raise ScriptError(f"no such TCP option: {text!r}")


def segment(match):
    way, ecn, flags, begin, end, length, ack, window, urgent, options = match.groups()
    if int(end) - int(begin) != int(length):
        raise ScriptError(f"{begin}:{end} are not {length} octets")
    if len(set(flags)) != len(flags) or ("." in flags) != (ack is not None):
        raise ScriptError(f"flags {flags!r} and the ack field contradict each other")
    if ecn is not None and ecn not in ECN:
        raise ScriptError(f"no such mark: [{ecn}]")
    outbound = way == ">"
    if not outbound and (window is None or options == "..."):
        raise ScriptError("an inbound segment needs its window and its options")
    listed = None if options == "..." else [option(o.strip()) for o in (options or "").split(",") if o.strip()]
    return Packet(outbound=outbound, flags=flags, sequence=int(begin), length=int(length),
                  ack=None if ack is None else int(ack),
                  window=None if window is None else int(window), urgent=int(urgent or 0),
                  options=listed, ecn=None if ecn is None else ECN[ecn])


def split_arguments(text):
    """Commas inside brackets and braces do not separate."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "[{(") - (char in "]})")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts]


def what_happens(text):
    match = SEGMENT.match(text)
    if match:
        return segment(match)
    match = ICMP.match(text)
    if match:
        kind, code, mtu, begin, end, length = match.groups()
        if int(end) - int(begin) != int(length):
            raise ScriptError(f"{begin}:{end} are not {length} octets")
        return Icmp(kind, code or "", int(mtu or 0), int(begin), int(length))
    match = re.fullmatch(r"%\{(.*)\}%", text, re.DOTALL)
    if match:
        lines = match.group(1).strip("\n").split("\n")
        code = "\n".join(line.strip() for line in lines)
        compile(code, "script", "exec")
        return Check(code)
    match = CALL.match(text)
    if match:
        name, arguments, result, error = match.groups()
        if (error is not None) != (int(result) < 0):
            raise ScriptError("-1 and the name of an error go together")
        return Call(name, split_arguments(arguments), int(result), error)
    raise ScriptError("not understood")


def micros(number):
    return round(float(number) * 1_000_000)


def event(line, text):
    match = TIME.match(text)
    if not match:
        raise ScriptError("a line begins with its time")
    plus, at, plus_until, until = match.groups()
    if until is not None and plus != plus_until:
        raise ScriptError("one end of the range is relative, the other is not")
    return Event(line=line, at=micros(at), until=micros(until or at), relative=plus == "+",
                 what=what_happens(text[match.end():].rstrip()))


def logical_lines(source):
    """(number, text) without comments; a %{ block }% is one line."""
    block, begun = None, 0
    for number, raw in enumerate(source.split("\n"), 1):
        line = re.sub(r"//.*", "", raw).rstrip()
        if block is not None:
            block.append(line)
        elif "%{" in line and "}%" not in line:
            block, begun = [line], number
        elif line.strip():
            yield number, line
        if block is not None and "}%" in line:
            yield begun, "\n".join(block)
            block = None
    if block is not None:
        raise ScriptError(f"line {begun}: %{{ without }}%")


def parse(source):
    """\\return (options of the script: name -> value, its events)"""
    options, events = {}, []
    for number, line in logical_lines(source):
        try:
            given = re.fullmatch(r"--(\w+)=(\S+)", line)
            if given and not events:
                options[given.group(1)] = given.group(2)
            else:
                events.append(event(number, line))
        except (ScriptError, SyntaxError) as error:
            raise ScriptError(f"line {number}: {error}: {line.strip()}") from None
    if not events:
        raise ScriptError("no events")
    return options, events
