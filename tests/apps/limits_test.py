#!/usr/bin/env python3
"""Programs under limits of address space, from too little to begin to just too little: it works,
or it ends with status 2 and one line of its own on stderr. It never aborts and never hangs.

usage: limits_test.py RNIC_PERF RNIC_PING RNIC_DEMO RNIC_STREAM

LIMITS_LONG=1: all programs, not rnic-ping alone, and ten times as many limits. LIMITS_SEED=N: those of that run.
"""

import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import unittest

NAMES = ("rnic-perf", "rnic-ping", "rnic-demo", "rnic-stream")
PROGRAMS = dict(zip(NAMES, (os.path.abspath(path) for path in sys.argv[1:5])))
NO_HUGE = ["--set", "eal.hugepages=off"]
# Small tables: what is short is the program's own memory, too, and not only what a start asks for.
SMALL = ["--set", "limits.stream_octets=1MB", "--set", "limits.stream_buffer=64KB",
         "--set", "limits.max_framed_streams=4", "--set", "eal.memory_mb=64"]
RUNS = [["rnic-ping", "loopback", "--count", "1", *NO_HUGE],
        ["rnic-ping", "loopback", "--count", "1", *NO_HUGE, *SMALL],
        ["rnic-ping", "loopback", "--count", "1", "--port", "socket"]]
LONG = bool(os.environ.get("LIMITS_LONG"))
if LONG:
    RUNS += [
        ["rnic-perf", "loopback", "--seconds", "0.1", "--no-floor", *NO_HUGE, *SMALL],
        ["rnic-perf", "loopback", "--seconds", "0.1", "--no-floor", "--cores", "2", *NO_HUGE],
        ["rnic-stream", "loopback", "--octets", "1000", *NO_HUGE, *SMALL],
        ["rnic-stream", "loopback", "--octets", "1000", *NO_HUGE],
        ["rnic-demo", "--largest", "6", "--report", "page.html"]]
KB = 1024
MOST = 8 << 30
TIMES = 10 if LONG else 1
SEED = int(os.environ.get("LIMITS_SEED", random.randrange(1 << 31)))
# What the loader of the system, before main(), says and does.
NOT_LOADED = re.compile(r"error while loading shared libraries|cannot (create|allocate|map)")


def under(limit):
    """In the child."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


class Limits(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rnic-limits-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_app(self, app, *args, limit):
        return subprocess.run([PROGRAMS[app], *args], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
                              timeout=60, check=False, preexec_fn=under(limit))

    def loads(self, app, limit):
        """The system can load the program: what follows is the program's own."""
        try:
            done = self.run_app(app, "--help", limit=limit)
        except (OSError, subprocess.SubprocessError):
            return False  # not even that
        return done.returncode in (0, 2)

    def least(self, good, low, high):
        """The least limit at which good() holds, within 64 KB. It holds at `high`."""
        while high - low > 64 * KB:
            middle = (low + high) // 2
            if good(middle):
                high = middle
            else:
                low = middle
        return high

    def judge(self, app, args, limit, done):
        where = f"{app} {' '.join(args)} under ulimit -v {limit // KB}: {done.returncode}\n"
        self.assertNotIn("terminate called", done.stderr, where)
        if done.returncode == 127 and NOT_LOADED.search(done.stderr):
            return
        # A demo as small as this one may meet no damage; then its memory has sufficed.
        unlucky = app == "rnic-demo" and "exercised nothing" in done.stderr
        self.assertIn(done.returncode, (0, 1, 2) if unlucky else (0, 2), where + done.stderr)
        if done.returncode == 2:
            # The one line that says why is the last; a server of the same process may have one, too.
            own = [line for line in done.stderr.splitlines() if line.startswith(app + ": ")
                   and "--seed" not in line and " rejected: " not in line]
            last = done.stderr.splitlines()[-1] if done.stderr else ""
            self.assertTrue(last.startswith(app + ": "), where + done.stderr)
            self.assertGreater(len(last), len(app) + 10, where)
            self.assertLessEqual(len(own), 1, where + done.stderr)

    def ladder(self, app, args, chosen):
        loaded = self.least(lambda limit: self.loads(app, limit), 1 << 20, MOST)
        enough = self.least(lambda limit: self.run_app(app, *args, limit=limit).returncode == 0,
                            loaded, MOST)
        # Evenly, and closely below what is enough, where most of the work was done.
        limits = [loaded + (enough - loaded) * step // (10 * TIMES) for step in range(10 * TIMES)]
        limits += [enough - 64 * KB * step for step in range(1, 8 * TIMES)
                   if enough - 64 * KB * step > loaded]
        limits += [chosen.randrange(loaded, enough) // KB * KB for _ in range(6 * TIMES)]
        for limit in limits:
            self.judge(app, args, limit, self.run_app(app, *args, limit=limit))
        print(f"{app} {' '.join(args)}: loads with {loaded // KB} KB, works with {enough // KB} KB, "
              f"{len(limits)} limits between", file=sys.stderr)

    def test_ladders(self):
        print(f"LIMITS_SEED={SEED}", file=sys.stderr)
        for index, (app, *args) in enumerate(RUNS):
            with self.subTest(app=app, args=args):
                self.ladder(app, args, random.Random(SEED + index))

    @unittest.skipUnless(LONG, "LIMITS_LONG=1")
    def test_threads(self):
        """No thread is to be had: the stack of one is larger than what is left."""
        def large_stacks():
            resource.setrlimit(resource.RLIMIT_STACK, (1 << 40, 1 << 40))
        for app, *args in (["rnic-ping", "loopback", "--count", "1", "--port", "socket"],
                           ["rnic-perf", "loopback", "--seconds", "0.1", "--no-floor", "--cores",
                            "2", "--set", "eal.hugepages=off"]):
            with self.subTest(app=app):
                done = subprocess.run([PROGRAMS[app], *args], cwd=self.folder, timeout=60,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      check=False, preexec_fn=large_stacks)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertNotIn("terminate called", done.stderr)
                self.assertIn("thread", done.stderr.splitlines()[-1])


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    unittest.main(argv=sys.argv[:1])
