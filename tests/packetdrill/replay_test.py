"""Proves that `replay` judges: every expectation of every script, altered, makes the script fail, and a
line that is not known is an error.

  replay_test.py --adapter libpd_adapter.so [SCRIPT ...]

Each expected segment, result, option value, time and assertion is altered alone, each way that there
is for it. The whole runs in this process, in virtual time.
"""

import argparse
import concurrent.futures
import copy
import dataclasses
import os
import sys

import replay_adapter
import replay_packets
import replay_player
import replay_script
import script_setup

HERE = os.path.dirname(os.path.abspath(__file__))
TOLERANCE = 10_000
REFUSED = (replay_player.Mismatch, replay_script.ScriptError, replay_packets.BadPacket)

# What is no line of the language, or contradicts itself.
NOT_UNDERSTOOD = [
    "0 > Q 1:1(0) ack 1", "0 > . 1:5(3) ack 1", "0 > . 1:1(0)", "0 < . 1:1(0) ack 1",
    "> . 1:1(0) ack 1", "+0~.1 > . 1:1(0) ack 1", "0 > . 1:1(0) ack 1 <mood 3>", "0 `ip link`",
    "0 %{ assert }%", "0 read(3, ..., 1) = -1", "0 read(3, ..., 1) = 1 EPIPE", "* > . 1:1(0) ack 1",
    "0 < . 1:1(0) ack 1 win 5 <...>", "0 < [half] . 1:1(0) ack 1 win 5", "%{ assert 1", "--speed 3",
    "0 < icmp unreachable frag_needed mtu 1000 [1:9(9)]", "",
]
# What is a line, and asks for something that there is not.
NOT_KNOWN = [
    "+0 launch(3) = 0", "+0 close(4) = 0", "+0 setsockopt(3, SOL_TCP, TCP_MOOD, [1], 4) = 0", "+0 shutdown(3, SHUT_UP) = 0",
    "+0 < icmp unreachable mood mtu 1000 [1:9(8)]", "+0 %{ assert tcpi_mood == 1 }%",
    "+0 getsockopt(3, SOL_SOCKET, SO_ERROR, [EMOOD], [4]) = 0", "+0 write(3, text, 1) = 1",
    "+0 < . 1:1(0) ack 1 win 5 <nop,nop,TS val 1 ecr 77>",
]


def play(setup, events):
    adapter = replay_adapter.Adapter(setup.adapter, setup.flags)
    try:
        player = replay_player.Player(adapter, setup.local, setup.remote, TOLERANCE)
        player.play(copy.deepcopy(events))
    finally:
        adapter.close()


@dataclasses.dataclass
class Before:
    """What a script has fixed already: the first timestamp and the first SYN only say where its
    numbers begin."""
    stamped: bool = False
    synchronized: bool = False

    def note(self, event):
        what = event.what
        if isinstance(what, replay_script.Call) and what.name in ("listen", "connect"):
            self.synchronized = False
        if isinstance(what, replay_script.Packet) and what.outbound:
            self.synchronized = self.synchronized or "S" in what.flags
            self.stamped = self.stamped or any(option[0] == "TS" for option in what.options or [])


def altered_packets(packet, before):
    """(what was altered, the altered packet)"""
    def other(**fields):
        return dataclasses.replace(packet, **fields)
    if before.synchronized or "S" not in packet.flags:
        yield "sequence", other(sequence=packet.sequence + 1)
    yield "length", other(length=packet.length + 1)
    if packet.length > 1:
        yield "shorter", other(length=packet.length - 1)
    for flag in "FPEW":
        flags = packet.flags.replace(flag, "") if flag in packet.flags else packet.flags + flag
        yield "flag " + flag, other(flags=flags)
    if packet.ack is not None:
        yield "ack", other(ack=packet.ack + 1)
    if packet.window is not None:
        yield "window", other(window=packet.window + 1)
    if packet.ecn is not None:
        yield "mark", other(ecn=packet.ecn ^ 3)
    yield "urgent", other(urgent=packet.urgent + 1)
    if packet.options is not None:
        yield "option more", other(options=packet.options + [("nop",)])
        for i, (name, *values) in enumerate(packet.options):
            options = list(packet.options)
            if name in ("mss", "wscale"):
                options[i] = (name, values[0] + 1)
            elif name == "TS":
                options[i] = (name, values[0] + (1000 if before.stamped else 0),
                              values[1] + (not before.stamped))
            elif name == "sack":
                options[i] = (name, values[0][:-1] + ((values[0][-1][0], values[0][-1][1] + 1),))
            else:
                continue
            yield "option " + name, other(options=options)


def altered_calls(call):
    yield "result", dataclasses.replace(call, result=call.result + 1)
    if call.error is not None:
        yield "error", dataclasses.replace(call, error="EDOM")
    if call.name == "getsockopt":
        arguments = list(call.arguments)
        arguments[3] = "[ECONNRESET]" if arguments[3] != "[ECONNRESET]" else "[EPIPE]"
        yield "option's value", dataclasses.replace(call, arguments=arguments)


def altered_checks(check):
    """Each assertion for itself says the opposite."""
    lines = check.code.replace(";", "\n").split("\n")
    for i, line in enumerate(lines):
        line = line.strip()
        if line.startswith("assert "):
            told = line[len("assert "):].rsplit(",", 1)[0]
            yield f"assertion {i + 1}", dataclasses.replace(
                check, code="\n".join([*(x.strip() for x in lines[:i]), f"assert not ({told})"]))


def altered_events(event, before):
    kinds = {replay_script.Call: altered_calls, replay_script.Check: altered_checks}
    if isinstance(event.what, replay_script.Packet):
        if not event.what.outbound:
            return
        for name, packet in altered_packets(event.what, before):
            yield name, dataclasses.replace(event, what=packet)
        early = 3 * TOLERANCE if event.at > 3 * TOLERANCE else None
        if early:
            yield "earlier", dataclasses.replace(event, at=event.at - early, until=event.at - early)
        late = event.until + 3 * TOLERANCE
        yield "later", dataclasses.replace(event, at=late, until=late)
    elif type(event.what) in kinds:
        for name, what in kinds[type(event.what)](event.what):
            yield name, dataclasses.replace(event, what=what)


def expected_at_once(event):
    """Without a line that waits the script says less, but nothing wrong."""
    return isinstance(event.what, replay_script.Packet) and event.what.outbound and event.until == 0


def judge(path, adapter):
    """\\return (how many alterations were tried, what went wrong)"""
    setup = script_setup.of(path, adapter)
    events = setup.events
    wrong, tried = [], 0
    try:
        play(setup, events)
    except REFUSED as error:
        return 0, [f"{path}: fails as it is: {error}"]
    before = Before()
    for i, event in enumerate(events):
        for name, changed in altered_events(event, before):
            tried += 1
            try:
                play(setup, [*events[:i], changed, *events[i + 1:]])
            except REFUSED:
                continue
            wrong.append(f"{path}:{event.line}: passes with another {name}")
        before.note(event)
        if expected_at_once(event):
            tried += 1
            try:  # a segment that nobody expects
                play(setup, [*events[:i], *events[i + 1:]])
            except REFUSED:
                continue
            wrong.append(f"{path}:{event.line}: passes without the line")
    return tried, wrong


def unknown_lines(adapter):
    wrong = []
    for line in NOT_UNDERSTOOD:
        try:
            replay_script.parse(line)
        except replay_script.ScriptError:
            continue
        wrong.append(f"understood: {line!r}")
    setup = script_setup.Setup(adapter=adapter, flags="local=192.168.0.1", local="192.168.0.1",
                               remote="192.0.2.1", events=[])
    for line in NOT_KNOWN:
        _, events = replay_script.parse("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n" + line)
        try:
            play(setup, events)
        except REFUSED:
            continue
        wrong.append(f"taken: {line!r}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--adapter", required=True)
    parser.add_argument("scripts", nargs="*")
    options = parser.parse_args()
    paths = options.scripts or script_setup.below(os.path.join(HERE, "scripts"))
    wrong, tried = unknown_lines(options.adapter), 0
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for count, found in pool.map(judge, paths, [options.adapter] * len(paths)):
            tried += count
            wrong += found
    for line in wrong:
        print(line)
    print(f"{len(paths)} scripts, {tried} alterations, {len(wrong)} not seen")
    return 1 if wrong or tried < len(paths) else 0


if __name__ == "__main__":
    sys.exit(main())
