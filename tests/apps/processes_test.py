#!/usr/bin/env python3
"""Two processes, two network namespaces, a veth pair between them: rnic-perf and rnic-ping.

usage: processes_test.py RNIC_PERF RNIC_PING RNIC_DEMO RNIC_STREAM
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PERF, PING, _, STREAM = (os.path.abspath(path) for path in sys.argv[1:5])
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

    # The lines of --help: one file for both machines, and --address.
    def test_one_configuration_for_both(self):
        common = os.path.join(self.folder, "common.toml")
        with open(common, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(interface="eth0", address="10.9.0.9"))
        for name in (NEAR, FAR):
            for step in (["down"], ["name", "eth0"], ["up"]):
                self.assertEqual(ip("-n", name, "link", "set", name if step != ["up"] else "eth0",
                                    *step).returncode, 0)
            self.addCleanup(ip, "-n", name, "link", "set", name, "up")
            self.addCleanup(ip, "-n", name, "link", "set", "eth0", "name", name)
            self.addCleanup(ip, "-n", name, "link", "set", "eth0", "down")
        inside = ["ip", "netns", "exec", NEAR]
        short = ["--seconds", "0.1", "--size", "1000"]
        for server, client, more in (([PING, "server"], [PING], []),
                                     ([PERF, "server"], [PERF, "client"], short),
                                     ([STREAM, "server"], [STREAM, "client"], [])):
            command = [*server, "--config", common, "--address", f"{FAR_ADDRESS}/24"]
            with self.subTest(server=server), Server(command, self.folder):
                done = subprocess.run([*inside, *client, FAR_ADDRESS, "--config", common,
                                       "--address", "10.9.0.3/24", *more], capture_output=True, text=True,
                                      timeout=60, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)

    def set_mtu(self, *ends):
        for end, mtu in ends:
            self.assertEqual(ip("-n", end, "link", "set", end, "mtu", str(mtu)).returncode, 0)
            self.addCleanup(ip, "-n", end, "link", "set", end, "mtu", "1500")

    # What the link refuses is lost, as on any path: TCP finds the size that passes, and says so.
    def test_link_whose_mtu_is_smaller_than_it_was(self):
        self.set_mtu((NEAR, 9000), (FAR, 9000))
        quick = ["--set", "device.rnic0.mtu=9000", "--set", "tcp.rto_min=20ms",
                 "--set", "tcp.rto_initial=50ms", "--set", "tcp.delayed_ack=5ms"]
        with Server([PING, "server", "--config", self.far, *quick], self.folder) as server:
            self.set_mtu((FAR, 1500))
            done = self.client(PING, FAR_ADDRESS, "--count", "5", "--size", "30000", *quick)
            self.assertEqual(done.returncode, 0, done.stderr)
            said = server.said() + done.stderr
        self.assertRegex(said, r"net_af_packet0: the kernel refuses a frame of \d+ octets: it is dr")
        self.assertRegex(said, r"packets of \d+ octets towards [0-9.:]+ vanish: \d+ from here on")
        self.assertNotIn("has taken no frame for a second", said)

    # A port that takes nothing says so within about a second, and that it goes on. Its link is down,
    # which the kernel hides: of a few frames it swallows some and refuses others, of any size. Whoever
    # has something to send tells: the last ping may be acknowledged, its answer lost.
    def test_link_that_goes_down(self):
        client_log = os.path.join(self.folder, "client.log")
        command = ["ip", "netns", "exec", NEAR, PING, FAR_ADDRESS, "--config", self.near,
                   "--count", "10000000", "--json"]
        with Server([PING, "server", "--config", self.far], self.folder) as server, \
                open(client_log, "w", encoding="utf-8") as log:
            client = subprocess.Popen(command, stderr=log, stdout=subprocess.DEVNULL)
            logs = (client_log, server.log.name)
            try:
                self.await_line(logs, "connected to")
                ip("-n", FAR, "link", "set", FAR, "down")
                self.await_line(logs, "the device has taken no frame for a second")
                ip("-n", FAR, "link", "set", FAR, "up")
                said = self.await_line(logs, "frames are taken again")
            finally:
                ip("-n", FAR, "link", "set", FAR, "up")
                client.send_signal(signal.SIGINT)
                client.wait(20)
        self.assertNotIn("the kernel refuses a frame", said)

    def await_line(self, paths, text):
        """What the logs say, as soon as one of them says `text`."""
        end = time.monotonic() + 20
        while True:
            said = ""
            for path in paths:
                with open(path, encoding="utf-8") as file:
                    said += file.read()
            if text in said:
                return said
            self.assertLess(time.monotonic(), end, said)
            time.sleep(0.05)

    def test_af_xdp(self):
        try:
            socket.socket(44, socket.SOCK_RAW).close()  # AF_XDP
        except OSError:
            self.skipTest("this kernel has no AF_XDP sockets")
        with open(self.near, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(interface=NEAR, address="10.9.0.1")
                       .replace("net_af_packet0", "net_af_xdp0"))
        with Server([PING, "server", "--config", self.far], self.folder):
            for size in ("64", "100000"):
                done = self.client(PING, FAR_ADDRESS, "--count", "20", "--size", size, "--json")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("not returned", done.stderr)

    # Memory that both processes share takes the place of a wire.
    def test_memif(self):
        shared = os.path.join(self.folder, "memif.sock")
        for path, role, address in ((self.far, "server", FAR_ADDRESS),
                                    (self.near, "client", "10.9.0.1")):
            port = f"net_memif0,role={role},id=0,socket={shared},socket-abstract=no"
            with open(path, "w", encoding="utf-8") as file:
                file.write(CONFIG.format(interface="", address=address)
                           .replace("net_af_packet0,iface=", port))
        with Server([PING, "server", "--config", self.far], self.folder):
            for size in ("64", "100000"):
                done = self.client(PING, FAR_ADDRESS, "--count", "20", "--size", size, "--json")
                self.assertEqual(done.returncode, 0, done.stderr)

    # The kernel at the other end of the tap is a peer over its own TCP, in jumbo frames.
    def test_tap_with_jumbo_frames(self):
        tap = "rnictap"
        with open(self.far, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(interface=tap, address="10.8.0.1")
                       .replace("net_af_packet0", "net_tap0") + "mtu = 9000\n")
        with Server([PING, "server", "--config", self.far], self.folder):
            inside = ["ip", "netns", "exec", FAR]
            for command in (["ip", "addr", "add", "10.8.0.2/24", "dev", tap],
                            ["ethtool", "-K", tap, "tx", "off"]):
                subprocess.run([*inside, *command], check=True, stdout=subprocess.DEVNULL)
            with open(os.path.join(self.folder, "mtu"), "wb") as file:
                subprocess.run([*inside, "cat", f"/sys/class/net/{tap}/mtu"], check=True,
                               stdout=file)
            done = subprocess.run([*inside, PING, "10.8.0.1", "--size", "100000", "--json"],
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)

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
