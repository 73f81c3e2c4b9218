"""The page about a mutation run, and its summary."""

import collections
import json
import os
import tomllib

import operators
import plan as planning
import rooms
import state as keeping

PAGE = os.path.join("docs", "mutants.md")
EQUIVALENT = os.path.join("tests", "mutants", "equivalent.toml")


def plan_of(area):
    with open(os.path.join(area, "plan.json"), encoding="utf-8") as file:
        return json.load(file)


class Equivalents:
    """The sentences that prove that a mutant changes nothing."""

    FIELDS = ("file", "operator", "before", "after")

    def __init__(self, root):
        with open(os.path.join(root, EQUIVALENT), "rb") as file:
            self.table = tomllib.load(file).get("mutant", [])

    def why(self, mutant):
        """None where nothing is said of it. An entry's line is a piece of the mutant's own: short
        texts occur more than once in a file, and what is said holds for one of them."""
        for entry in self.table:
            if (all(entry[f] == mutant[f] for f in self.FIELDS) and
                    entry.get("line", "") in mutant.get("of", "")):
                return entry["why"]
        return None


class Sums:
    """killed, equivalent and surviving mutants under a name."""

    def __init__(self):
        self.rows = collections.OrderedDict()

    def add(self, name, first, last, equivalent):
        row = self.rows.setdefault(name, collections.Counter())
        row["tried"] += 1
        row["before"] += first.result == "killed"
        row["killed"] += last.result == "killed"
        row["equivalent"] += equivalent
        row["open"] += last.result == keeping.OPEN and not equivalent
        row["late"] += first.result == keeping.LATE
        row["left"] += last.result not in ("killed", keeping.OPEN) and not equivalent

    def table(self, title):
        lines = [f"| {title} | mutants | killed before | killed | equivalent | not judged | gaps |",
                 "|---|---|---|---|---|---|---|"]
        total = collections.Counter()
        for name, row in self.rows.items():
            total.update(row)
            lines.append(self.line(name, row))
        return lines + [self.line("**all**", total)], total

    @staticmethod
    def line(name, row):
        return (f"| {name} | {row['tried']} | {row['before']} | {row['killed']} "
                f"| {row['equivalent']} | {row['open']} | {row['left']} |")


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "none"


def count(root, area, state):
    """\\return sums by room, sums by operator, rows of mutants that were not killed at first: first
    and last verdict, mutant, the sentence of one that is equivalent"""
    known, first = Equivalents(root), state.first()
    mutants = {m["id"]: m for m in plan_of(area)["mutants"]}
    by_room, by_operator, alive = Sums(), Sums(), []
    verdicts = [v for v in state.last().values()
                if v.result in (*keeping.COUNT, keeping.OPEN) and v.operator != keeping.NAMED]
    first = {v.id: first.get(v.id, v) for v in verdicts}
    for order, names in ((by_room, [r.name for r in rooms.ROOMS]),
                         (by_operator, operators.OPERATORS)):
        for name in names:
            for v in verdicts:
                if name == (v.room if order is by_room else v.operator):
                    equivalent = v.result != "killed" and known.why(mutants[v.id]) is not None
                    order.add(name, first[v.id], v, equivalent)
    for v in sorted(verdicts, key=lambda v: (v.file, v.line)):
        if first[v.id].result != "killed" or v.result != "killed":
            alive.append((first[v.id], v, mutants[v.id], known.why(mutants[v.id])))
    return by_room, by_operator, alive


def named(root, area, state):
    """Rows of the named mutants: mutant, its verdict or None, the sentence of an equivalent one."""
    with open(os.path.join(root, planning.NAMED), "rb") as file:
        why = {m["name"]: m.get("why") for m in tomllib.load(file)["mutant"]}
    last = state.last()
    return [(m, last.get(m["id"]), why.get(m["name"])) for m in plan_of(area)["mutants"]
            if "name" in m]


def left_alive(rows):
    return [row for row in rows if row[1] and row[1].result != "killed" and not row[2]]


def summary(root, area, state):
    by_room, _, alive = count(root, area, state)
    lines, total = by_room.table("room")
    print("\n".join(lines))
    print(f"{total['tried']} mutants, {share(total['before'], total['tried'])} killed before any "
          f"test was written for them; of those that are not equivalent "
          f"{share(total['killed'], total['tried'] - total['equivalent'])} are killed")
    for _, verdict, mutant, why in alive:
        if verdict.result != "killed" and why is None:
            print(f"{verdict.result}: {verdict.id} {verdict.file}:{verdict.line} "
                  f"{verdict.operator}: {mutant['before'][:70]} -> {mutant['after'][:70]}")
    unkilled = left_alive(named(root, area, state))
    for mutant, verdict, _ in unkilled:
        print(f"{verdict.result}: {mutant['name']} {mutant['file']}: {mutant['before']}")
    return 1 if total["left"] or total["open"] or unkilled else 0


def code(text):
    text = text.replace("|", "\\|").replace("`", "'")
    return f"`{text[:80]}{'...' if len(text) > 80 else ''}`" if text else "nothing"


def change(verdict, mutant):
    return (f"{verdict.file}:{verdict.line}, {verdict.operator}, {code(mutant['before'])} to "
            f"{code(mutant['after'])}")


def rows_of(title, rows):
    return ["", f"### {title}", "", *(rows or ["None."])]


def named_rows(root, area, state):
    rows = []
    for mutant, verdict, why in named(root, area, state):
        if verdict is None:
            told = "not tried"
        elif verdict.result == "killed":
            told = f"killed by {verdict.killer}"
        else:
            told = why or "**survives**"
        rows.append(f"- {mutant['name']}, {mutant['file']}:{mutant['line']}, {mutant['before']}: "
                    f"{told}")
    return rows


def section(root, area, state):
    """The part of the page about one run."""
    plan = plan_of(area)
    by_room, by_operator, alive = count(root, area, state)
    rooms_table, total = by_room.table("room")
    drawn = [v for v in state.last().values() if v.operator != keeping.NAMED]
    results = collections.Counter(v.result for v in drawn)
    killers = collections.Counter(v.killer.split(" ")[0] for v in drawn if v.result == "killed")
    by_print = sum(v.result == "killed" and v.killer.startswith("fingerprint") for v in drawn)
    seconds = sum(v.seconds for v in state.verdicts)
    dead = [f"- {change(v, m)}: {v.killer}" for _, v, m, _ in alive if v.result == "killed"]
    same = [f"- {change(v, m)}: {why}" for _, v, m, why in alive
            if v.result != "killed" and why]
    left = {"unreached": ": no test comes past it", keeping.OPEN: ": not judged to the end"}
    gaps = [f"- {change(v, m)}{left.get(v.result, '')}"
            for _, v, m, why in alive if v.result != "killed" and not why]
    return [
        title_of(plan), "",
        f"- Seed `{plan['seed']}`; command `./scripts/mutants --commit {plan['commit'][:12]} "
        f"--sample {plan['sample']} --count {plan['count']}`.",
        f"- {total['tried']} of {plan['count']} mutants tried, those that do not compile "
        f"({results['no compile']}) or leave the object code as it was ({results['no change']}) "
        f"not counted; {seconds / 3600:.1f} hours.",
        "- Sources and headers." if any(m["file"].endswith(".hpp") for m in plan["mutants"])
        else "- Sources alone: the run is from before headers were mutated, too.",
        f"- {by_print} of the killed by a fingerprint alone: no test and no checker says what is "
        "wrong, sim-fingerprints says that a world looks different.",
        *([f"- {total['open']} were not killed by the quick tests and not yet tried by the seeds and "
           "the slow tests: the shares are lower bounds."] if total["open"] else []),
        *([f"- {total['late']} got their test before the seeds and the slow tests were asked: the "
           "share killed before is a lower bound."] if total["late"] else []),
        f"- **{share(total['before'], total['tried'])} were killed before any test was written for "
        f"them; of those that are not equivalent "
        f"{share(total['killed'], total['tried'] - total['equivalent'])} are killed now.**", "",
        *rooms_table, "", *by_operator.table("operator")[0], "",
        "Killed by: " + ", ".join(f"{name} {n}" for name, n in killers.most_common()) + ".",
        *rows_of("Survivors, and the test that kills each since", dead),
        *rows_of("Equivalent", same), *rows_of("Gaps, and what is not judged to the end", gaps),
        *rows_of("Named mutants", named_rows(root, area, state)), ""]


def title_of(plan):
    return f"## Commit {plan['commit'][:12]}, sample {plan['sample']}"


HEAD = [
    "# Mutants", "",
    "What `./scripts/mutants` found: code that is changed at random by an operator table, and "
    "whether a test or a seed of the simulator notices (decisions/0019-mutants-by-operators.md). "
    "`./scripts/mutants --report` writes a run's section; the named mutants are those of "
    "tests/mutants/named.toml.", ""]


def write(root, area, state):
    """Writes the run's section, in the place of what the page had of it; the others stay."""
    path = os.path.join(root, PAGE)
    text = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
    kept = ["## " + part for part in text.split("\n## ")[1:]]
    mine = section(root, area, state)
    parts = [part.rstrip("\n") for part in kept]
    place = next((i for i, part in enumerate(parts) if part.startswith(mine[0] + "\n")), None)
    if place is None:
        parts.append("")
        place = len(parts) - 1
    parts[place] = "\n".join(mine).rstrip("\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(HEAD) + "\n" + "\n\n".join(parts) + "\n")
    return 0
