#!/usr/bin/env python3
"""Two processes, two network namespaces, a veth pair between them: rnic-perf and rnic-ping.

usage: processes_test.py RNIC_PERF RNIC_PING RNIC_DEMO
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PERF, PING = (os.path.abspath(path) for path in sys.argv[1:3])
NEAR, FAR = (f"rnic{os.getpid()}{end}" for end in "ab")  # names of namespaces and interfaces
FAR_ADDRESS = "10.9.0.2"
CONFIG = """[eal]
hugepages = "off"
[[device]]
name = "rnic0"
port = "net_af_packet0,iface={interface}"
address = "{address}/24"
"""


def ip(*args):
    return subprocess.run(["ip", *args], capture_output=True, text=True, check=False)


def skip(reason):
    print(reason)
    sys.exit(77)


def make_network():
    """False when this machine does not allow it."""
    if ip("netns", "add", NEAR).returncode or ip("netns", "add", FAR).returncode:
        return False
    if ip("link", "add", NEAR, "netns", NEAR, "type", "veth",
          "peer", "name", FAR, "netns", FAR).returncode:
        return False
    return all(ip("-n", name, "link", "set", name, "up").returncode == 0 for name in (NEAR, FAR))


def remove_network():
    for name in (NEAR, FAR):
        ip("netns", "del", name)


class Server:
    """A server in the far namespace, until the block ends."""

    def __init__(self, command, folder):
        self.log = open(os.path.join(folder, "server.log"), "w+", encoding="utf-8")
        self.child = subprocess.Popen(["ip", "netns", "exec", FAR, *command], stderr=self.log,
                                      stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def said(self):
        self.log.flush()
        with open(self.log.name, encoding="utf-8") as file:
            return file.read()

    def __enter__(self):
        end = time.monotonic() + 30
        while "listening on" not in self.said():
            if self.child.poll() is not None or time.monotonic() > end:
                self.stop()
                raise AssertionError("the server does not listen: " + self.said())
            time.sleep(0.02)
        return self

    def stop(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)
        try:
            self.status = self.child.wait(20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.status = self.child.wait()
        self.log.close()

    def __exit__(self, *_):
        self.stop()


class TwoProcesses(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rnic-processes-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.near = self.write("near.toml", NEAR, "10.9.0.1")
        self.far = self.write("far.toml", FAR, FAR_ADDRESS)

    def write(self, name, interface, address):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(interface=interface, address=address))
        return path

    def client(self, *command):
        return subprocess.run(["ip", "netns", "exec", NEAR, *command, "--config", self.near],
                              capture_output=True, text=True, timeout=60, check=False)

    def result(self, *command):
        done = self.client(*command, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def test_perf(self):
        with Server([PERF, "server", "--config", self.far], self.folder) as server:
            for op, size in (("write", "64K"), ("read", "64K"), ("send", "3000"), ("write", "7")):
                with self.subTest(op=op):
                    result = self.result(PERF, "client", FAR_ADDRESS, "--op", op, "--size", size,
                                         "--seconds", "0.2")
                    self.assertIs(result["verified"], True)
                    self.assertEqual(result["op"], op)
                    self.assertGreater(result["goodput_gbps"], 0)
        self.assertEqual(server.status, 0)

    def test_ping(self):
        with Server([PING, "server", "--config", self.far], self.folder) as server:
            for size in ("1", "64", "100000"):
                result = self.result(PING, FAR_ADDRESS, "--count", "20", "--size", size)
                self.assertIs(result["verified"], True)
                self.assertEqual(result["count"], 20)
        self.assertEqual(server.status, 0)

    def test_nobody_listens(self):
        with Server([PING, "server", "--config", self.far], self.folder):
            done = self.client(PING, FAR_ADDRESS, "--port", "9")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(done.stdout, "")
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip("only root can make network namespaces")
    if shutil.which("ip") is None:
        skip("no ip command to make network namespaces with")
    try:
        if not make_network():
            remove_network()
            skip("this machine allows no network namespaces")
        unittest.main(argv=sys.argv[:1])
    finally:
        remove_network()
