"""Which code is mutated, and which programs judge it: the nearest first."""

import collections
import os

SIMULATOR = "tests/sim/rnic-sim"
# What the simulator is asked for, a run each; most seeds have no world on simulated sockets.
SEEDS = tuple(f"--first-seed {seed}" for seed in range(1, 101))
SOCKET_SEEDS = tuple(f"--profile socket-* {seed}" for seed in SEEDS)
WORLDS = (*SEEDS, *SOCKET_SEEDS)

# folder: below the root; programs: targets of the build, of GoogleTest; worlds: of WORLDS
Room = collections.namedtuple("Room", "name folder programs worlds", defaults=[SEEDS])

UNIT = "tests/unit"
ABOVE = (f"{UNIT}/device/device_test", "tests/conformance/conformance_test")

ROOMS = (
    Room("mem", "lib/mem", (f"{UNIT}/mem/unit_mem", f"{UNIT}/ddp/unit_ddp",
                            f"{UNIT}/rdmap/unit_rdmap", *ABOVE)),
    Room("ddp", "lib/ddp", (f"{UNIT}/ddp/unit_ddp", f"{UNIT}/rdmap/unit_rdmap", *ABOVE)),
    Room("rdmap", "lib/rdmap", (f"{UNIT}/rdmap/unit_rdmap", *ABOVE)),
    Room("framing", "lib/framing", (f"{UNIT}/framing/unit_framing", f"{UNIT}/mpa/mpa_test", f"{UNIT}/tuf/tuf_test", *ABOVE)),
    Room("mpa", "lib/mpa", (f"{UNIT}/mpa/mpa_test", f"{UNIT}/tuf/tuf_test", *ABOVE)),
    Room("tcp", "lib/tcp", (f"{UNIT}/tcp/unit_tcp", *ABOVE)),
    Room("net", "lib/net", (f"{UNIT}/net/net_test", *ABOVE)),
    Room("device", "lib/device", (*ABOVE, f"{UNIT}/verbs/unit_verbs")),
    Room("socket", "drivers/socket",
         (f"{UNIT}/drivers/unit-socket", f"{UNIT}/verbs/unit_verbs"), SOCKET_SEEDS),
)


def sources(root, room):
    """The room's sources and headers, relative to the root."""
    found = []
    for folder, _, names in os.walk(os.path.join(root, room.folder)):
        found += [os.path.relpath(os.path.join(folder, n), root) for n in names
                  if n.endswith((".cpp", ".hpp"))]
    return sorted(found)


def code_lines(octets):
    """How many lines hold code."""
    lines = (line.strip() for line in octets.decode().splitlines())
    return sum(1 for line in lines if line and not line.startswith(("//", "#")))
