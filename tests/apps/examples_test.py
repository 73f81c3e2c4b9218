"""The examples run, on wires in memory and over the system's sockets, and each finds its data right.

usage: examples_test.py EXAMPLE...
"""

import os
import random
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = {os.path.basename(path).removeprefix("example-"): os.path.abspath(path)
            for path in sys.argv[1:]}


def sockets():
    """Devices with addresses of their own of 127/8, so that runs at the same time do not meet."""
    pid = os.getpid()
    return "".join(f'[[device]]\nname = "rnic{i}"\nport = "socket"\n'
                   f'address = "127.{129 + pid // 65536 % 64}.{pid // 256 % 256}.'
                   f'{pid % 64 * 4 + 1 + i}/8"\n' for i in (0, 1))


class Examples(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.config = os.path.join(self.folder, "sockets.toml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(sockets())

    def run_example(self, name, *args):
        return subprocess.run([PROGRAMS[name], *args], capture_output=True, text=True, timeout=120,
                              check=False)

    def everywhere(self, name, last_line, *args, on_sockets=None):
        for more in (args, [*(args if on_sockets is None else on_sockets), self.config]):
            with self.subTest(name=name, args=more):
                ran = self.run_example(name, *more)
                self.assertEqual(ran.returncode, 0, ran.stderr[-2000:])
                self.assertRegex(ran.stdout.splitlines()[-1], f"^{last_line}$")

    def test_ping_pong(self):
        self.everywhere("ping-pong", "1000 round trips of 64 octets came back unchanged; .*")

    def test_counter(self):
        self.everywhere("counter", "2000 numbers, each drawn once, by 4 clients; "
                                   "the largest is 3450")

    def test_coroutine(self):
        self.everywhere("coroutine", "16 walkers, 16 of them at once, have added 200 nodes each")

    def test_kv_store(self):
        self.everywhere("kv-store", "500 values were read as they were put")

    def test_srq_server(self):
        self.everywhere("srq-server", "([0-9]+) clients, one thread: each got its own "
                                      "answer", "1000", on_sockets=["100"])

    def test_file_transfer(self):
        source, target = (os.path.join(self.folder, name) for name in ("source", "target"))
        for size in (1, 1_000_001):
            content = random.Random(size).randbytes(size)
            with open(source, "wb") as file:
                file.write(content)
            for more in ([], [self.config]):
                with self.subTest(size=size, config=more):
                    ran = self.run_example("file-transfer", source, target, *more)
                    self.assertEqual(ran.returncode, 0, ran.stderr[-2000:])
                    self.assertEqual(ran.stdout, f"{size} octets arrived unchanged\n")
                    self.assertTrue(ran.stderr.endswith(f"[{'#' * 40}] 100 %\n"), ran.stderr[-100:])
                    with open(target, "rb") as file:
                        self.assertEqual(file.read(), content)
                    os.unlink(target)

    def test_what_goes_wrong_is_said(self):
        for name, *args in (("ping-pong", "no-such-file"), ("counter", "no-such-file"),
                            ("coroutine", "no-such-file"),
                            ("kv-store", "no-such-file"), ("srq-server", "3", "no-such-file"),
                            ("file-transfer",), ("file-transfer", "no-such-file", "x")):
            with self.subTest(name=name, args=args):
                ran = self.run_example(name, *args)
                self.assertEqual(ran.returncode, 1)
                self.assertEqual(ran.stdout, "")
                self.assertNotEqual(ran.stderr, "")

    def test_each_is_one_short_file_that_a_test_runs(self):
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../apps/examples")
        files = [name for name in os.listdir(folder) if name.endswith(".cpp")]
        self.assertEqual({name[:-4].replace("_", "-") for name in files}, set(PROGRAMS))
        for name in files:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                self.assertLessEqual(len(file.readlines()), 150, name)
        for name in PROGRAMS:
            self.assertTrue(hasattr(self, "test_" + name.replace("-", "_")), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
