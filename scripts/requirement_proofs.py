"""Which requirement is proven by which test: what the sources say and what the last run gave.

A C++ test proves a requirement when it names the ID, once: in its own name with '_' for '-' and
'.' (TEST(Fpdu, Mulpdu_MPA_4_5_01)), or in a comment above it or inside it, where the name has no
room or the ID is of one part of the test. What the name says no comment repeats. A Python test (a
script that Meson runs) proves what a comment in it names.

Beside the catalogue of the specifications stands the UNH list: stimuli of a test station and what
has to be observed, in the form of the iWARP suites of UNH-IOL. Its rows are proven the same way.
"""

import collections
import csv
import hashlib
import os
import re
import tomllib

import cxx_source
import test_results

FOLDER = os.path.join(cxx_source.ROOT, "tests", "requirements")
CATALOGUE = os.path.join(FOLDER, "requirements.tsv")
UNH_LIST = os.path.join(FOLDER, "unh.tsv")
SCOPE = os.path.join(FOLDER, "scope.toml")
MUTATIONS = os.path.join(FOLDER, "mutations")  # a file for each layer
TEST = re.compile(r"^(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\s*(\w+)\s*,\s*(\w+)\s*\)")

Requirement = collections.namedtuple("Requirement", "id source level layer statement")
UnhRow = collections.namedtuple("UnhRow", "id group stimulus observation")
Proof = collections.namedtuple("Proof", "file line suite name")  # suite: "" for a Python test


class Mutation(collections.namedtuple("Mutation", "id file find replace rule")):
    """A rule and the change of the code that takes it out (see changed_tree.py)."""

    @property
    def number(self):
        """The rule's own text as eight digits: another text is another rule."""
        words = "\0".join((self.id, self.file, self.find, self.replace))
        return hashlib.sha256(words.encode()).hexdigest()[:8]


class Scope(collections.namedtuple("Scope", "layers families exceptions unh_exceptions")):
    """What is finished. exceptions, unh_exceptions: id -> reason"""

    def group_of(self, requirement):
        """The finished layer, or family of IDs, that a requirement belongs to; None: neither."""
        if requirement.layer in self.layers:
            return requirement.layer
        family = requirement.id.split("-")[0]
        return family if family in self.families else None

    def __str__(self):
        return ", ".join([*self.layers, *(f"{family}-*" for family in self.families)])


def table_of(path):
    """The rows of a table, without its header."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row for row in rows[1:] if row]


def catalogue():
    return [Requirement(*row) for row in table_of(CATALOGUE)]


def unh_list():
    return [UnhRow(*row) for row in table_of(UNH_LIST)]


def scope():
    """The layers that are finished and what is deliberately not met."""
    with open(SCOPE, "rb") as file:
        table = tomllib.load(file)

    def reasons(name):
        return {e["id"]: e["reason"] for e in table.get(name, [])}

    families = table.get("families", [])
    return Scope(table["layers"], families, reasons("exception"), reasons("unh_exception"))


def mutations():
    """Rules that can be taken out of the code, by requirement: id -> [Mutation]."""
    found, rows = collections.defaultdict(list), []
    for name in sorted(os.listdir(MUTATIONS)):
        with open(os.path.join(MUTATIONS, name), "rb") as file:
            rows += tomllib.load(file)["mutation"]
    for row in rows:
        found[row["id"]].append(Mutation(*(row[field] for field in Mutation._fields)))
    return found


def whole_of(requirement):
    """The line of the catalogue that MPA-8-09-a is a part of; "" for a line."""
    match = re.fullmatch(r"(.*-\w*\d\w*)-[a-z]", requirement)
    return match.group(1) if match else ""


def rules_of(requirement, requirements, table):
    """The mutations of a line: of its parts if it has some, all of which need one."""
    parts = [r.id for r in requirements if whole_of(r.id) == requirement] or [requirement]
    found = [table.get(part, []) for part in parts]
    return [m for rules in found for m in rules] if all(found) else []


class Finder:
    """Finds the IDs that tests name."""

    def __init__(self, rows):
        """rows: of the catalogue and of the UNH list"""
        self.known = {r.id for r in rows}
        by_length = sorted(self.known, key=len, reverse=True)
        self.encoded = {re.sub(r"\W", "_", i): i for i in by_length}
        names = "|".join(map(re.escape, self.encoded))
        self.in_name = re.compile(rf"(?:^|_|(?<=[a-z0-9]))({names})(?![0-9A-Za-z])")
        families = sorted({i.split("-")[0] for i in self.known}, key=len, reverse=True)
        self.in_text = re.compile(rf"\b(?:{'|'.join(families)})-[\w.]+(?:-[\w.]+)*")
        self.proofs = collections.defaultdict(list)
        self.complaints = []

    def read_all(self):
        for path in cxx_source.sources(".cpp", dirs=("tests",)):
            self.read(path)
        for path in cxx_source.sources("_test.py", dirs=("tests",)):
            self.read_script(path)
        return self

    def ids(self, path, number, line):
        for match in self.in_text.finditer(line):
            text = match.group(0).rstrip(".-")
            if text in self.known:
                yield text
            elif re.search(r"-\d\d$", text):
                self.complaints.append(f"{path}:{number}: {text} is not in the catalogue")

    def read(self, path):
        pending, test = [], None
        for number, line in enumerate(cxx_source.read(path).splitlines(), 1):
            start = TEST.match(line)
            if start:
                test = Proof(path, number, start.group(2), start.group(3))
                named = [self.encoded[m] for m in self.in_name.findall(test.name)]
                self.add_once(test, number, named + pending)
                pending = []
            comment = line.partition("//")[2]
            if comment and test:
                self.add_once(test, number, self.ids(path, number, comment))
            elif comment:
                pending += self.ids(path, number, comment)
            elif line.strip() and not start and not test and not line.startswith("TEST"):
                pending = []
            if line.startswith("}") or (start and line.rstrip().endswith("}")):
                test = None

    def read_script(self, path):
        test = Proof(path, 1, "", os.path.basename(path))
        for number, line in enumerate(cxx_source.read(path).splitlines(), 1):
            self.add(test, self.ids(path, number, line.partition("#")[2]))

    def add_once(self, test, number, ids):
        for requirement in ids:
            if test in self.proofs[requirement]:
                self.complaints.append(f"{test.file}:{number}: {test.suite}.{test.name} names "
                                       f"{requirement} more than once")
            self.add(test, [requirement])

    def add(self, test, ids):
        for requirement in ids:
            if test not in self.proofs[requirement]:
                self.proofs[requirement].append(test)


class Results:
    """What the last whole run of the tests gave, by suite and name; parameters are cut off."""

    def __init__(self, build_dir):
        cases = test_results.load(build_dir)
        self.ran = cases is not None
        self.table = collections.defaultdict(list)
        for case in cases or []:
            suite, _, name = case.name.rpartition(".")
            for part in suite.split("/"):  # Prefix/Suite.Name/0 and Suite/0.Name
                self.table[(part, name.split("/")[0])].append(case.result)
        self.scripts = test_results.scripts_of(build_dir) if self.ran else {}

    def of(self, proof):
        """One word for all the instances of a test."""
        found = self.table.get((proof.suite, proof.name), [])
        if not proof.suite:
            found = [r for test in self.scripts.get(proof.name, ())
                     for r in self.table.get(("", test), [])]
        for word in ("failed", "skipped", "passed"):
            if word in found:
                return word
        return "not run"


def judge(words):
    """One word for a requirement: passed when all its tests ran, none failed, and one was not
    skipped at least. How many were skipped is the caller's to tell."""
    for word in ("failed", "not run", "passed", "skipped"):
        if word in words:
            return word
    return "no test"
