#!/usr/bin/env python3
"""Instructions per segment, ACK and message, counted by callgrind: ./scripts/bench instructions.

Each figure is what a run of MANY took less what a run of none took, divided. Virtual time makes
runs alike, so a figure changes only when code or compiler do. instructions.json keeps those of the
tree as it was accepted: --check fails where one has risen by more than 2 %, --accept writes them.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
KEPT = os.path.join(HERE, "instructions.json")
RISE = 0.02

SEGMENTS = 20000
# name, function of segment_cost, scenario, per segment or ACK, goal, what it is
SEGMENT_FIGURES = (
    ("receive-data", "receive_data", "steady", "segments", 350, "in-order data segment received"),
    ("receive-ack", "receive_acks", "steady", "acks", 250,
     "pure ACK received, the application being the limit"),
    ("receive-ack-avoidance", "receive_acks", "avoidance", "acks", 250,
     "pure ACK received, CUBIC in congestion avoidance"),
    ("send-ack", "send_acks", "steady", "acks", None, "ACK sent"),
    ("send-data", "send_data", "steady", "segments", None, "data segment sent"),
    ("receive-data-checksum", "receive_data", "checksum", "segments", None,
     "data segment received, checksums in software"),
    ("receive-data-whole", "receive_data", "whole", "segments", None,
     "data segment received, without header prediction"),
    ("receive-ack-whole", "receive_acks", "whole", "acks", None,
     "pure ACK received, without header prediction"),
)
# scenario of pair_cost, messages, whether layers are told by the segment, what it is
PAIR_FIGURES = (
    ("write-1m", 64, True, "Write of 1 MiB, MTU 1500"),
    ("write-1m-9000", 64, True, "Write of 1 MiB, MTU 9000"),
    ("write-markers", 64, True, "Write of 1 MiB, MTU 1500, markers both ways"),
    ("write-64", 20000, False, "Write of 64 octets, posted and polled for"),
    ("ping-pong", 2000, False, "Send of 64 octets and its answer"),
)
SEGMENT_TEXT = """\
Received: net::Interface::input and tcp::Stack::input, from the frame to a user that only counts
(inspect, place, ordered, released are called), with the decision to acknowledge, the release of
records, the round-trip time, congestion control and the timers. Sent: timers, output stage, pull
(the user fills the segment with memset), net and the simulated port. One connection over IPv4, 1448
octets a segment, timestamps and SACK on, an ACK of two records for every second segment; nothing
for checksums where the port vouches for them. Instructions:
"""
PAIR_TEXT = """
Two devices on a simulated link, both ends together, from the work request to its completion, with
CRC and every turn of the loop; that the memories are compared afterwards is not counted. "payload" is
ISA-L, lib/crc and whatever the C library copies or fills, work requests too. Figures of large messages
are without it, those of small ones with it. Instructions:
"""


class Failed(Exception):
    pass


def output_of(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Profile:
    """What callgrind counted, by file; what a file of another room has inlined counts as that
    room's, but headers of the system as those whose function it is."""

    FILE = re.compile(r"^(fl|fi|fe|ob|fn|cfi|cfl|cob|cfn)=(?:\((\d+)\))?\s*(.*)$")
    COST = re.compile(r"^(?:\+\d+|-\d+|\*|\d+) (\d+)$")

    def __init__(self, text):
        self.by_layer = Counter()
        names = {"fl": {}, "fn": {}, "ob": {}}
        own = here = function = program = ""
        skip = False
        for line in text.splitlines():
            if found := self.FILE.match(line):
                kind, number, name = found.groups()
                table = names["fl" if kind in ("fl", "fi", "fe", "cfi", "cfl") else kind[-2:]]
                if name and number:
                    table[number] = name
                name = name or table.get(number, "")
                if kind == "fl":
                    own = here = name
                elif kind in ("fi", "fe"):
                    here = name
                elif kind == "fn":
                    function = name
                elif kind == "ob":
                    program = name
            elif line.startswith("calls="):
                skip = True  # the next line is what the called function took
            elif found := self.COST.match(line):
                if not skip:
                    self.by_layer[self.layer(own, here, function, program)] += int(found.group(1))
                skip = False

    @staticmethod
    def layer(own, here, function, program):
        if "libisal" in program or re.search(r"(^|_)mem(cpy|move|set)(_|$)", function):
            return "payload"
        for path in (here, own):
            if found := re.search(r"(?:^|/)\.\./(lib|drivers|tests)/(\w+)/", path):
                whole, room = found.groups()
                if whole == "tests":
                    return "application"
                return "payload" if room == "crc" else room
        return "libraries"


def profile(function, command):
    with tempfile.TemporaryDirectory(prefix="rnic-callgrind-") as folder:
        out = os.path.join(folder, "out")
        printed = output_of(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
                             "--collect-atstart=no", f"--toggle-collect={function}", *command])
        with open(out, encoding="utf-8", errors="replace") as file:
            return printed, Profile(file.read()).by_layer


def segment_figure(build, function, scenario, unit):
    program = os.path.join(build, "tests/perf/segment_cost")
    printed, many = profile(function, [program, function, str(SEGMENTS), scenario])
    _, none = profile(function, [program, function, "0", scenario])
    words = printed.split()
    per = int(words[words.index(unit) + 1])
    return (sum(many.values()) - sum(none.values())) / per


def pair_figure(build, scenario, messages):
    """-> instructions a message by layer, segments a message"""
    program = os.path.join(build, "tests/perf/pair_cost")
    printed, many = profile("measured_turn", [program, scenario, str(messages)])
    _, none = profile("measured_turn", [program, scenario, "0"])
    layers = {name: (many[name] - none[name]) / messages for name in many}
    return layers, int(printed.split()[1]) / messages


def measure(build):
    """Prints each figure as it comes. -> all of them by name"""
    figures = {}
    print("command: valgrind --tool=callgrind --toggle-collect=FUNCTION segment_cost FUNCTION "
          f"{SEGMENTS} SCENARIO")
    print(SEGMENT_TEXT, end="")
    for name, function, scenario, unit, goal, text in SEGMENT_FIGURES:
        figures[name] = value = segment_figure(build, function, scenario, unit)
        aim = f" (goal: at most {goal})" if goal else ""
        print(f"{value:10.1f}  per {text}{aim}", flush=True)
    print(PAIR_TEXT, end="")
    for name, messages, by_segment, text in PAIR_FIGURES:
        layers, segments = pair_figure(build, name, messages)
        payload = layers.pop("payload", 0)
        value = sum(layers.values()) + (0 if by_segment else payload)
        figures[name] = value
        each, unit = (segments, f"each of {segments:.1f} segments") if by_segment else (1, "it")
        parts = sorted(layers.items(), key=lambda part: -part[1])
        print(f"{value:10.0f}  per {text}; payload {payload:.0f}\n            for {unit} "
              f"{value / each:.0f}: " + ", ".join(f"{room} {cost / each:.0f}" for room, cost in parts
                                                  if cost / each >= 0.5), flush=True)
    return figures


def compare(figures):
    """Says what has changed. -> how many have risen too far"""
    if not os.path.exists(KEPT):
        raise Failed("there are no figures to compare with: --accept writes them")
    with open(KEPT, encoding="utf-8") as file:
        kept = json.load(file)
    risen = 0
    print("\nagainst tests/perf/instructions.json:")
    for name, value in figures.items():
        if name not in kept:
            print(f"  {name}: new")
            risen += 1
            continue
        change = value / kept[name] - 1
        if change > RISE:
            risen += 1
        print(f"  {name}: {kept[name]:.1f} -> {value:.1f} ({change:+.1%})"
              + (" RISEN" if change > RISE else ""))
    return risen


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--check", action="store_true",
                        help="fail where a figure is more than 2 %% above the one that is kept")
    parser.add_argument("--accept", action="store_true", help="keep these figures")
    options = parser.parse_args()
    try:
        figures = measure(options.build_dir)
        risen = compare(figures) if options.check else 0
    except Failed as problem:
        print(f"instructions: {problem}", file=sys.stderr)
        return 2
    if options.accept:
        with open(KEPT, "w", encoding="utf-8") as file:
            json.dump({name: round(value, 1) for name, value in figures.items()}, file, indent=2)
            file.write("\n")
    return 1 if risen else 0


if __name__ == "__main__":
    sys.exit(main())
