"""Takes rules out of the code, one at a time, and sees whether the tests that prove them fail.

The rules stand in tests/requirements/mutations.toml: a requirement, a file, a piece of its text
that occurs there once, and what stands there when the rule is gone. The work is done in a copy of
the tree below out/mutation/, so that the tree itself is never touched.

First all the proving tests are built and run once with every rule in its place. Then, for each
rule, only the programs that hold its proofs are built again, one after the other until a test
fails; the rules of one layer come together, so that few objects change from one to the next.
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
            yield f"mutations.toml: {requirement} is not in the catalogue"
        for mutation in found:
            path = os.path.join(cxx_source.ROOT, mutation.file)
            text = cxx_source.read(mutation.file) if os.path.exists(path) else ""
            count = text.count(mutation.find)
            if count != 1:
                yield (f"mutations.toml: {requirement}: the text to replace occurs {count} times "
                       f"in {mutation.file}, not once: {mutation.find.splitlines()[0].strip()}")
            if mutation.find == mutation.replace:
                yield f"mutations.toml: {requirement}: the replacement changes nothing"
        if proofs is not None and not any(p.suite for p in proofs.get(requirement, ())):
            yield f"mutations.toml: {requirement}: no C++ test names it"


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
        self.first_run = {}  # program -> (passed, failed, trouble), nothing changed
        self.seconds = {}
        self.program_of = {}
        for target in json.loads(listed):
            if target["type"] == "executable":
                for group in target["target_sources"]:
                    for source in (*group.get("sources", ()), *group.get("unity_sources", ())):
                        self.program_of[os.path.relpath(source, COPY)] = target["filename"][0]

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

    def before(self, all_proofs):
        """Builds and runs all the proving tests with every rule in its place."""
        wanted = collections.defaultdict(list)
        for proofs in all_proofs:
            for program, patterns in self.programs(proofs).items():
                wanted[program] += [p for p in patterns if p not in wanted[program]]
        error = self.build(wanted)
        if error:
            print(f"conformance: before anything was changed: {error}", file=sys.stderr)
            sys.exit(2)
        for program, patterns in wanted.items():
            began = time.monotonic()
            self.first_run[program] = self.execute(program, patterns, FIRST_SECONDS)
            self.seconds[program] = time.monotonic() - began

    def unsound(self, programs):
        """Why the tests of these programs say nothing about a change; "" if they do."""
        ran = False
        for program, patterns in programs.items():
            passed, failed, trouble = self.first_run[program]
            if trouble:
                return trouble
            for name in failed:
                if any(fnmatch.fnmatchcase(name, p) for p in patterns):
                    return name
            ran = ran or any(fnmatch.fnmatchcase(n, p) for n in passed for p in patterns)
        return "" if ran else "none of its tests ran"

    def judge(self, mutation, programs):
        near = f"/{os.path.basename(os.path.dirname(mutation.file))}/"
        near_first = sorted(programs, key=lambda p: (near not in p, self.seconds[p], p))
        for program in near_first:
            error = self.build([program])
            if error:
                return Outcome(mutation, "broken", error)
            limit = TEST_SECONDS + 4 * self.seconds[program]
            _, failed, trouble = self.execute(program, programs[program], limit,
                                              "--gtest_fail_fast")
            if failed or trouble:
                return Outcome(mutation, "caught", failed[0] if failed else trouble)
        return Outcome(mutation, "missed", "")

    def try_one(self, mutation, proofs):
        programs = self.programs(proofs)
        if not programs:
            return Outcome(mutation, "broken", "no test program proves it")
        bad = self.unsound(programs)
        if bad:
            return Outcome(mutation, "broken", f"before anything was changed: {bad}")
        path = os.path.join(COPY, mutation.file)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(mutation.find, mutation.replace))
            return self.judge(mutation, programs)
        finally:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)


def run(requirements, ids, finder):
    """Tries every mutation of these requirements; yields an Outcome each."""
    table = requirement_proofs.mutations()
    known = {r.id for r in requirements}
    for line in check({i: table[i] for i in ids if i in table}, known):
        print(line, file=sys.stderr)
        sys.exit(2)
    chosen = [m for i in ids for m in table.get(i, ())]
    workshop = Workshop()
    workshop.before([finder.proofs.get(i, []) for i in ids if i in table])
    for mutation in sorted(chosen, key=lambda m: os.path.dirname(m.file)):
        yield workshop.try_one(mutation, finder.proofs.get(mutation.id, []))
