#!/usr/bin/env python3
"""Tests scripts/defect_run.py: what is said of a table that does not fit the code, and who counts
as having seen a defect."""

import os
import stat
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
sys.dont_write_bytecode = True
import defect_run  # noqa: E402

TABLE = """
[[defect]]
name = "one"
instead = "words"
seen_by = ["atomic"]

[[defect.edit]]
file = "lib/rdmap/responder.cpp"
find = "const uint64_t original = execute("
replace = "const uint64_t original = 1 + execute("

[[defect.edit]]
file = "lib/rdmap/responder.cpp"
find = "++counters_.atomics_in;"
replace = ""
"""
# Complains of the second seed, and of the third when the defect is on.
SIMULATOR = """#!/bin/sh
[ "$1" != --seeds ] || { [ "$4" != 2 ]; exit; }
echo 'FAILED seed 2 (reorder): event: it ended'
[ "$2" = event ] && exit 0
[ -n "$RNIC_MUTATION" ] || exit 1
echo 'FAILED seed 3 (tcp-reorder): atomic: the word: 7'
[ "$2" = atomic ]
"""


class Table(unittest.TestCase):
    def complaints(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            return list(defect_run.check(defect_run.defects(file.name), {"atomic", "event"}))

    def test_each_complaint(self):
        self.assertEqual(self.complaints(TABLE), [])
        self.assertIn("stands there 2 times", self.complaints(TABLE + TABLE)[0])
        self.assertIn("no checker 'order'", self.complaints(TABLE.replace('"atomic"', '"order"'))[0])
        self.assertIn("nothing sees it", self.complaints(TABLE.replace('"atomic"', ""))[0])
        self.assertIn("occurs 0 times", self.complaints(TABLE.replace("= execute(", "= do("))[0])
        outside = TABLE.replace("++counters_.atomics_in;", "namespace rnic::rdmap {\\n")
        self.assertIn("is not within a function", self.complaints(outside)[0])

    def test_edits_of_one_defect_have_one_number(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(TABLE + TABLE.replace('"one"', '"two"'))
            file.flush()
            one, two = defect_run.defects(file.name)
        self.assertEqual({e.number for e in one.edits}, {one.number})
        self.assertNotEqual(one.number, two.number)

    def test_checkers_of_the_simulator(self):
        known = defect_run.checkers()
        self.assertLess({"reference", "judge", "crash", "idle ACK", "prompt"}, known)
        self.assertNotIn("no Terminate was sent", known)


class Seeing(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.simulator = os.path.join(self.folder.name, "rnic-sim")
        with open(self.simulator, "w", encoding="utf-8") as file:
            file.write(SIMULATOR)
        os.chmod(self.simulator, stat.S_IRWXU)

    def tearDown(self):
        self.folder.cleanup()

    def tried(self, *seen_by):
        defect = defect_run.Defect("one", "words", seen_by, [], "00000001")
        return defect_run.try_defect(self.simulator, defect, [])

    def test_the_checker_that_must(self):
        seen, told = self.tried("atomic")
        self.assertEqual(seen, ("3", "tcp-reorder", "atomic", "the word: 7"))
        self.assertEqual(told, "")

    def test_others_do_not_count(self):
        self.assertEqual(self.tried("stall"), (None, "seen by others only: event 1, atomic 1"))

    def test_a_world_that_fails_anyway_does_not_count(self):
        self.assertEqual(self.tried("event"),
                         (None, "seed 2 of reorder fails without it, too"))


if __name__ == "__main__":
    unittest.main()
