#!/usr/bin/env python3
"""Tests scripts/mutants: the operators' changes on a small program, that a draw can be repeated and
keeps to its shares, that a run goes on where it was, and what the page counts.

usage: mutants_test.py COMPILER"""

import collections
import os
import subprocess
import sys
import tempfile
import unittest
from types import MappingProxyType

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import build as building  # noqa: E402
import judge as judging  # noqa: E402
import operators  # noqa: E402
import plan as planning  # noqa: E402
import report as reporting  # noqa: E402
import rooms  # noqa: E402
import state as keeping  # noqa: E402

COMPILER = "c++"

CODE = """#include <algorithm>
#include <cstdio>
#define TWICE(x) ((x) + (x))
constexpr int kThree = 1 + 2;
struct Counter {
  int n = 0;
  void clear() { n = 0; }
  void add(int more) { n += more; }
};
static int difference(int a, int b) { return a - b; }
static bool within(int n, int least, int most) { return n >= least && n < most; }
int main() {
  Counter c;
  c.add(5);
  if (within(c.n, 2, 9)) std::printf("inside ");
  std::printf("%d ", difference(7, 3));
  int rounds = 0;
  for (int i = 0; i < 3; ++i) ++rounds;
  std::printf("%d %d ", rounds, TWICE(4) + kThree);
  c.clear();
  bool quiet = false;
  std::printf("%d %d\\n", c.n, quiet);
}
int least(int a, int b) { return std::min(a, b); }
"""
SAID = "inside 4 3 11 0 0\n"

# line, operator, before, after -> what the program says
EXPECTED = {
    (14, "removed statement", "c.add(5)", ""): "4 3 11 0 0\n",
    (20, "skipped reset", "c.clear()", ""): "inside 4 3 11 5 0\n",
    (15, "negated condition", "within(c.n, 2, 9)", "!(within(c.n, 2, 9))"): "4 3 11 0 0\n",
    (15, "forced condition", "within(c.n, 2, 9)", "false"): "4 3 11 0 0\n",
    (15, "forced condition", "within(c.n, 2, 9)", "true"): SAID,
    (11, "relational operator", "n < most", "n <= most"): SAID,
    (11, "logical operator", "n >= least && n < most", "n >= least || n < most"): SAID,
    (10, "arithmetic operator", "a - b", "a + b"): "inside 10 3 11 0 0\n",
    (10, "off by one", "a - b", "a - b + 1"): "inside 5 3 11 0 0\n",
    (15, "constant changed", "2", "2 + 1"): SAID,
    (15, "constant changed", "9", "9 - 1"): SAID,
    (21, "constant changed", "false", "true"): "inside 4 3 11 0 1\n",
    (16, "swapped argument", "difference(7, 3)", "difference(3, 7)"): "inside -4 3 11 0 0\n",
    (18, "increment reversed", "++rounds", "--rounds"): "inside 4 -3 11 0 0\n",
    (8, "early return", "", "return;"): "4 3 11 0 0\n",
    (8, "arithmetic operator", "n += more", "n -= more"): "4 3 11 0 0\n",
}


class Operators(unittest.TestCase):
    """Every mutant of a program, in one build, switched on one after the other."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        path = os.path.join(cls.folder.name, "program.cpp")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CODE)
        cls.found = operators.find(path, CODE.encode(), ["-std=c++20"])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def built(self, mutants):
        """A program with these mutants, which must not touch each other; their ids count from 0."""
        text = CODE.encode()
        for number, m in sorted(enumerate(mutants), key=lambda pair: -pair[1].begin):
            new = operators.written(m, number).encode()
            text = text[:m.begin] + new + text[m.end:]
        source = os.path.join(self.folder.name, "mutated.cpp")
        with open(source, "wb") as file:
            file.write(text)
        program = os.path.join(self.folder.name, "mutated")
        subprocess.run([COMPILER, "-std=c++20", "-w", "-include", os.path.join(HERE, "switch.hpp"),
                        source, os.path.join(HERE, "switch.cpp"), "-o", program], check=True)
        return program

    def said(self, program, number, reached=None):
        environment = {**os.environ, "RNIC_MUTANT": str(number)}
        if reached:
            environment["RNIC_MUTANTS_REACHED"] = reached
        return subprocess.run([program], env=environment, text=True, capture_output=True,
                              timeout=60, check=False).stdout

    def test_each_changes_what_it_says_and_nothing_else(self):
        left = {(m.line, m.operator, m.before, m.after): m for m in self.found
                if (m.line, m.operator, m.before, m.after) in EXPECTED}
        self.assertEqual(set(EXPECTED), set(left))
        while left:  # those that overlap go into different builds
            chosen, taken = [], []
            for key, m in sorted(left.items()):
                if all(m.end <= b or e <= m.begin for b, e in taken):
                    chosen.append((key, m))
                    taken.append((m.begin, m.end))
            program = self.built([m for _, m in chosen])
            self.assertEqual(self.said(program, -1), SAID)
            for number, (key, _) in enumerate(chosen):
                self.assertEqual(self.said(program, number), EXPECTED[key], key)
                del left[key]

    def test_every_operator_of_the_table_has_a_case(self):
        self.assertEqual({key[1] for key in EXPECTED}, set(operators.OPERATORS))

    def test_constants_of_the_compiler_and_macros_are_left_alone(self):
        self.assertEqual([m for m in self.found if m.line in (3, 4)], [])
        self.assertEqual([m for m in self.found if m.before == "4"], [])

    def test_arguments_whose_order_means_nothing_stay(self):
        last = [m for m in self.found if m.line == 24]
        self.assertEqual({m.operator for m in last}, {"early return"})

    def test_the_switch_notes_that_it_was_asked_for(self):
        early = next(m for m in self.found if m.operator == "early return" and m.line == 10)
        never = next(m for m in self.found if m.before == "n < most")
        program = self.built([never, early])
        reached = os.path.join(self.folder.name, "reached")
        with open(reached, "wb") as file:
            file.write(bytes(judging.MOST))
        self.said(program, -1, reached)
        with open(reached, "rb") as file:
            self.assertEqual(file.read(3), b"\1\1\0")


def places(*lines):
    """line -> one mutant of each operator, as operators.find() gives them."""
    return {("a.cpp", line): [operators.Mutant(line, name, 100 * line, 100 * line + 9, "", "", "")
                              for name in operators.OPERATORS] for line in lines}


class Draw(unittest.TestCase):
    def picked(self, seed, count=30, taken=None):
        return planning.pick(planning.random.Random(seed), places(*range(1, 61)), count,
                             taken if taken is not None else {})

    def test_a_seed_gives_the_same_mutants_again_and_another_others(self):
        self.assertEqual(self.picked("abc/1"), self.picked("abc/1"))
        self.assertNotEqual(self.picked("abc/1"), self.picked("abc/2"))

    def test_one_a_line_none_where_one_is_taken_and_operators_in_turn(self):
        lines = [m.line for _, m in self.picked("s", 50, {"a.cpp": [(7, 0, 0), (0, 800, 900)]})]
        self.assertEqual(len(lines), len(set(lines)))
        self.assertFalse({7, 8} & set(lines))
        kinds = collections.Counter(m.operator for _, m in self.picked("s", 60))
        self.assertGreater(len(kinds), len(operators.OPERATORS) - 3)

    def test_fewer_places_than_asked_for_give_what_there_is(self):
        self.assertEqual(len(self.picked("s", 1000)), 60)

    def test_rooms_share_by_their_lines(self):
        self.assertEqual(planning.quotas({"a": 600, "b": 300, "c": 99}, 10),
                         {"a": 6, "b": 3, "c": 1})
        self.assertEqual(sum(planning.quotas({str(i): 7 for i in range(9)}, 100).values()), 100)

    def test_named_mutants_are_found_in_the_code(self):
        found = planning.named(ROOT)
        self.assertEqual(len({m["name"] for m in found}), len(found))
        for m in found:
            self.assertIn(operators.M, m["text"])
            self.assertTrue(m["file"].startswith(tuple(r.folder + "/" for r in rooms.ROOMS)))

    def test_spare_ones_come_last_and_named_ones_count_for_nobody(self):
        plan = {"mutants": [{"id": 0, "room": "tcp", "spare": True},
                            {"id": 1, "room": "tcp", "spare": False},
                            {"id": 2, "room": "tcp", "spare": False, "name": "T7"}]}
        self.assertEqual([m["id"] for m in planning.order(plan)], [1, 0, 2])
        self.assertEqual(planning.quotas_of(plan), {"tcp": 1})


def mutant(number, room="tcp", operator="off by one"):
    return {"id": number, "of": f"return a + {number};", "room": room,
            "file": f"lib/{room}/a.cpp", "line": 10 + number, "operator": operator, "before": f"a + {number}", "after": "a", "spare": False}


class Goes(unittest.TestCase):
    """What is kept of a run."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "state.tsv")

    def tearDown(self):
        self.folder.cleanup()

    def test_a_run_goes_on_behind_its_last_whole_line(self):
        state = keeping.State(self.path)
        state.add(mutant(0), "killed", "unit_tcp A.B", 1.25)
        state.add(mutant(1), "survived", "", 2)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("2\ttcp\tlib/tcp/a")  # interrupted
        again = keeping.State(self.path)
        self.assertEqual(again.known(), {0, 1})
        self.assertEqual(again.result(0), "killed")
        self.assertEqual(again.last()[0].killer, "unit_tcp A.B")

    def test_the_first_verdict_is_kept_beside_the_last(self):
        state = keeping.State(self.path)
        state.add(mutant(0), "survived", "", 1)
        state.add(mutant(0), "killed", "unit_tcp A.B", 1)
        self.assertEqual(state.first()[0].result, "survived")
        self.assertEqual(state.last()[0].result, "killed")

    def test_who_gets_a_test_before_the_seeds_were_asked_was_not_killed_before(self):
        state = keeping.State(self.path)
        for result in (keeping.OPEN, keeping.LATE):
            state.add(mutant(0), result, "", 0)
            self.assertTrue(state.is_new(0))
        state.add(mutant(0), "killed", "unit_tcp A.B", 1)
        self.assertFalse(state.is_new(0))
        self.assertEqual(state.first()[0].result, keeping.LATE)

    def test_what_changes_nothing_and_what_has_a_name_fills_no_share(self):
        state = keeping.State(self.path)
        for number, result in enumerate(("killed", "survived", "unreached", "no change",
                                         "no compile")):
            state.add(mutant(number), result, "", 1)
        state.add(mutant(9, operator=keeping.NAMED), "killed", "x", 1)
        self.assertEqual(state.counted("tcp"), 3)

    def test_the_page_counts_before_and_now(self):
        root = os.path.join(self.folder.name, "root")
        os.makedirs(os.path.join(root, "tests", "mutants"))
        os.makedirs(os.path.join(root, "docs"))
        with open(os.path.join(root, reporting.EQUIVALENT), "w", encoding="utf-8") as file:
            file.write('[[mutant]]\nfile = "lib/tcp/a.cpp"\noperator = "off by one"\n'
                       'before = "a + 2"\nafter = "a"\nwhy = "a is not read again."\n')
        with open(os.path.join(root, planning.NAMED), "w", encoding="utf-8") as file:
            file.write("mutant = []\n")
        state = keeping.State(self.path)
        for number in range(4):
            state.add(mutant(number), "survived" if number else "killed", "", 1)
        state.add(mutant(1), "killed", "unit_tcp A.B", 1)
        mutants = [mutant(n) for n in range(4)]
        with open(os.path.join(self.folder.name, "plan.json"), "w", encoding="utf-8") as file:
            reporting.json.dump({"commit": "c" * 40, "sample": 1, "count": 4, "seed": "s",
                                 "mutants": mutants}, file)
        for _ in range(2):  # the second time in the first one's place
            reporting.write(root, self.folder.name, state)
        with open(os.path.join(root, reporting.PAGE), encoding="utf-8") as file:
            page = file.read()
        self.assertEqual(page.count("\n## "), 1)
        self.assertIn("| tcp | 4 | 1 | 2 | 1 | 0 | 1 |", page)
        self.assertIn("**25.0 % were killed before", page)
        self.assertIn("66.7 % are killed now", page)
        self.assertIn("`a + 1` to `a`: unit_tcp A.B", page)
        self.assertIn("`a + 2` to `a`: a is not read again.", page)
        self.assertEqual(reporting.count(root, self.folder.name, state)[0].table("")[1]["left"], 1)

    def test_what_is_said_of_a_line_holds_for_that_line(self):
        root = os.path.join(self.folder.name, "root")
        os.makedirs(os.path.join(root, "tests", "mutants"))
        with open(os.path.join(root, reporting.EQUIVALENT), "w", encoding="utf-8") as file:
            file.write('[[mutant]]\nfile = "lib/tcp/a.cpp"\noperator = "off by one"\n'
                       'before = "a + 2"\nline = "return a"\nafter = "a"\nwhy = "It is."\n')
        known = reporting.Equivalents(root)
        self.assertEqual(known.why(mutant(2)), "It is.")
        self.assertIsNone(known.why(mutant(3)))
        self.assertIsNone(known.why(dict(mutant(2), of="x = a + 2;")))


class EquivalentsOfThisTree(unittest.TestCase):
    def test_what_is_said_is_said_of_one_place(self):
        """Else the sentence about one mutant would excuse another one."""
        for entry in reporting.Equivalents(ROOT).table:
            with open(os.path.join(ROOT, entry["file"]), "rb") as file:
                text = file.read()
            before, at, places = entry["before"].encode(), -1, 0
            if not before:
                continue
            while (at := text.find(before, at + 1)) >= 0:
                places += entry.get("line", "") in planning.line_of(text, at)
            # A number or a word is part of others, too: there the line is the place.
            if places == 0 or not (before.isalnum() and entry.get("line")):
                self.assertEqual(places, entry.get("places", 1), entry)


SCRIPT = """#!/bin/sh
# A test program of which Two.Slow sees mutant 3, and One.Fails fails whatever is switched on.
filter=$(sed -n 's/^--gtest_filter=//p' "${1#--gtest_flagfile=}")
case ":$filter:" in *:One.Fails:*) echo "[  FAILED  ] One.Fails (0 ms)"; exit 1 ;; esac
case ":$filter:$RNIC_MUTANT" in *:Two.Slow:3) echo "[  FAILED  ] Two.Slow (0 ms)"; exit 1 ;; esac
case ":$filter:$RNIC_MUTANT" in *:Two.Quick:4) echo "[ RUN      ] Two.Quick"; kill -SEGV $$ ;; esac
echo "$filter" >> ran
"""


class BuildThatBreaks(unittest.TestCase):
    def setUp(self):
        self.programs = object.__new__(building.Programs)
        self.programs.area = "/area"

    def test_a_template_that_only_its_users_compile_is_blamed_where_it_stands(self):
        """The compiler tells of it while it compiles a source that uses the header."""
        said = ("/area/src/lib/x/a.cpp:9:3:   required from here\n"
                "/area/src/lib/x/x.hpp:5:14: error: no matching function for call\n")
        mine = {"id": 1, "file": "lib/x/x.hpp", "line": 4, "text": "f(\n    M, 1)"}
        other = {"id": 2, "file": "lib/x/x.hpp", "line": 9, "text": "g(M)"}
        blamed = self.programs.blamed_in_header
        self.assertEqual(blamed("lib/x/x.hpp", [mine, other], said), [mine])
        self.assertEqual(blamed("lib/x/x.hpp", [{**mine, "line": 6}, other], said),
                         [{**mine, "line": 6}], "a call is told by the line it begins on")
        self.assertEqual(blamed("lib/x/a.cpp", [{**other, "line": 9}], said), [])


    def test_all_headers_have_their_mutants_before_one_is_compiled(self):
        """The object of one has the inline functions of another, and may be linked before it."""
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "lib", "x"))
            for name in ("x.hpp", "y.hpp"):
                with open(os.path.join(folder, "lib", "x", name), "w", encoding="utf-8") as file:
                    file.write("inline bool f() { return true; }\n")
            self.programs.root, self.programs.area = folder, os.path.join(folder, "area")
            self.programs.archives = {"x": ("libx.a", [])}
            self.programs.objects = {}
            seen = []

            def object_of(_, path, mutants, headers=MappingProxyType({})):
                for header in ("x.hpp", "y.hpp"):
                    with open(self.programs.place("src", "lib/x/" + header),
                              encoding="utf-8") as file:
                        seen.append("rnic_mutant" in file.read())
                return path + ".o", []

            self.programs.object_of = object_of
            mutants = [{"id": i, "file": "lib/x/" + name, "room": "x", "line": 1, "begin": 25,
                        "end": 29, "text": operators.M}
                       for i, name in enumerate(("x.hpp", "y.hpp"))]
            self.assertEqual(self.programs.try_objects(mutants, 1), [])
            self.assertEqual(seen, [True] * 4)

    def test_a_header_may_use_the_template_of_another(self):
        mine = {"id": 1, "file": "lib/x/x.hpp", "room": "x", "line": 4, "text": "f(M)"}
        other = {"id": 2, "file": "lib/x/y.hpp", "room": "x", "line": 9, "text": "g(M)"}
        seen = {}

        def object_of(_, path, mutants, headers=MappingProxyType({})):
            seen[path] = (mutants, dict(headers))
            return path + ".o", []

        self.programs.archives = {"x": ("libx.a", [])}
        self.programs.objects = {}
        self.programs.object_of = object_of
        self.programs.digest_of_headers = lambda: ""
        self.programs.write = lambda path, mutants: b""
        self.programs.keep = lambda path, text: None
        self.assertEqual(self.programs.try_objects([mine, other], 1), [])
        self.assertEqual(seen["lib/x/x.hpp"], ([mine], {"lib/x/y.hpp": [other]}))
        self.assertEqual(seen["lib/x/y.hpp"], ([other], {"lib/x/x.hpp": [mine]}))


class Judge(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.program = os.path.join(self.folder.name, "program")
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        os.chmod(self.program, 0o755)
        name = next(r for r in rooms.ROOMS if r.name == "mem").programs[0]
        self.judge = judging.Judge(self.folder.name, {name: self.program}, None, lambda text: None)
        for test, seconds, ids in (("Two.Quick", 0.01, [2, 3, 4]), ("Two.Slow", 9, [2, 3, 5]),
                                   ("One.Fails", 0.02, [5])):
            self.judge.baseline[(name, test)] = {"seconds": seconds, "reached": ids}

    def tearDown(self):
        self.folder.cleanup()

    def killer(self, number):
        which = {"room": "mem", "id": number}
        return (self.judge.judge_by_tests(which, quick=True) or
                self.judge.judge_by_tests(which, quick=False))

    def test_quick_tests_come_first_and_only_those_that_come_past_the_mutant(self):
        self.assertIsNone(self.killer(2))
        with open(os.path.join(self.folder.name, "ran"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "Two.Quick\nTwo.Slow\n")

    def test_the_test_that_fails_is_named(self):
        self.assertEqual(self.killer(3), "unit_mem Two.Slow")

    def test_a_crash_kills(self):
        self.assertEqual(self.killer(4), "unit_mem Two.Quick died by SIGSEGV")

    def test_what_fails_without_the_mutant_too_does_not_count(self):
        self.assertIsNone(self.killer(5))
        self.assertEqual(self.judge.lame, ["unit_mem One.Fails"])

    def test_what_nobody_comes_past_is_told(self):
        self.assertFalse(self.judge.is_reached({"room": "mem", "id": 6}))
        self.assertTrue(self.judge.is_reached({"room": "mem", "id": 2}))


SIMULATOR = """#!/bin/sh
case "$RNIC_MUTANT $*" in
  "7 --profile clean "*) echo "fingerprint clean 4 00000000000000bb"; exit ;;
  *" --profile clean "*) echo "fingerprint clean 4 00000000000000aa"; exit ;;
esac
case "$RNIC_MUTANT $2" in
  "7 1") echo "fingerprint clean 1 00000000000000bb" ;;
  "8 1") echo "fingerprint clean 1 00000000000000bb" ;;
  "9 2") echo "fingerprint clean 2 00000000000000bb" ;;
  "8 2") echo "FAILED seed 2 (clean): stall: nothing moves"; exit 1 ;;
  *) echo "fingerprint clean $2 00000000000000aa" ;;
esac
"""


class JudgeBySeeds(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        simulator = os.path.join(self.folder.name, "simulator")
        with open(simulator, "w", encoding="utf-8") as file:
            file.write(SIMULATOR)
        os.chmod(simulator, 0o755)
        self.judge = judging.Judge(self.folder.name, {}, simulator, lambda text: None)
        for seed in (1, 2):
            self.judge.baseline[(judging.SEEDS, f"--first-seed {seed}")] = {
                "seconds": 0.01 * seed, "reached": [6, 7, 8, 9],
                "fingerprints": [f"fingerprint clean {seed} 00000000000000aa"]}

    def tearDown(self):
        self.folder.cleanup()

    def killer(self, number):
        return self.judge.judge_by_seeds({"room": "mem", "id": number})

    def test_worlds_that_look_as_before_kill_nothing(self):
        self.assertIsNone(self.killer(6))

    def test_a_world_that_looks_different_kills(self):
        self.assertEqual(self.killer(7), "fingerprint of seed 4 (clean)")

    def test_a_difference_that_no_listed_world_shows_is_seen_by_no_test(self):
        self.assertIsNone(self.killer(9))

    def test_the_list_has_the_first_seeds_of_each_profile(self):
        seeds = collections.defaultdict(list)
        with open(os.path.join(ROOT, "tests", "sim", "fingerprints.txt"), encoding="utf-8") as file:
            for profile, seed, _ in (line.split() for line in file if not line.startswith("#")):
                seeds[profile].append(int(seed))
        for profile, found in seeds.items():
            self.assertEqual(found, list(range(1, judging.LISTED + 1)), profile)

    def test_a_checker_that_complains_counts_more(self):
        self.assertEqual(self.killer(8), "sim seed 2 (clean): stall: nothing moves")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        COMPILER = sys.argv.pop(1)
    unittest.main()
