#!/usr/bin/env python3
"""Tests scripts/test_results.py: a program of tests that tests nothing has not passed."""

import contextlib
import io
import os
import re
import sys
import tempfile
import unittest
import unittest.mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
sys.dont_write_bytecode = True
import test_results  # noqa: E402

CASE = '<testsuite><testcase classname="A" name="B" status="run"/></testsuite>'


class Programs(unittest.TestCase):
    def results(self, xml, result="OK", filtered=False):
        with tempfile.TemporaryDirectory(prefix="rnic-results-") as folder:
            path = os.path.join(folder, "unit.xml")
            if xml is not None:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"<testsuites>{xml}</testsuites>")
            record = {"name": "softrnic / unit", "result": result, "returncode": 0}
            return [case.result for case in
                    test_results.cases_of(record, {"unit": path}, filtered)]

    def test_what_ran_passed(self):
        self.assertEqual(self.results(CASE), ["passed"])

    def test_a_program_that_died_failed(self):
        self.assertEqual(self.results(None), ["failed"])
        self.assertEqual(self.results(CASE, result="TIMEOUT"), ["passed", "failed"])

    def test_a_program_without_a_case_failed_unless_a_filter_took_them(self):
        self.assertEqual(self.results(""), ["failed"])
        self.assertEqual(self.results("", filtered=True), [])


class Output(unittest.TestCase):
    """What a failed script said: as much as fits a screen, with the first failure."""

    def shown(self, text):
        record = {"name": "softrnic / script", "result": "FAIL", "returncode": 1, "stdout": text}
        case, = test_results.cases_of(record, {})
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            test_results.report([case], False, [])
        return [line.strip() for line in out.getvalue().splitlines()]

    def test_its_end(self):
        shown = self.shown("\n".join(f"line {n}" for n in range(100)))
        self.assertNotIn("line 59", shown)
        self.assertIn("line 60", shown)
        self.assertIn("line 99", shown)

    def test_the_first_of_many_failures(self):
        failures = "".join(f"{'=' * 70}\nFAIL: test {n}\n" + "why\n" * 10 for n in range(9))
        shown = self.shown("begins\n" * 50 + failures + "FAILED (failures=9)")
        self.assertIn("FAIL: test 0", shown)
        self.assertNotIn("FAIL: test 4", shown)
        self.assertIn("FAIL: test 8", shown)
        self.assertIn("FAILED (failures=9)", shown)


class Needs(unittest.TestCase):
    """What is built for some tests: what they depend on, by Ninja's names, and no more."""

    TARGETS = [{"id": "a", "filename": ["/build/tests/a"]},
               {"id": "b", "filename": ["/build/tests/b", "/build/tests/b.map"]},
               {"id": "c", "filename": ["/build/c"]}]

    def needs(self, *depends):
        with unittest.mock.patch.object(test_results, "introspect", lambda *_: self.TARGETS):
            return test_results.needs("/build", [{"depends": list(one)} for one in depends])

    def test_each_once(self):
        self.assertEqual(self.needs("b", "ab"), ["tests/a", "tests/b", "tests/b.map"])

    def test_a_script_needs_nothing(self):
        self.assertEqual(self.needs(""), [])


class LongTests(unittest.TestCase):
    def test_the_suite_says_it(self):
        self.assertTrue(test_results.is_long({"suite": ["softrnic:style", "softrnic:long"]}))
        self.assertFalse(test_results.is_long({"suite": ["softrnic:style"]}))
        self.assertFalse(test_results.is_long({"suite": ["softrnic"]}))


class Skips(unittest.TestCase):
    """A case that skips where a machine lacks something runs on the machine of whoever wrote it."""

    def test_each_reason_that_a_case_gives_is_allowed(self):
        given = {}
        for folder, _, names in os.walk(os.path.join(ROOT, "tests")):
            for path in (os.path.join(folder, n) for n in names if n.endswith((".cpp", ".hpp"))):
                with open(path, encoding="utf-8") as file:
                    for said in re.findall(r'GTEST_SKIP\(\)\s*<<((?:\s*"[^"]*")+);', file.read()):
                        given["".join(re.findall(r'"([^"]*)"', said))] = path
        self.assertGreater(len(given), 3)
        allowed = test_results.allowed_skips()
        self.assertEqual({r: p for r, p in given.items() if r not in allowed}, {})


if __name__ == "__main__":
    unittest.main()
