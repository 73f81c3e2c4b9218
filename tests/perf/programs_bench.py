#!/usr/bin/env python3
"""Debian's RDMA programs on rnic-run, beside our own and the kernel's TCP: ./scripts/bench programs.

One round measures every figure once; the rounds interleave them, so that a neighbour's load meets
all alike. All go over the system's sockets on 127.0.0.1, between two processes, with a worker
(worker.mode = threaded). perftest and rstream compare no octets, so rnic-perf beside them compares
none either (--no-verify); rnic-ping compares all.
"""

import argparse
import contextlib
import json
import os
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from stream_bench import machine  # noqa: E402

ADDRESS = "127.0.0.1"
THREADED = ("--set", "worker.mode=threaded", "--set", "worker.idle=sleep")
SECONDS = 120  # that a program has at most


def free_port():
    with socket.socket() as probe:
        probe.bind((ADDRESS, 0))
        return str(probe.getsockname()[1])


def listens(port):
    rows = []
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}", encoding="ascii") as table:
            rows += [line.split() for line in table.readlines()[1:]]
    return any(int(row[1].rpartition(":")[2], 16) == int(port) and row[3] == "0A" for row in rows)


@contextlib.contextmanager
def server(command, port):
    """Runs a program as long as this lasts, from when it listens."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + SECONDS
            while not listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    process.kill()
                    raise RuntimeError(f"{command} does not listen: {process.communicate()[0]}")
                time.sleep(0.01)
            yield
        finally:
            process.kill()


def said_by(command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def again(measure):
    """A client of perftest that is faster than its server's second listen is refused (-111)."""
    for _ in range(10):
        try:
            return measure()
        except RuntimeError as error:
            last = error
            if "-111" not in str(error):
                raise
    raise last


class Programs:
    """What is measured, by programs of one build."""

    def __init__(self, folder, options):
        apps = os.path.join(options.build_dir, "apps")
        self.run = os.path.join(apps, "rnic-run", "rnic-run")
        self.perf = os.path.join(apps, "rnic-perf", "rnic-perf")
        self.ping = os.path.join(apps, "rnic-ping", "rnic-ping")
        self.folder = folder
        self.seconds = options.seconds
        self.copied = options.copy << 20
        self.no_crc = os.path.join(folder, "no-crc.toml")
        with open(self.no_crc, "w", encoding="ascii") as file:
            file.write('[worker]\nmode = "threaded"\nidle = "sleep"\n'
                       '[[device]]\nname = "rnic0"\nport = "socket"\n'
                       '[device.mpa]\ncrc = false\n')

    def perftest(self, name, size, column, count):
        """-> a column of the row of figures"""
        def measure():
            port = free_port()
            command = [self.run, name, "-R", "-F", "-p", port, "-s", str(size), "-n", str(count),
                       *(["--report_gbits"] if name.endswith("_bw") else [])]
            with server(command, port):
                said = said_by([*command, ADDRESS])
            row = re.search(rf"^ *{size} +{count} +(.*)$", said, re.MULTILINE)
            return float(row.group(1).split()[column])
        return again(measure)

    def goodput(self, size, *options):
        port = free_port()
        common = ("--port", "socket", "--port", port, *THREADED, *options)
        with server([self.perf, "server", *common], port):
            said = said_by([self.perf, "client", ADDRESS, *common, "--op", "write", "--size",
                            str(size), "--seconds", str(self.seconds), "--no-verify", "--json"])
        return json.loads(said.splitlines()[-1])["goodput_gbps"]

    def round_trip(self):
        """-> us"""
        port = free_port()
        common = ("--port", "socket", "--port", port, *THREADED)
        with server([self.ping, "server", *common], port):
            said = said_by([self.ping, ADDRESS, *common, "--count", "5000", "--json"])
        return json.loads(said.splitlines()[-1])["p50_us"]

    def rstream(self, size, *options, config=None):
        port = free_port()
        count = max(100, int(self.seconds * 1e9 / size))
        on = [self.run, *(["--config", config] if config else [])]
        command = ["rstream", "-S", str(size), "-C", str(count), "-p", port, *options]
        if "-T" not in options:
            command = [*on, *command]
        with server(command, port):
            said = said_by([*command, "-s", ADDRESS])
        return float(said.splitlines()[-1].split()[-2])

    def rcopy(self):
        port = free_port()
        sent, come = (os.path.join(self.folder, name) for name in ("sent", "come"))
        if not os.path.exists(sent):
            with open(sent, "wb") as file:
                for _ in range(self.copied >> 20):
                    file.write(os.urandom(1 << 20))
        begin = time.monotonic()
        with server([self.run, "rcopy", "-p", port], port):
            said_by([self.run, "rcopy", sent, f"{ADDRESS}:{come}", "-p", port])
        took = time.monotonic() - begin
        with open(sent, "rb") as one, open(come, "rb") as other:
            if one.read() != other.read():
                raise RuntimeError("rcopy: another file has come")
        os.unlink(come)
        return self.copied * 8 / took / 1e9

    def first_completion(self):
        """-> ms of processor time of a client that sends one message, and ends"""
        port = free_port()
        common = ("-p", port, "-a", ADDRESS, "-C", "1")
        with server([self.run, "rping", "-s", *common], port):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            said_by([self.run, "rping", "-c", *common])
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def figures_of(programs):
    """-> (name, unit, measure, name of what it is compared with)"""
    yield from bandwidth_of(programs)
    yield "rnic-ping, 64 octets, each compared", "us", programs.round_trip, None
    for verb in ("send", "write"):
        name = f"ib_{verb}_lat"
        yield (f"{name} 64, there and back", "us",
               lambda name=name: 2 * programs.perftest(name, 64, 2, 5000),
               "rnic-ping, 64 octets, each compared")
    yield "rcopy, each octet compared", "Gbit/s", programs.rcopy, "rnic-perf write 1M"
    yield "rping -C 1, its client", "ms CPU", programs.first_completion, None


def bandwidth_of(programs):
    for text, size in (("64K", 1 << 16), ("1M", 1 << 20)):
        count = max(200, int(programs.seconds * 1e9 / size))
        perf = f"rnic-perf write {text}"
        yield perf, "Gbit/s", lambda size=size: programs.goodput(size), None
        yield (f"ib_write_bw {text}", "Gbit/s",
               lambda size=size, count=count: programs.perftest("ib_write_bw", size, 1, count), perf)
        yield f"rstream {text}", "Gbit/s", lambda size=size: programs.rstream(size), perf
        yield (f"rstream {text}, no CRC", "Gbit/s",
               lambda size=size: programs.rstream(size, config=programs.no_crc), perf)
        kernel = f"rstream -T s {text}, kernel TCP"
        yield kernel, "Gbit/s", lambda size=size: programs.rstream(size, "-T", "s"), perf


def show(figures, values):
    width = max(len(name) for name, *_ in figures)
    print(f"{'':{width}}  {'median':>9} {'least to most':>19}  {'ratio':>6}")
    for name, unit, _, beside in figures:
        ordered = sorted(values[name])
        line = (f"{name:{width}}  {statistics.median(ordered):9.2f} "
                f"{ordered[0]:9.2f} {ordered[-1]:9.2f}")
        if beside:
            ratios = [one / other for one, other in zip(values[name], values[beside])]
            line += f"  {statistics.median(ratios):6.2f} of {beside}"
        print(f"{line}  [{unit}]")


def main():
    parser = argparse.ArgumentParser(prog="./scripts/bench programs", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each stream (default 1)")
    parser.add_argument("--copy", type=int, default=256, help="MB that rcopy copies (default 256)")
    options = parser.parse_args()
    if options.rounds < 1 or options.seconds <= 0 or options.copy < 1:
        parser.error("--rounds, --seconds and --copy: give more than 0")
    print(f"machine: {machine()}")
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(folder, options)
        figures = list(figures_of(programs))
        values = {name: [] for name, *_ in figures}
        for _ in range(options.rounds):
            for name, _, measure, _ in figures:
                values[name].append(measure())
    print(f"{options.rounds} interleaved rounds\n")
    show(figures, values)


if __name__ == "__main__":
    main()
