"""A copy of the tree in which changes of the code can be switched on, one at a time, and its build.

A change has a file, a piece of its text that occurs there once (`find`), what stands there instead
(`replace`) and a `number` of eight digits that switches it on; changes of one number go together.
The work is done in a copy below out/, so that the tree itself is never touched. The copy is built
once with all changes in it, each behind a switch (see mutant_schemata.py).
"""

import collections
import difflib
import os
import re
import shutil
import subprocess
import sys
import time

import cxx_source
import mutant_schemata

COPIED = ("apps", "config", "docs", "drivers", "lib", "scripts", "tests", "meson.build",
          "meson_options.txt", "README.md", "LICENSE", "CHANGELOG.md")
OPTIONS = ("--buildtype=plain", "-Doptimization=1", "-Ddebug=false", "-Dwerror=true")
ERROR = re.compile(r"^(\S+?):(\d+):(?:\d+:)? (?:fatal )?error:|^(\S+?):(\d+):(?:\d+:)?   required",
                   re.MULTILINE)


def complaint(change):
    """What is wrong with a change, in one line; "" when it can be made."""
    if change.find == change.replace:
        return "the replacement changes nothing"
    path = os.path.join(cxx_source.ROOT, change.file)
    if not os.path.exists(path):
        return f"there is no {change.file}"
    text = cxx_source.read(change.file)
    count = text.count(change.find)
    if count == 1:
        return ""
    first = change.find.strip().splitlines()[0].strip()
    return (f"the text to replace occurs {count} times in {change.file}, not once: {first}"
            + (nearest(text, change.find) if count == 0 else ""))


def nearest(text, find):
    """Where a text that is gone may have gone to."""
    lines = text.splitlines()
    here = {line.strip() for line in lines}
    wanted = [line.strip() for line in find.splitlines() if line.strip()]
    gone = next((line for line in wanted if line not in here), wanted[0])
    near = difflib.get_close_matches(gone, here, 1, 0.5)
    if not near:
        return f"; nothing there is like '{gone}'"
    number = 1 + next(i for i, line in enumerate(lines) if line.strip() == near[0])
    return f"; line {number} is the nearest to '{gone}': '{near[0]}'"


def stop(words):
    print(f"{os.path.basename(sys.argv[0])}: {words}", file=sys.stderr)
    sys.exit(2)


class Copy:
    """The copy of the tree with all the changes in it."""

    def __init__(self, area, changes, alone=()):
        """area: a folder below out/; alone: numbers of changes that are left out"""
        self.area = area
        self.tree = os.path.join(area, "tree")
        self.by_file = collections.defaultdict(list)
        for change in changes:
            self.by_file[change.file].append(change)
        self.clones = {}  # file -> [(first line, last line, change)]
        self.alone = set(alone)
        os.makedirs(self.tree, exist_ok=True)
        for name in COPIED:
            self.take(name)

    def take(self, name):
        """Copies what differs, so that a second run rebuilds little; deletes what is gone."""
        source, target = os.path.join(cxx_source.ROOT, name), os.path.join(self.tree, name)
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
        """The file with its changes in it; without: one that is made for good."""
        text = cxx_source.read(name)
        if without:
            text = text.replace(without.find, without.replace)
        switched = [c for c in self.by_file[name] if c != without and c.number not in self.alone]
        done = mutant_schemata.instrument(text, switched)
        self.clones[name] = done.clones
        self.put(os.path.join(self.tree, name), done.text.encode())

    def can_switch(self, change):
        return any(change == c for _, _, c in self.clones.get(change.file, ()))

    def part_with(self, errors):
        """Takes out the changes that these lines of the copy belong to. -> how many they were"""
        found = {c for name, line in errors for first, last, c in self.clones.get(name, ())
                 if first <= line <= last}
        numbers = {c.number for c in found}
        self.alone |= numbers
        for name in {c.file for of in self.by_file.values() for c in of if c.number in numbers}:
            self.write(name)
        return len(found)


class Build:
    """The build directory of a copy."""

    def __init__(self, copy, options=()):
        self.copy = copy
        # Placed and configured as a developer's: a compiler cache has the tests' objects already.
        self.folder = os.path.join(copy.tree, "build-dev")
        self.seconds = 0.0
        switch = os.path.join(copy.area, "mutation.cpp")
        switch_object = os.path.join(copy.area, "mutation.o")
        copy.put(switch, mutant_schemata.SOURCE.encode())
        self.run(["g++", "-c", switch, "-o", switch_object], "g++")
        if not os.path.exists(os.path.join(self.folder, "build.ninja")):
            self.run(["meson", "setup", *OPTIONS, *options, f"-Dcpp_link_args={switch_object}",
                      self.folder, copy.tree], "meson setup")
        # Configures again when a meson.build has changed: the list is the last configuration's.
        self.run(["ninja", "-C", self.folder, "build.ninja"], "meson")

    @staticmethod
    def run(command, what):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print("\n".join((done.stdout + done.stderr).splitlines()[-15:]), file=sys.stderr)
            stop(f"{what} failed")
        return done.stdout

    def make(self, targets):
        """-> (file, line) of each error; stops the run when the errors are nowhere."""
        began = time.monotonic()
        done = subprocess.run(["ninja", "-C", self.folder, "-k", "0", *targets],
                              capture_output=True, text=True, check=False)
        self.seconds += time.monotonic() - began
        if done.returncode == 0:
            return []
        where = [(m.group(1) or m.group(3), int(m.group(2) or m.group(4)))
                 for m in ERROR.finditer(done.stdout)]
        found = [(os.path.relpath(os.path.join(self.folder, path), self.copy.tree), line)
                 for path, line in where]
        if not found:
            stop("\n".join(["the build failed", *done.stdout.splitlines()[-15:]]))
        return found

    def make_without_errors(self, targets):
        """Leaves out what does not compile."""
        errors = self.make(targets)
        while errors:
            if not self.copy.part_with(errors):
                stop(f"before anything was changed: error at {errors[0][0]}:{errors[0][1]}")
            errors = self.make(targets)
