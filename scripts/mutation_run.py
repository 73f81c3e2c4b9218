"""Takes rules out of the code, one at a time, and sees whether the tests that prove them fail.

The rules stand in tests/requirements/mutations/*.toml: a requirement, a file, a piece of its text
that occurs there once, and what stands there when the rule is gone. The work is done in a copy of
the tree below out/mutation/, so that the tree itself is never touched.

The copy is built once with all rules in it, each to be switched off by itself (see
mutant_schemata.py); a rule that cannot be switched has a build of its own at the end. Of the
programs that hold a rule's proofs the nearest one is run first, another only when no test of it
fails. Each result is kept at once (see mutation_results.py).
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
import shutil
import subprocess
import sys
import threading
import time

import cxx_source
import mutant_schemata
import mutation_results
import requirement_proofs

AREA = os.path.join(cxx_source.ROOT, "out", "mutation")
COPY = os.path.join(AREA, "tree")
# Placed and configured as a developer's: a compiler cache has the tests' objects already.
BUILD = os.path.join(COPY, "build-dev")
ALONE = os.path.join(AREA, "alone")  # numbers of rules that do not compile beside the others
COPIED = ("apps", "config", "docs", "drivers", "lib", "scripts", "tests", "meson.build",
          "meson_options.txt", "README.md", "LICENSE", "CHANGELOG.md")
OPTIONS = ("--buildtype=plain", "-Doptimization=1", "-Ddebug=false", "-Dwerror=true",
           f"-Dcpp_link_args={AREA}/mutation.o")
# A mutation may make a test hang, eat the memory or write for ever: that is caught, too. Hanging is
# to take so many seconds of the processor and four times what the tests took before anything was
# changed; by the clock it is to take ten times as long, since other programs run as well.
TEST_SECONDS = 10
CLOCK = 10
FIRST_SECONDS = 3600
TEST_MEMORY = 6 << 30
TEST_OUTPUT = 256 << 20
SHARED = re.compile("/(drivers|verbs)/")  # their tests use sockets and devices: never two at a time
ERROR = re.compile(r"^(\S+?):(\d+):(?:\d+:)? (?:fatal )?error:|^(\S+?):(\d+):(?:\d+:)?   required",
                   re.MULTILINE)
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
            path = os.path.join(cxx_source.ROOT, mutation.file)
            text = cxx_source.read(mutation.file) if os.path.exists(path) else ""
            count = text.count(mutation.find)
            if count != 1:
                yield (f"mutations: {requirement}: the text to replace occurs {count} times "
                       f"in {mutation.file}, not once: {mutation.find.splitlines()[0].strip()}")
            if mutation.find == mutation.replace:
                yield f"mutations: {requirement}: the replacement changes nothing"
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


def stop(words):
    print(f"conformance: {words}", file=sys.stderr)
    sys.exit(2)


class Copy:
    """The copy of the tree with all the rules in it."""

    def __init__(self, table):
        """table: by requirement, as requirement_proofs.mutations() gives it"""
        self.by_file = collections.defaultdict(list)
        for mutation in (m for found in table.values() for m in found):
            self.by_file[mutation.file].append(mutation)
        self.clones = {}  # file -> [(first line, last line, mutation)]
        self.alone = set()
        if os.path.exists(ALONE):
            with open(ALONE, encoding="utf-8") as file:
                self.alone = set(file.read().split())
        os.makedirs(COPY, exist_ok=True)
        for name in COPIED:
            self.take(name)

    def take(self, name):
        """Copies what differs, so that a second run rebuilds little; deletes what is gone."""
        source, target = os.path.join(cxx_source.ROOT, name), os.path.join(COPY, name)
        if os.path.isdir(source):
            os.makedirs(target, exist_ok=True)
            names = set(os.listdir(source)) - {"__pycache__"}
            for gone in set(os.listdir(target)) - names:
                path = os.path.join(target, gone)
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
            for each in names:
                self.take(os.path.join(name, each))
        elif name in self.by_file:
            self.write(name)
        else:
            with open(source, "rb") as file:
                self.put(target, file.read())
            shutil.copymode(source, target)

    @staticmethod
    def put(path, octets):
        if os.path.exists(path):
            with open(path, "rb") as file:
                if file.read() == octets:
                    return
        with open(path, "wb") as file:
            file.write(octets)

    def write(self, name, without=None):
        """The file with its rules in it; without: one that is taken out for good."""
        text = cxx_source.read(name)
        if without:
            text = text.replace(without.find, without.replace)
        switched = [m for m in self.by_file[name] if m != without and
                    mutation_results.number(m) not in self.alone]
        done = mutant_schemata.instrument(text, switched)
        self.clones[name] = done.clones
        self.put(os.path.join(COPY, name), done.text.encode())

    def can_switch(self, mutation):
        return any(mutation == m for _, _, m in self.clones.get(mutation.file, ()))

    def part_with(self, errors):
        """Takes out the rules that these lines of the copy belong to. -> how many they were"""
        found = {m for name, line in errors for first, last, m in self.clones.get(name, ())
                 if first <= line <= last}
        self.alone |= {mutation_results.number(m) for m in found}
        with open(ALONE, "w", encoding="utf-8") as file:
            file.write("\n".join(sorted(self.alone)))
        for name in {m.file for m in found}:
            self.write(name)
        return len(found)


class Builder:
    """The build directory: which program a test's source belongs to, and the building of them."""

    def __init__(self, copy):
        self.copy = copy
        self.lock = threading.Lock()
        self.built = set()
        self.seconds = 0.0
        Copy.put(os.path.join(AREA, "mutation.cpp"), mutant_schemata.SOURCE.encode())
        source = os.path.join(AREA, "mutation.cpp")
        self.run(["g++", "-c", source, "-o", os.path.join(AREA, "mutation.o")], "g++")
        if not os.path.exists(os.path.join(BUILD, "build.ninja")):
            self.run(["meson", "setup", *OPTIONS, BUILD, COPY], "meson setup")
        # Configures again when a meson.build has changed: the list is the last configuration's.
        self.run(["ninja", "-C", BUILD, "build.ninja"], "meson")
        listed = self.run(["meson", "introspect", "--targets", BUILD], "meson introspect")
        self.sources = collections.Counter()
        self.program_of = {}
        for target in json.loads(listed):
            if target["type"] == "executable":
                for source in self.sources_of(target):
                    self.program_of[os.path.relpath(source, COPY)] = target["filename"][0]
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

    @staticmethod
    def run(command, what):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print("\n".join((done.stdout + done.stderr).splitlines()[-15:]), file=sys.stderr)
            stop(f"{what} failed")
        return done.stdout

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

    def build(self, programs):
        """-> (file, line) of each error; stops the run when the errors are nowhere."""
        targets = [os.path.relpath(program, BUILD) for program in programs]
        began = time.monotonic()
        done = subprocess.run(["ninja", "-C", BUILD, "-k", "0", *targets], capture_output=True,
                              text=True, check=False)
        self.seconds += time.monotonic() - began
        if done.returncode == 0:
            self.built |= set(programs)
            return []
        where = [(m.group(1) or m.group(3), int(m.group(2) or m.group(4)))
                 for m in ERROR.finditer(done.stdout)]
        found = [(os.path.relpath(os.path.join(BUILD, path), COPY), line) for path, line in where]
        if not found:
            stop("\n".join(["the build failed", *done.stdout.splitlines()[-15:]]))
        return found

    def ready(self, programs):
        """Builds with every rule in its place; rules that do not compile get a build each."""
        if self.built.issuperset(programs):
            return
        with self.lock:
            wanted = [p for p in programs if p not in self.built]
            errors = self.build(wanted) if wanted else []
            while errors:
                if not self.copy.part_with(errors):
                    stop(f"before anything was changed: error at {errors[0][0]}:{errors[0][1]}")
                errors = self.build(wanted)

    def build_without(self, mutation, program):
        """A build of this rule's own. -> whether it compiles"""
        self.copy.write(mutation.file, without=mutation)
        return not self.build([program])


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
        return self.judge(program, patterns, mutation_results.number(mutation))

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
