#!/usr/bin/env python3
"""An honest client gets in while strangers do their worst: processes, on a wire of the system.

usage: siege.py RNIC_PING [--wire socket|af_packet] [--family 4|6] [--forms other,own,client]
                [--attacks A,B,...] [--strangers N] [--at-a-time N] [--starts N] [--within SECONDS] [--hold SECONDS]

For each form (where the strangers say that they are) a server, strangers until their number is
reached, and honest clients one after the other for as long, at least --starts. A line for each form;
exit 1 when one is below 99 in 100, 77 when this machine cannot do it.
--within 0: in or out counts, however long it took.
"""

import argparse
import json
import os
import subprocess
import sys
import time

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "siege"), os.path.join(TESTS, "apps")]
sys.dont_write_bytecode = True
import arena  # noqa: E402
import ports  # noqa: E402
import strangers  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
ALL_FORMS = ("other", "own", "client")
SHARE = 0.99


def honest_start(place, ping):
    """One client. \\return seconds until it was connected; None: it did not get in, or not through."""
    begin = time.monotonic()
    child = subprocess.Popen(
        place.outside(ping, place.address, "--port", "socket", "--port", str(place.port),
                      "--count", "3", "--json"),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    connected, said = None, []
    for line in child.stderr:
        said.append(line)
        if line.startswith("connected to"):
            connected = time.monotonic() - begin
    status = child.wait(60)
    if status != 0 or connected is None:
        print("  a client did not get in: " + "".join(said).strip(), file=sys.stderr)
        return None
    return connected


def besiege(place, options, form):
    """\\return clients in, clients tried, the slowest of those in, what became of the strangers"""
    command = [sys.executable, os.path.join(HERE, "strangers.py"), place.address, str(place.port),
               "--total", str(options.strangers), "--at-a-time", str(options.at_a_time),
               "--hold", str(options.hold), "--origin", place.origins[form]]
    if options.attacks:
        command += ["--attacks", options.attacks]
    flood = place.flood(form) and subprocess.Popen(place.flood(form), stdout=subprocess.DEVNULL)
    crowd = subprocess.Popen(place.outside(*command), stdout=subprocess.PIPE, text=True)
    try:
        if crowd.stdout.readline().strip() != "under way":
            raise RuntimeError("the strangers did not come")
        took = []
        while crowd.poll() is None or len(took) < options.starts:
            took.append(honest_start(place, options.ping))
            if len(took) >= 50 * options.starts:
                break
        fates = json.loads(crowd.stdout.read() or "{}")
    finally:
        for child in filter(None, (crowd, flood)):
            if child.poll() is None:
                child.kill()
            child.wait()
    late = [t for t in took if t is not None and options.within and t > options.within]
    inside = [t for t in took if t is not None]
    return len(inside) - len(late), len(took), max(inside, default=0.0), fates


def one_form(place_class, options, form):
    with place_class(ports.free_port()) as place, place.server(options.ping) as server:
        before = server.memory_kb()
        inside, tried, slowest, fates = besiege(place, options, form)
        grown = server.memory_kb() - before
        good = tried > 0 and inside >= SHARE * tried
        print(f"{place.name}, strangers at {form}: {inside} of {tried} clients in, the slowest after "
              f"{slowest:.2f} s; server +{grown} KB, {server.descriptors()} descriptors; strangers: "
              f"{json.dumps(fates)}", flush=True)
    if server.status != 0:
        print(f"the server ended with {server.status}: {server.said()[-2000:]}")
        return False
    if not good:
        print(server.said()[-3000:])
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ping")
    parser.add_argument("--wire", choices=("socket", "af_packet"), default="socket")
    parser.add_argument("--family", type=int, choices=(4, 6), default=4)
    parser.add_argument("--forms", default=",".join(ALL_FORMS))
    parser.add_argument("--attacks", default="", help="default: all of them, in turn")
    parser.add_argument("--strangers", type=int, default=10000)
    parser.add_argument("--at-a-time", type=int, default=500)
    parser.add_argument("--starts", type=int, default=100)
    parser.add_argument("--within", type=float, default=2.0)
    parser.add_argument("--hold", type=float, default=3.0)
    options = parser.parse_args()
    for attack in filter(None, options.attacks.split(",")):
        if attack not in strangers.ATTACKS:
            parser.error(f"no attack {attack}: one of {', '.join(strangers.ATTACKS)}")
    place = arena.PLACES[options.wire, options.family]
    try:
        good = [one_form(place, options, form) for form in options.forms.split(",")]
    except arena.Unavailable as why:
        print(why)
        return 77
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
