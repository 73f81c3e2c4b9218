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


class NotMeasured(Exception):
    """There is no figure; the text says why."""


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
        raise NotMeasured(f"FAILED ({done.returncode}): {said}")
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
                    self.results[name].append(measure())
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

    def undisturbed(self):
        """The numbers of the rounds that count, and how many do not."""
        if self.floor is None or self.floor in self.failed:
            most = max((len(results) for results in self.results.values()), default=0)
            return list(range(most)), 0
        floors = [result["floor_best_gbps"] for result in self.results[self.floor]]
        kept = [n for n, floor in enumerate(floors) if floor >= SLOW_FLOOR * max(floors)]
        return kept, len(floors) - len(kept)

    def figure(self, name, key, scale=1, **more):
        """One value of a variant over the undisturbed rounds that have it."""
        results = self.of(name)
        kept, disturbed = self.undisturbed()
        values = [results[n][key] * scale for n in kept if n < len(results) and key in results[n]]
        if not values:
            raise NotMeasured(f"disturbed: no round of {len(results)} had an undisturbed window")
        return spread(values, disturbed=disturbed, **more)

    def ratio(self, name, base, key, **more):
        """A value of one variant over that of another, inside each undisturbed round."""
        ours, others = self.of(name), self.of(base)
        kept, disturbed = self.undisturbed()
        values = [ours[n][key] / others[n][key] for n in kept if n < min(len(ours), len(others))]
        if not values:
            raise NotMeasured("no undisturbed round")
        return spread(values, disturbed=disturbed, **more)
