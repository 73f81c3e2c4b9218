#!/usr/bin/env python3
"""softrnic against a live Linux siw in a virtual machine (docs/siw.md).

usage: siw_test.py SIW_PEER [--long] [--anew] [unittest arguments]

Without the name of a test all of them run, in two guests at a time where there are two processors.
"""

import os
import resource
import signal
import subprocess
import sys
import time
import unittest

import breaches
import guest_image
import plan
from bench import PORT, RPING_PORT, Bench, problems_of, run_cell
from cells import describe, settings_key, table
from guest import GUEST, Laboratory, check_machine, enter_network
from guest_kernel import Unavailable, cache, content, digest
from host_peer import HostPeer

LONG = "--long" in sys.argv
ANEW = "--anew" in sys.argv
SHARED = "--cells-of="  # a descriptor: numbers of cells, two octets each, for whoever reads first
# What runs beside each other. Cells come last: both take them until none is left.
PARTS = (("Rping", "Terminates", "Rejects", "Cells"), ("Deaths", "Cells"))


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


class Done:
    """The cells of the long form that were right before, by program and harness: a run that was broken
    off goes on."""

    def __init__(self, image):
        here = os.path.dirname(os.path.abspath(__file__))
        harness = [content(os.path.join(here, name)) for name in sorted(os.listdir(here))
                   if name.endswith((".py", ".c", ".sh"))]
        name = digest(content(HostPeer.program), image.vmlinux, *harness)
        self.path = os.path.join(cache(), f"long-{name}")

    def forget(self):
        if os.path.exists(self.path):
            os.remove(self.path)

    def cells(self):
        if not os.path.exists(self.path):
            return set()
        with open(self.path, encoding="utf-8") as file:
            return set(file.read().splitlines())

    def add(self, cell):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(describe(cell) + "\n")


class Cells(Siw):
    done = None
    shared = None  # the descriptor of SHARED

    def to_do(self, count):
        """Numbers of cells; each is given once, to whoever asks for it."""
        if self.shared is None:
            yield from range(count)
            return
        while octets := os.read(self.shared, 2):
            yield int.from_bytes(octets, "big")

    def test_table(self):
        """Every pair of values, with --long every triple and every size."""
        failures = []
        cells = sorted(table(3 if LONG else 2), key=lambda cell: tuple(map(str, settings_key(cell))))
        done = self.done.cells() if LONG else set()
        for number in self.to_do(len(cells)):
            cell = cells[number]
            name = f"{number + 1}/{len(cells)} {describe(cell)}"
            if describe(cell) in done:
                print(f"done before: {name}", flush=True)
                continue
            begin = time.monotonic()
            problem = run_cell(self.bench, cell, LONG)
            print(f"{'FAILED' if problem else 'ok'} {time.monotonic() - begin:.1f} s: {name}"
                  + (f"\n    {problem}" if problem else ""), flush=True)
            if problem:
                failures.append(f"{describe(cell)}: {problem}")
            elif LONG:
                self.done.add(cell)
        for name, count in self.bench.defects.items():
            print(f"connections that siw lost by {name}: {count}")
        print("segments dropped on suspicion, at most a connection: "
              f"{self.bench.most_drops}", flush=True)
        self.assertEqual(failures, [], f"{len(failures)} cells failed")


class Terminates(Siw):
    """Each breach of a rule, by either end: who finds it tells it with the right code."""

    def test_each(self):
        for cell in breaches.cells(LONG):
            with self.subTest(**cell):
                found = self.bench.run_breach(cell)
                event, fault = breaches.expected(cell)
                self.assertIn({"event": event, "fault": fault}, found["faults"])
                self.assertIn("disconnected", found["events"])


# What each thread of the guest's program waits for in its kernel, and what that has said.
WHERE_IT_WAITS = ("for task in /proc/$(pidof guest_peer | cut -d' ' -f1)/task/*; do echo $task $(cat $task/wchan "
                  "$task/stack); done; dmesg | tail -n 20")


class Deaths(Siw):
    """An end is killed in the midst of endless rounds of Writes: the other one is told, nothing stays
    behind, and the next connection works."""

    maxDiff = None  # what our end says of its connections tells why

    def streaming(self, role, port, **settings):
        """Returns when octets flow; the result of our end is to come."""
        bench = self.bench
        ours = bench.set_ours(port, **settings)
        bench.set_guest()
        # The guest is emulated: beside other tests it may stand still for ten seconds. An end that
        # only waits finds out by its patience, within which test_our_process() has to be told.
        octets = plan.encode("write", (65536, 5, 4096), bench.next_seed(), pairs=plan.ENDLESS,
                             patience=25)
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

    WAYS = (("we-connect", "packet"), ("siw-connects", "packet"), ("we-connect", "socket"),
            ("siw-connects", "socket"))

    def lost(self, result):
        for connection in result["connections"]:
            self.assertTrue({"peer closed", "disconnected"} & set(connection["events"]), connection)
        self.assertTrue(result["quiescent"])

    def test_our_process(self):
        for role, port in self.WAYS:
            with self.subTest(role=role, port=port):
                self.streaming(role, port).kill()
                # Of a stack of our own nobody is left to tell. The next one answers by RST to what
                # still comes; an end that only waits finds out by itself.
                name = "server" if role == "we-connect" else "client"
                seeds = f"{self.streaming_seed}|{self.streaming_seed + 1}"
                told = self.bench.guest.execute(
                    f"for turn in $(seq 600); do [ $(grep -cE '^({seeds}) failed' /tmp/{name}.out) "
                    f"= 2 ] && exit 0; sleep 0.1; done; cat /tmp/{name}.out; "
                    f"cat /tmp/client.status; {WHERE_IT_WAITS}; exit 1",
                    300)  # a turn takes long where the guest has half a processor
                self.assertEqual(told.status, 0, told.text)
                self.works_again(port)

    def test_the_guests_process(self):
        for role, port in self.WAYS:
            with self.subTest(role=role, port=port):
                ours = self.streaming(role, port)
                self.bench.kill_in_guest()
                self.lost(ours.answer())
                self.works_again(port)

    def test_the_guest(self):
        """Whether octets of ours were under way (user time-out) or the guest's (keep-alive)."""
        settings = {"tcp.user_timeout": "3s", "tcp.keep_alive": "true", "tcp.keep_alive_idle": "1s",
                    "tcp.keep_alive_interval": "1s", "tcp.keep_alive_count": "3"}
        for port in ("packet", "socket") if LONG else ("packet",):  # each takes a new guest
            with self.subTest(port=port):
                ours = self.streaming("we-connect", port, **settings)
                self.laboratory.guest.child.kill()
                try:
                    self.lost(ours.answer())
                finally:
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
                self.assertEqual(result["connections"][0]["events"], ["rejected", "disconnected"])
                self.assertTrue(result["quiescent"])


def run_tests(image, names):
    """In this process, with a guest of its own; whether all went well."""
    Cells.done = Done(image)
    with Laboratory(image) as Siw.laboratory:
        program = unittest.main(argv=[sys.argv[0], *names], verbosity=2, exit=False)
        print(f"guests and servers started anew: {len(Siw.laboratory.restarts)}")
        for why in Siw.laboratory.restarts:
            print("    " + why)
    return program.result.wasSuccessful()


def run_parts(image):
    """Each in a process, a network and a guest of its own."""
    if ANEW:
        Done(image).forget()
    begin = time.monotonic()
    readable, writable = os.pipe()
    os.write(writable, b"".join(number.to_bytes(2, "big")
                                for number in range(len(table(3 if LONG else 2)))))
    os.close(writable)
    options = [HostPeer.program, *(["--long"] if LONG else []), f"{SHARED}{readable}"]
    children = [subprocess.Popen([sys.executable, os.path.abspath(__file__), *options, *names],
                                 pass_fds=(readable,)) for names in PARTS]
    try:
        good = not any([child.wait() for child in children])
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{'all' if good else 'not all'} went well in {time.monotonic() - begin:.0f} s; the "
              f"processors worked {used.ru_utime + used.ru_stime:.0f} s for it")
        return good
    finally:
        for child in children:
            if child.poll() is None:
                child.terminate()
                child.wait()


def stop(*_):
    raise KeyboardInterrupt  # which alone ends unittest


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, stop)
    HostPeer.program = os.path.abspath(sys.argv[1])
    names = []
    for word in sys.argv[2:]:
        if word.startswith(SHARED):
            Cells.shared = int(word.removeprefix(SHARED))
        elif word not in ("--long", "--anew"):
            names.append(word)
    try:
        image = guest_image.build()
        if not names and (os.cpu_count() or 1) > 1:
            check_machine()
            sys.exit(0 if run_parts(image) else 1)
        enter_network()
    except Unavailable as reason:
        print(reason)
        sys.exit(77)
    sys.exit(0 if run_tests(image, names) else 1)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(143)
