"""Tries mutants: the tests and seeds that come past a mutant, the nearest and the quickest first."""

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
PATIENCE = 8  # times what it took before
LEAST = 10  # seconds
MEMORY = 8 << 30
FAILED = re.compile(r"^\[  FAILED  \] ([\w/.]+)", re.MULTILINE)
RUNNING = re.compile(r"^\[ RUN      \] ([\w/.]+)", re.MULTILINE)
SEED_FAILED = re.compile(r"^FAILED (seed .{0,150})", re.MULTILINE)


class Run:
    """One run of a program. seconds: of the processor"""

    def __init__(self, words, cwd, environment, seconds, clock):
        def limit():
            os.setsid()
            os.nice(10)
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


class Judge:
    def __init__(self, build, area, programs, simulator, say):
        """programs: name -> path of the one with mutants; simulator: its path, or None"""
        self.build, self.area, self.say = build, area, say
        self.programs, self.simulator = programs, simulator
        self.baseline = {}  # (program, suite) or ("sim", seed) -> seconds, clock, ids it reaches
        self.lame = []      # what fails without any mutant

    # --- before anything is changed ---

    def measure(self, words):
        path = os.path.join(self.area, "reached")
        with open(path, "wb") as file:
            file.write(bytes(MOST))
        done = Run(words, self.build, {"RNIC_MUTANTS_REACHED": path}, 600, 3600)
        with open(path, "rb") as file:
            reached = [i for i, octet in enumerate(file.read()) if octet]
        return done, reached

    def note(self, key, words):
        done, reached = self.measure(words)
        if done.code != 0:
            self.lame.append(" ".join(map(str, key)))
            return
        self.baseline[key] = {"seconds": done.seconds, "clock": done.clock, "reached": reached}

    def take_baseline(self, stamp):
        """stamp: of the programs and mutants; what was measured for it is used again"""
        path = os.path.join(self.area, "baseline.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                kept = json.load(file)
            if kept["stamp"] == stamp:
                self.baseline = {tuple(k.split("\t")): v for k, v in kept["runs"].items()}
                self.lame = kept["lame"]
                return
        for program, binary in self.programs.items():
            listed = Run([binary, "--gtest_list_tests"], self.build, {}, 60, 300).text
            suites = re.findall(r"^([\w/]+)\.", listed, re.MULTILINE)
            for suite in suites:
                self.note((program, suite), [binary, f"--gtest_filter={suite}.*"])
            self.say(f"{program}: {len(suites)} suites measured")
        for seed in range(1, rooms.SEEDS + 1) if self.simulator else ():
            self.note(("sim", str(seed)), self.seed_command(seed))
        self.say("baseline taken" + (f"; left out, since they fail as it is: {self.lame}"
                                     if self.lame else ""))
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"stamp": stamp, "lame": self.lame,
                       "runs": {"\t".join(k): v for k, v in self.baseline.items()}}, file)

    def seed_command(self, seed):
        return [self.simulator, "--first-seed", str(seed), "--seeds", "1", "--jobs", "1"]

    # --- one mutant ---

    def reaching(self, program, number):
        found = [(v["seconds"], k[1]) for k, v in self.baseline.items()
                 if k[0] == program and number in v["reached"]]
        return [name for _, name in sorted(found)]

    def limits(self, keys):
        seconds = LEAST + PATIENCE * sum(self.baseline[k]["seconds"] for k in keys)
        return seconds, 60 + 10 * sum(self.baseline[k]["clock"] for k in keys) + 4 * seconds

    def by_tests(self, program, suites, number):
        """\\return which test killed it, or nothing"""
        limits = self.limits([(program, s) for s in suites])
        chosen = ":".join(f"{s}.*" for s in suites)
        done = Run([self.programs[program], f"--gtest_filter={chosen}", "--gtest_fail_fast=1"],
                   self.build, {"RNIC_MUTANT": str(number)}, *limits)
        if done.code == 0:
            return None
        name = os.path.basename(program)
        failed, running = FAILED.findall(done.text), RUNNING.findall(done.text)
        if failed and done.code > 0 and not done.late:
            return f"{name} {failed[0]}"
        return done.how(f"{name} {running[-1] if running else ''}".strip())

    def by_seed(self, seed, number):
        done = Run(self.seed_command(seed), self.build, {"RNIC_MUTANT": str(number)},
                   *self.limits([("sim", seed)]))
        if done.code == 0:
            return None
        told = SEED_FAILED.findall(done.text)
        return "sim " + (told[0] if told else done.how(f"seed {seed}"))

    def judge(self, mutant):
        """\\return result (killed, survived, unreached), killed by"""
        room = next(r for r in rooms.ROOMS if r.name == mutant["room"])
        number, reached = mutant["id"], False
        for program in room.programs:
            suites = self.reaching(program, number)
            reached |= bool(suites)
            killer = self.by_tests(program, suites, number) if suites else None
            if killer:
                return "killed", killer
        for seed in self.reaching("sim", number):
            reached = True
            killer = self.by_seed(seed, number)
            if killer:
                return "killed", killer
        return ("survived" if reached else "unreached"), ""
