#!/usr/bin/env python3
"""softrnic against a live Linux siw in a virtual machine (docs/siw.md).

usage: siw_test.py SIW_PEER [--long] [unittest arguments]
"""

import os
import signal
import sys
import unittest

import guest_image
from bench import RPING_PORT, Bench, problems_of, run_cells
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
