"""What is known of each mutant: one line a verdict, the last one of a mutant counts."""

import collections
import os

Verdict = collections.namedtuple("Verdict", "id room file line operator result killer seconds")
COUNT = ("killed", "survived", "unreached")
OPEN = "open"  # no quick test kills it; nothing else was asked yet
LATE = "late"  # the same, and its test was written before anything else was asked
NAMED = "named"  # the operator of those that were not drawn


class State:
    def __init__(self, path):
        self.path, self.verdicts = path, []
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    parts = line.rstrip("\n").split("\t")
                    if len(parts) != len(Verdict._fields):
                        continue  # cut by an interruption
                    v = Verdict(*parts)
                    self.verdicts.append(v._replace(id=int(v.id), line=int(v.line),
                                                    seconds=float(v.seconds)))

    def add(self, mutant, result, killer, seconds):
        verdict = Verdict(mutant["id"], mutant["room"], mutant["file"], mutant["line"],
                          mutant["operator"], result, " ".join(killer.split()), round(seconds, 1))
        self.verdicts.append(verdict)
        with open(self.path, "a", encoding="utf-8") as file:
            file.write("\t".join(map(str, verdict)) + "\n")

    def first(self):
        """id -> the verdict before any test was written for it."""
        found = {}
        for verdict in self.verdicts:
            if verdict.result != OPEN:
                found.setdefault(verdict.id, verdict)
        return found

    def is_new(self, number):
        """Whether nobody has asked yet if it changes the object code."""
        return all(v.result in (OPEN, LATE) for v in self.verdicts if v.id == number)

    def last(self):
        return {verdict.id: verdict for verdict in self.verdicts}

    def known(self):
        return {verdict.id for verdict in self.verdicts}

    def result(self, number):
        return self.last()[number].result

    def counted(self, room):
        """How many of a room's drawn mutants count, as far as is known."""
        return sum(1 for v in self.last().values()
                   if v.room == room and v.result in (*COUNT, OPEN) and v.operator != NAMED)
