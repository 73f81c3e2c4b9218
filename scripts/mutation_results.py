"""What the last mutation run of each rule gave: tests/requirements/mutation-results.tsv.

A result stands for as long as its rule does; it is current while neither the mutated file nor the
sources of the proving tests have changed since. The file is written whole after each result, so
that a run that was interrupted goes on where it was.
"""

import collections
import hashlib
import os
import re
import threading

import cxx_source
import requirement_proofs

PATH = os.path.join(requirement_proofs.FOLDER, "mutation-results.tsv")
HEADER = ("id", "rule", "number", "key", "result", "test", "how")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)

# number: of the rule's text, key: of the rule and of all that its result hangs on;
# result: caught, missed or broken; test: the one that caught it; how: fails, crashed, did not end
Result = collections.namedtuple("Result", HEADER)


class Keys:
    """The key of a mutation with its proofs."""

    def __init__(self):
        self.digests = {}

    def digest(self, path):
        """Of a file and, below tests/, of the headers of its folder and of tests/ it includes."""
        if path not in self.digests:
            self.digests[path] = ""  # while it is computed: headers may include each other
            text = cxx_source.read(path)
            parts = [text]
            if path.startswith("tests/"):
                for name in INCLUDE.findall(text):
                    for folder in (os.path.dirname(path), "tests", ""):
                        found = os.path.join(folder, name)
                        if found.startswith("tests/") and os.path.isfile(
                                os.path.join(cxx_source.ROOT, found)):
                            parts.append(self.digest(found))
                            break
            self.digests[path] = hashlib.sha256("\0".join(parts).encode()).hexdigest()
        return self.digests[path]

    def of(self, mutation, proofs):
        files = sorted({p.file for p in proofs if p.suite})
        words = [mutation.number, self.digest(mutation.file), *map(self.digest, files)]
        words += sorted(f"{p.suite}.{p.name}" for p in proofs if p.suite)
        return hashlib.sha256("\0".join(words).encode()).hexdigest()[:12]


class Store:
    """The results by number of their rule."""

    def __init__(self, path=PATH):
        self.path = path
        self.lock = threading.Lock()
        self.table = {}
        if os.path.exists(path):
            for row in requirement_proofs.table_of(path):
                result = Result(*(row + [""] * len(HEADER))[:len(HEADER)])
                self.table[result.number] = result

    def of(self, mutation):
        """The last result of this very rule; None if it was never run."""
        return self.table.get(mutation.number)

    def is_current(self, mutation, key):
        found = self.of(mutation)
        return found is not None and found.key == key and found.result == "caught"

    def keep(self, mutation, key, word, test, how):
        with self.lock:
            self.table[mutation.number] = Result(mutation.id, mutation.rule, mutation.number, key,
                                                 word, test, how)
            self.write()

    def forget_all_but(self, numbers):
        """What the tables no longer hold."""
        with self.lock:
            self.table = {n: r for n, r in self.table.items() if n in numbers}
            self.write()

    def write(self):
        rows = sorted(self.table.values())
        partial = self.path + ".partial"
        with open(partial, "w", encoding="utf-8") as file:
            for row in (HEADER, *rows):
                file.write("\t".join(row).rstrip("\t") + "\n")
        os.replace(partial, self.path)
