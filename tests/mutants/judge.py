"""Tries mutants: the tests and seeds that come past a mutant, the nearest and the quickest first."""

import hashlib
import json
import os
import re
import resource
import signal
import subprocess
import tempfile
import threading
import time

import rooms

MOST = 8192  # kMost of switch.hpp
PATIENCE = 6  # times what it took before
LEAST = 3  # seconds
QUICK = 0.3  # seconds that the first tests of a program may take together
MEMORY = 6 << 30
SEEDS = "sim"
LISTED = 10  # first seeds of each profile, whose fingerprints tests/sim/fingerprints.txt keeps
CHECKED = 10  # worlds whose checkers are asked before a fingerprint alone counts
FAILED = re.compile(r"^\[  FAILED  \] ([\w/.]+)", re.MULTILINE)
RUNNING = re.compile(r"^\[ RUN      \] ([\w/.]+)", re.MULTILINE)
FINGERPRINT = re.compile(r"^fingerprint .*$", re.MULTILINE)
SEED_FAILED = re.compile(r"^FAILED (seed .{0,150})", re.MULTILINE)


class Run:
    """One run of a program. seconds: of the processor"""

    def __init__(self, words, cwd, environment, seconds, clock):
        def limit():
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        self.late = False
        with tempfile.TemporaryFile() as output:
            begun = time.monotonic()
            child = subprocess.Popen(words, cwd=cwd, stdout=output, stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, preexec_fn=limit,
                                     env={**os.environ, **environment})
            timer = threading.Timer(clock, self.stop, (child.pid,))
            timer.start()
            _, status, usage = os.wait4(child.pid, 0)
            timer.cancel()
            child.returncode = os.waitstatus_to_exitcode(status)
            self.code = child.returncode
            self.clock = time.monotonic() - begun
            output.seek(0)
            self.text = output.read(4 << 20).decode(errors="replace")
        self.seconds = usage.ru_utime + usage.ru_stime
        self.late |= self.code == -signal.SIGXCPU

    def stop(self, group):
        self.late = True
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def how(self, what):
        """The way in which it failed."""
        if self.late:
            return f"{what} did not end"
        if self.code < 0:
            return f"{what} died by {signal.Signals(-self.code).name}"
        return what


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha1(file.read()).hexdigest()


def room_of(mutant):
    return next(r for r in rooms.ROOMS if r.name == mutant["room"])


class Judge:
    """Runs programs with mutants in them. A test's key is (program, its name), a world's (SEEDS,
    the words that make it)."""

    def __init__(self, area, programs, simulator, say):
        """programs: name -> path of the one with mutants; simulator: its path, or None"""
        self.area, self.say = area, say
        self.programs, self.simulator = programs, simulator
        self.baseline = {}  # key -> seconds, ids it reaches, of worlds their fingerprints
        self.lame = []      # what fails without any mutant
        self.looks = {}     # profile, mutant or -1 -> how the listed worlds look, seconds

    # --- before anything is changed ---

    def measure(self, words, record=""):
        """\\return the run, the ids that it reached. record: where the tests of it are told"""
        path = os.path.join(self.area, "reached")
        with open(path, "wb") as file:
            file.write(bytes(MOST))
        done = Run(words, self.area, {"RNIC_MUTANTS_REACHED": path,
                                       **({"RNIC_MUTANTS_RECORD": record} if record else {})},
                   1200, 3600)
        with open(path, "rb") as file:
            return done, [i for i, octet in enumerate(file.read()) if octet]

    def note_tests(self, program):
        record = os.path.join(self.area, "record")
        done, _ = self.measure([self.programs[program]], record)
        with open(record, encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
        for name, seconds, result, ids in lines:
            if result == "ok":
                self.baseline[(program, name)] = {
                    "seconds": float(seconds), "reached": [int(i) for i in ids.split()]}
            else:
                self.lame.append(f"{program} {name}")
        if done.code < 0 or done.late:
            self.lame.append(done.how(program))
        self.say(f"{program}: {len(lines)} tests measured in {done.seconds:.0f} s")

    def note_seeds(self, _):
        for words in rooms.WORLDS:
            done, reached = self.measure(self.seed_command(words))
            if done.code == 0:
                self.baseline[(SEEDS, words)] = {
                    "seconds": done.seconds, "reached": reached,
                    "fingerprints": sorted(FINGERPRINT.findall(done.text))}
            else:
                self.lame.append(f"{SEEDS} {words}")
        self.say(f"{len(rooms.WORLDS)} seeds measured")

    def take_baseline(self):
        """What was measured of a program that is still the same is used again."""
        path = os.path.join(self.area, "baseline.json")
        kept = {}
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
        parts = {program: self.note_tests for program in self.programs}
        if self.simulator:
            parts[SEEDS] = self.note_seeds
        for part, note in parts.items():
            stamp = digest(self.simulator if part == SEEDS else self.programs[part])
            if kept.get(part, {}).get("stamp") != stamp:
                lame = len(self.lame)
                note(part)
                kept[part] = {"stamp": stamp, "lame": self.lame[lame:],
                              "runs": {k[1]: v for k, v in self.baseline.items() if k[0] == part}}
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(kept, file)
                del self.lame[lame:]
            self.lame += kept[part]["lame"]
            self.baseline.update({(part, k): v for k, v in kept[part]["runs"].items()})
        self.say("baseline taken" + (f"; left out, since they fail as it is: {self.lame}"
                                     if self.lame else ""))

    def seed_command(self, words):
        return [self.simulator, *words.split(), "--seeds", "1", "--jobs", "1",
                "--show-fingerprints"]

    # --- one mutant ---

    def reaching(self, program, number):
        """Names of the tests or worlds that come past a mutant, the quickest first."""
        found = [(v["seconds"], k[1]) for k, v in self.baseline.items()
                 if k[0] == program and number in v["reached"]]
        return [name for _, name in sorted(found)]

    def seconds(self, program, names):
        return sum(self.baseline[(program, name)]["seconds"] for name in names)

    def limits(self, program, names):
        """Seconds of the processor, seconds of the clock."""
        seconds = LEAST + PATIENCE * self.seconds(program, names)
        return seconds, 30 + 8 * seconds

    def batches(self, program, names):
        """The quick tests first: most mutants need no others."""
        quick, slow, took = [], [], 0
        for name in names:
            took += self.baseline[(program, name)]["seconds"]
            (quick if took < QUICK else slow).append(name)
        return quick, slow

    def by_tests(self, program, names, number):
        """\\return which test killed it, or nothing"""
        names = list(names)
        while names:
            done = self.run_tests(program, names, number)
            if done.code == 0:
                return None
            failed, running = FAILED.findall(done.text), RUNNING.findall(done.text)
            test = failed[:1] if failed and done.code > 0 and not done.late else running[-1:]
            told = f"{os.path.basename(program)} {''.join(test)}".strip()
            if not test or self.run_tests(program, test, -1).code == 0:
                return told if failed and done.code > 0 else done.how(told)
            self.lame.append(told)  # it fails by chance: its word does not count
            self.say(f"{told} fails without a mutant, too")
            names = [name for name in names if name != test[0]]
        return None

    def run_tests(self, program, names, number):
        path = os.path.join(self.area, "filter")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"--gtest_filter={':'.join(names)}\n--gtest_fail_fast=1\n")
        return Run([self.programs[program], f"--gtest_flagfile={path}"], self.area,
                   {"RNIC_MUTANT": str(number)}, *self.limits(program, names))

    def by_seed(self, words, number):
        done = Run(self.seed_command(words), self.area, {"RNIC_MUTANT": str(number)},
                   *self.limits(SEEDS, [words]))
        if done.code == 0:
            return self.by_fingerprint(words, number, done)
        told = SEED_FAILED.findall(done.text)
        return "sim " + (told[0] if told else done.how(f"seed {words}"))

    def by_fingerprint(self, words, number, done):
        """A world that no checker complains of, and that does not look as it does without the
        mutant. The test sim-fingerprints is there to say so, and knows the first worlds of each
        profile: one of them has to look different, too."""
        known = self.baseline[(SEEDS, words)]["fingerprints"]
        changed = set(known) - set(FINGERPRINT.findall(done.text))
        for profile in sorted({line.split()[1] for line in changed}):
            looks, seconds = self.listed(profile, -1, 600)
            different = sorted(looks - self.listed(profile, number, LEAST + PATIENCE * seconds)[0])
            if different:
                return f"fingerprint of seed {different[0].split()[2]} ({profile})"
        return None

    def listed(self, profile, number, most):
        """How the worlds that sim-fingerprints knows look with a mutant (-1: without), and the
        seconds that it took. most: such seconds"""
        if (profile, number) not in self.looks:
            words = [self.simulator, "--profile", profile, "--first-seed", "1", "--seeds",
                     str(LISTED), "--jobs", "1", "--show-fingerprints"]
            done = Run(words, self.area, {"RNIC_MUTANT": str(number)}, most, 30 + 8 * most)
            self.looks[(profile, number)] = set(FINGERPRINT.findall(done.text)), done.seconds
        return self.looks[(profile, number)]

    def judge_by_tests(self, mutant, quick):
        """quick: by the quick ones, or by the others. \\return which test killed it, or nothing"""
        for program in room_of(mutant).programs:
            names = self.batches(program, self.reaching(program, mutant["id"]))[0 if quick else 1]
            killer = self.by_tests(program, names, mutant["id"]) if names else None
            if killer:
                return killer
        return None

    def judge_by_seeds(self, mutant):
        """\return which world killed it, or nothing. A checker's word counts more than that a
        world looks different: some worlds are asked for it before the difference is taken."""
        different, asked = None, 0
        for words in self.reaching(SEEDS, mutant["id"]):
            if words not in room_of(mutant).worlds:
                continue
            killer = self.by_seed(words, mutant["id"])
            if killer and not killer.startswith("fingerprint"):
                return killer
            different, asked = different or killer, asked + 1
            if different and asked >= CHECKED:
                return different
        return different

    def is_reached(self, mutant):
        """A test of its judges, or a world, comes past it."""
        room = room_of(mutant)
        return any(mutant["id"] in v["reached"] for k, v in self.baseline.items()
                   if k[0] in room.programs or k[0] == SEEDS and k[1] in room.worlds)
