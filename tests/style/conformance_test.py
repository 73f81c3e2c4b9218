#!/usr/bin/env python3
"""Tests scripts/conformance: what is covered, what is kept of a mutation run, and that a mutation
that is switched on changes what the code does, and none other."""

import os
import subprocess
import sys
import tempfile
import types
import unittest
from importlib.machinery import SourceFileLoader

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
sys.dont_write_bytecode = True
import changed_tree  # noqa: E402
import mutant_schemata  # noqa: E402
import mutation_results  # noqa: E402
import mutation_run  # noqa: E402
import requirement_proofs as proofs  # noqa: E402

LOADER = SourceFileLoader("conformance", os.path.join(ROOT, "scripts", "conformance"))
conformance = types.ModuleType(LOADER.name)
conformance.__file__ = LOADER.path
LOADER.exec_module(conformance)

CODE = """#include <cstdio>
namespace one {
constexpr int kTable[] = {1, 2, 3};
struct Base {
  int member = 4;
};
class Two final : public Base {
 public:
  explicit Two(int n) : a_{n}, b_(n + 1) { ++a_; }
  [[nodiscard]] constexpr int twice(int n) const noexcept { return 2 * n; }
  template <typename T>
  T third(T n) { if (n > 0) { return n / 3; } return {}; }
  int a_;
  int b_;
};
int operator+(const Two& two, int n) { return two.a_ + n; }
}  // namespace one
int main() {
  one::Two two(5);
  static_assert(one::kTable[2] == 3);
  std::printf("%d %d %d %d %d", two.a_, two.twice(4), two.third(9), two + 1, two.member);
}
"""


def rule(find, replace, name="MPA-1-01"):
    return proofs.Mutation(name, "code.cpp", find, replace, "a rule")


# Changes of one number, two of them in one body, are one.
TOGETHER = [types.SimpleNamespace(file="code.cpp", number="00000007", find=find, replace=replace)
            for find, replace in (("n > 0", "n > 10"), ("return {};", "return 70;"),
                                  ("return 2 * n;", "return 7 * n;"))]
RULES = [
    (rule("++a_;", "--a_;"), "4 8 3 5 4"),
    (rule("return 2 * n;", "return 3 * n;"), "6 12 3 7 4"),
    (rule("n > 0", "n < 0"), "6 8 0 7 4"),
    (rule("two.a_ + n", "two.a_ - n"), "6 8 3 5 4"),
    (rule("int member = 4;", "int member = 44;"), "6 8 3 7 44"),
    (rule("{ return n / 3; } return {};", "{ return {}; } return n;"), "6 8 0 7 4"),
]


class Schemata(unittest.TestCase):
    def test_one_rule_at_a_time(self):
        table = rule("kTable[] = {1, 2, 3}", "kTable[] = {1, 2, 4}")
        done = mutant_schemata.instrument(CODE, [r for r, _ in RULES] + TOGETHER + [table])
        self.assertEqual(done.left, [table], "a table is constant for good")
        self.assertEqual(len(done.clones), len(RULES) + len(TOGETHER))
        for first, last, mutation in done.clones:
            part = "\n".join(done.text.splitlines()[first - 1:last])
            self.assertIn(mutation.replace.split("=")[-1].strip(" ;"), part)
        with tempfile.TemporaryDirectory() as folder:
            texts = {"code.cpp": done.text, "switch.hpp": mutant_schemata.HEADER,
                     "switch.cpp": mutant_schemata.SOURCE}
            for name, text in texts.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            subprocess.run(["c++", "-std=c++20", "-include", "switch.hpp", "code.cpp",
                            "switch.cpp", "-o", "code"], cwd=folder, check=True)

            def said(number):
                environment = {**os.environ, mutant_schemata.VARIABLE: number}
                return subprocess.run([os.path.join(folder, "code")], env=environment, text=True,
                                      capture_output=True, check=True).stdout

            self.assertEqual(said(""), "6 8 3 7 4")
            for mutation, expected in RULES:
                self.assertEqual(said(mutation.number), expected)
            self.assertEqual(said(TOGETHER[0].number), "6 28 70 7 4")

    def test_a_header_that_many_sources_include(self):
        """One switch for all of them, also where the compiler needs a constant."""
        header = ("#pragma once\nstruct Wire {\n  int size = 20;\n};\n"
                  "constexpr int words(int n) { return n / 4; }\n")
        rules = [(proofs.Mutation("X-1-01", "wire.hpp", "n / 4", "n / 2", ""), "20 10 5 10"),
                 (proofs.Mutation("X-1-02", "wire.hpp", "size = 20;", "size = 24;", ""),
                  "24 6 5 6")]
        done = mutant_schemata.instrument(header, [r for r, _ in rules])
        self.assertEqual(done.left, [])
        texts = {"wire.hpp": done.text, "switch.cpp": mutant_schemata.SOURCE,
                 "other.cpp": '#include "wire.hpp"\nint other() { return words(Wire{}.size); }\n',
                 "main.cpp": '#include <cstdio>\n#include "wire.hpp"\nint other();\n'
                             "int main() {\n  constexpr int fixed = words(20);\n  Wire w;\n"
                             '  std::printf("%d %d %d %d", w.size, words(w.size), fixed, other());'
                             "\n}\n"}
        with tempfile.TemporaryDirectory() as folder:
            for name, text in texts.items():
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write(text)
            subprocess.run(["c++", "-std=c++20", "-Wall", "-Werror", "main.cpp", "other.cpp",
                            "switch.cpp", "-o", "code"], cwd=folder, check=True)
            for number, expected in [("", "20 5 5 5")] + [
                    (r.number, text) for r, text in rules]:
                environment = {**os.environ, mutant_schemata.VARIABLE: number}
                said = subprocess.run([os.path.join(folder, "code")], env=environment, text=True,
                                      capture_output=True, check=True).stdout
                self.assertEqual(said, expected)


class Complaints(unittest.TestCase):
    """Of a change whose text is gone, where it may have gone to."""

    def complaint(self, find, replace="x"):
        path = "scripts/changed_tree.py"
        return changed_tree.complaint(proofs.Mutation("X-1-01", path, find, replace, "a rule"))

    def test_each_kind(self):
        self.assertEqual(self.complaint("class Copy:"), "")
        self.assertIn("changes nothing", self.complaint("class Copy:", "class Copy:"))
        self.assertIn("2 times", self.complaint("class "))
        gone = self.complaint("class Copy:\n    def part_with(self, errors, more):")
        self.assertIn("0 times", gone)
        self.assertRegex(gone, r"line \d+ is the nearest .*'def part_with\(self, errors\):'")
        self.assertIn("nothing there is like", self.complaint("~~~~ ~~~~ ~~~~"))
        missing = rule("a", "b")._replace(file="lib/none.cpp")
        self.assertEqual(changed_tree.complaint(missing), "there is no lib/none.cpp")


class Programs(unittest.TestCase):
    def test_sources_of_a_grouped_program(self):
        with tempfile.TemporaryDirectory() as folder:
            group = os.path.join(folder, "unit_tcp-unity0.cpp")
            with open(group, "w", encoding="utf-8") as file:
                file.write("#include</tree/a_test.cpp>\n#include</tree/b_test.cpp>\n")
            target = {"target_sources": [
                {"sources": ["/tree/c_test.cpp"]},
                {"sources": [], "generated_sources": [group, "/tree/build/version.h"]}]}
            self.assertEqual(list(mutation_run.Builder.sources_of(target)),
                             ["/tree/c_test.cpp", "/tree/a_test.cpp", "/tree/b_test.cpp"])


class Results:
    """As requirement_proofs.Results."""

    def __init__(self, words):
        self.words = words

    def of(self, proof):
        return self.words.get(proof.name, "not run")


class Coverage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "results.tsv")
        self.store = mutation_results.Store(self.path)
        self.mutation = rule("a", "b", "X-1-01")

    def tearDown(self):
        self.folder.cleanup()

    def rows(self, words, table, names=("X-1-01",), exceptions=()):
        requirements = [proofs.Requirement(n, "text", "MUST", "layer", "words") for n in names]
        found = {n: [proofs.Proof("a_test.cpp", 1, "Suite", t) for t in ("One", "Two")]
                 for n in names}
        finder = types.SimpleNamespace(proofs=found)
        return conformance.rows_of(requirements, exceptions, finder, Results(words), table,
                                   self.store)

    def result(self, words, table):
        return self.rows(words, table)[0].result

    def test_covered_is_what_was_seen_to_fail(self):
        good = {"One": "passed", "Two": "passed"}
        table = {"X-1-01": [self.mutation]}
        self.assertEqual(self.result(good, {}), "traced")
        self.assertEqual(self.result(good, table), "traced", "never run")
        for word, test in (("missed", ""), ("broken", ""), ("caught", "Suite.Unnamed")):
            self.store.keep(self.mutation, "key", word, test, "")
            self.assertEqual(self.result(good, table), "traced", word)
        self.store.keep(self.mutation, "key", "caught", "All/Suite.One/7", "fails")
        self.assertEqual(self.result(good, table), "covered")
        other = self.mutation._replace(replace="c")
        self.assertEqual(self.result(good, {"X-1-01": [self.mutation, other]}), "traced")
        self.assertEqual(self.result({"One": "passed", "Two": "failed"}, table), "failed")

    def test_what_was_skipped_covers_nothing_and_is_told(self):
        table = {"X-1-01": [self.mutation]}
        self.store.keep(self.mutation, "key", "caught", "Suite.One", "fails")
        row = self.rows({"One": "skipped", "Two": "passed"}, table)[0]
        self.assertEqual((row.result, row.skipped), ("traced", 1))
        self.assertEqual(conformance.result_of(row), "traced, 1 skipped")
        row = self.rows({"One": "passed", "Two": "skipped"}, table)[0]
        self.assertEqual(conformance.result_of(row), "covered, 1 skipped")
        self.assertEqual(self.result({"One": "skipped", "Two": "skipped"}, table), "skipped")

    def test_a_line_is_what_its_worst_part_is(self):
        names = ("X-1-01", "X-1-01-a", "X-1-01-b")
        rules = {n: [rule("a", "b", n)] for n in names[1:]}
        good = {"One": "passed", "Two": "passed"}
        self.store.keep(rules["X-1-01-a"][0], "key", "caught", "Suite.One", "fails")
        rows = self.rows(good, rules, names)
        self.assertEqual([r.result for r in rows], ["traced", "covered", "traced"])
        self.assertIn("MUST covered 0 of 1,", conformance.summary(rows))
        self.assertIn("traced besides: 1 MUST", conformance.summary(rows))
        self.store.keep(rules["X-1-01-b"][0], "key", "caught", "Suite.Two", "fails")
        rows = self.rows(good, rules, names)
        self.assertEqual(rows[0].result, "covered")
        self.assertIn("MUST covered 1 of 1,", conformance.summary(rows))

    def test_results_outlive_the_run(self):
        self.store.keep(self.mutation, "key", "caught", "Suite.One", "crashed")
        again = mutation_results.Store(self.path)
        self.assertEqual(again.of(self.mutation).how, "crashed")
        self.assertTrue(again.is_current(self.mutation, "key"))
        self.assertFalse(again.is_current(self.mutation, "other sources"))
        self.assertIsNone(again.of(self.mutation._replace(find="elsewhere")))
        self.store.keep(self.mutation, "key", "missed", "", "")
        self.assertFalse(self.store.is_current(self.mutation, "key"), "is to be run again")


class Names(unittest.TestCase):
    def test_an_id_stands_once_per_test(self):
        rows = [proofs.Requirement(name, "", "", "", "") for name in ("MPA-4.5-01", "MPA-4.5-02")]

        def complaints(text):
            finder = proofs.Finder(rows)
            with tempfile.NamedTemporaryFile("w", suffix=".cpp", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                finder.read(file.name)
            return [c.split(" ", 1)[1] for c in finder.complaints], sorted(finder.proofs)

        both = ["MPA-4.5-01", "MPA-4.5-02"]
        name = "TEST(Fpdu, Mulpdu_MPA_4_5_01) {\n"
        self.assertEqual(complaints(f"// MPA-4.5-02: so.\n{name}  f();\n}}\n"), ([], both))
        self.assertEqual(complaints(f"{name}  f();  // MPA-4.5-02\n}}\n"), ([], both))
        twice = ["Fpdu.Mulpdu_MPA_4_5_01 names MPA-4.5-01 more than once"]
        self.assertEqual(complaints(f"// MPA-4.5-01: so.\n{name}}}\n"), (twice, both[:1]))
        self.assertEqual(complaints(f"{name}  f();  // MPA-4.5-01\n}}\n"), (twice, both[:1]))
        again = "// MPA-4.5-02: so.\n" + name + "  f();\n}\n"
        self.assertEqual(complaints(again + again), ([], both), "another test")

    def test_parts(self):
        for name, whole in (("MPA-8-09-a", "MPA-8-09"), ("MPA-4.4-V3", ""), ("BUG-19-b", "BUG-19"),
                            ("DDP-3-03", ""), ("TCP-IP-01", ""), ("RDMAP-4.8-02-c", "RDMAP-4.8-02")):
            self.assertEqual(proofs.whole_of(name), whole)


if __name__ == "__main__":
    unittest.main()
