#!/usr/bin/env python3
"""Strangers over the system's TCP: so many at a time, each with one attack, up to a total.

usage: strangers.py HOST PORT [--total N] [--at-a-time N] [--hold SECONDS] [--origin ADDRESS|NETWORK]
                    [--first-port PORT] [--attacks A,B,...] [--seed N]

--origin: the address that all come from, or a network, of which each takes an address of its own; of an
IPv6 network larger than a /64 each takes one in a /64 of its own, of a /64 a thousand are in turn.
Says "under way" when the first ones are on their way, "all started" when all have got a Reply, and at
the end one JSON line with what became of them.
"""

import argparse
import collections
import ipaddress
import json
import os
import random
import resource
import selectors
import socket
import struct
import sys
import time

KEY = b"MPA ID Req Frame"
REQUEST = KEY + bytes([0x40, 1, 0, 0])  # CRC, revision 1, no private data
RESET = struct.pack("ii", 1, 0)


def garbage(chance):
    return chance.randbytes(chance.choice((1, 15, 16, 19, 20, 21, 100, 2000)))


def after_key(chance):
    return KEY + chance.randbytes(chance.choice((1, 3, 4, 10, 600, 20000)))


# What is said once TCP stands, what when the Reply has come, and how it ends: "hold" (silence until
# the time is up), "reset", "fin", "half" (FIN of one direction, then silence), "slow".
Attack = collections.namedtuple("Attack", "first after_reply end")
ATTACKS = {
    "silent": Attack(None, None, "hold"),
    "part": Attack(lambda c: REQUEST[:c.randrange(1, 20)], None, "hold"),
    "slow": Attack(None, None, "slow"),
    "garbage": Attack(garbage, None, "hold"),
    "garbage-after-key": Attack(after_key, None, "hold"),
    "reset": Attack(None, None, "reset"),
    "request-reset": Attack(lambda c: REQUEST, None, "reset"),
    "request-fin": Attack(lambda c: REQUEST, None, "fin"),
    "started": Attack(lambda c: REQUEST, lambda c: b"", "hold"),
    "started-half": Attack(lambda c: REQUEST, lambda c: b"", "half"),
    "started-garbage": Attack(lambda c: REQUEST, lambda c: c.randbytes(c.randrange(2, 5000)),
                              "hold"),
}


HOSTS_OF_A_64 = 1000
FIRST_HOST = 0x1000


def address_in(network, number):
    """The address of stranger `number`."""
    first = int(network.network_address)
    if network.num_addresses == 1:
        return network.network_address
    if network.version == 4:
        return network[1 + number % (network.num_addresses - 2)]
    if network.prefixlen < 64:
        return ipaddress.IPv6Address(first + (number % (1 << (64 - network.prefixlen)) << 64) + FIRST_HOST)
    return ipaddress.IPv6Address(first + FIRST_HOST + number % HOSTS_OF_A_64)


class Stranger:
    def __init__(self, sock, name):
        self.sock, self.name, self.attack = sock, name, ATTACKS[name]
        self.until = None  # when it is done with
        self.open = False
        self.heard = 0
        self.said = 0
        self.next_octet = None


class Crowd:
    def __init__(self, options):
        self.options = options
        self.chance = random.Random(options.seed)
        self.selector = selectors.DefaultSelector()
        self.alive = set()
        self.counts = collections.Counter()
        self.made = 0
        self.told = set()
        self.network = ipaddress.ip_network(options.origin) if options.origin else None
        self.family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
        self.names = options.attacks.split(",") if options.attacks else list(ATTACKS)

    def arrive(self):
        number, self.made = self.made, self.made + 1
        sock = socket.socket(self.family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        sock.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        try:
            if self.network:
                sock.bind((str(address_in(self.network, number)), 0))
            sock.connect_ex((self.options.host, self.options.port))
            stranger = Stranger(sock, self.names[number % len(self.names)])
            stranger.until = time.monotonic() + self.options.hold
            self.selector.register(sock, selectors.EVENT_WRITE, stranger)
            self.alive.add(stranger)
        except OSError as error:
            self.counts[f"not made: {error.strerror}"] += 1
            sock.close()

    def leave(self, stranger, why):
        self.counts[why] += 1
        self.alive.discard(stranger)
        self.selector.unregister(stranger.sock)
        stranger.sock.close()

    def reset(self, stranger, why):
        stranger.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.leave(stranger, why)

    def end(self, stranger):
        end = stranger.attack.end
        if end == "reset":
            return self.reset(stranger, "reset by itself")
        if end == "fin":
            return self.leave(stranger, "gone by itself")
        if end == "half":
            stranger.sock.shutdown(socket.SHUT_WR)
        if end == "slow":
            stranger.next_octet = time.monotonic()
        return None

    def opened(self, stranger):
        error = stranger.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            return self.leave(stranger, f"not open: {os.strerror(error)}")
        stranger.open = True
        self.counts["open"] += 1
        self.selector.modify(stranger.sock, selectors.EVENT_READ, stranger)
        if stranger.attack.first:
            stranger.sock.send(stranger.attack.first(self.chance))
        if not stranger.attack.after_reply:
            self.end(stranger)
        return None

    def hears(self, stranger):
        octets = stranger.sock.recv(65536)
        if not octets:
            return self.leave(stranger, "closed by the server")
        before, stranger.heard = stranger.heard, stranger.heard + len(octets)
        if before < 20 <= stranger.heard and stranger.attack.after_reply:
            self.counts["started"] += 1
            stranger.sock.send(stranger.attack.after_reply(self.chance))
            self.end(stranger)
        return None

    def serve(self, stranger):
        try:
            self.hears(stranger) if stranger.open else self.opened(stranger)
        except (ConnectionResetError, BrokenPipeError):
            self.leave(stranger, "reset by the server")
        except BlockingIOError:
            pass
        except OSError as error:
            self.leave(stranger, f"failed: {error.strerror}")

    def tick(self, now):
        for stranger in list(self.alive):
            if now > stranger.until:
                self.reset(stranger, "held to the end" if stranger.open else "never open")
            elif stranger.next_octet is not None and now >= stranger.next_octet:
                stranger.next_octet = now + 1
                try:
                    stranger.sock.send(REQUEST[stranger.said % 20:][:1])
                except OSError:
                    self.leave(stranger, "reset by the server")
                    continue
                stranger.said += 1

    def tell(self, what):
        if what not in self.told:
            self.told.add(what)
            print(what, flush=True)

    def run(self):
        next_tick = 0.0
        while self.made < self.options.total or self.alive:
            for _ in range(50):
                if self.made >= self.options.total or len(self.alive) >= self.options.at_a_time:
                    break
                self.arrive()
            for key, _ in self.selector.select(0.02):
                if key.data in self.alive:
                    self.serve(key.data)
            now = time.monotonic()
            if now >= next_tick:
                next_tick = now + 0.1
                self.tick(now)
            if (len(self.alive) >= self.options.at_a_time * 9 // 10 or
                    self.made >= self.options.total):
                self.tell("under way")
            if self.counts["started"] == self.options.total:
                self.tell("all started")
        print(json.dumps(self.counts), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--total", type=int, default=1000)
    parser.add_argument("--at-a-time", type=int, default=500)
    parser.add_argument("--hold", type=float, default=3)
    parser.add_argument("--origin", default="")
    parser.add_argument("--attacks", default="")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, options.at_a_time + 64)), hard))
    Crowd(options).run()


if __name__ == "__main__":
    sys.exit(main())
