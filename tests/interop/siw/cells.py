"""What a connection with Linux siw can be like: dimensions, what cannot be and why, and tables of cells in
which every pair, or every triple, of values that can occur together does occur.
"""

import functools
import itertools
import random

from breaches import UNSEEN

DIMENSIONS = {
    "role": ("we-connect", "siw-connects"),
    "revision": (2, 1),
    "crc": ("on", "off", "siw-asks"),
    "rtr": ("none", "write", "read"),
    "operation": ("send", "send-se", "send-inv", "write", "read"),
    "size": ("zero", "tiny", "small", "mulpdu", "page", "64K", "1M", "16M"),
    "qps": (1, 4, 32),
    "mtu": (1500, 9000),
    "path": ("clean", "loss", "delay"),
    "port": ("packet", "socket"),
}
NAMES = tuple(DIMENSIONS)

# Which values cannot occur together, and why. A rule names all dimensions that it looks at.
IMPOSSIBLE = (
    ({"revision": (1,), "rtr": ("write", "read")},
     "an RTR belongs to the peer-to-peer mode, which only revision 2 has (RFC 6581)"),
    ({"role": ("we-connect",), "crc": ("siw-asks",)},
     "siw's responder asks for no CRC: it only echoes the Request's flag, whatever its "
     "mpa_crc_required says (siw_proc_mpareq); so this is `off`"),
    ({"size": ("16M",), "qps": (32,)},
     "512 MB to be registered at once are more than the guest has"),
)

RULED = tuple(name for name in NAMES if any(name in rule for rule, _ in IMPOSSIBLE))

# Sizes by class, octets. Every trial of a class has all of them.
SIZES = {
    "zero": (0,),
    "tiny": (1, 2, 3, 4, 5, 7, 8),
    "small": (61, 63, 64, 65, 1000, 1024),
    "page": (4095, 4096, 4097, 5001),
    "64K": (65535, 65536, 65537),
    "1M": (1 << 20,),
    "16M": (1 << 24,),
}
LONG_SIZES = SIZES | {
    "64K": (32767, 32768, 65535, 65536, 65537, 131071),
    "1M": (1000003, (1 << 20) - 1, 1 << 20, (1 << 20) + 1),
    "16M": ((1 << 24) - 1, 1 << 24),
}
# Largest payload of a tagged and an untagged segment of one FPDU; of siw, which rounds down to a
# multiple of 8, and of ours. TCP has timestamps.
PAYLOADS = {1500: (1428, 1424), 9000: (8928, 8924, 8920)}


def sizes(cell, long=False):
    """The octets of each message of a cell."""
    if cell["size"] != "mulpdu":
        return (LONG_SIZES if long else SIZES)[cell["size"]]
    around = set()
    for payload in PAYLOADS[cell["mtu"]]:
        around.update((payload - 1, payload, payload + 1))
    return (*sorted(around), 2 * max(around), 2 * max(around) + 1)


def why_impossible(cell):
    """The reason; None for a cell, or a part of one, that can be. Looks at what is given."""
    for rule, reason in IMPOSSIBLE:
        if all(cell.get(name) in values for name, values in rule.items()):
            return reason
    return None


def can_be_completed(part):
    """No rule forbids the part itself, and values are left for all other dimensions that rules look
    at."""
    if why_impossible(part):
        return False
    for name in RULED:
        if name not in part:
            return any(can_be_completed(part | {name: value}) for value in DIMENSIONS[name])
    return True


def octets(cell):
    """What a cell moves, both ways."""
    return 2 * sum(sizes(cell)) * cell["qps"]


@functools.cache
def targets(strength):
    """All combinations of values of `strength` dimensions that can occur."""
    found = set()
    for names in itertools.combinations(NAMES, strength):
        for values in itertools.product(*(DIMENSIONS[name] for name in names)):
            part = dict(zip(names, values))
            if can_be_completed(part):
                found.add(tuple(part.items()))
    return frozenset(found)


def parts(cell, strength):
    return {tuple((name, cell[name]) for name in names)
            for names in itertools.combinations(NAMES, strength)}


def weight(cell):
    """How dear a cell is, in combinations that it has to bring more than a cheap one: by octets, and by
    packets, of which an emulated guest takes some thousand a second. What is not yet chosen is taken
    for cheap."""
    cell = {"size": "zero", "qps": 1, "mtu": 9000, "path": "clean"} | cell
    packets = octets(cell) / cell["mtu"]
    return octets(cell) / (16 << 20) + packets / 8000 * (2 if cell["path"] != "clean" else 1)


def complete(part, missing, strength, chance):
    """A cell with this part, dimension after dimension in an order of chance, each with the value
    that brings most of what is missing."""
    cell = dict(part)
    rest = [name for name in NAMES if name not in cell]
    chance.shuffle(rest)
    for name in rest:
        best = None
        for value in chance.sample(DIMENSIONS[name], len(DIMENSIONS[name])):
            wider = cell | {name: value}
            if not can_be_completed(wider):
                continue
            known = [other for other in wider if other != name]
            brings = sum(
                tuple((n, wider[n]) for n in NAMES if n in (*others, name)) in missing
                for others in itertools.combinations(known, strength - 1)) - weight(wider)
            if best is None or brings > best[0]:
                best = (brings, wider)
        cell = best[1]
    return cell


def table(strength):
    """Cells in which every target occurs; the same ones each time."""
    tries = 20 if strength == 2 else 4
    chance = random.Random(strength)
    missing = set(targets(strength))
    cells = []
    while missing:
        first = min(missing, key=repr)
        candidates = [complete(first, missing, strength, chance) for _ in range(tries)]
        best = max(candidates,
                   key=lambda cell: len(parts(cell, strength) & missing) - weight(cell))
        missing -= parts(best, strength)
        cells.append({name: best[name] for name in NAMES})
    return cells


def settings_key(cell):
    """Cells of one key follow each other: they share a run of our program and the path."""
    return (cell["port"], cell["mtu"], cell["crc"] == "on", cell["rtr"], cell["path"])


def describe(cell):
    return " ".join(f"{name}={cell[name]}" for name in NAMES)


def explain():
    """The tables for people."""
    lines = ["Dimensions:"]
    lines += [f"  {name:10} {', '.join(map(str, values))}" for name, values in DIMENSIONS.items()]
    lines += ["", "Sizes (octets; the long form has more):"]
    lines += [f"  {name:10} {', '.join(map(str, values))}" for name, values in SIZES.items()]
    for mtu in DIMENSIONS["mtu"]:
        shown = ", ".join(map(str, sizes({"size": "mulpdu", "mtu": mtu})))
        lines.append(f"  {'mulpdu':10} {shown} (MTU {mtu})")
    lines += ["", "Combinations that cannot exist:"]
    for rule, reason in IMPOSSIBLE:
        shown = ", ".join(f"{name} {' or '.join(map(str, v))}" for name, v in rule.items())
        lines.append(f"  {shown}: {reason}")
    pairs = table(2)
    lines += ["", f"Pairs that can occur: {len(targets(2))}; cells of the short form: {len(pairs)}:"]
    lines += ["  " + describe(cell) for cell in sorted(pairs, key=settings_key)]
    lines += ["", f"Triples that can occur: {len(targets(3))}; cells of the long form: "
              f"{len(table(3))} (each with every size of its class)"]
    lines += ["", "Breaches that siw does not see, so that no Terminate can follow:"]
    lines += [f"  {name}: {reason}" for name, reason in UNSEEN.items()]
    return "\n".join(lines)
