#!/usr/bin/env python3
"""The servers of rnic-ping and rnic-perf serve many at once and wait for nobody: over sockets, and
with a stack of their own on a veth pair where namespaces can be made.

usage: servers_test.py RNIC_PERF RNIC_PING RNIC_DEMO RNIC_STREAM [option of unittest ...]
"""

import contextlib
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIEGE = os.path.join(TESTS, "siege")
sys.path[:0] = [SIEGE, os.path.join(TESTS, "apps")]
sys.dont_write_bytecode = True
import arena  # noqa: E402
import ports  # noqa: E402

PERF, PING = (os.path.abspath(path) for path in sys.argv[1:3])
SILENT_PEER_KB = 256
# Meson sets it, and malloc() then writes to all that it gives: memory that nobody uses would count.
os.environ.pop("MALLOC_PERTURB_", None)


class Servers:
    """The tests; a subclass says where."""

    arena = None

    def setUp(self):
        try:
            self.place = self.enterContext(self.arena(ports.free_port()))
        except arena.Unavailable as why:
            self.skipTest(str(why))

    def enterContext(self, context):  # of unittest since Python 3.11
        entered = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return entered

    @contextlib.contextmanager
    def strangers(self, attack, number, until):
        """Strangers of one kind; the block begins when they have said `until`."""
        command = [sys.executable, os.path.join(SIEGE, "strangers.py"), self.place.address,
                   str(self.place.port), "--attacks", attack, "--total", str(number), "--at-a-time",
                   str(number), "--hold", "300"]
        child = subprocess.Popen(self.place.outside(*command), stdout=subprocess.PIPE, text=True)
        try:
            for line in child.stdout:
                if line.strip() == until:
                    break
            else:
                self.fail(f"the strangers did not say {until}")
            yield child
        finally:
            child.kill()
            child.wait()
            child.stdout.close()

    def client(self, binary, *arguments):
        mode = ["client"] if binary == PERF else []
        return self.place.outside(binary, *mode, self.place.address, "--port", "socket", "--port",
                                  str(self.place.port), *arguments)

    def serves(self, binary):
        length = ("--count", "5") if binary == PING else ("--seconds", "0.1", "--size", "4K")
        done = subprocess.run(self.client(binary, "--json", *length), capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIs(json.loads(done.stdout.splitlines()[-1])["verified"], True)

    def test_silent_strangers_block_nobody(self):
        for binary in (PING, PERF):
            for attack, until in (("started", "all started"), ("silent", "under way")):
                with self.subTest(binary=os.path.basename(binary), attack=attack):
                    with self.place.server(binary) as server:
                        with self.strangers(attack, 20, until):
                            self.serves(binary)
                            self.serves(binary)
                    self.assertEqual(server.status, 0, server.said())

    def test_clients_are_served_at_the_same_time(self):
        with self.place.server(PERF) as server:
            both = [subprocess.Popen(self.client(PERF, "--json", "--seconds", "0.5", "--op", op),
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                    for op in ("send", "write-imm", "fetch-add")]
            for child in both:
                out, said = child.communicate(timeout=60)
                self.assertEqual(child.returncode, 0, said)
                self.assertIs(json.loads(out.splitlines()[-1])["verified"], True)
        self.assertEqual(server.status, 0, server.said())

    # What the dead client's system still says is a FIN: nobody sends the rest of the batch.
    def test_a_client_killed_in_its_batch_is_noticed(self):
        with self.place.server(PERF) as server:
            for number in range(3):
                child = subprocess.Popen(
                    self.client(PERF, "--seconds", "600", "--op", "send", "--size", "512K"),
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                end = time.monotonic() + 60
                while server.said().count("\nclient ") < 4 * number + 1:
                    self.assertLess(time.monotonic(), end, server.said())
                    time.sleep(0.01)
                time.sleep(0.02 * number)  # at another place of its batches
                child.kill()
                child.wait()
                self.serves(PERF)
                server.wait_for("is gone")
                end = time.monotonic() + 60
                while server.said().count("is gone") < 2 * number + 2:
                    self.assertLess(time.monotonic(), end, server.said())
                    time.sleep(0.01)
        self.assertEqual(server.status, 0, server.said())

    def test_who_is_silent_for_long_is_let_go_and_told_of(self):
        with self.place.server(PING, "--silence", "1") as server:
            with self.strangers("started", 3, "all started") as crowd:
                server.wait_for("is let go: it said nothing for 1 s (--silence)")
                fates = json.loads(crowd.stdout.readline())
                self.assertEqual(fates["closed by the server"], 3, fates)
            self.serves(PING)
        self.assertEqual(server.status, 0, server.said())

    # Atomics, Reads and Writes are the device's alone; their client is at work all the same.
    def test_who_works_on_memory_alone_is_not_silent(self):
        for binary, *more in ((PING, "--op", "fetch-add", "--count", "1000000"),
                              (PERF, "--op", "read", "--size", "4K", "--seconds", "600"),
                              (PERF, "--op", "cmp-swap", "--seconds", "600")):
            with self.subTest(more=more), self.place.server(binary, "--silence", "1") as server:
                busy = subprocess.Popen(self.client(binary, *more), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
                try:
                    server.wait_for("\nclient ")
                    with self.assertRaises(subprocess.TimeoutExpired):
                        told = busy.communicate(timeout=4)[1]
                        self.fail(f"{told}\n{server.said()}")
                    self.assertNotIn("is let go", server.said())
                finally:
                    busy.kill()
                    busy.communicate()

    def test_for_one_more_a_silent_one_gives_way(self):
        with self.place.server(PING, "--clients", "4") as server:
            with self.strangers("started", 4, "all started"):
                self.serves(PING)
                self.assertIn("was let go for ", server.said())
        self.assertEqual(server.status, 0, server.said())

    # The device may have places for fewer than --clients.
    def test_for_one_more_than_the_device_takes_a_silent_one_gives_way(self):
        for binary in (PING, PERF):
            with self.subTest(binary=os.path.basename(binary)):
                with self.place.server(binary, "--set", "limits.max_pds=4") as server:
                    with self.strangers("started", 4, "all started"):
                        self.serves(binary)
                        self.assertIn("nothing left for one more than 4 clients", server.said())
                self.assertEqual(server.status, 0, server.said())

    # One that was welcomed just now has said nothing yet, so it gives way: then another one is.
    def test_who_finds_no_place_is_told_why(self):
        with self.place.server(PERF, "--clients", "1") as server:
            for _ in range(5):
                done = self.beside_a_busy_one(server)
                if done.returncode != 0:
                    break
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("no place: 1 clients are at work (--clients)", done.stderr)
            self.assertIn("rejected: no place", server.said())
        self.assertEqual(server.status, 0, server.said())

    def beside_a_busy_one(self, server):
        """What comes of a client for which there is no place."""
        welcomed = re.compile(r"^client \S+$", re.MULTILINE)
        before = len(welcomed.findall(server.said()))
        end = time.monotonic() + 60
        busy = subprocess.Popen(self.client(PERF, "--seconds", "600", "--size", "4K"),
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while len(welcomed.findall(server.said())) == before:
                self.assertLess(time.monotonic(), end, server.said())
                time.sleep(0.02)
            return subprocess.run(self.client(PERF, "--seconds", "0.1"), capture_output=True,
                                  text=True, timeout=60, check=False)
        finally:
            busy.kill()
            busy.wait()

    def test_what_a_silent_peer_costs(self):
        for binary in (PING, PERF):
            with self.subTest(binary=os.path.basename(binary)):
                with self.place.server(binary, "--clients", "100") as server:
                    self.serves(binary)  # what is made once is there
                    before = server.memory_kb()
                    with self.strangers("started", 100, "all started"):
                        each = (server.memory_kb() - before) / 100
                    if not arena.is_sanitized(binary):  # else the sanitizer's memory is in it
                        self.assertLessEqual(each, SILENT_PEER_KB)
                    print(f"{self.place.name}: a silent peer costs {os.path.basename(binary)} "
                          f"{each:.0f} KB")


    # Who gives way is told by a reset, and the server's log says why.
    def test_pressure_is_told_in_the_log(self):
        with self.place.server(PING) as server:
            with self.strangers("silent", 400, "under way"):
                server.wait_for("gave way to newer ones: 256 had not sent a whole Request "
                                "(limits.max_starting)")
                self.serves(PING)
        self.assertEqual(server.status, 0, server.said())


class OverSockets(Servers, unittest.TestCase):
    arena = arena.OnSockets

    # The server's application hears nothing of what is written into its memory.
    def test_who_writes_much_is_not_taken_for_silent(self):
        with self.place.server(PERF, "--clients", "1") as server:
            busy = subprocess.Popen(
                self.client(PERF, "--seconds", "4", "--op", "write", "--size", "64M", "--no-verify"),
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            server.wait_for("\nclient ")
            time.sleep(1)
            while busy.poll() is None:
                subprocess.run(self.client(PERF, "--seconds", "0.1"), capture_output=True,
                               timeout=60, check=False)
                time.sleep(0.2)
            self.assertEqual(busy.returncode, 0, busy.communicate()[1] + server.said())
            self.assertIn("rejected: no place", server.said())

    # What a peer says of its memory is not what we have of our own.
    def test_a_server_may_offer_what_it_likes(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = subprocess.Popen(
                [PERF, "client", "127.0.0.1", "--port", str(listener.getsockname()[1]), "--size",
                 "128M"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            peer = listener.accept()[0]
            with peer:
                request = peer.recv(4096)
                offer = struct.pack(">IIQQI", 0x524e4f31, 0x1234, 0, 1 << 40, 0)
                data = request[20:24] + offer  # IRD and ORD as they were asked for
                peer.sendall(b"MPA ID Rep Frame" + request[16:18] + struct.pack(">H", len(data)) +
                             data)
                told = client.communicate(timeout=60)[1]
        self.assertEqual(client.returncode, 2, told)
        self.assertIn("--size is above the server's 67108864 octets", told)

    # The descriptors run out long before the tables do.
    def test_strangers_hold_no_descriptor_that_a_client_needs(self):
        command = ["prlimit", "--nofile=40", PING, "server", "--port", "socket", "--port",
                   str(self.place.port)]
        for key in ("limits.max_connections=40", "tcp.max_half_open=20", "tcp.max_listeners=1",
                    "limits.max_pending_requests=40"):
            command += ["--set", key]
        with arena.Server(command) as server:
            with self.strangers("silent", 200, "under way"):
                for _ in range(3):
                    self.serves(PING)
            self.assertLessEqual(server.descriptors(), 40)
        self.assertEqual(server.status, 0, server.said())


class OverAfPacket(Servers, unittest.TestCase):
    arena = arena.OnAfPacket


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
