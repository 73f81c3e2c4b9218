"""Others that a user could take, in the same rounds as ours: the kernel's TCP, libfabric and UCX over
their TCP, and lwIP's TCP. They go over a veth pair between two namespaces, ours over rings in memory,
lwIP's over a pair of interfaces in memory: each has the wire that is natural to it. None of them has
a CRC, and of their octets only those of lwIP are compared. One whose package is missing is told as
missing.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

from measures import WHOLE, conditions, on_core
from rounds import NotMeasured, Rounds, json_of, output_of

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "interop"))
from network import Network, Unavailable, check_machine  # noqa: E402
from stream_bench import KernelPair, json_of as run_inside  # noqa: E402

FAR = "10.78.0.2"
PORT = "7473"
FI_PINGPONG_PORT = "47592"  # where it listens if nobody says otherwise
ROUNDS = 3
PACKAGES = {"iperf3": "iperf3", "fi_pingpong": "libfabric-bin", "ucx_perftest": "ucx-utils",
            "lwIP": "liblwip-dev"}  # a library, which a program of our own is built on
LWIP_MTU = 1500  # Debian's has that segment size built in


def within(namespace, core, *command):
    return ["ip", "netns", "exec", namespace, *on_core(core, command)]


def wait_for_listener(namespace, port, seconds=5):
    """Until somebody listens on the TCP port, or it takes too long: the client says what it met."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        rows = output_of(["ip", "netns", "exec", namespace, "ss", "-Hltn"]).split("\n")
        if any(row.split()[3].endswith(f":{port}") for row in rows if row):
            return
        time.sleep(0.02)


@contextlib.contextmanager
def server(command, listens=None, at=None):
    """listens: what it prints when it does. at: the namespace and the TCP port where it does."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, start_new_session=True) as process:
        try:
            if listens:
                next((line for line in process.stdout if listens in line), None)
            else:
                wait_for_listener(*at)
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)


def offloads(pair, on):
    state = "on" if on else "off"
    for namespace, name in ((pair.near, "one0"), (pair.far, "two0")):
        run_inside(["ethtool", "-K", name, "tx", state, "rx", state, "tso", state, "gso", state,
                    "gro", state], namespace)


def kernel_tcp(pair, core, seconds, on):
    """One stream, both ends on one core. The processor time is that of both ends."""
    offloads(pair, on)
    with server(within(pair.far, core, "iperf3", "-s", "-1", "--forceflush", "-p", PORT), "listening"):
        said = json.loads(output_of(within(pair.near, core, "iperf3", "-c", FAR, "-p", PORT, "-t",
                                           str(max(WHOLE, round(seconds))), "-J")))
    end = said["end"]
    received = end["sum_received"]
    share = (end["cpu_utilization_percent"]["host_total"] +
             end["cpu_utilization_percent"]["remote_total"]) / 100
    return {"goodput_gbps": received["bits_per_second"] / 1e9,
            "gb_per_cpu_s": received["bits_per_second"] / 1e9 / share, "cpu_share": share}


def libfabric(pair, size, count):
    """One message at a time to and fro: half of a round trip, and what that carries."""
    common = ["fi_pingpong", "-p", "tcp", "-e", "msg", "-S", str(size), "-I", str(count)]
    with server(within(pair.far, 1, *common), at=(pair.far, FI_PINGPONG_PORT)):
        said = output_of(within(pair.near, 0, *common, FAR), timeout=60)
    row = said.splitlines()[-1].split()
    return {"goodput_gbps": float(row[-3]) * 8 / 1000, "half_us": float(row[-2])}


def ucx(pair, test, size, count):
    environment = ["env", "UCX_TLS=tcp", "UCX_LOG_LEVEL=error"]
    with server(within(pair.far, 1, *environment, "UCX_NET_DEVICES=two0", "ucx_perftest", "-p",
                       PORT), at=(pair.far, PORT)):
        said = output_of(within(pair.near, 0, *environment, "UCX_NET_DEVICES=one0",
                                "ucx_perftest", FAR, "-p", PORT, "-t", test, "-s", str(size), "-n",
                                str(count), "-w", "200", "-v", "-f"), timeout=60)
    rows = [line.split(",") for line in said.splitlines() if re.match(r"^\d+,", line)]
    if not rows:
        raise NotMeasured("ucx_perftest said nothing")
    return {"half_us": float(rows[-1][1]), "goodput_gbps": float(rows[-1][5]) * 8.388608 / 1000,
            "msgs_per_s": float(rows[-1][7])}


def lwip(program, core, seconds):
    """One stream, both ends on one core, every octet compared."""
    said = json_of(on_core(core, [program, str(max(WHOLE, seconds))]))
    if said["verified"] is not True:
        raise NotMeasured("the run was not verified")
    return said


def variants(pair, perf, mtu, seconds):
    """-> what is measured, and the names of the programs that are missing"""
    own = os.path.join(perf.build_dir, "tests/perf/lwip_cost")
    core = perf.core or 0  # the same for all who have both ends on one
    have = {name for name in PACKAGES if shutil.which(name)}
    have |= {"lwIP"} if os.path.exists(own) else set()
    table = {"ours": lambda: perf.whole("--mtu", str(mtu), "--no-floor", seconds=seconds)}
    if "lwIP" in have and mtu == LWIP_MTU:
        table["lwIP, TCP checksums in software"] = lambda: lwip(own, core, seconds)
    if "iperf3" in have:
        table["kernel"] = lambda: kernel_tcp(pair, core, seconds, True)
        table["kernel, no offloads"] = lambda: kernel_tcp(pair, core, seconds, False)
    if "fi_pingpong" in have:
        table["libfabric tcp, 1 MB"] = lambda: libfabric(pair, 1 << 20, 1000)
        table["libfabric tcp, 64 octets"] = lambda: libfabric(pair, 64, 10000)
    if "ucx_perftest" in have:
        table["UCX tcp, put of 64 KB"] = lambda: ucx(pair, "ucp_put_bw", 65536, 6000)
        table["UCX tcp, put of 64 octets"] = lambda: ucx(pair, "ucp_put_lat", 64, 8000)
    return table, sorted(set(PACKAGES) - have)


def tell(name, runs, mtu):
    """A line about a peer."""
    def middle(key):
        values = sorted(run[key] for run in runs)
        return f"{statistics.median(values):.2f} ({values[0]:.2f}..{values[-1]:.2f})"
    parts = [f"{middle('goodput_gbps')} Gb/s" if "64 octets" not in name else "",
             f"{middle('gb_per_cpu_s')} Gb a CPU-second" if "gb_per_cpu_s" in runs[0] else "",
             f"half a round trip {middle('half_us')} us" if "64 octets" in name else ""]
    return f"MTU {mtu}: {name}: " + ", ".join(part for part in parts if part)


def measure_mtu(figures, perf, mtu, seconds):
    with Network(mtu=mtu) as network, KernelPair(network) as pair:
        table, missing = variants(pair, perf, mtu, seconds)
        rounds = Rounds(table).run(ROUNDS)

    def ratio():
        ours, kernel = (statistics.median(run["gb_per_cpu_s"] for run in rounds.of(name))
                        for name in ("ours", "kernel"))
        return rounds.ratio("ours", "kernel", "gb_per_cpu_s",
                            conditions=f"{conditions(rounds.of('ours')[0])}, rings / no CRC, "
                                       "veth, 128 KB a call",
                            beside=f"{ours:.1f} of {kernel:.1f} Gb a CPU-second")
    if "iperf3" in missing:
        figures.by_measure[f"kernel-{mtu}"] = {"missing": "iperf3 is missing"}
    else:
        figures.add(f"kernel-{mtu}", ratio)
    lines = [tell(name, runs, mtu) for name, runs in rounds.results.items()
             if runs and name not in rounds.failed]
    lines += [f"MTU {mtu}: {name}: {reason}" for name, reason in rounds.failed.items()]
    lines += [f"{name} is missing: apt-get install {PACKAGES[name]}" for name in missing]
    return lines


def measure(figures, perf, seconds):
    """-> lines about the peers; the rows against the kernel's TCP go to `figures`"""
    try:
        check_machine()
        lines = [line for mtu in (1500, 9000)
                 for line in measure_mtu(figures, perf, mtu, seconds)]
    except (Unavailable, RuntimeError) as reason:
        for mtu in (1500, 9000):
            figures.by_measure[f"kernel-{mtu}"] = {"missing": str(reason)}
        lines = [f"no peers: {reason}"]
    return list(dict.fromkeys(lines))
