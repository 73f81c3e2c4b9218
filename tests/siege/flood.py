#!/usr/bin/env python3
"""Frames of strangers that have no TCP: SYNs, RSTs, ACKs with octets, and what is no packet at all.

usage: flood.py INTERFACE MAC HOST PORT [--origin ADDRESS|NETWORK] [--per-second N] [--seconds S]

Prints "under way" and then, when the time is up, how many frames went out.
"""

import argparse
import ipaddress
import os
import random
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import strangers  # noqa: E402

FIRST_PORT = 50000  # the system's own connections are below
SYN, RST, PSH_ACK = 0x02, 0x04, 0x18


def checksum(octets):
    if len(octets) % 2:
        octets += b"\0"
    total = sum(struct.unpack(f">{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip_header(source, destination, length):
    if len(source) == 16:
        return struct.pack(">IHBB16s16s", 0x60000000, length, 6, 64, source, destination)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + length, 0, 0x4000, 64, 6, 0, source, destination)
    return ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]


def segment(chance, source, destination, port, flags, payload=b""):
    tcp = struct.pack(">HHIIBBHHH", chance.randrange(FIRST_PORT, 65536), port,
                      chance.getrandbits(32), chance.getrandbits(32) if flags & 0x10 else 0, 0x50,
                      flags, 0xFFFF, 0, 0) + payload
    pseudo = source + destination + struct.pack(">BBH", 0, 6, len(tcp))
    tcp = tcp[:16] + struct.pack(">H", checksum(pseudo + tcp)) + tcp[18:]
    return ip_header(source, destination, len(tcp)) + tcp


def packet(chance, source, destination, port):
    """One of what a stranger sends, in turn by chance."""
    kind = chance.randrange(4)
    if kind == 0:
        return segment(chance, source, destination, port, SYN)
    if kind == 1:
        return segment(chance, source, destination, port, RST)
    if kind == 2:
        return segment(chance, source, destination, port, PSH_ACK,
                       chance.randbytes(chance.randrange(1, 200)))
    mangled = bytearray(segment(chance, source, destination, port, SYN, chance.randbytes(20)))
    for _ in range(chance.randrange(1, 8)):
        mangled[chance.randrange(len(mangled))] ^= 1 << chance.randrange(8)
    return bytes(mangled[:chance.randrange(1, len(mangled) + 1)])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("interface")
    parser.add_argument("mac")
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--origin", required=True)
    parser.add_argument("--per-second", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    network = ipaddress.ip_network(options.origin)
    destination = ipaddress.ip_address(options.host).packed
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    out.bind((options.interface, 0))
    header = (bytes.fromhex(options.mac.replace(":", "")) + out.getsockname()[4] +
              struct.pack(">H", 0x0800 if network.version == 4 else 0x86DD))
    print("under way", flush=True)
    begin, sent = time.monotonic(), 0
    while (passed := time.monotonic() - begin) < options.seconds:
        while sent < passed * options.per_second:
            source = strangers.address_in(network, chance.getrandbits(62)).packed
            try:
                out.send(header + packet(chance, source, destination, options.port))
            except OSError:  # the interface's queue is full
                break
            sent += 1
        time.sleep(0.005)
    print(sent, flush=True)


if __name__ == "__main__":
    sys.exit(main())
