#!/usr/bin/env python3
"""Instructions per segment, ACK and message, counted by callgrind: ./scripts/bench instructions.

The programs' way to the steady state is not counted, and virtual time makes runs alike, so a figure
changes only when code or compiler do. instructions.json keeps those of the tree as it was accepted:
--check fails where one has risen by more than 2 %, --accept writes them. What is kept is without
payload: CRC, and what the C library copies, take different ways on different CPUs.

The totals need nothing of a build that the ordinary one has not; the layers need its lines (-g1).
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
# scenario of pair_cost, messages, whether figures are told by the segment, what it is
PAIR_FIGURES = (
    ("write-1m", 8, True, "Write of 1 MiB, MTU 1500"),
    ("write-1m-9000", 8, True, "Write of 1 MiB, MTU 9000"),
    ("write-markers", 8, True, "Write of 1 MiB, MTU 1500, markers both ways"),
    ("write-64", 4096, False, "Write of 64 octets, posted by the list and polled for"),
    ("ping-pong", 256, False, "Send of 64 octets and its answer"),
    ("idle", 256, False, "turn of both ends in which nothing happens"),
)
# The turn of both ends, and what the shares of it are told apart by.
TURN, TARGET = "measured_turn", "poll_target"
RECEIVE = "rnic::device::Device::receive_burst*"
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
CRC and every turn of the loop; that the memories are compared afterwards is not counted. "crc" is
ISA-L and lib/crc; "copies" is whatever the C library copies or fills, work requests too. Figures
are without both. Instructions:
"""
PAYLOAD = ("crc", "copies")


class Failed(Exception):
    """There is no figure; the text says why."""

    def __init__(self, why, status=2):
        super().__init__(why)
        self.status = status  # 1: what a program did was wrong; 2: something is missing


def output_of(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as problem:
        raise Failed(f"{command[0]} is missing: ./scripts/setup installs it") from problem
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}",
                     1 if done.returncode == 1 else 2)
    return done.stdout


class Profile:
    """What callgrind counted, by file; what a file of another room has inlined counts as that
    room's, but headers of the system as those whose function it is."""

    FILE = re.compile(r"^(fl|fi|fe|ob|fn|cfi|cfl|cob|cfn)=(?:\((\d+)\))?\s*(.*)$")
    # What a thread of a device must not call once all stands: it may wait there, or fail.
    FORBIDDEN = re.compile(r"^(__libc_)?(malloc|calloc|realloc|free|posix_memalign|aligned_alloc)"
                           r"(@|$)|^operator (new|delete)|pthread_(mutex|rwlock|cond)_")
    COST = re.compile(r"^(?:\+\d+|-\d+|\*|\d+) (\d+)$")

    def __init__(self, text):
        self.by_layer = Counter()
        self.forbidden = 0  # calls
        names = {"fl": {}, "fn": {}, "ob": {}}
        own = here = function = program = called = ""
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
                elif kind == "cfn":
                    called = name
                elif kind == "ob":
                    program = name
            elif line.startswith("calls="):
                skip = True  # the next line is what the called function took
                if self.FORBIDDEN.search(called):
                    self.forbidden += int(line[len("calls="):].split()[0])
            elif found := self.COST.match(line):
                if not skip:
                    self.by_layer[self.layer(own, here, function, program)] += int(found.group(1))
                skip = False

    @staticmethod
    def layer(own, here, function, program):
        # By function, so that a build without lines tells payload alike.
        if "libisal" in program or function.startswith("rnic::crc::"):
            return "crc"
        if re.search(r"(^|_)mem(cpy|move|set)(_|$)", function):
            return "copies"
        for path in (here, own):
            if found := re.search(r"(?:^|/)\.\./(lib|drivers|tests)/(\w+)/", path):
                whole, room = found.groups()
                # What is inlined of lib/crc calls the kernels, and is no payload.
                return {"tests": "application"}.get(whole, "crc calls" if room == "crc" else room)
        return "libraries"


def profile(functions, command):
    """Counts inside `functions`; inside both of two that call each other it does not."""
    with tempfile.TemporaryDirectory(prefix="rnic-callgrind-") as folder:
        out = os.path.join(folder, "out")
        printed = output_of(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}",
                             "--collect-atstart=no",
                             *(f"--toggle-collect={function}" for function in functions),
                             *command])
        with open(out, encoding="utf-8", errors="replace") as file:
            return printed, Profile(file.read())


def without_payload(layers):
    return sum(cost for layer, cost in layers.items() if layer not in PAYLOAD)


def segment_figure(build, function, scenario, unit):
    program = os.path.join(build, "tests/perf/segment_cost")
    printed, told = profile([function], [program, function, str(SEGMENTS), scenario])
    words = printed.split()
    return without_payload(told.by_layer) / int(words[words.index(unit) + 1])


def pair_figure(build, scenario, messages):
    """-> instructions a message by layer, segments a message, calls that nothing may make"""
    program = os.path.join(build, "tests/perf/pair_cost")
    printed, told = profile([TURN], [program, scenario, str(messages)])
    return ({name: cost / messages for name, cost in told.by_layer.items()},
            int(printed.split()[1]) / messages, told.forbidden)


def shares(build, scenario, messages):
    """What a segment takes at the end that receives it, at the end that sends it, and besides: ACKs
    both ways and the turns of the loop. The receiving function is called by both ends, so runs are
    needed that count different parts. -> by name; nothing if the parts cannot be told"""
    program = os.path.join(build, "tests/perf/pair_cost")

    def total(messages, functions):
        return without_payload(
            profile(functions, [program, scenario, str(messages)])[1].by_layer)

    def cost(*functions):  # the way to the steady state calls the receiving function, too
        return (total(messages, functions) - total(0, functions)) / messages
    segments = pair_figure(build, scenario, messages)[1]
    target, received = cost(TARGET), cost(RECEIVE)
    # The target's turn without what it receives, and what the initiator receives: ACKs.
    besides = cost(TARGET, RECEIVE)
    acks = (besides + received - target) / 2
    if received == 0 or acks < 0:
        return {}
    receive = received - acks
    send = cost("poll_initiator") - acks
    return {"receive": receive / segments, "send": send / segments,
            "ack-and-poll": besides / segments}


def measure_segments(build, figures):
    print("command: valgrind --tool=callgrind --toggle-collect=FUNCTION segment_cost FUNCTION "
          f"{SEGMENTS} SCENARIO")
    print(SEGMENT_TEXT, end="")
    for name, function, scenario, unit, goal, text in SEGMENT_FIGURES:
        figures[name] = value = segment_figure(build, function, scenario, unit)
        aim = f" (goal: at most {goal})" if goal else ""
        print(f"{value:10.1f}  per {text}{aim}", flush=True)


def measure_pairs(build, figures):
    """-> layers of each scenario, a segment or a message"""
    told = {}
    forbidden = 0
    print(PAIR_TEXT, end="")
    for name, messages, by_segment, text in PAIR_FIGURES:
        layers, segments, calls = pair_figure(build, name, messages)
        forbidden += calls
        each = segments if by_segment else 1
        told[name] = layers = {room: cost / each for room, cost in layers.items()}
        figures[name] = value = without_payload(layers)
        unit = f"segment of a {text} ({segments:.1f} segments)" if by_segment else text
        print(f"{value:10.0f}  per {unit}; " +
              ", ".join(f"{room} {layers.get(room, 0):.0f}" for room in PAYLOAD))
        parts = sorted(layers.items(), key=lambda part: -part[1])
        print("            " + ", ".join(f"{room} {cost:.0f}" for room, cost in parts
                                         if cost >= 0.5 and room not in PAYLOAD), flush=True)
    figures["allocations-and-locks"] = forbidden
    print(f"{forbidden:10.0f}  calls of malloc, operator new, mutexes and their like in all of them")
    return told


def measure(build, segments_too=True):
    """Prints each figure as it comes. -> all of them by name; layers of the pairs"""
    figures = {}
    if segments_too:
        measure_segments(build, figures)
    return figures, measure_pairs(build, figures)


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
        too_much = value > kept[name] * (1 + RISE)
        risen += too_much
        change = f" ({value / kept[name] - 1:+.1%})" if kept[name] else ""
        print(f"  {name}: {kept[name]:.1f} -> {value:.1f}{change}{' RISEN' if too_much else ''}")
    return risen


def split(build, scenario):
    messages = next(row[1] for row in PAIR_FIGURES if row[0] == scenario)
    parts = shares(build, scenario, messages)
    print(f"\na segment of {scenario}: " + (
        ", ".join(f"{name} {value:.0f}" for name, value in parts.items()) or
        f"the ends' shares cannot be told: nothing is called {RECEIVE}"))
    return parts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--check", action="store_true",
                        help="fail where a figure is more than 2 %% above the one that is kept")
    parser.add_argument("--accept", action="store_true", help="keep these figures")
    parser.add_argument("--pairs", action="store_true", help="leave TCP and IP alone out")
    parser.add_argument("--json", metavar="FILE", help="write figures, layers and shares there")
    options = parser.parse_args()
    try:
        figures, layers = measure(options.build_dir, not options.pairs)
        parts = {} if options.check else split(options.build_dir, "write-1m")
        risen = compare(figures) if options.check else 0
    except Failed as problem:
        print(f"instructions: {problem}", file=sys.stderr)
        return problem.status
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"figures": figures, "layers": layers, "shares": parts}, file)
    if options.accept:
        with open(KEPT, "w", encoding="utf-8") as file:
            json.dump({name: round(value, 1) for name, value in figures.items()}, file, indent=2)
            file.write("\n")
    return 1 if risen else 0


if __name__ == "__main__":
    sys.exit(main())
