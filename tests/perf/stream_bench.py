#!/usr/bin/env python3
"""Goodput of plain TCP streams: ./scripts/bench stream.

One round measures every figure once; the rounds interleave them, so that a neighbour's load meets
all alike. Figures over veth need root and are left out, with the reason, where namespaces are not
to be had.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "interop"))
import kernel_peer  # noqa: E402
from kernel_peer import Task  # noqa: E402
from network import (Network, Unavailable, check_machine, end_cleanly_when_terminated,  # noqa: E402
                     inside)
from ours import Ours, PORT  # noqa: E402

LOOPBACK_OCTETS = "1G"


def machine():
    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/loadavg", encoding="utf-8") as file:
        load = file.read().split()[0]
    return f"{model}, {os.cpu_count()} cores, Linux {os.uname().release}, load {load}"


def json_of(command, namespace=None):
    prefix = ["ip", "netns", "exec", namespace] if namespace else []
    done = subprocess.run([*prefix, *command], capture_output=True, text=True, timeout=300,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


class Figure:
    """One measurement, again and again."""

    def __init__(self, name, command, measure):
        self.name = name
        self.command = command
        self.measure = measure
        self.values = []

    def row(self):
        ordered = sorted(self.values)
        return {"figure": self.name, "unit": "Gbit/s", "median": statistics.median(ordered),
                "min": ordered[0], "max": ordered[-1], "rounds": len(ordered),
                "command": self.command}


def loopback_figures(options):
    figures = []
    for mtu in (1500, 9000):
        for name, extra in (("", ["--no-verify"]), (", every octet compared", ["--no-hash"])):
            command = [options.stream, "loopback", "--job", "send", "--mtu", str(mtu), "--message",
                       "256K", "--seconds", str(options.seconds), "--json", *extra]
            figures.append(Figure(
                f"both ends on one core, memory rings, MTU {mtu}{name}",
                shlex.join(command).replace(options.stream, "rnic-stream"),
                lambda c=command: json.loads(json_of(c).splitlines()[-1])["goodput_gbps"]))
    return figures


def kernel_drain(listener):
    """Takes octets, and looks at none of them."""
    sock, _ = listener.accept()
    buffer = bytearray(1 << 20)
    with sock:
        while sock.recv_into(buffer):
            pass


def ours_sends(network, seconds):
    with inside(network.kernel):
        listener = kernel_peer.socket.create_server((network.kernel4, PORT))
    with listener:
        drain = Task(kernel_drain, listener)
        with Ours(network, 4, "client", network.kernel4, "--job", "send", "--no-verify",
                  "--message", "256K", "--seconds", str(seconds)) as ours:
            result = ours.result(120)
        drain.result()
    return result["goodput_gbps"]


def ours_receives(network, seconds):
    with Ours(network, 4, "server", "--job", "send", "--no-verify", "--exit-after", "1") as ours:
        with inside(network.kernel):
            sock = kernel_peer.socket.socket()
        piece = memoryview(bytes(1 << 18))
        with sock:
            sock.connect(("10.77.0.1", PORT))
            start = time.monotonic()
            sent = 0
            while time.monotonic() < start + seconds:
                sent += sock.send(piece)
            sock.shutdown(kernel_peer.socket.SHUT_WR)
            sock.recv(1)  # our end has it all
            elapsed = time.monotonic() - start
        ours.result()
    return sent * 8 / elapsed / 1e9


def kernels(near, far, address, seconds, offloads):
    """iperf3 between two kernels."""
    state = "on" if offloads else "off"
    for namespace, name in ((near, "one0"), (far, "two0")):
        json_of(["ethtool", "-K", name, "tx", state, "rx", state, "tso", state, "gso", state, "gro",
                 state], namespace)
    server = subprocess.Popen(["ip", "netns", "exec", far, "iperf3", "-s", "-1", "--forceflush",
                               "-p", str(PORT)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for line in server.stdout:
            if "listening" in line:
                break
        said = json.loads(json_of(["iperf3", "-c", address, "-p", str(PORT), "-t", str(seconds),
                                   "-J"], near))
        return said["end"]["sum_received"]["bits_per_second"] / 1e9
    finally:
        if server.poll() is None:
            server.terminate()
        server.wait()
        server.stdout.close()


class KernelPair:
    """Two kernels and a veth pair."""

    def __init__(self, network):
        self.network = network
        self.near, self.far = network.ours + "x", network.kernel + "x"

    def __enter__(self):
        for name in (self.near, self.far):
            json_of(["ip", "netns", "add", name])
        self.network.cable(self.near, "one0", self.far, "two0", self.network.mtu)
        json_of(["ip", "-n", self.near, "addr", "add", "10.78.0.1/24", "dev", "one0"])
        json_of(["ip", "-n", self.far, "addr", "add", "10.78.0.2/24", "dev", "two0"])
        return self

    def __exit__(self, *_):
        for name in (self.near, self.far):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def veth_figures(network, pair, options):
    seconds = options.seconds
    mtu = network.mtu
    return [
        Figure(f"ours to the kernel, veth, MTU {mtu}",
               "rnic-stream client 10.77.0.2 --job send --no-verify --message 256K",
               lambda: ours_sends(network, seconds)),
        Figure(f"the kernel to ours, veth, MTU {mtu}",
               "rnic-stream server --job send --no-verify",
               lambda: ours_receives(network, seconds)),
        Figure(f"kernel to kernel, veth without offloads, MTU {mtu}",
               f"iperf3 -c 10.78.0.2 -t {seconds}",
               lambda: kernels(pair.near, pair.far, "10.78.0.2", seconds, False)),
        Figure(f"kernel to kernel, veth with offloads, MTU {mtu}",
               f"iperf3 -c 10.78.0.2 -t {seconds}",
               lambda: kernels(pair.near, pair.far, "10.78.0.2", seconds, True)),
    ]


def run_rounds(figures, options):
    for number in range(options.rounds):
        for figure in figures:
            figure.values.append(figure.measure())
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)


def measure_veth(mtu, options):
    with Network(mtu=mtu) as network, KernelPair(network) as pair:
        figures = veth_figures(network, pair, options)
        run_rounds(figures, options)
        return figures


def main():
    end_cleanly_when_terminated()
    parser = argparse.ArgumentParser(prog="bench stream", description=__doc__)
    parser.add_argument("--build-dir", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--out", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    options = parser.parse_args()
    options.stream = os.path.join(options.build_dir, "apps/rnic-stream/rnic-stream")
    Ours.program = options.stream
    report = {"machine": machine(), "figures": [], "left_out": []}
    figures = loopback_figures(options)
    try:
        check_machine()
        with Network(mtu=1500) as small, KernelPair(small) as pair:
            figures += veth_figures(small, pair, options)
            run_rounds(figures, options)
        figures += measure_veth(9000, options)
    except Unavailable as reason:
        report["left_out"].append(f"veth: {reason}")
        run_rounds(figures, options)
    report["figures"] = [figure.row() for figure in figures]
    for row in report["figures"]:
        print(f"{row['median']:8.2f} Gbit/s  ({row['min']:.2f} to {row['max']:.2f})  "
              f"{row['figure']}")
        print(f"                   {row['command']}")
    for line in report["left_out"]:
        print("left out: " + line)
    os.makedirs(os.path.dirname(options.out), exist_ok=True)
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
    print("written to " + os.path.relpath(options.out))


if __name__ == "__main__":
    main()
