"""rnic-spin: nothing is wrong on any kind of device, and bad arguments are refused."""

import os
import subprocess
import sys
import unittest

SPIN = os.path.abspath(sys.argv[1])
STEPS = 200000
KINDS = ("Send", "Write", "Read", "FetchAdd", "Receive")
# What has to have come about, as parts of the lines: in some run, and in every one.
SOMEWHERE = ("create_qp with another consumer's queue: permission denied",
             "accept for another consumer: permission denied",
             "Read with Local Invalidate completed: success",
             "Send with Invalidate completed: success", "messages that waited were received",
             "a message has waited for a receive",
             "Local Invalidate completed: success")
EVERYWHERE = ("beyond quotas.", "listen on a reserved port", "connect from a reserved port",
              "modify TCP", "listen: already exists",
              "Fast Register completed: success", "the memory was looked at", "blocking receive",
              "blocking read", "blocking compare_swap")
IN_MEMORY = ("a stream was accepted", "a stream was heard out", "Stream::receive",
             "a frame has come", "a framed stream was heard out", "connect over a stream",
             "listen_stream on a reserved port: permission denied")
OVER_SOCKETS = ("connect_stream over sockets: unsupported",
                "listen_stream over sockets: unsupported",
                "modify the system's TCP: unsupported")


def run(*args):
    return subprocess.run([SPIN, *args], capture_output=True, text=True, timeout=120, check=False)


class Spin(unittest.TestCase):
    def test_nothing_is_wrong(self):
        moved = dict.fromkeys(KINDS, 0)
        everything = []
        for seed, setting in enumerate(([], ["--threaded"], ["--port", "socket"],
                                        ["--port", "socket", "--threaded"])):
            with self.subTest(setting=setting):
                # With workers a call waits for the worker's turn.
                steps = STEPS // 4 if "--threaded" in setting else STEPS
                ran = run("--seed", str(seed), "--steps", str(steps), "--verbose", *setting)
                self.assertEqual(ran.returncode, 0, ran.stderr[-4000:])
                lines = ran.stdout.splitlines()
                everything += lines
                self.assertEqual(lines[-1], f"{steps} steps, nothing wrong; seed {seed}")
                here = {what: sum(int(line.split()[0]) for line in lines
                                  if line.endswith(f"{what} completed: success"))
                        for what in KINDS}
                own = OVER_SOCKETS if "socket" in setting else IN_MEMORY
                for what in EVERYWHERE + own:
                    self.assertTrue(any(what in line for line in lines), what)
                for what, count in here.items():
                    moved[what] += count
                # Each has moved octets, or it shows nothing.
                self.assertGreater(sum(here.values()), 50, here)
        for what in SOMEWHERE:
            self.assertTrue(any(what in line for line in everything), what)
        # How much of each kind one of them moves depends on the time: together they have all.
        for what, count in moved.items():
            self.assertGreater(count, 10, what)

    def test_bad_arguments(self):
        for args in (["--port", "carrier-pigeon"], ["--seconds", "0"], ["--steps", "many"],
                     ["--set", "no.such.key=1"]):
            with self.subTest(args=args):
                ran = run(*args)
                self.assertEqual(ran.returncode, 2)
                self.assertEqual(ran.stdout, "")
                self.assertIn("rnic-spin: ", ran.stderr)
                self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
