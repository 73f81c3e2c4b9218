#!/usr/bin/env python3
"""What one process chooses, the next one does not: ports, STags and initial sequence numbers come
from the system's entropy, over every kind of port. Impairments have a seed of their own.

usage: secrets_test.py FIRST_CHOICES
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
PROCESSES = 5
EPHEMERAL = 65536 - 49152  # tcp.ephemeral_first
HERE = f"rnic{os.getpid()}s"  # a network namespace

WIRE = """[eal]
hugepages = "off"
[[wire]]
name = "loop"
[[device]]
name = "rnic0"
port = "wire:loop:0"
address = "10.0.0.1/24"
[[device]]
name = "rnic1"
port = "wire:loop:1"
address = "10.0.0.2/24"
"""
SOCKET = """[[device]]
name = "rnic0"
port = "socket"
address = "127.0.0.1/8"
[[device]]
name = "rnic1"
port = "socket"
address = "127.0.0.2/8"
"""
AF_PACKET = """[eal]
hugepages = "off"
[[device]]
name = "rnic0"
port = "net_af_packet0,iface=near"
address = "10.0.0.1/24"
[[device]]
name = "rnic1"
port = "net_af_packet1,iface=far"
address = "10.0.0.2/24"
"""


def first_syn(path):
    """The sequence number of the first SYN in a pcapng file."""
    with open(path, "rb") as file:
        octets = file.read()
    at = 0
    while at < len(octets):
        kind, length = struct.unpack_from("<II", octets, at)
        if kind == 6:  # Enhanced Packet Block
            frame = octets[at + 28:at + length - 4]
            ip = frame[14:]
            tcp = ip[(ip[0] & 15) * 4:]
            if frame[12:14] == b"\x08\x00" and ip[9] == 6 and tcp[13] & 0x12 == 2:
                return struct.unpack_from(">I", tcp, 4)[0]
        at += length
    raise AssertionError("no SYN was captured")


class Choices(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rnic-secrets-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_once(self, config, *keys, inside=()):
        path = os.path.join(self.folder, "config.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config)
        done = subprocess.run([*inside, PROGRAM, path, *keys], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout), done.stderr

    def port(self, choices):
        return int(choices["remote"].rsplit(":", 1)[1])

    def differ(self, values, of):
        """Five draws of `of` values: twice the same value once in a million runs."""
        most_equal = 1
        chance, pairs = 1.0, PROCESSES * (PROCESSES - 1) / 2
        while True:
            chance *= pairs / of
            if chance < 1e-6:
                break
            most_equal += 1
        self.assertGreater(len(set(values)), PROCESSES - most_equal, values)

    def check_differ(self, config, ports=True, inside=()):
        runs = [self.run_once(config, inside=inside)[0] for _ in range(PROCESSES)]
        if ports:
            self.differ([self.port(run) for run in runs], EPHEMERAL)
        for which in range(3):
            stags = [run["stags"][which] for run in runs]
            self.differ(stags, 1 << 24)
            self.differ([stag >> 8 for stag in stags], 1 << 16)
        return runs

    def test_wire(self):
        self.check_differ(WIRE)

    def test_system_sockets(self):
        self.check_differ(SOCKET, ports=False)  # the ports are the system's choice

    def test_af_packet(self):
        commands = [["ip", "netns", "add", HERE],
                    ["ip", "-n", HERE, "link", "add", "near", "type", "veth", "peer", "far"],
                    ["ip", "-n", HERE, "link", "set", "near", "up"],
                    ["ip", "-n", HERE, "link", "set", "far", "up"]]
        self.addCleanup(subprocess.run, ["ip", "netns", "del", HERE], stderr=subprocess.DEVNULL,
                        check=False)
        if os.geteuid() != 0 or any(subprocess.run(c, check=False).returncode for c in commands):
            self.skipTest("this machine allows no network namespaces")
        self.check_differ(AF_PACKET, inside=("ip", "netns", "exec", HERE))

    def test_initial_sequence_numbers(self):
        numbers = []
        for i in range(PROCESSES):
            file = os.path.join(self.folder, f"{i}.pcapng")
            self.run_once(WIRE, f"device.rnic0.capture.file={file}")
            numbers.append(first_syn(file))
        self.differ(numbers, 1 << 32)

    def test_fixed_ones_are_the_same_with_a_warning(self):
        fixed = ("device.*.random_secret=false", "device.rnic0.seed=5")
        runs = [self.run_once(WIRE, *fixed) for _ in range(3)]
        for choices, said in runs:
            self.assertEqual(choices, runs[0][0])
            self.assertRegex(said, r"warning.* rnic0: random_secret = false.*seed 5 .*guessed")
            self.assertRegex(said, r"warning.* rnic1: random_secret = false.*seed 2 ")
        other, _ = self.run_once(WIRE, "device.*.random_secret=false", "device.rnic0.seed=6")
        self.assertNotEqual(other["stags"], runs[0][0]["stags"])

    # The damage can be repeated, and tells nothing of what must not be guessed.
    def test_impairments_have_their_own_seed(self):
        drop = "device.rnic0.impair.duplicate=0.5"
        drawn = [re.findall(r"device\.(rnic\d)\.impair\.seed=(\d+)", self.run_once(WIRE, drop)[1])
                 for _ in range(PROCESSES)]
        self.assertTrue(all([name for name, _ in said] == ["rnic0"] for said in drawn), drawn)
        self.assertEqual(len({said[0][1] for said in drawn}), PROCESSES)
        runs = [self.run_once(WIRE, drop, "device.rnic0.impair.seed=7") for _ in range(PROCESSES)]
        self.differ([self.port(choices) for choices, _ in runs], EPHEMERAL)
        self.differ([choices["stags"][0] for choices, _ in runs], 1 << 24)
        for _, said in runs:
            self.assertIn("device.rnic0.impair.seed=7", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
