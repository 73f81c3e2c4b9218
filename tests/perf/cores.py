"""Which core a run of one thread is kept on. Interrupts and other tenants of the host take some time of
every core, of one more than of another, and for a whole run; a run that the system moves from one core to
another has some of both."""

import os
import statistics

from rounds import NotMeasured, read

MOST = 4  # cores that are tried
ROUNDS = 5
SECONDS = 0.2


def tried(allowed):
    """-> as many of the cores as are tried, from all over the machine"""
    cores = sorted(allowed)
    if len(cores) <= MOST:
        return cores
    return [cores[at * (len(cores) - 1) // (MOST - 1)] for at in range(MOST)]


def choose(perf, allowed=None):
    """Keeps one-core runs of `perf` on the core that carries most Writes; where a probe fails, wherever
    the system puts them. -> what is told of it: "core", and "probes", Gb/s by core; or "no_core", why"""
    cores = tried(allowed or os.sched_getaffinity(0))
    probes = {core: [] for core in cores}
    try:
        for _ in range(ROUNDS):
            for core in cores:
                perf.core = core
                probes[core].append(read(
                    lambda: float(perf.loopback("--no-floor", seconds=SECONDS)["goodput_gbps"])))
    except NotMeasured as reason:
        perf.core = None
        return {"no_core": str(reason)}
    medians = {core: statistics.median(rates) for core, rates in probes.items()}
    perf.core = max(cores, key=medians.get)
    return {"core": perf.core, "probes": {str(core): rate for core, rate in medians.items()}}


def text(told):
    """-> lines about what choose() has told"""
    if "no_core" in told:
        return [f"one-core runs are on no core of their own: {told['no_core']}"]
    if "core" not in told:
        return []
    rates = ", ".join(f"{rate:.1f} Gb/s on {core}" for core, rate in told["probes"].items())
    return [f"one-core runs are kept on core {told['core']}; probes of each before: {rates}"]
