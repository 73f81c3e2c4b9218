"""Takes rules out of the code, one at a time, and sees whether the tests that prove them fail.

The rules stand in tests/requirements/mutations/*.toml: a requirement, a file, a piece of its text
that occurs there once, and what stands there when the rule is gone. The work is done in a copy of
the tree below out/mutation/, so that the tree itself is never touched.

Of the programs that hold a rule's proofs the nearest one is built and run first with every rule in
its place, then without this one; another only when no test of it fails. The rules of one layer come
together, so that few objects change from one to the next.
"""

import collections
import fnmatch
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time

import cxx_source
import requirement_proofs

AREA = os.path.join(cxx_source.ROOT, "out", "mutation")
COPY = os.path.join(AREA, "tree")
BUILD = os.path.join(AREA, "build")
COPIED = ("apps", "config", "docs", "drivers", "lib", "scripts", "tests", "meson.build",
          "meson_options.txt", "README.md", "LICENSE", "CHANGELOG.md")
# Nothing optimized: the time goes into building, and what the code does is the same.
OPTIONS = ("--buildtype=debug", "-Doptimization=0", "-Ddebug=false", "-Dwerror=false")
# A mutation may make a test hang, eat the memory or write for ever: that is caught, too. Hanging is
# to take this long and four times what the program took before anything was changed.
TEST_SECONDS = 30
FIRST_SECONDS = 1800
TEST_MEMORY = 6 << 30
TEST_OUTPUT = 256 << 20

Outcome = collections.namedtuple("Outcome", "mutation word detail")  # caught, missed, broken


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


class Workshop:
    """The copy of the tree and its build directory."""

    def __init__(self):
        os.makedirs(COPY, exist_ok=True)
        for name in COPIED:
            self.copy(os.path.join(cxx_source.ROOT, name), os.path.join(COPY, name))
        if not os.path.exists(os.path.join(BUILD, "build.ninja")):
            self.run(["meson", "setup", *OPTIONS, BUILD, COPY], "meson setup")
        # Configures again when a meson.build has changed: the list is the last configuration's.
        self.run(["ninja", "-C", BUILD, "build.ninja"], "meson")
        listed = self.run(["meson", "introspect", "--targets", BUILD], "meson introspect")
        # By program. What was run with every rule in its place, how it ended and how long it took:
        self.patterns = collections.defaultdict(set)
        self.passed = collections.defaultdict(set)
        self.failed = collections.defaultdict(list)
        self.seconds = collections.defaultdict(float)
        self.sources = collections.Counter()
        self.program_of = {}
        for target in json.loads(listed):
            if target["type"] == "executable":
                for group in target["target_sources"]:
                    for source in (*group.get("sources", ()), *group.get("unity_sources", ())):
                        self.program_of[os.path.relpath(source, COPY)] = target["filename"][0]
                        self.sources[target["filename"][0]] += 1

    @staticmethod
    def copy(source, target):
        """Copies what differs, so that a second run rebuilds little; deletes what is gone."""
        if os.path.isfile(source):
            with open(source, "rb") as a:
                text = a.read()
            if os.path.exists(target):
                with open(target, "rb") as b:
                    if b.read() == text:
                        return
            shutil.copy(source, target)
            os.utime(target)
            return
        os.makedirs(target, exist_ok=True)
        names = set(os.listdir(source)) - {"__pycache__"}
        for name in set(os.listdir(target)) - names:
            path = os.path.join(target, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        for name in names:
            Workshop.copy(os.path.join(source, name), os.path.join(target, name))

    @staticmethod
    def run(command, what):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print("\n".join((done.stdout + done.stderr).splitlines()[-15:]), file=sys.stderr)
            print(f"conformance: {what} failed", file=sys.stderr)
            sys.exit(2)
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

    def build(self, programs):
        targets = [os.path.relpath(program, BUILD) for program in programs]
        done = subprocess.run(["ninja", "-C", BUILD, *targets], capture_output=True, text=True)
        errors = [line for line in done.stdout.splitlines() if "error:" in line]
        return "" if done.returncode == 0 else (errors or done.stdout.splitlines())[-1]

    @staticmethod
    def execute(program, patterns, seconds, *options):
        """(passed, failed, trouble): names of tests, and how the program ended if not by itself."""
        def bound():
            resource.setrlimit(resource.RLIMIT_DATA, (TEST_MEMORY, TEST_MEMORY))
            resource.setrlimit(resource.RLIMIT_FSIZE, (TEST_OUTPUT, TEST_OUTPUT))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        name, trouble = os.path.basename(program), ""
        with open(os.path.join(AREA, "output"), "w+", errors="replace", encoding="utf-8") as out:
            try:
                done = subprocess.run(
                    [program, f"--gtest_filter={':'.join(patterns)}", "--gtest_color=no", *options],
                    stdout=out, stderr=subprocess.STDOUT, timeout=seconds, cwd=BUILD,
                    preexec_fn=bound)
                trouble = f"{name} crashed" if done.returncode not in (0, 1) else ""
            except subprocess.TimeoutExpired:
                trouble = f"{name} did not end"
            out.seek(0)
            passed, failed, running = set(), [], ""
            for line in out:
                word, _, rest = line.partition("]")
                test = rest.split("(")[0].split(",")[0].strip()
                if word == "[ RUN      ":
                    running = test
                elif word == "[       OK ":
                    passed.add(test)
                elif word == "[  FAILED  " and "." in test and test not in failed:
                    failed.append(test)
        if trouble and running and running not in passed:
            trouble = trouble.replace(name, running)
        return passed, failed, trouble

    def in_order(self, mutation, programs):
        """The layer's own tests first, then those with few sources: they are built soonest."""
        near = f"/{os.path.basename(os.path.dirname(mutation.file))}/"
        return sorted(programs, key=lambda p: (near not in p, self.sources[p], p))

    def before(self, wanted):
        """Builds and runs tests with every rule in its place. wanted: program -> patterns"""
        wanted = {program: [p for p in patterns if p not in self.patterns[program]]
                  for program, patterns in wanted.items()}
        wanted = {program: patterns for program, patterns in wanted.items() if patterns}
        error = self.build(wanted) if wanted else ""
        if error:
            print(f"conformance: before anything was changed: {error}", file=sys.stderr)
            sys.exit(2)
        for program, patterns in wanted.items():
            began = time.monotonic()
            passed, failed, trouble = self.execute(program, patterns, FIRST_SECONDS)
            self.seconds[program] += time.monotonic() - began
            self.patterns[program].update(patterns)
            self.passed[program].update(passed)
            self.failed[program] += failed + ([trouble] if trouble else [])

    def unsound(self, program, patterns):
        """Why these tests say nothing about a change; "" if they do."""
        for name in self.failed[program]:
            if " " in name or any(fnmatch.fnmatchcase(name, p) for p in patterns):
                return name
        ran = any(fnmatch.fnmatchcase(n, p) for n in self.passed[program] for p in patterns)
        return "" if ran else "none of the tests ran"

    def judge(self, mutation, program, patterns):
        error = self.build([program])
        if error:
            return Outcome(mutation, "broken", error)
        limit = TEST_SECONDS + 4 * self.seconds[program]
        _, failed, trouble = self.execute(program, patterns, limit, "--gtest_fail_fast")
        if failed or trouble:
            return Outcome(mutation, "caught", failed[0] if failed else trouble)
        return Outcome(mutation, "missed", "")

    def try_one(self, mutation, proofs):
        """One program after the other, until a test fails."""
        programs = self.programs(proofs)
        outcome = Outcome(mutation, "broken", "no test program proves it")
        path = os.path.join(COPY, mutation.file)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for program in self.in_order(mutation, programs):
            self.before({program: programs[program]})
            bad = self.unsound(program, programs[program])
            if bad:
                return Outcome(mutation, "broken", f"before anything was changed: {bad}")
            try:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text.replace(mutation.find, mutation.replace))
                outcome = self.judge(mutation, program, programs[program])
            finally:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            if outcome.word != "missed":
                return outcome
        return outcome


def run(requirements, ids, finder):
    """Tries every mutation of these requirements; yields an Outcome each."""
    table = requirement_proofs.mutations()
    known = {r.id for r in requirements}
    for line in check({i: table[i] for i in ids if i in table}, known):
        print(line, file=sys.stderr)
        sys.exit(2)
    chosen = sorted((m for i in ids for m in table.get(i, ())),
                    key=lambda m: os.path.dirname(m.file))
    workshop = Workshop()
    first = collections.defaultdict(list)
    for mutation in chosen:
        programs = workshop.programs(finder.proofs.get(mutation.id, []))
        for program in workshop.in_order(mutation, programs)[:1]:
            first[program] += [p for p in programs[program] if p not in first[program]]
    workshop.before(first)
    for mutation in chosen:
        yield workshop.try_one(mutation, finder.proofs.get(mutation.id, []))
