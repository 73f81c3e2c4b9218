#!/usr/bin/env python3
"""Each benchmark program builds, carries out a little of its work, and says that it was right.

usage: programs_test.py BUILD_DIRECTORY"""
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import instructions  # noqa: E402

RUNS = (
    *(("segment_cost", function, "100", scenario)
      for _, function, scenario, *_ in instructions.SEGMENT_FIGURES),
    *(("pair_cost", scenario, "2") for scenario, *_ in instructions.PAIR_FIGURES),
    ("loss_cost", "--seconds", "0.05", "loss-1", "reorder-20us"),
    ("loss_cost", "--seconds", "0.05", "--pristine", "loss-0.1"),
    ("connection_scale", "1000", "0.1", "8"),
    ("crc_cost", "2"),
    ("queue_pair_scale", "16", "8", "1"),
    ("waiting_cost", "1", "50", "0", "1"),
    ("verbs_cost", "post", "2"),
    ("verbs_cost", "regions", "2", "1000"),
    ("idle_cost", "10", "1"),
    ("threaded_cost", "1", "1000"),
)
# Beside them where their libraries are installed.
PEERS = (("lwip_cost", "0.1"),)


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build = BUILD
        targets = subprocess.run(["ninja", "-C", cls.build, "-t", "targets", "all"], text=True,
                                 capture_output=True, check=True).stdout
        cls.runs = RUNS + tuple(run for run in PEERS if f"tests/perf/{run[0]}:" in targets)
        programs = sorted({f"tests/perf/{run[0]}" for run in cls.runs})
        done = subprocess.run(["ninja", "-C", cls.build, *programs], text=True,
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise AssertionError(done.stdout[-5000:] + done.stderr)

    def test_each_does_its_work(self):
        for program, *arguments in self.runs:
            with self.subTest(program=program, arguments=arguments):
                done = subprocess.run([os.path.join(self.build, "tests/perf", program),
                                       *arguments], text=True, capture_output=True,
                                      timeout=300, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, r"\d")

    def test_each_program_is_run(self):
        built = {name[:-len(".cpp")] for name in os.listdir(HERE) if name.endswith(".cpp")}
        self.assertEqual(built - {"crc_bench"}, {run[0] for run in RUNS + PEERS})


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main()
