#!/usr/bin/env python3
"""Writes the seeds of fuzz_tcp into tests/fuzz/corpus/tcp: one for each kind of step, and some
exchanges that reach deep. The format is told in fuzz_tcp.cpp.

Usage: write_tcp_seeds.py [directory]. Exit: 0.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ACK, PSH, FIN, RST, SYN, URG = 0x10, 0x08, 0x01, 0x04, 0x02, 0x20
V4, V6 = 0, 1
TIMESTAMPS, SACK, SCALE, ECN = 2, 4, 8, 16


def control(number):
    return number << 5


def wait(exponent):
    return bytes([0, exponent])


def delta(value):
    return bytes([value & 0xff])


def body(seq=0, ack=0, flags=ACK, window=None, sack=None, more=None, payload=0, urgent=None,
         flip=None):
    kind = 32
    out = b""
    if window is not None:
        kind |= 1
        out += window.to_bytes(2, "big")
    if sack:
        kind |= 4
        out += bytes([len(sack) - 1])
        for behind, length in sack:
            out += bytes([behind, length])
    if more is not None:
        kind |= 8
        out += bytes([len(more)]) + more
    if payload:
        kind |= 16
        out += bytes([payload // 8])
    if urgent is not None:
        kind |= 64
        out += urgent.to_bytes(2, "big")
    if flip:
        kind |= 128
        out += bytes(flip)
    return delta(seq) + delta(ack) + bytes([flags, kind]) + out


def segment(ecn=0, **fields):
    return bytes([1]) + body(**fields) + bytes([ecn])


def fragments(cut, shift, how, **fields):
    return bytes([4]) + body(**fields) + bytes([cut]) + delta(shift) + bytes([how])


def icmp(kind, code, mtu, behind, length):
    return bytes([5, kind, code]) + mtu.to_bytes(2, "big") + bytes([behind, 0, length])


def neighbour(*octets):
    return bytes([6, *octets])


def raw(kind, octets):
    return bytes([7, kind, len(octets)]) + octets


def app(how):
    return bytes([8, how])


ALL = bytes([9])


def seeds():
    every = TIMESTAMPS | SACK | SCALE
    data = segment(payload=1360)
    yield "in_order", [V4 | every], [data * 4, ALL, app(100), ALL, app(240), wait(16), ALL]
    yield "in_order_v6", [V6 | every], [data * 4, ALL, app(100), ALL, app(240), wait(16), ALL]
    yield "holes", [V4 | every], [b"".join(segment(seq=s, payload=640) for s in (20, 40, 60, 10)),
                                  segment(payload=640), app(250 - 1), ALL]
    yield "loss", [V4 | every | control(1)], [
        segment(ack=40, sack=[(30, 5)]), segment(ack=40, sack=[(30, 10)]),
        segment(ack=40, sack=[(30, 20), (5, 5)]), wait(14), ALL, app(120), wait(20), wait(21), ALL]
    yield "duplicates", [V4], [segment(ack=40) * 4, wait(18), ALL, app(127), segment(ack=20) * 3]
    yield "shut_window", [V4 | every], [
        segment(window=0), app(90), wait(20), wait(21), segment(window=100), wait(20),
        segment(window=0), app(251), wait(25), segment(window=60000), ALL]
    yield "close", [V4 | every], [app(251), ALL, segment(flags=ACK | FIN), wait(21)]
    yield "peer_closes", [V6 | every], [segment(flags=ACK | FIN, payload=64), app(251), ALL,
                                        wait(21)]
    yield "resets", [V4], [segment(seq=3, flags=RST), segment(flags=SYN), segment(flags=RST)]
    yield "urgent", [V4], [segment(flags=ACK | URG, urgent=100, payload=200), app(200)]
    yield "options", [V4 | every], [segment(more=bytes([8, 10, 0, 0, 0, 1, 0, 0, 0, 1])),
                                    segment(more=bytes([5, 3, 1])), segment(flip=(12, 0xf0))]
    yield "marks", [V4 | SACK | ECN], [segment(ecn=3, payload=640), segment(flags=ACK | 0x40),
                                       segment(flags=ACK | 0x80, ecn=2, payload=640), app(100), ALL]
    yield "dctcp", [V6 | every | ECN | control(2)], [segment(ecn=3, payload=640),
                                                     segment(ecn=2, payload=640),
                                                     segment(flags=ACK | 0x40), app(100), ALL]
    for family in (V4, V6):
        yield f"fragments_{family}", [family | every], [
            fragments(40, 0, 0x20, payload=1200), fragments(40, 0, 0x10, payload=1200),
            fragments(40, -1, 0x20, payload=1200), fragments(40, 2, 0x23, payload=1200), wait(25),
            wait(25)]
    yield "icmp4", [V4], [icmp(3, 4, 1000, 20, 0), icmp(3, 4, 0, 10, 100), icmp(3, 2, 0, 20, 0),
                          icmp(11, 0, 0, 20, 0), icmp(4, 0, 0, 20, 0), app(100), wait(20), ALL]
    yield "icmp6", [V6], [icmp(2, 0, 1300, 20, 0), icmp(1, 4, 0, 20, 0), icmp(4, 1, 0, 20, 0),
                          app(100), wait(20), ALL]
    yield "neighbours", [V6], [neighbour(9, 0), neighbour(8, 0), neighbour(14, 9, 5),
                               neighbour(16, 0x60), neighbour(22, 9, 1, 0x60), app(100), wait(25),
                               wait(25), neighbour(16, 0x40)]
    yield "frames", [V4], [raw(0, bytes([0x45, 0, 0, 40] + [0] * 16)), raw(1, bytes([0x60] * 60)),
                           raw(2, bytes(28)), raw(3, bytes(20))]
    yield "keep_alive", [V4 | every], [ALL, wait(25), wait(25), ALL, wait(25), wait(25)]


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "corpus", "tcp")
    os.makedirs(folder, exist_ok=True)
    for name, setup, steps in seeds():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(bytes(setup) + b"".join(steps))


if __name__ == "__main__":
    main()
