"""What each measure of goals.toml is taken from: variants of rnic-perf, and programs of one figure."""

import functools
import itertools
import json
import os
import re
import statistics
import sys
import tempfile

from rounds import NotMeasured, Rounds, json_of, output_of, read, spread

HERE = os.path.dirname(os.path.abspath(__file__))
EMSS = {1500: 1428, 9000: 8928}  # octets of a segment with timestamps, less MPA's and DDP's headers
CORE_SHARE = 0.8  # of its core: whoever gets less shares it
ENOUGH_TRIPS = 100_000  # under a percentile
LONGEST_FLOOR_TAIL = 1.7  # p99 / p50: beyond it messages between the cores are late themselves,
LIKE_THE_FLOORS = 1.25  # and a tail of at most so many of theirs may be the machine's
WHOLE = 2  # seconds that a transfer has at least which is measured by processor time

# Variants of rnic-perf loopback: what is compared is compared within a round.
ONE_CORE = {
    "write-1500": [],
    "read-1500": ["--op", "read", "--no-floor"],
    "send-1500": ["--op", "send", "--no-floor"],
    "markers-1500": ["--markers", "--no-floor"],
    "write-9000": ["--mtu", "9000"],
    "markers-9000": ["--mtu", "9000", "--markers", "--no-floor"],
    "rate-one-core": ["--size", "64", "--depth", "64", "--no-floor"],
    "rate-128-qps": ["--size", "64", "--qps", "128", "--no-floor"],
}
TWO_CORES = {
    "rate-two-cores": ["--size", "64", "--depth", "512", "--cores", "2", "--no-floor"],
    "ping-pong": ["--ping-pong", "--cores", "2"],
    "two-cores-1500": ["--cores", "2"],
    "two-cores-9000": ["--cores", "2", "--mtu", "9000"],
}
# Whole runs only.
TWO_PROCESSES = {"memif": ["--processes", "2"]}
CONNECTIONS = (1, 10, 100, 1000, 10000)


def conditions(run):
    """What a figure was measured with, as the run itself tells it."""
    size = run["size"]
    deep = f"{run['depth']} deep" if "round_trips" not in run else "one at a time"
    parts = [f"{size >> 20} MB" if size >= 1 << 20 else f"{size} octets", f"MTU {run['mtu']}",
             "CRC" if run["crc"] else "NO CRC", "markers" if run["markers"] else "no markers",
             deep]
    if run.get("qps", 1) != 1:
        parts.append(f"{run['qps']} QPs")
    if "region" in run:
        parts.append(f"region {run['region'] >> 10} KB")
    if run.get("checksum", "trusted") != "trusted":
        parts.append(f"{run['checksum']} TCP checksums")
    parts.append(f"{run['cores']} core" + "s" * (run["cores"] - 1))
    if "processes" in run:
        parts.append(f"{run['processes']} processes")
    return ", ".join(parts)


def on_core(core, command):
    return ["taskset", "-c", str(core), *command]


class Perf:
    """rnic-perf of a build. A run that compared nothing gives no figure."""

    def __init__(self, build_dir):
        self.build_dir = build_dir
        self.core = None  # that one-core runs are kept on; None: wherever the system puts them
        self.program = os.path.join(build_dir, "apps/rnic-perf/rnic-perf")

    def loopback(self, *arguments, seconds=0.6):
        command = [self.program, "loopback", "--json", "--seconds", str(seconds), *arguments]
        cores = arguments[arguments.index("--cores") + 1] if "--cores" in arguments else "1"
        if self.core is not None and cores == "1" and "--processes" not in arguments:
            command = on_core(self.core, command)
        run = json_of(command)
        if run["verified"] is not True:
            raise NotMeasured("the run was not verified")
        return run

    def whole(self, *arguments, seconds):
        """A transfer that is long enough to be measured by its processor time."""
        run = self.loopback(*arguments, seconds=max(seconds, 1.25 * WHOLE))
        if run["measured_s"] < WHOLE:
            raise NotMeasured(f"only {run['measured_s']:.1f} s of transfers, of {WHOLE}")
        return run

    def variants(self, table, seconds):
        return {name: lambda a=arguments: self.loopback(*a, seconds=seconds)
                for name, arguments in table.items()}


def percentiles_of(runs, shares=(0.5, 0.99), spectrum="spectrum_ns"):
    """Percentiles of the round trips of several runs together: in us, or, with "spectrum_of_p50",
    in medians of the slice that each belongs to."""
    counts = {}
    for run in runs:
        for time, count in run[spectrum]:
            counts[time] = counts.get(time, 0) + count
    total = sum(counts.values())
    if total < ENOUGH_TRIPS:
        raise NotMeasured(f"disturbed: only {total} undisturbed round trips of {ENOUGH_TRIPS}")
    found, below = [], 0
    for time in sorted(counts):
        below += counts[time]
        while len(found) < len(shares) and below >= shares[len(found)] * total:
            found.append(time / 1000)
    return found


class Figures:
    """Figures by measure; each has a value, or says why it has none."""

    def __init__(self):
        self.by_measure = {}

    def add(self, measure, take):
        try:
            self.by_measure[measure] = read(take)
        except NotMeasured as reason:
            self.by_measure[measure] = {"missing": str(reason)}


def judged(runs):
    """The runs of round trips that have undisturbed slices."""
    some = [run for run in runs if run["disturbed_rounds"] < run["rounds"]]
    if not some:
        shared = sum(run.get("one_core_rounds", 0) for run in runs)
        raise NotMeasured(f"disturbed: no slice was undisturbed, and in {shared} of "
                          f"{sum(run['rounds'] for run in runs)} both cores were threads of one")
    return some


def share_of_cores(runs):
    """How much of the cores that it spun on a program got."""
    return statistics.median(run["cpu_s"] / run["measured_s"] / run["cores"] for run in runs
                             if run.get("measured_s"))


def from_rounds(figures, rounds):
    """The figures that one run of interleaved rounds gives."""
    def floor_ratio(name):
        runs = rounds.kept(name)
        more = {"conditions": conditions(runs[0]),
                "beside": f"{statistics.median(r['goodput_gbps'] for r in runs):.1f} of "
                          f"{statistics.median(r['floor_gbps'] for r in runs):.1f} Gb/s"}
        return rounds.figure(name, "ratio_to_floor", **more)

    def two_cores(name, take, steady=False):
        """steady: a figure that does not suffer where the cores are seldom ours at once."""
        runs = judged(rounds.kept(name)) if name == "ping-pong" else rounds.kept(name)
        lines = [run["line_ns"] for run in runs if "line_ns" in run]
        if not lines or len(lines) != len(runs):
            raise NotMeasured("no time of a cache line between the cores")
        figure = take()
        figure["beside"] = f"cache line {statistics.median(lines):.0f} ns" + (
            f"; {figure['beside']}" if "beside" in figure else "")
        if not steady and share_of_cores(runs) < CORE_SHARE:
            figure["disturbed_run"] = f"got {share_of_cores(runs):.0%} of its cores"
        return figure

    def compared(name, base, mtu):
        figure = rounds.ratio(name, base, "goodput_gbps",
                              conditions=conditions(rounds.of(name)[0]))
        each = [EMSS[mtu] * 8 / run["goodput_gbps"] for run in rounds.kept(name)]
        others = [EMSS[mtu] * 8 / run["goodput_gbps"] for run in rounds.kept(base)]
        figure["extra_ns"] = statistics.median(each) - statistics.median(others)
        figure["beside"] = f"{figure['extra_ns']:+.0f} ns a segment"
        return figure

    def rate(name):
        return rounds.figure(name, "msgs_per_s", 1e-6, conditions=conditions(rounds.of(name)[0]))

    def trips():
        """The undisturbed runs, the percentiles of all their round trips, and a text about them."""
        runs = judged(rounds.kept("ping-pong"))
        percentiles = percentiles_of(runs)
        count = sum(run["round_trips"] for run in runs)
        return runs, percentiles, f"{conditions(runs[0])}, {count} round trips"

    def tail():
        runs, (_, p99), how = trips()
        floor = statistics.median(run["message_floor_p99_of_p50"] for run in runs)
        as_long = statistics.median(run.get("messages_as_long_p99_of_p50", floor) for run in runs)
        of_p50, = percentiles_of(runs, (0.99,), "spectrum_of_p50")
        figure = spread([run["p99_of_p50"] for run in runs], conditions=how,
                        **rounds.disturbed("ping-pong"),
                        beside=f"p99 {p99:.2f} us; p99 / p50 of the message floor {floor:.2f}, "
                               f"of as many messages as take as long {as_long:.2f}")
        if min(as_long, of_p50) > LONGEST_FLOOR_TAIL and of_p50 <= LIKE_THE_FLOORS * as_long:
            figure["disturbed_run"] = "no longer than the floor's"
        return {**figure, "value": of_p50}

    def ping_pong():
        runs, (p50, _), how = trips()
        floor = statistics.median(run["message_floor_ns"] for run in runs)
        return spread([run["ratio_to_floor"] for run in runs],
                      conditions=how, **rounds.disturbed("ping-pong"),
                      beside=f"{p50:.2f} us of {floor / 1000:.2f} us")

    for name in ("write-1500", "write-9000"):
        figures.add(name, lambda n=name: floor_ratio(n))
    for name in ("rate-one-core", "rate-128-qps"):
        figures.add(name, lambda n=name: rate(n))
    figures.add("rate-two-cores", lambda: two_cores(
        "rate-two-cores", lambda: rate("rate-two-cores"), steady=True))
    figures.add("ping-pong", lambda: two_cores("ping-pong", ping_pong, steady=True))
    figures.add("ping-pong-tail", lambda: two_cores("ping-pong", tail))
    for name in ("two-cores-1500", "two-cores-9000", *TWO_PROCESSES):
        if name in rounds.variants:
            figures.add(name, lambda n=name: two_cores(n, lambda: floor_ratio(n)))
    figures.add("read", lambda: compared("read-1500", "write-1500", 1500))
    figures.add("send", lambda: compared("send-1500", "write-1500", 1500))
    for mtu in (1500, 9000):
        figures.add(f"markers-{mtu}", lambda m=mtu: compared(f"markers-{m}", f"write-{m}", m))


def rounds_of_all(perf, count, seconds, deadline, whole=False):
    table = {**ONE_CORE, **TWO_CORES, **(TWO_PROCESSES if whole else {})}
    return Rounds(perf.variants(table, seconds), "write-1500").run(count, deadline)


def from_instructions(figures, build_dir, whole):
    """-> what instructions.py wrote: figures, layers, shares"""
    with tempfile.TemporaryDirectory(prefix="rnic-bench-") as folder:
        out = os.path.join(folder, "instructions.json")
        command = [sys.executable, os.path.join(HERE, "instructions.py"), "--build-dir", build_dir,
                   "--json", out, *([] if whole else ["--pairs"])]
        try:
            output_of(command)
            with open(out, encoding="utf-8") as file:
                told = read(lambda: json.load(file))
        except NotMeasured as reason:
            for name in ("pair", "receive", "send", "ack-and-poll", "write-64"):
                figures.by_measure[f"instructions-{name}"] = {"missing": str(reason)}
            figures.by_measure["allocations"] = {"missing": str(reason)}
            return {}
    exact = "region of a message, 1 core, callgrind, virtual time: exact"
    how = {"rounds": 1, "conditions": f"1 MB, MTU 1500, CRC, no markers, 16 deep, {exact}"}
    layers = told["layers"]["write-64"]
    write = told["figures"]["write-64"]
    all_of_it = write + layers.get("crc", 0) + layers.get("copies", 0)
    for name, value in {"pair": told["figures"]["write-1m"], **told["shares"],
                        "write-64": all_of_it}.items():
        figures.by_measure[f"instructions-{name}"] = {"value": value, "low": value, "high": value,
                                                      **how}
    calls = told["figures"]["allocations-and-locks"]
    figures.by_measure["allocations"] = {
        "value": calls, "low": calls, "high": calls, "rounds": 1,
        "conditions": "turns of two devices with posts and polls, callgrind",
        "beside": "calls of malloc, new, mutexes and their like"}
    figures.by_measure["instructions-write-64"].update(
        beside=f"{write:.0f} without CRC and copies of the C library",
        conditions=f"64 octets, MTU 1500, CRC, no markers, 64 deep, {exact}")
    return told


def from_crc(figures, build_dir):
    def rows_of(said):
        rows = {1444: {}, 8944: {}}
        for line in said.splitlines():
            length, kernel, ns = line.split()
            rows[int(length)][kernel] = float(ns)
        if any("isal" not in kernels for kernels in rows.values()):
            raise NotMeasured("crc_cost has no figure of ISA-L")
        return rows

    try:
        said = output_of([os.path.join(build_dir, "tests/perf/crc_cost"), "400"])
        rows = read(lambda: rows_of(said))
    except NotMeasured as reason:
        for length in (1444, 8944):
            for measure in (f"crc-{length}", f"crc-{length}-best"):
                figures.by_measure[measure] = {"missing": str(reason)}
        return
    for length, all_of_it in rows.items():
        theirs = {name: ns for name, ns in all_of_it.items() if name.startswith("isal")}
        ours = {name: ns for name, ns in all_of_it.items() if name not in theirs}
        figures.by_measure[f"crc-{length}"] = crc_without_avx512(theirs, ours)
        best = min(ours, key=ours.get)
        figures.by_measure[f"crc-{length}-best"] = crc_figure(
            ours[best], theirs["isal"], f"{best} of {', '.join(ours)}")


def crc_figure(ours, theirs, conditions):
    value = theirs / ours
    return {"value": value, "low": value, "high": value, "rounds": 400,
            "conditions": f"{conditions}; hot, best slices",
            "beside": f"{ours:.1f} of {theirs:.1f} ns"}


def crc_without_avx512(theirs, ours):
    """What a CPU without AVX-512 takes, ours and ISA-L's."""
    before = {name: ns for name, ns in theirs.items() if name != "isal"}
    if "avx2" not in ours or not before:
        return {"missing": "this CPU has no AVX2 with VPCLMULQDQ, or ISA-L has no kernels by name"}
    name = min(before, key=before.get)
    return crc_figure(ours["avx2"], before[name], f"avx2; {name} of {', '.join(before)}")


def from_queue_pairs(figures, build_dir):
    def take():
        said = output_of([os.path.join(build_dir, "tests/perf/queue_pair_scale"), "500", "128",
                          "1"])
        octets, full, mean = re.search(
            r"each: (\d+) octets, and (\d+) once its queues were full; (\d+) with ", said).groups()
        value = int(full) / 1024  # the greater one: what a busy pair comes to
        return {"value": value, "low": value, "high": value, "rounds": 1,
                "conditions": "436 connected pairs behind 64, 128/128 deep, resident memory, queues "
                              "were full",
                "beside": f"{int(octets) / 1024:.0f} KB where one message goes at a time, "
                          f"{int(mean) / 1024:.1f} KB with what the first ones bring"}
    figures.add("queue-pair-memory", take)


def connection_rounds(perf, count, seconds, deadline):
    """Many connections by processor time over whole transfers, 16 KB messages."""
    table = {f"connections-{n}": ["--qps", str(n), "--size", "16K", "--no-floor", "--depth",
                                  str(max(2, min(16, 4096 // n)))] for n in CONNECTIONS}
    variants = {name: lambda a=arguments: perf.whole(*a, seconds=seconds)
                for name, arguments in table.items()}
    return Rounds(variants).run(count, deadline, fewest=1)


def points_of_connections(rounds):
    """For the plot, and to be written down."""
    return [{"x": count, "gb_per_cpu_s": statistics.median(
        run["gb_per_cpu_s"] for run in rounds.results[f"connections-{count}"])}
            for count in CONNECTIONS if f"connections-{count}" not in rounds.failed]


def from_connections(figures, rounds):
    def take(name):
        figure = rounds.ratio(name, "connections-1", "gb_per_cpu_s",
                              conditions=conditions(rounds.of(name)[0]) + ", CPU time")
        ours, base = (statistics.median(run["gb_per_cpu_s"] for run in rounds.of(which))
                      for which in (name, "connections-1"))
        figure["extra_ns"] = EMSS[1500] * 8 / ours - EMSS[1500] * 8 / base
        figure["beside"] = f"{ours:.1f} of {base:.1f} Gb a CPU-second"
        return figure
    for count in CONNECTIONS[2:]:
        figures.add(f"connections-{count}", lambda n=f"connections-{count}": take(n))


LOSS_ROWS = ("loss-0.1", "loss-1", "loss-0.1-rtt20", "loss-1-rtt20", "loss-0.1-rtt100",
             "loss-1-rtt100", "reorder-20us", "reorder-1ms")


def loss_rounds(build_dir, count, seconds):
    """What loss_cost says of each row, in words; another seed in each round."""
    program = os.path.join(build_dir, "tests/perf/loss_cost")

    def told(row, seeds):
        said = output_of([program, "--seconds", str(seconds), "--seed", str(next(seeds)), row],
                         timeout=600)
        return next(line.split() for line in said.splitlines() if line.startswith(row + " "))

    return Rounds({row: functools.partial(told, row, itertools.count(1))
                   for row in LOSS_ROWS}).run(count)


def from_loss(figures, rounds, seconds):
    """Rows of loss_cost: share, and what else it tells."""
    def take(row):
        runs = rounds.of(row)
        ours, without = (statistics.median(float(words[at]) for words in runs) for at in (4, 5))
        outs, spurious = (sum(int(words[at]) for words in runs) for at in (7, 8))
        markers = "markers" if row.startswith("reorder") else "no markers"
        return spread([float(words[1]) for words in runs],
                      fault=spurious != 0,  # no time-out may be spurious
                      conditions=f"1 MB, MTU 1500, CRC, {markers}, 8 deep, region 8192 KB, 1 core, "
                                 f"RTT of the wire {row.partition('-rtt')[2] or '0'} us, "
                                 f"{seconds} s of CPU time and waiting a round",
                      beside=f"{ours:.2f} of {without:.2f} Gb/s; {outs} time-outs, {spurious} of "
                             "them spurious")
    for row in LOSS_ROWS:
        figures.add(row, lambda r=row: take(r))
