"""How ./scripts/bench instructions reads callgrind, and when it fails."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import instructions  # noqa: E402

# Names are told once and then by number; what stands behind calls= is the called function's.
OUTPUT = """\
ob=(1) /build/pair_cost
fl=(1) ../lib/tcp/stack.cpp
fn=(1) rnic::tcp::Stack::input
10 5
fi=(2) ../lib/wire/tcp.hpp
+1 3
fe=(1)
* 2
cob=(2) /usr/lib/libisal.so.2
cfn=(2) crc32_iscsi
calls=4 0
11 700
cfn=(3) malloc
calls=2 0
11 90
fn=(4) rnic::crc::internal::copy_isal(unsigned int)
12 11
fl=(3) ./string/memmove.S
fn=(5) __memcpy_avx_unaligned_erms
13 17
fl=(4) ../tests/perf/pair_cost.cpp
fn=(6) measured_turn
14 1
ob=(2)
fl=(5) ???
fn=(2)
0 700
"""


class Read(unittest.TestCase):
    def test_layers(self):
        read = instructions.Profile(OUTPUT)
        self.assertEqual(dict(read.by_layer), {"tcp": 7, "wire": 3, "crc": 711, "copies": 17,
                                               "application": 1})
        self.assertEqual(instructions.without_payload(read.by_layer), 11)

    def test_calls_that_nothing_may_make(self):
        self.assertEqual(instructions.Profile(OUTPUT).forbidden, 2)
        for name in ("operator new(unsigned long)", "operator delete(void*)", "free", "calloc",
                     "pthread_mutex_lock", "pthread_mutex_lock@@GLIBC_2.34", "__libc_malloc"):
            self.assertTrue(instructions.Profile.FORBIDDEN.search(name), name)
        for name in ("rnic::sim::SimPort::free(std::span<int>)", "rnic::mem::malloc_of", "memcpy"):
            self.assertFalse(instructions.Profile.FORBIDDEN.search(name), name)


class Compared(unittest.TestCase):
    def risen(self, kept, now):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kept.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(kept, file)
            with mock.patch.object(instructions, "KEPT", path), \
                    contextlib.redirect_stdout(io.StringIO()):
                return instructions.compare(now)

    def test_within_two_per_cent(self):
        self.assertEqual(self.risen({"a": 100, "b": 50}, {"a": 102, "b": 20}), 0)

    def test_above(self):
        self.assertEqual(self.risen({"a": 100, "b": 50}, {"a": 102.1, "b": 51.5}), 2)

    def test_nothing_means_nothing(self):
        self.assertEqual(self.risen({"a": 0}, {"a": 0}), 0)
        self.assertEqual(self.risen({"a": 0}, {"a": 1}), 1)

    def test_a_figure_that_nobody_accepted(self):
        self.assertEqual(self.risen({}, {"a": 1}), 1)

    def test_no_valgrind(self):
        with mock.patch.dict(os.environ, {"PATH": "/nowhere"}), \
                self.assertRaisesRegex(instructions.Failed, "valgrind is missing"):
            instructions.output_of(["valgrind"])


if __name__ == "__main__":
    unittest.main()
