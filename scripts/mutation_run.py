"""Takes rules out of the code, one at a time, and sees whether the tests that prove them fail.

The rules stand in tests/requirements/mutations/*.toml: a requirement, a file, a piece of its text
that occurs there once, and what stands there when the rule is gone. The work is done in a copy of
the tree below out/mutation/ (see changed_tree.py).

The copy is built once with all rules in it; a rule that cannot be switched has a build of its own
at the end. Of the programs that hold a rule's proofs the nearest one is run first, another only
when no test of it fails. Each result is kept at once (see mutation_results.py).
"""

import collections
import concurrent.futures
import contextlib
import fnmatch
import json
import os
import random
import re
import resource
import subprocess
import threading
import time

import changed_tree
import cxx_source
import mutant_schemata
import mutation_results
import requirement_proofs

AREA = os.path.join(cxx_source.ROOT, "out", "mutation")
BUILD = os.path.join(AREA, "tree", "build-dev")
ALONE = os.path.join(AREA, "alone")  # numbers of rules that do not compile beside the others
# A mutation may make a test hang, eat the memory or write for ever: that is caught, too. Hanging is
# to take so many seconds of the processor and four times what the tests took before anything was
# changed; by the clock it is to take ten times as long, since other programs run as well.
TEST_SECONDS = 10
CLOCK = 10
FIRST_SECONDS = 3600
TEST_MEMORY = 6 << 30
TEST_OUTPUT = 256 << 20
SHARED = re.compile("/(drivers|verbs)/")  # their tests use sockets and devices: never two at a time
UNITY = re.compile(r"-unity\d+\.cpp$")
INCLUDED = re.compile(r"^#include<(.+)>$", re.MULTILINE)
DURATION = re.compile(r"\((\d+) ms\)")

# word: caught, missed or broken; test: the one that saw it; how: fails, crashed, did not end
Outcome = collections.namedtuple("Outcome", "mutation word test how seconds")
Ran = collections.namedtuple("Ran", "passed failed trouble running milliseconds")


def check(mutations, known, proofs=None):
    """What is wrong with the table, one line each. proofs: by requirement; None: not looked at"""
    for requirement, found in mutations.items():
        if requirement not in known:
            yield f"mutations: {requirement} is not in the catalogue"
        for mutation in found:
            bad = changed_tree.complaint(mutation)
            if bad:
                yield f"mutations: {requirement}: {bad}"
        if proofs is not None and not any(p.suite for p in proofs.get(requirement, ())):
            yield f"mutations: {requirement}: no C++ test names it"


def sample(requirements, scope, seed):
    """One in ten of each finished layer's MUSTs by this seed, whatever other layers there are."""
    chosen = []
    for group in (*scope.layers, *scope.families):
        pool = sorted(r.id for r in requirements
                      if r.level == "MUST" and scope.group_of(r) == group)
        chosen += random.Random(f"{seed} {group}").sample(pool, -(-len(pool) // 10))
    return sorted(i for i in chosen if i not in scope.exceptions)


class Copy(changed_tree.Copy):
    """The copy with all rules in it; keeps which do not compile beside the others."""

    def __init__(self, table):
        """table: by requirement, as requirement_proofs.mutations() gives it"""
        alone = ()
        if os.path.exists(ALONE):
            with open(ALONE, encoding="utf-8") as file:
                alone = file.read().split()
        super().__init__(AREA, (m for found in table.values() for m in found), alone)

    def part_with(self, errors):
        parted = super().part_with(errors)
        with open(ALONE, "w", encoding="utf-8") as file:
            file.write("\n".join(sorted(self.alone)))
        return parted


class Builder(changed_tree.Build):
    """Also knows which program a test's source belongs to."""

    def __init__(self, copy):
        super().__init__(copy)
        self.lock = threading.Lock()
        self.built = set()
        listed = self.run(["meson", "introspect", "--targets", self.folder], "meson introspect")
        self.sources = collections.Counter()
        self.program_of = {}
        for target in json.loads(listed):
            if target["type"] == "executable":
                for source in self.sources_of(target):
                    self.program_of[os.path.relpath(source, copy.tree)] = target["filename"][0]
                    self.sources[target["filename"][0]] += 1

    @staticmethod
    def sources_of(target):
        """Meson lists of a grouped program only the groups, which include the sources."""
        for group in target["target_sources"]:
            yield from group.get("sources", ())
            for path in group.get("generated_sources", ()):
                if UNITY.search(path):
                    with open(path, encoding="utf-8") as file:
                        yield from INCLUDED.findall(file.read())

    def programs(self, proofs):
        """program -> GoogleTest patterns of the tests that prove."""
        table = collections.defaultdict(list)
        for proof in proofs:
            if proof.suite and proof.file in self.program_of:
                s, n = proof.suite, proof.name
                table[self.program_of[proof.file]] += [f"{s}.{n}", f"*/{s}.{n}/*", f"{s}/*.{n}",
                                                       f"*/{s}/*.{n}/*"]
        return table

    def in_order(self, mutation, programs):
        """The layer's own tests first, then those with few sources."""
        near = f"/{os.path.basename(os.path.dirname(mutation.file))}/"
        return sorted(programs, key=lambda p: (near not in p, self.sources[p], p))

    def targets(self, programs):
        return [os.path.relpath(program, self.folder) for program in programs]

    def ready(self, programs):
        """Builds with every rule in its place; rules that do not compile get a build each."""
        if self.built.issuperset(programs):
            return
        with self.lock:
            wanted = [p for p in programs if p not in self.built]
            if wanted:
                self.make_without_errors(self.targets(wanted))
                self.built |= set(wanted)

    def build_without(self, mutation, program):
        """A build of this rule's own. -> whether it compiles"""
        self.copy.write(mutation.file, without=mutation)
        return not self.make(self.targets([program]))


def execute(program, patterns, seconds, *options, mutation=""):
    """Runs tests. running: the test during which the program ended if not by itself"""
    def bound():
        resource.setrlimit(resource.RLIMIT_DATA, (TEST_MEMORY, TEST_MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (TEST_OUTPUT, TEST_OUTPUT))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 5))

    trouble, environment = "", {**os.environ, mutant_schemata.VARIABLE: mutation}
    path = os.path.join(AREA, f"output-{threading.get_ident()}")
    with open(path, "w+", errors="replace", encoding="utf-8") as out:
        try:
            done = subprocess.run(
                [program, f"--gtest_filter={':'.join(patterns)}", "--gtest_color=no", *options],
                stdout=out, stderr=subprocess.STDOUT, timeout=CLOCK * seconds, cwd=BUILD,
                preexec_fn=bound, env=environment, check=False)
            trouble = "crashed" if done.returncode not in (0, 1) else ""
            trouble = "did not end" if done.returncode == -24 else trouble  # SIGXCPU
        except subprocess.TimeoutExpired:
            trouble = "did not end"
        out.seek(0)
        passed, failed, running, milliseconds = set(), [], "", {}
        for line in out:
            word, _, rest = line.partition("]")
            test = rest.split("(")[0].split(",")[0].strip()
            if word == "[ RUN      ":
                running = test
            elif word == "[       OK ":
                passed.add(test)
                milliseconds[test] = int(DURATION.search(rest).group(1))
            elif word == "[  FAILED  " and "." in test and test not in failed:
                failed.append(test)
    os.remove(path)
    running = running if trouble and running not in passed else ""
    return Ran(passed, failed, trouble, running, milliseconds)


class Judge:
    """Runs the proving tests with one rule taken out at a time."""

    def __init__(self, builder):
        self.builder = builder
        self.locks = collections.defaultdict(threading.Lock)  # by program
        self.turns = collections.defaultdict(threading.Lock)
        # By program. What was run with every rule in its place, and how it ended:
        self.patterns = collections.defaultdict(set)
        self.passed = collections.defaultdict(set)
        self.failed = collections.defaultdict(list)
        self.milliseconds = collections.defaultdict(dict)

    def before(self, program, patterns):
        """Runs tests with every rule in its place; once each."""
        with self.locks[program]:
            new = sorted(set(patterns) - self.patterns[program] - self.passed[program])
            if not new:
                return
            ran = execute(program, new, FIRST_SECONDS)
            self.patterns[program].update(new)
            self.passed[program].update(ran.passed)
            self.milliseconds[program].update(ran.milliseconds)
            self.failed[program] += ran.failed + ([ran.trouble] if ran.trouble else [])

    def unsound(self, program, patterns):
        """Why these tests say nothing about a change; "" if they do."""
        self.before(program, patterns)
        for name in self.failed[program]:
            if "." not in name or any(fnmatch.fnmatchcase(name, p) for p in patterns):
                return f"before anything was changed: {name}"
        ran = any(fnmatch.fnmatchcase(n, p) for n in self.passed[program] for p in patterns)
        return "" if ran else "before anything was changed: none of the tests ran"

    def seconds(self, program, patterns):
        return sum(ms for name, ms in self.milliseconds[program].items()
                   if any(fnmatch.fnmatchcase(name, p) for p in patterns)) / 1000

    def run_tests(self, program, patterns, number, limit):
        """(word, test, how) of one program."""
        with self.turns[program] if SHARED.search(program) else contextlib.nullcontext():
            ran = execute(program, patterns, limit, "--gtest_fail_fast", mutation=number)
        if ran.trouble and ran.running:
            return "caught", ran.running, ran.trouble
        if ran.failed:
            return "caught", ran.failed[0], "fails"
        if ran.trouble:
            return "broken", "", f"{os.path.basename(program)} {ran.trouble} before any test"
        return "missed", "", ""

    def judge(self, program, patterns, number):
        """-> (word, test, how)"""
        word, test, how = self.run_tests(program, patterns, number, TEST_SECONDS)
        if how == "did not end":  # so it may be with every rule in its place, too
            self.before(program, patterns)
            limit = TEST_SECONDS + 4 * self.seconds(program, patterns)
            word, test, how = self.run_tests(program, patterns, number, limit)
        return word, test, how

    def check_catchers(self, caught):
        """Yields what was caught by a test that fails with every rule in its place as well. Many
        rules are caught by the same test, so each is run once, when all is done. (Covered is only
        what is caught by a test that passes in the run of all tests.) caught: mutation -> (program,
        test)"""
        tests = collections.defaultdict(set)
        for program, test in caught.values():
            tests[program].add(test)
        for program, names in tests.items():
            self.before(program, sorted(names))
        for mutation, (program, test) in caught.items():
            bad = self.unsound(program, [test])
            if bad:
                yield mutation, bad

    def try_switched(self, mutation, program, patterns):
        """-> (word, test, how)"""
        return self.judge(program, patterns, mutation.number)

    def try_alone(self, mutation, programs):
        """Of a rule that cannot be switched: one program after the other, until a test fails."""
        word, test, how = "broken", "", "no test program proves it"
        for program in self.builder.in_order(mutation, programs):
            self.builder.ready([program])
            self.before(program, programs[program])
            try:
                if self.builder.build_without(mutation, program):
                    word, test, how = self.judge(program, programs[program], "")
                else:
                    word, test, how = "broken", "", "does not compile"
            finally:
                self.builder.copy.write(mutation.file)
                self.builder.built.clear()
            if word != "missed":
                break
        return word, test, how


class Run:
    """Tries mutations and keeps what came of each. While the tests of one program run, the next one
    is built; what one program misses waits for the next one that proves it."""

    def __init__(self, chosen, table, finder, store, workers):
        # Of the sources as they are copied, whoever edits them later.
        keys = mutation_results.Keys()
        self.key_of = {m: keys.of(m, finder.proofs.get(m.id, [])) for m in chosen}
        self.store, self.workers = store, workers
        self.builder = Builder(Copy(table))
        self.judge = Judge(self.builder)
        self.programs, self.order = {}, {}
        for mutation in chosen:
            programs = self.builder.programs(finder.proofs.get(mutation.id, []))
            self.programs[mutation] = programs
            self.order[mutation] = self.builder.in_order(mutation, programs)
        self.waiting = collections.defaultdict(list)  # by program
        self.alone = []
        self.caught = {}  # mutation -> (program, test)
        for mutation in chosen:
            if self.builder.copy.can_switch(mutation) and self.order[mutation]:
                self.waiting[self.order[mutation].pop(0)].append(mutation)
            else:
                self.alone.append(mutation)

    def attempt(self, method, mutation, *rest):
        """Keeps what came of it, unless another program may still catch it. -> an Outcome, None"""
        began = time.monotonic()
        word, test, how = method(mutation, *rest)
        if word == "missed" and self.order[mutation]:
            return None
        if word == "caught" and rest and isinstance(rest[0], str):
            self.caught[mutation] = (rest[0], test)
        self.store.keep(mutation, self.key_of[mutation], word, test, how)
        return Outcome(mutation, word, test, how, time.monotonic() - began)

    def finished(self, jobs, wait):
        """Yields the outcomes that are there; what was missed goes on to its next program."""
        if wait:
            concurrent.futures.wait(jobs, return_when=concurrent.futures.FIRST_COMPLETED)
        for job in [j for j in jobs if j.done()]:
            mutation = jobs.pop(job)
            if job.result() is None:
                self.waiting[self.order[mutation].pop(0)].append(mutation)
            else:
                yield job.result()

    def next_program(self):
        """One that is built already, or that settles most rules for its building."""
        def cost(program):
            return self.builder.sources[program] / len(self.waiting[program])

        return min(self.waiting, key=lambda p: (p not in self.builder.built, cost(p), p))

    def switched(self):
        jobs = {}  # with the mutation of each
        with concurrent.futures.ThreadPoolExecutor(self.workers) as pool:
            while self.waiting or jobs:
                if self.waiting:
                    program = self.next_program()
                    self.builder.ready([program])
                    for mutation in self.waiting.pop(program):
                        if self.builder.copy.can_switch(mutation):
                            job = pool.submit(self.attempt, self.judge.try_switched, mutation,
                                              program, self.programs[mutation][program])
                            jobs[job] = mutation
                        else:
                            self.alone.append(mutation)
                yield from self.finished(jobs, not self.waiting)

    def outcomes(self, quick):
        yield from self.switched()
        for mutation, bad in self.judge.check_catchers(self.caught):
            self.store.keep(mutation, self.key_of[mutation], "broken", "", bad)
            yield Outcome(mutation, "broken", "", bad, 0.0)
        print(f"built in {self.builder.seconds:.0f} s; {len(self.alone)} rules need a build each",
              flush=True)
        if quick:
            return
        for mutation in sorted(self.alone, key=lambda m: (m.file, m.id)):
            self.order[mutation] = []
            yield self.attempt(self.judge.try_alone, mutation, self.programs[mutation])
