"""What the plots of the report show: one figure against another, of whole runs only."""

import statistics

import measures
import svg_plot
from rounds import NotMeasured, Rounds

SIZES = (64, 256, 1024, 4096, 16384, 65536, 262144, 1048576)
MTUS = (576, 1500, 2048, 4096, 9000)
TRIP_SIZES = (64, 256, 1024, 4096)
ROUNDS = 3
OPERATIONS = {"Write, MTU 1500": [], "Read, MTU 1500": ["--op", "read"],
              "Send, MTU 1500": ["--op", "send"], "Write, MTU 9000": ["--mtu", "9000"]}
PERCENTILES = ("p50_us", "p90_us", "p99_us", "p999_us")
SHARES = (0.5, 0.9, 0.99, 0.999)


def variants():
    """Arguments of rnic-perf loopback by (plot, series, x)."""
    table = {}
    for name, options in OPERATIONS.items():
        for size in SIZES:
            depth = "16" if size >= 65536 else "64"
            table["size", name, size] = [*options, "--size", str(size), "--depth", depth,
                                         "--no-floor"]
    for mtu in MTUS:
        table["mtu", "Write", mtu] = ["--mtu", str(mtu)]
    for cores in (1, 2):
        for size in TRIP_SIZES:
            table["trip", f"{cores} core" + "s" * (cores - 1), size] = [
                "--ping-pong", "--cores", str(cores), "--size", str(size)]
    return table


def measure(perf, seconds=0.4):
    """-> medians of what each said, as lists, so that they can be written down"""
    table = variants()
    rounds = Rounds(perf.variants(table, seconds)).run(ROUNDS)
    points = []
    for (plot, series, x), runs in rounds.results.items():
        if (plot, series, x) in rounds.failed:
            continue
        percentiles = {}
        if plot == "trip":
            try:
                percentiles = dict(zip(PERCENTILES, measures.percentiles_of(runs, SHARES)))
            except NotMeasured:
                continue
        values = {key: statistics.median(run[key] for run in runs if key in run)
                  for key in ("goodput_gbps", "msgs_per_s", "floor_gbps", "line_ns")
                  if any(key in run for run in runs)}
        points.append({"plot": plot, "series": series, "x": x, **values, **percentiles})
    return points


def series_of(points, plot, key, scale=1.0):
    out = {}
    for point in points:
        if point["plot"] == plot and key in point:
            out.setdefault(point["series"], []).append((point["x"], point[key] * scale))
    return out


def plots(told):
    """-> SVGs of everything that a whole run has measured, by the names of their files"""
    points = told.get("sweeps", [])
    trips = {f"{series}, {key[:-3]}": line for key in PERCENTILES[:3]
             for series, line in series_of(points, "trip", key).items()}
    # No two cores without the way between them.
    trips.update({f"{series}, cache line": line
                  for series, line in series_of(points, "trip", "line_ns", 1e-3).items()})
    mtus = {**series_of(points, "mtu", "goodput_gbps"),
            **{"floor": line for line in series_of(points, "mtu", "floor_gbps").values()}}
    made = {
        "goodput": svg_plot.lines("Goodput and size of a message, one core", "octets", "Gb/s",
                                  series_of(points, "size", "goodput_gbps")),
        "rate": svg_plot.lines("Message rate and size of a message, one core", "octets",
                               "million a second", series_of(points, "size", "msgs_per_s", 1e-6)),
        "mtu": svg_plot.lines("Goodput and MTU, Writes of 1 MB, one core", "MTU", "Gb/s", mtus),
        "connections": svg_plot.lines("Connections at work, Writes of 16 KB", "connections",
                                      "Gb a CPU-second", connections(told)),
        "loss": svg_plot.bars("Loss and reordering both ways", "share of the same wire without",
                              shares_of_loss(told)),
        "round-trips": svg_plot.lines("Round trip of a Write and its answer", "octets", "us",
                                      trips, by_decades=True),
        "instructions": svg_plot.bars("Instructions by layer, payload kernels out",
                                      "a segment (write-64: a message)", layers(told)),
    }
    return {name: plot for name, plot in made.items() if plot}


def layers(told):
    """A ping-pong is so many messages that it would make the others small."""
    every = told.get("instructions", {}).get("layers", {})
    return {name: {layer: cost for layer, cost in parts.items() if layer not in ("crc", "copies")}
            for name, parts in every.items() if name != "ping-pong"}


def connections(told):
    line = [(point["x"], point["gb_per_cpu_s"]) for point in told.get("connections", [])]
    return {"16 KB": line} if line else {}


def shares_of_loss(told):
    return {measure: {"share": figure["value"]} for measure, figure in told["figures"].items()
            if measure.startswith(("loss-", "reorder-")) and "value" in figure}
