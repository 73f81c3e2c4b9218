#!/usr/bin/env python3
"""The table of goals: ./scripts/bench [--quick].

--quick measures for two minutes and shows the rows that need longer from the last whole run, which
out/bench/results.json keeps. Without it everything is measured, and out/bench/report.html written.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import cores  # noqa: E402
import goals  # noqa: E402
import measures  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import sweeps  # noqa: E402
import table  # noqa: E402
from stream_bench import machine  # noqa: E402

OUT = os.path.join(ROOT, "out/bench")
RESULTS = os.path.join(OUT, "results.json")
PICTURES = os.path.join(ROOT, "docs/pictures")
REPORT = os.path.join(OUT, "report.html")


def commit():
    def git(*words):
        done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True,
                              check=False)
        return done.stdout.strip() if done.returncode == 0 else ""
    name = git("rev-parse", "--short", "HEAD") or "unknown"
    return name + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def load():
    with open("/proc/loadavg", encoding="utf-8") as file:
        return float(file.read().split()[0])


def last_whole_run():
    try:
        with open(RESULTS, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def draw(told):
    """The pictures of docs/performance.md."""
    os.makedirs(PICTURES, exist_ok=True)
    for name, plot in sweeps.plots(told).items():
        with open(os.path.join(PICTURES, name + ".svg"), "w", encoding="utf-8") as file:
            file.write(plot + "\n")


class Run:
    """One run of the suite."""

    def __init__(self, options):
        self.options = options
        self.perf = measures.Perf(options.build_dir)
        self.figures = measures.Figures()
        self.begun = time.monotonic()
        self.told = {"date": datetime.datetime.now().isoformat(" ", "minutes"),
                     "commit": commit(), "machine": machine(), "cores": os.cpu_count(),
                     "load_before": load()}

    def quick(self):
        self.told["instructions"] = measures.from_instructions(
            self.figures, self.options.counted_dir, whole=not self.options.quick)
        measures.from_crc(self.figures, self.options.build_dir)
        measures.from_queue_pairs(self.figures, self.options.build_dir)
        self.told |= cores.choose(self.perf)
        rounds = 7 if self.options.quick else 11
        deadline = self.begun + self.options.limit if self.options.quick else None
        done = measures.rounds_of_all(self.perf, rounds, 0.6, deadline,
                                      whole=not self.options.quick)
        measures.from_rounds(self.figures, done)
        spun = [run for name in measures.ONE_CORE if name not in done.failed
                for run in done.results[name]]
        if spun:
            self.told["core_share"] = measures.share_of_cores(spun)
        self.told["disturbed_rounds"] = done.undisturbed()[1]
        self.told["rounds"] = max(len(runs) for runs in done.results.values())

    def whole(self):
        self.quick()
        done = measures.connection_rounds(self.perf, 3, self.options.seconds, None)
        measures.from_connections(self.figures, done)
        self.told["connections"] = measures.points_of_connections(done)
        done = measures.loss_rounds(self.options.build_dir, 5, self.options.seconds)
        measures.from_loss(self.figures, done, self.options.seconds)
        self.told["peers"] = peers.measure(self.figures, self.perf, self.options.seconds)
        self.told["sweeps"] = sweeps.measure(self.perf)

    def finish(self):
        self.told["load_after"] = load()
        self.told["seconds"] = round(time.monotonic() - self.begun)
        self.told["figures"] = self.figures.by_measure
        self.told["overloaded"] = table.is_overloaded(self.told)
        return self.told


def main():
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--build-dir", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--counted-dir", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="two minutes, the rows that fit")
    parser.add_argument("--limit", type=float, default=120,
                        help="with --quick: begin no round so many seconds after the beginning")
    parser.add_argument("--seconds", type=float, default=4,
                        help="without --quick: of each row that is measured by CPU time (4)")
    parser.add_argument("--pictures", action="store_true",
                        help="without --quick: draw those of docs/performance.md anew")
    options = parser.parse_args()
    if options.seconds < measures.WHOLE:
        parser.error(f"--seconds: {measures.WHOLE} at least, as waiting for timers has to count")
    before = last_whole_run()
    run = Run(options)
    if options.quick:
        run.quick()
        told = run.finish()
    else:
        run.whole()
        told = run.finish()
        os.makedirs(OUT, exist_ok=True)
        with open(RESULTS, "w", encoding="utf-8") as file:
            json.dump(told, file, indent=1)
        with open(REPORT, "w", encoding="utf-8") as file:
            file.write(report.page(goals.rows(), told))
        if options.pictures:
            draw(told)
    print(table.text(goals.rows(), told, before if options.quick else None, options.quick))
    for line in told.get("peers", []):
        print(line)
    if not options.quick:
        print(f"written to {os.path.relpath(REPORT)} and {os.path.relpath(RESULTS)}")
    reasons = [figure.get("missing", "") for figure in told["figures"].values()]
    failed = any(reason.startswith("FAILED") for reason in (*reasons, told.get("no_core", "")))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
