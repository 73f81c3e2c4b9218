"""Plants defects in a copy of the code, one at a time: the simulator's checkers must see each.

  ./scripts/sim --sabotage             all defects, each in the worlds of 100 seeds until it is seen
  ./scripts/sim --sabotage NAME ...    those whose names match (shell patterns)

The defects stand in tests/sim/defects.toml: a name, what a correct implementation does instead, the
changes of the code, and which checkers must see it. Another checker's complaint does not count: it
is told and the worlds go on. What sees a defect must be silent about the same world without it.
The work is done in a copy of the tree below out/sabotage/, built once with all defects in it (see
changed_tree.py).

Exit: 0 all are seen; 1 one is not; 2 usage or environment.
"""

import argparse
import collections
import fnmatch
import hashlib
import os
import re
import subprocess
import sys
import time
import tomllib

sys.dont_write_bytecode = True
import changed_tree  # noqa: E402
import cxx_source  # noqa: E402
import mutant_schemata  # noqa: E402

TABLE = os.path.join("tests", "sim", "defects.toml")
AREA = os.path.join(cxx_source.ROOT, "out", "sabotage")
SIMULATOR = os.path.join("tests", "sim", "rnic-sim")
# As what is installed: a defect is to be seen by the simulator, not by a check of a debug build.
OPTIONS = ("-Db_ndebug=true",)
SEEDS = 100
FAILED = re.compile(r"^FAILED seed (\d+) \((\S+)\): (.*?): (.*)$")

Edit = collections.namedtuple("Edit", "number file find replace")  # see changed_tree.py
Defect = collections.namedtuple("Defect", "name instead seen_by edits number")
Seen = collections.namedtuple("Seen", "seed profile checker message")


def defects(path=os.path.join(cxx_source.ROOT, TABLE)):
    with open(path, "rb") as file:
        rows = tomllib.load(file)["defect"]
    found = []
    for row in rows:
        words = "\0".join([row["name"], *(str(edit) for edit in row["edit"])])
        number = hashlib.sha256(words.encode()).hexdigest()[:8]
        edits = [Edit(number, **edit) for edit in row["edit"]]
        found.append(Defect(row["name"], row["instead"], row["seen_by"], edits, number))
    return found


def check(table, known):
    """What is wrong with the table, one line each. known: the checkers' names"""
    names = collections.Counter(defect.name for defect in table)
    for name, count in names.items():
        if count != 1:
            yield f"{TABLE}: {name} stands there {count} times"
    changes = collections.defaultdict(list)
    for defect in table:
        for checker in set(defect.seen_by) - known:
            yield f"{TABLE}: {defect.name}: the simulator has no checker '{checker}'"
        if not defect.seen_by or not defect.edits:
            yield f"{TABLE}: {defect.name}: nothing sees it, or nothing is changed"
        for edit in defect.edits:
            bad = changed_tree.complaint(edit)
            if bad:
                yield f"{TABLE}: {defect.name}: {bad}"
            else:
                changes[edit.file].append((edit, defect.name))
    for path, found in changes.items():
        names_of = dict(found)
        for edit in mutant_schemata.instrument(cxx_source.read(path), names_of).left:
            yield f"{TABLE}: {names_of[edit]}: its change of {path} is not within a function"


def checkers():
    """The names that the simulator's checkers give themselves."""
    pattern = re.compile(r'(?:\bfail\(|checker = )"([^"]+)"[,;]')
    return {name for path in cxx_source.sources(".cpp", ".hpp", dirs=("tests/sim",))
            for name in pattern.findall(cxx_source.read(path))}


def simulate(simulator, options, number=""):
    """-> (status, [Seen])"""
    environment = {**os.environ, mutant_schemata.VARIABLE: number}
    done = subprocess.run([simulator, *options], text=True, capture_output=True, check=False,
                          env=environment)
    if done.returncode not in (0, 1):
        changed_tree.stop(f"rnic-sim ended with {done.returncode}: {done.stderr.strip()}")
    lines = (FAILED.match(line) for line in done.stdout.splitlines())
    return done.returncode, [Seen(*line.groups()) for line in lines if line]


def try_defect(simulator, defect, options):
    """-> (who saw it, what else is to be told)"""
    status, failures = simulate(
        simulator, ["--expect", ",".join(defect.seen_by), "--seeds", str(SEEDS), *options],
        defect.number)
    if status != 0:
        others = collections.Counter(f.checker for f in failures)
        told = ", ".join(f"{name} {count}" for name, count in others.most_common(3))
        return None, f"seen by others only: {told}" if told else ""
    seen = failures[-1]
    status, _ = simulate(simulator, ["--seeds", "1", "--first-seed", seen.seed,
                                     "--profile", seen.profile])
    if status != 0:
        return None, f"seed {seen.seed} of {seen.profile} fails without it, too"
    return seen, ""


def plant(chosen, table, options):
    """Tries the chosen defects, and prints a line of each. -> how many were not seen"""
    copy = changed_tree.Copy(AREA, [edit for defect in table for edit in defect.edits])
    build = changed_tree.Build(copy, OPTIONS)
    build.make_without_errors([SIMULATOR])
    print(f"built in {build.seconds:.0f} s", flush=True)
    simulator = os.path.join(build.folder, SIMULATOR)
    missed, began = 0, time.monotonic()
    print(f"{'defect':32} {'caught':7} {'seed':6} {'profile':19} by")
    for defect in chosen:
        if defect.number in copy.alone:
            seen, told = None, "does not compile"
        else:
            seen, told = try_defect(simulator, defect, options)
        if seen:
            print(f"{defect.name:32} {'yes':7} {seen.seed:6} {seen.profile:19} "
                  f"{seen.checker}: {seen.message[:90]}", flush=True)
        else:
            missed += 1
            print(f"{defect.name:32} {'NO':7} {told}".rstrip(), flush=True)
    print(f"tried in {time.monotonic() - began:.0f} s")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__, prog="./scripts/sim --sabotage",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="defects; default: all")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--profile", default="",
                        help="tells which defects the worlds of a profile see (a pattern)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--check", action="store_true",
                        help="only look whether the table and the code agree; builds nothing")
    options = parser.parse_args()
    table = defects()
    bad = list(check(table, checkers()))
    if options.check or bad:
        print("\n".join(bad) if bad else f"{len(table)} defects, table and code agree")
        sys.exit(0 if not bad else 1 if options.check else 2)
    unknown = [n for n in options.names
               if not any(fnmatch.fnmatchcase(d.name, n) for d in table)]
    if unknown:
        parser.error(f"no defect '{unknown[0]}': {TABLE}")
    chosen = [d for d in table if not options.names or
              any(fnmatch.fnmatchcase(d.name, n) for n in options.names)]
    passed = ["--first-seed", str(options.first_seed), "--jobs", str(options.jobs)]
    if options.profile:
        passed += ["--profile", options.profile]
    missed = plant(chosen, table, passed)
    print(f"{len(chosen)} defects, {missed} not caught within {SEEDS} seeds")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
