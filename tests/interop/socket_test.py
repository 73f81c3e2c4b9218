#!/usr/bin/env python3
"""The fully layered variant (RFC 5044 section 5) against the full stack: RDMA over the Linux kernel's
TCP at one end of a veth pair, over our TCP and a packet socket at the other.

usage: socket_test.py RNIC_PERF RNIC_PING [unittest arguments]
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from network import (Network, Unavailable, check_machine, end_cleanly_when_terminated,
                     KERNEL4, KERNEL6, OURS4, OURS6)

PERF, PING = (os.path.abspath(path) for path in sys.argv[1:3])
PATIENCE = 60
MESSAGES = (("write", "64K"), ("read", "64K"), ("send", "3001"), ("write", "7"),
            ("write-imm", "5000"))
ATOMICS = ("fetch-add", "masked-add", "cmp-swap", "masked-swap")
WORDS = ("imm", *ATOMICS)  # 8 octets each
CONFIG = """[eal]
hugepages = "off"
[[device]]
name = "rnic0"
port = "net_af_packet0,iface={interface}"
address = "{address}"
"""


class Case(unittest.TestCase):
    """One server and its clients; `full` names the end on which the full stack is."""

    def setUp(self):
        self.network = self.enterContext(Network())
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="rnic-socket-"))

    def command(self, full, family, program, *arguments):
        """A program at one end, with what its device stands on."""
        namespace = self.network.ours if full else self.network.kernel
        stands = ["--port", "socket"]
        if full:
            path = os.path.join(self.folder, f"ours{family}.toml")
            with open(path, "w", encoding="utf-8") as file:
                address = OURS4 + "/24" if family == 4 else OURS6 + "/64"
                file.write(CONFIG.format(interface=self.network.interface, address=address))
            stands = ["--config", path]
        return ["ip", "netns", "exec", namespace, program, *arguments, *stands]

    def serve(self, full, family, program, *settings):
        log_path = os.path.join(self.folder, "server.log")
        self.client_said = ""
        with open(log_path, "w", encoding="utf-8") as log:
            child = subprocess.Popen(self.command(full, family, program, "server", *settings),
                                     stderr=log, stdout=subprocess.DEVNULL,
                                     stdin=subprocess.DEVNULL)
        self.addCleanup(self.stop, child)
        end = time.monotonic() + PATIENCE
        while True:
            with open(log_path, encoding="utf-8") as log:
                said = log.read()
            if "listening on" in said:
                return child
            if child.poll() is not None or time.monotonic() > end:
                self.fail("the server does not listen: " + said)
            time.sleep(0.02)

    def said(self):
        """By the server and its clients, since the server began."""
        with open(os.path.join(self.folder, "server.log"), encoding="utf-8") as log:
            return log.read() + self.client_said

    @staticmethod
    def stop(child):
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    @staticmethod
    def address(full, family):
        if full:
            return OURS4 if family == 4 else OURS6
        return KERNEL4 if family == 4 else KERNEL6

    def client(self, full, family, program, *arguments):
        done = subprocess.run(self.command(full, family, program, *arguments, "--json"),
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.client_said += done.stderr
        result = json.loads(done.stdout.splitlines()[-1])
        self.assertIs(result["verified"], True)
        return result

    def exchange(self, active_full, family, active=(), passive=(), words=("masked-swap",)):
        """Messages and words, every octet and value compared by the programs."""
        server = self.serve(not active_full, family, PERF, *passive)
        peer = self.address(not active_full, family)
        for op, size in MESSAGES + tuple((op, None) for op in words):
            with self.subTest(op=op, size=size):
                sized = ("--size", size) if size else ()
                result = self.client(active_full, family, PERF, "client", peer, "--op", op,
                                     *sized, "--seconds", "0.1", *active)
                self.assertEqual(result["checksum"] == "system", not active_full)
        self.stop(server)


class OverTheVeth(Case):
    # R7306-5-01, R7306-5-04, R7306-5-05, R7306-5-09, R7306-6-02, R7306-6-03: beside Sends, Writes and
    # Reads; what each atomic found is compared by its requester, what all of them left by the other.
    def test_socket_connects_ipv4(self):
        self.exchange(False, 4, words=WORDS)

    def test_socket_connects_ipv6(self):
        self.exchange(False, 6, words=WORDS)

    def test_socket_listens_ipv4(self):
        self.exchange(True, 4, words=WORDS)

    def test_socket_listens_ipv6(self):
        self.exchange(True, 6, words=WORDS)

    def test_markers(self):
        on, off = ("--set", "mpa.markers=true"), ()
        for active, passive in ((on, on), (on, off), (off, on)):
            with self.subTest(active=active, passive=passive):
                self.exchange(False, 4, active, passive)

    def test_without_crc(self):
        off = ("--set", "mpa.crc=false")
        self.exchange(True, 4, off, off)

    # MPA-5.1-04: the sender does not align; the full stack's receiver takes the FPDUs all the same.
    def test_alignment_lost(self):
        self.exchange(False, 4, ("--set", "socket.align=false", "--set", "tcp.nagle=true"))

    # TUF-2-02, TUF-4-03: in marker mode, whichever end connects. What comes to the socket is never
    # taken for segments, so no end suspects a middlebox; the limit makes one piece enough.
    def test_ulp_framing(self):
        tuf = ("--set", "framing.protocol=tuf", "--set", "tuf.middlebox_limit=1")
        for active_full in (False, True):
            with self.subTest(active_full=active_full):
                self.exchange(active_full, 4, tuf, tuf)
                self.assertNotIn("resegments", self.said())
        # The full stack alone would send and take alignment mode, which a socket cannot.
        server = self.serve(False, 4, PERF, *tuf)
        refused = subprocess.run(
            self.command(True, 4, PERF, "client", KERNEL4, *tuf, "--set", "tuf.markers=false"),
            capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("connect failed", refused.stderr)
        self.stop(server)

    # VERBS-09, VERBS-10
    def test_ping(self):
        for full in (True, False):
            server = self.serve(not full, 4, PING)
            for op in ("send", *WORDS):
                with self.subTest(full=full, op=op):
                    result = self.client(full, 4, PING, self.address(not full, 4), "--count", "50",
                                         "--op", op)
                    self.assertEqual((result["op"], result["count"]), (op, 50))
            self.stop(server)


if __name__ == "__main__":
    end_cleanly_when_terminated()
    try:
        check_machine()
        with Network():
            pass
    except Unavailable as reason:
        print(reason)
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
