"""Interleaved rounds: each measures every variant once, so that a neighbour's load meets all alike.

A ratio is taken inside a round. A round is disturbed, and counted as one, when the floor that it
measured is well below the best one of the run.
"""

import json
import statistics
import subprocess
import sys
import time

SLOW_FLOOR = 0.8  # of the best floor: the machine did something else in that round
SECONDS = 300     # that a program has at most


ENVIRONMENT = 2   # exit status of a program that lacks something, as all of ours have it


class NotMeasured(Exception):
    """There is no figure; the text says why."""


def read(take):
    """-> what take() gives. What a program said and nobody understands is no figure, and does not
    end the run of all others."""
    try:
        return take()
    except (LookupError, ValueError, TypeError, AttributeError, StopIteration, RuntimeError,
            OSError) as problem:
        raise NotMeasured(f"FAILED: what was said is not understood: {problem!r}") from problem


def output_of(command, timeout=SECONDS):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False,
                              stdin=subprocess.DEVNULL)
    except FileNotFoundError as problem:
        raise NotMeasured(f"{command[0]} is not there") from problem
    except subprocess.TimeoutExpired as problem:
        raise NotMeasured(f"{command[0]} did not end within {timeout} s") from problem
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "nothing was said").splitlines()[-1]
        failed = "" if done.returncode == ENVIRONMENT else f"FAILED ({done.returncode}): "
        raise NotMeasured(failed + said)
    return done.stdout


def json_of(command, timeout=SECONDS):
    return json.loads(output_of(command, timeout).splitlines()[-1])


def spread(values, **more):
    """A figure: the median of rounds, and between what they lay."""
    ordered = sorted(values)
    return {"value": statistics.median(ordered), "low": ordered[0], "high": ordered[-1],
            "rounds": len(ordered), **more}


class Rounds:
    """What each variant said in each round; a variant that fails once has no figures at all."""

    def __init__(self, variants, floor=None):
        """variants: what measures each, by name. floor: the variant that tells of disturbance."""
        self.variants = variants
        self.floor = floor
        self.results = {name: [] for name in variants}
        self.failed = {}

    def run(self, rounds, deadline=None, fewest=3):
        """At least `fewest` rounds, no new one behind the deadline."""
        for number in range(rounds):
            if deadline and number >= fewest and time.monotonic() > deadline:
                break
            for name, measure in self.variants.items():
                if name in self.failed:
                    continue
                try:
                    self.results[name].append(read(measure))
                except NotMeasured as reason:
                    self.failed[name] = str(reason)
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        return self

    def of(self, name):
        """What a variant said, round by round."""
        if name in self.failed:
            raise NotMeasured(self.failed[name])
        if not self.results.get(name):
            raise NotMeasured("no round was measured")
        return self.results[name]

    def slow(self, name):
        """The numbers of the rounds in which the floor that a variant measured was slow."""
        floors = [result.get("floor_best_gbps") for result in self.results[name]]
        best = max((floor for floor in floors if floor is not None), default=0)
        return {n for n, floor in enumerate(floors)
                if floor is not None and floor < SLOW_FLOOR * best}

    def undisturbed(self, *names):
        """The numbers of the rounds that count for these variants, and how many do not."""
        judges = [name for name in (self.floor, *names)
                  if name is not None and name not in self.failed]
        slow = set().union(*(self.slow(name) for name in judges))
        most = max((len(self.results[name]) for name in judges or self.results), default=0)
        return [n for n in range(most) if n not in slow], len(slow)

    def kept(self, name):
        """What a variant said in the undisturbed rounds."""
        results = self.of(name)
        return [results[n] for n in self.undisturbed(name)[0] if n < len(results)]

    def disturbed(self, name):
        """How many rounds do not count; and the same of the short ones inside a run, if it has any
        of a floor of its own."""
        runs = [run for run in self.kept(name) if "disturbed_rounds" in run]
        inside = {"slices": sum(run["rounds"] for run in runs),
                  "disturbed_slices": sum(run["disturbed_rounds"] for run in runs)} if runs else {}
        return {"disturbed": self.undisturbed(name)[1], **inside}

    def figure(self, name, key, scale=1, **more):
        """One value of a variant over the undisturbed rounds that have it."""
        values = [run[key] * scale for run in self.kept(name) if key in run]
        if not values:
            raise NotMeasured(f"disturbed: no round of {len(self.of(name))} had an undisturbed "
                              "window")
        return spread(values, **self.disturbed(name), **more)

    def ratio(self, name, base, key, **more):
        """A value of one variant over that of another, inside each undisturbed round."""
        ours, others = self.of(name), self.of(base)
        kept, disturbed = self.undisturbed(name, base)
        values = [ours[n][key] / others[n][key] for n in kept if n < min(len(ours), len(others))]
        if not values:
            raise NotMeasured("no undisturbed round")
        return spread(values, disturbed=disturbed, **more)
