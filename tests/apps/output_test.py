#!/usr/bin/env python3
"""What could not be written is an error with exit status 2, in every program and for every output; a
reader that closes its pipe ends a program quietly.

usage: output_test.py RNIC_PERF RNIC_PING RNIC_DEMO RNIC_STREAM RNIC_SIM RNIC_EXPERIMENT
"""

import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

NAMES = ("rnic-perf", "rnic-ping", "rnic-demo", "rnic-stream", "rnic-sim", "rnic-experiment")
PROGRAMS = dict(zip(NAMES, (os.path.abspath(path) for path in sys.argv[1:7])))
NO_HUGE = ["--set", "eal.hugepages=off"]
# A short run of each that prints a result.
RUNS = [["rnic-ping", "loopback", "--count", "1", *NO_HUGE],
        ["rnic-ping", "loopback", "--count", "1", "--json", *NO_HUGE],
        ["rnic-ping", "loopback", "--port", "socket", "--json"],
        ["rnic-perf", "loopback", "--seconds", "0.1", "--no-floor", *NO_HUGE],
        ["rnic-perf", "loopback", "--seconds", "0.1", "--no-floor", "--json", *NO_HUGE],
        ["rnic-stream", "loopback", "--octets", "1000", *NO_HUGE],
        ["rnic-stream", "loopback", "--octets", "1000", "--json", *NO_HUGE],
        ["rnic-sim", "--list"],
        ["rnic-sim", "--seeds", "1", "--profile", "tcp-clean"],
        ["rnic-experiment", "--only", "packing", "--quick", "--out", "out"]]


def small_files():
    """In the child: the disk is full behind 16 KB of any file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16384, 16384))


def ignore_pipes():
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


class Outputs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rnic-output-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_app(self, app, *args, stdout=subprocess.PIPE, **more):
        return subprocess.run([PROGRAMS[app], *args], cwd=self.folder, stdout=stdout,
                              stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                              timeout=100, check=False, **more)

    def test_standard_output_that_is_full(self):
        for app, *args in RUNS + [[name, "--help"] for name in NAMES]:
            with self.subTest(app=app, args=args), open("/dev/full", "wb") as full:
                done = self.run_app(app, *args, stdout=full)
                self.assertEqual(done.returncode, 2, done.stderr)
                # Where the program itself flushed before, the reason is not known any more.
                self.assertRegex(done.stderr.splitlines()[-1],
                                 f"^{app}: cannot write to standard output: "
                                 "(No space left on device|an earlier write failed)$")

    def test_standard_output_that_is_closed(self):
        done = self.run_app("rnic-sim", "--list", preexec_fn=lambda: os.close(1))
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_reader_that_goes_away(self):
        for app, *args in RUNS:
            for parent in (None, ignore_pipes):
                with self.subTest(app=app, args=args, parent=parent):
                    reader, writer = os.pipe()
                    os.close(reader)
                    done = self.run_app(app, *args, stdout=writer, preexec_fn=parent)
                    os.close(writer)
                    self.assertEqual(done.returncode, -signal.SIGPIPE, done.stderr)
                    self.assertNotIn("cannot write", done.stderr)

    def test_files_of_the_demo(self):
        for option in ("--report", "--json"):
            with self.subTest(option=option):
                done = self.run_app("rnic-demo", "--largest", "6", option, "/dev/full")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn("rnic-demo: cannot write /dev/full: No space left", done.stderr)

    def test_files_of_the_experiments(self):
        done = self.run_app("rnic-experiment", "--only", "packing", "--quick", "--docs",
                            "/dev/full", "--out", self.folder)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("rnic-experiment: cannot write /dev/full: No space left", done.stderr)

    def blocks(self, path):
        """Types of the blocks of a pcapng file, each of them whole."""
        with open(path, "rb") as file:
            octets = file.read()
        at, types = 0, []
        while at < len(octets):
            kind, length = struct.unpack_from("<II", octets, at)
            self.assertLessEqual(at + length, len(octets), "the last block is torn")
            self.assertEqual(struct.unpack_from("<I", octets, at + length - 4)[0], length)
            types.append(kind)
            at += length
        return types

    def test_captures(self):
        capture = ["--set", "device.rnic0.capture.file=full.pcapng", *NO_HUGE]
        for app, *args in (["rnic-ping", "loopback", "--count", "20", "--size", "4000"],
                           ["rnic-perf", "loopback", "--seconds", "0.1", "--no-floor"],
                           ["rnic-stream", "loopback", "--octets", "100K"]):
            with self.subTest(app=app):
                done = self.run_app(app, *args, *capture, preexec_fn=small_files)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, rf"{app}: the capture of rnic0 lacks \d+ frames")
                self.assertRegex(done.stderr, "full.pcapng takes no more: File too large; it ends")
                types = self.blocks(os.path.join(self.folder, "full.pcapng"))
                self.assertGreater(types.count(6), 5)

    def test_replays(self):
        for profile in ("clean", "tcp-clean"):
            with self.subTest(profile=profile):
                done = self.run_app("rnic-sim", "--replay", "1", "--profile", profile, "--out",
                                    self.folder, preexec_fn=small_files)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, r"rnic-sim: cannot write .*1\.trace")
                self.assertRegex(done.stderr, r"rnic-sim: .*left\.pcapng lacks \d+ frames")
                self.blocks(os.path.join(self.folder, f"{profile}-1.left.pcapng"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
