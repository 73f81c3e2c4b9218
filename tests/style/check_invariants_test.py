"""Checks scripts/check_invariants: which checks it finds, and what it takes for a test of one."""

import importlib.machinery
import importlib.util
import os
import sys
import unittest

sys.dont_write_bytecode = True
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts")


def load():
    path = os.path.join(SCRIPTS, "check_invariants")
    loader = importlib.machinery.SourceFileLoader("check_invariants", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


invariants = load()

SOURCE = """
void Sum::check_parts() const {
  for (int part : parts_) RNIC_CHECK(part > 0);
}
void Sum::check_elsewhere() const { RNIC_CHECK(never_); }
void Sum::add(int part) {
  RNIC_CHECK(part != 0);
}
void Sum::validate() const {
  check_parts();
  RNIC_CHECK(sum_ ==
             total(parts_));
}
"""
FILE = "lib/room/sum.cpp"


class Found(unittest.TestCase):
    def test_checks_of_validate_and_of_what_it_calls(self):
        found, empty = invariants.checks_of(FILE, SOURCE)
        self.assertEqual([c.expression for c in found], ["part > 0", "sum_ == total(parts_)"])
        self.assertEqual([c.line for c in found], [3, 11])
        self.assertEqual(empty, [])

    def test_one_that_checks_nothing(self):
        _, empty = invariants.checks_of(FILE, "void Sum::validate() const { total(); }")
        self.assertEqual(empty, [f"{FILE}:1: a validate() that checks nothing"])
        _, empty = invariants.checks_of(FILE, "void Sum::validate() const { part_.validate(); }")
        self.assertEqual(empty, [])


class Compared(unittest.TestCase):
    def setUp(self):
        self.checks, _ = invariants.checks_of(FILE, SOURCE)

    def test_a_check_without_a_test(self):
        named = [("test.cpp:1", "room/sum.cpp", "sum_ ==")]
        violations, counts = invariants.compare(self.checks, named, {})
        self.assertEqual(violations, [f"{FILE}:3: no test sees this check fail: part > 0"])
        self.assertEqual(sum(counts.values()), 1)

    def test_a_name_has_to_fit_one_check(self):
        named = [("test.cpp:1", "room/sum.cpp", "part"), ("test.cpp:2", "room/sum.cpp", "gone"),
                 ("test.cpp:3", "room/other.cpp", "sum_ ==")]
        violations, _ = invariants.compare(self.checks, named, {})
        self.assertEqual(violations[:3], [
            "test.cpp:1: 'part' is in 2 checks of room/sum.cpp, not in one",
            "test.cpp:2: 'gone' is in 0 checks of room/sum.cpp, not in one",
            "test.cpp:3: 'sum_ ==' is in 0 checks of room/other.cpp, not in one"])

    def test_an_exception_that_is_not_needed(self):
        named = [("test.cpp:1", "room/sum.cpp", "sum_ ==")]
        violations, _ = invariants.compare(self.checks, named, {(FILE, "part > 0"): "why"})
        self.assertEqual(violations, [])
        named.append(("test.cpp:2", "room/sum.cpp", "part > 0"))
        violations, _ = invariants.compare(self.checks, named, {(FILE, "part > 0"): "why"})
        self.assertEqual(len(violations), 1)


class Tree(unittest.TestCase):
    def test_agrees(self):
        checks, empty = invariants.product()
        violations, _ = invariants.compare(checks, list(invariants.claims()), invariants.UNSEEN)
        self.assertGreater(len(checks), 100)
        self.assertEqual(violations, [])
        self.assertEqual({v.split(":")[0] for v in empty}, set(invariants.EMPTY))


if __name__ == "__main__":
    unittest.main()
