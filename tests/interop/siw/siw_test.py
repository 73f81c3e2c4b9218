#!/usr/bin/env python3
"""softrnic against a live Linux siw in a virtual machine (docs/siw.md).

usage: siw_test.py SIW_PEER [--long] [unittest arguments]
"""

import os
import signal
import sys
import unittest

import breaches
import guest_image
import plan
from bench import PORT, RPING_PORT, Bench, problems_of, run_cells
from cells import describe, table
from guest import GUEST, Laboratory, enter_network
from guest_kernel import Unavailable
from host_peer import HostPeer

LONG = "--long" in sys.argv


class Siw(unittest.TestCase):
    """All tests share a guest."""

    laboratory = None

    def setUp(self):
        self.bench = self.enterContext(Bench(self.laboratory))


class Rping(Siw):
    """rping as Debian packages it, in both roles; -V verifies at the guest's end, too."""

    COUNT = 5

    def test_they_serve(self):
        for port in ("packet", "socket"):
            with self.subTest(port=port):
                ours = self.bench.set_ours(port)
                self.bench.guest.start("rping", f"rping -s -S 5000 -C {self.COUNT} -V")
                self.bench.guest.execute("sleep 1")
                result = ours.connect(kind="rping", address=GUEST, port=RPING_PORT, size=5000,
                                      count=self.COUNT)
                self.assertEqual(problems_of(result), [])
                self.assertEqual(result["connections"][0]["exchanges"], self.COUNT)
                self.bench.guest.collect("rping", 20)

    def test_we_serve(self):
        for port in ("packet", "socket"):
            with self.subTest(port=port):
                ours = self.bench.set_ours(port)
                ours.serve(kind="rping", port=RPING_PORT, size=5000)
                answer = self.bench.guest.execute(
                    f"rping -c -a {ours.address} -S 5000 -C {self.COUNT} -V", 60)
                self.assertEqual(answer.status, 0, answer.text)
                result = ours.answer()
                self.assertEqual(problems_of(result), [])
                self.assertEqual(result["connections"][0]["exchanges"], self.COUNT)


class Cells(Siw):
    def test_table(self):
        """Every pair of values, with --long every triple and every size."""
        failures = []

        def report(cell, problem):
            print(("FAILED " if problem else "ok ") + describe(cell), flush=True)
            if problem:
                print("    " + problem, flush=True)
                failures.append(describe(cell) + ": " + problem)

        cells = table(3 if LONG else 2)
        run_cells(self.bench, cells, report, LONG)
        self.assertEqual(failures, [], f"{len(failures)} of {len(cells)} cells")


class Terminates(Siw):
    """Each breach of a rule, by either end: who finds it tells it with the right code."""

    def test_each(self):
        for cell in breaches.cells(LONG):
            with self.subTest(**cell):
                found = self.bench.run_breach(cell)
                event, fault = breaches.expected(cell)
                self.assertIn({"event": event, "fault": fault}, found["faults"])
                self.assertIn("disconnected", found["events"])


class Deaths(Siw):
    """An end is killed in the midst of endless rounds of Writes: the other one is told, nothing stays
    behind, and the next connection works."""

    def streaming(self, role, port, **settings):
        """Returns when octets flow; the result of our end is to come."""
        bench = self.bench
        ours = bench.set_ours(port, **settings)
        bench.set_guest()
        octets = plan.encode("write", (65536, 5, 4096), bench.next_seed(), pairs=plan.ENDLESS,
                             patience=10)
        self.streaming_seed = bench.seed
        if role == "we-connect":
            bench.serve_in_guest()
            ours.start(do="connect", kind="trial", address=GUEST, port=PORT, qps=2, announce=True,
                       plan=octets.hex())
        else:
            ours.serve(kind="trial", port=PORT, qps=2, announce=True)
            bench.guest.start("client", f"guest_peer client {ours.address} {PORT} 2 {octets.hex()}")
        self.assertEqual(ours.answer(), {"moving": True})
        return ours

    def works_again(self, port):
        for role in ("we-connect", "siw-connects"):
            octets = plan.encode("read", (4096,), self.bench.next_seed())
            self.bench.set_ours(port)
            self.assertEqual(problems_of(self.bench.trial(role, octets)), [])

    def each(self):
        for role, port in (("we-connect", "packet"), ("siw-connects", "packet"),
                           ("we-connect", "socket"), ("siw-connects", "socket")):
            with self.subTest(role=role, port=port):
                yield role, port

    def lost(self, result):
        for connection in result["connections"]:
            self.assertTrue({"peer closed", "disconnected"} & set(connection["events"]), connection)
        self.assertTrue(result["quiescent"])

    def test_our_process(self):
        for role, port in self.each():
            self.streaming(role, port).kill()
            # Of a stack of our own nobody is left to tell. The next one answers by RST to what still
            # comes; an end that only waits finds out by itself.
            name = "server" if role == "we-connect" else "client"
            seeds = f"{self.streaming_seed}|{self.streaming_seed + 1}"
            told = self.bench.guest.execute(
                f"for turn in $(seq 600); do [ $(grep -cE '^({seeds}) failed' /tmp/{name}.out) = 2 ] "
                f"&& exit 0; sleep 0.1; done; cat /tmp/{name}.out; exit 1", 90)
            self.assertEqual(told.status, 0, told.text)
            self.works_again(port)

    def test_the_guests_process(self):
        for role, port in self.each():
            ours = self.streaming(role, port)
            self.bench.guest.kill("server" if role == "we-connect" else "client")
            self.lost(ours.answer())
            self.works_again(port)

    def test_the_guest(self):
        for port, setting in (("packet", {"tcp.user_timeout": "3s"}),):
            ours = self.streaming("we-connect", port, **setting)
            self.laboratory.guest.child.kill()
            self.lost(ours.answer())
            self.bench.replace_guest()
            self.works_again(port)


class Rejects(Siw):
    """Private data of a rejecting Reply arrives, whoever rejects."""

    def test_we_reject(self):
        for revision in (2, 1):
            for port in ("packet", "socket"):
                with self.subTest(revision=revision, port=port):
                    ours = self.bench.set_ours(port)
                    self.bench.set_guest(revision=revision)
                    ours.start(do="reject", port=PORT, data="go-away")
                    self.assertIn("listening", ours.answer())
                    octets = plan.encode("write", (1,), self.bench.next_seed())
                    said = self.bench.guest.execute(
                        f"guest_peer client {ours.address} {PORT} 1 {octets.hex()}").text
                    self.assertIn("REJECTED", said)
                    self.assertIn("private data 'go-away'", said)
                    self.assertTrue(ours.answer()["ok"])

    def test_siw_rejects(self):
        """Our rping brings no plan, which the guest's server wants."""
        for port in ("packet", "socket"):
            with self.subTest(port=port):
                ours = self.bench.set_ours(port)
                self.bench.set_guest()
                self.bench.serve_in_guest()
                result = ours.connect(kind="rping", address=GUEST, port=PORT)
                self.assertEqual(result["connections"][0]["events"], ["rejected"])
                self.assertTrue(result["quiescent"])


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    HostPeer.program = os.path.abspath(sys.argv[1])
    try:
        image = guest_image.build()
        enter_network()
    except Unavailable as reason:
        print(reason)
        sys.exit(77)
    arguments = sys.argv[:1] + [word for word in sys.argv[2:] if word != "--long"]
    with Laboratory(image) as Siw.laboratory:
        program = unittest.main(argv=arguments, verbosity=2, exit=False)
        print(f"guests started anew: {len(Siw.laboratory.restarts)}")
        for why in Siw.laboratory.restarts:
            print("    " + why)
    sys.exit(0 if program.result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
