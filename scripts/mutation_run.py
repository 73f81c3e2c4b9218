"""Takes rules out of the code, one at a time, and sees whether the tests that prove them fail.

The rules stand in tests/requirements/mutations.toml: a requirement, a file, a piece of its text
that occurs there once, and what stands there when the rule is gone. The work is done in a copy of
the tree below out/mutation/, so that the tree itself is never touched.
"""

import collections
import json
import os
import random
import shutil
import subprocess
import sys

import cxx_source
import requirement_proofs

AREA = os.path.join(cxx_source.ROOT, "out", "mutation")
COPY = os.path.join(AREA, "tree")
BUILD = os.path.join(AREA, "build")
COPIED = ("apps", "config", "docs", "drivers", "lib", "scripts", "tests", "meson.build",
          "meson_options.txt", "README.md", "LICENSE", "CHANGELOG.md")
# Nothing optimized: the time goes into building, and what the code does is the same.
OPTIONS = ("--buildtype=debug", "-Doptimization=0", "-Ddebug=false", "-Dwerror=false")
TEST_SECONDS = 300  # a mutation may make a test hang: that is caught, too

Outcome = collections.namedtuple("Outcome", "mutation word detail")  # caught, missed, broken


def check(mutations, known):
    """What is wrong with the table, one line each."""
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


def sample(requirements, scope, seed):
    """One in ten of each finished layer's MUSTs by this seed, whatever other layers there are."""
    chosen = []
    for layer in scope.layers:
        pool = sorted(r.id for r in requirements if r.level == "MUST" and r.layer == layer)
        chosen += random.Random(f"{seed} {layer}").sample(pool, -(-len(pool) // 10))
    return sorted(i for i in chosen if i not in scope.exceptions)


class Workshop:
    """The copy of the tree and its build directory."""

    def __init__(self):
        os.makedirs(COPY, exist_ok=True)
        for name in COPIED:
            self.copy(os.path.join(cxx_source.ROOT, name), os.path.join(COPY, name))
        if not os.path.exists(os.path.join(BUILD, "build.ninja")):
            self.run(["meson", "setup", *OPTIONS, BUILD, COPY], "meson setup")
        listed = self.run(["meson", "introspect", "--targets", BUILD], "meson introspect")
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
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print("\n".join((done.stdout + done.stderr).splitlines()[-15:]), file=sys.stderr)
            print(f"conformance: {what} failed", file=sys.stderr)
            sys.exit(2)
        return done.stdout

    def programs(self, proofs):
        """program -> GoogleTest filter of the tests that prove."""
        table = collections.defaultdict(list)
        for proof in proofs:
            if proof.suite and proof.file in self.program_of:
                s, n = proof.suite, proof.name
                table[self.program_of[proof.file]] += [f"{s}.{n}", f"*/{s}.{n}/*", f"{s}/*.{n}",
                                                       f"*/{s}/*.{n}/*"]
        return {program: ":".join(patterns) for program, patterns in table.items()}

    def build(self, programs):
        targets = [os.path.relpath(program, BUILD) for program in programs]
        done = subprocess.run(["ninja", "-C", BUILD, *targets], capture_output=True, text=True)
        errors = [line for line in done.stdout.splitlines() if "error:" in line]
        return "" if done.returncode == 0 else (errors or done.stdout.splitlines())[-1]

    def failing(self, programs):
        """The first test that fails, "" when all pass, None when none of them exists."""
        ran = False
        for program, pattern in programs.items():
            try:
                done = subprocess.run([program, f"--gtest_filter={pattern}", "--gtest_color=no"],
                                      capture_output=True, text=True, timeout=TEST_SECONDS,
                                      cwd=BUILD, errors="replace")
            except subprocess.TimeoutExpired:
                return f"{os.path.basename(program)} did not end"
            ran = ran or "[       OK ]" in done.stdout or "[  FAILED  ]" in done.stdout
            if done.returncode:
                names = [line.split("]")[1].split("(")[0].strip(" ,")
                         for line in done.stdout.splitlines() if line.startswith("[  FAILED  ]")]
                return names[0] if names else f"{os.path.basename(program)} crashed"
        return "" if ran else None

    def try_one(self, mutation, proofs):
        programs = self.programs(proofs)
        if not programs:
            return Outcome(mutation, "broken", "no test program proves it")
        path = os.path.join(COPY, mutation.file)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        error = self.build(programs)
        first = self.failing(programs) if not error else error
        if first != "":
            return Outcome(mutation, "broken", f"before anything was changed: {first}")
        try:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(mutation.find, mutation.replace))
            error = self.build(programs)
            if error:
                return Outcome(mutation, "broken", error)
            failed = self.failing(programs)
            return Outcome(mutation, "caught" if failed else "missed", failed)
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
    workshop = Workshop()
    for requirement in ids:
        for mutation in table.get(requirement, ()):
            yield workshop.try_one(mutation, finder.proofs.get(requirement, []))
