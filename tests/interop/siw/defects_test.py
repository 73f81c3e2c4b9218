#!/usr/bin/env python3
"""What is taken for a defect of siw: only where it can show, and only with right octets on the wire."""

import struct
import unittest

import defects
import wire

OURS, SIW = bytes((10, 77, 0, 1)), bytes((10, 77, 0, 2))
SYN, ACK = 2, 16
CELL = {"role": "siw-connects", "revision": 2, "crc": "siw-asks", "rtr": "write", "operation": "read",
        "size": "64K", "qps": 32, "mtu": 1500, "path": "loss", "port": "socket"}
MISREAD = "terminate received: Terminate received: layer LLP, type MPA error, code 0x02 CRC mismatch"
STALE = "terminate sent: Terminate sent: base or bounds violation, rule BUG-01; segment of 270 octets"


def frame(source, sequence, flags, payload=b"", port=4000):
    """An Ethernet frame from or to the guest; `port` is the guest's."""
    ports = (port, 7471) if source == SIW else (7471, port)
    tcp = struct.pack(">HHIIBBHHH", *ports, sequence, 0, 5 << 4, flags, 0, 0, 0)
    other = OURS if source == SIW else SIW
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), 0, 0, 64, 6, 0, source, other)
    return bytes(12) + b"\x08\x00" + ip + tcp + payload


def fpdu(payload, control=0xC1, opcode=0x42):
    octets = struct.pack(">HBB", 14 + len(payload), control, opcode) + bytes(12) + payload
    octets += bytes(-len(octets) % 4)
    return octets + struct.pack("<I", wire.crc32c(octets))


def stream():
    """A Reply with 12 octets of private data, FPDUs with all lengths of pads."""
    start = b"MPA ID Rep Frame" + struct.pack(">BBH", 0x40, 2, 12) + bytes(12)
    return start + b"".join(fpdu(bytes(range(size))) for size in 4 * (100, 101, 102, 103))


def captured(octets, cut, terminate=True, first=0xFFFFFF00):
    """`octets` from us in segments of `cut`, of which each comes twice and the first ones last; siw
    answers."""
    segments = [frame(OURS, first + 1 + at & 0xFFFFFFFF, ACK, octets[at:at + cut])
                for at in range(0, len(octets), cut)]
    frames = [frame(OURS, first, SYN | ACK), *segments[1:], *segments, frame(SIW, 5, SYN)]
    answer = fpdu(bytes(4), 0x41, 0x47) if terminate else fpdu(bytes(4), 0x41, 0x43)
    return [*frames, frame(SIW, 6, ACK, answer)]


class Wire(unittest.TestCase):
    def test_crc(self):
        self.assertEqual(wire.crc32c(b"123456789"), 0xE3069283)

    def test_right_octets_in_any_segments(self):
        for cut in (1, 7, 100, 126, 1448):
            self.assertIsNone(wire.why_not_right(captured(stream(), cut)))

    def test_each_wrong_octet_is_seen(self):
        """But for lengths at the end: such an FPDU is not complete, and siw would wait."""
        whole = stream()
        for at in range(34, 500):
            octets = bytearray(whole)
            octets[at] ^= 4
            self.assertIsNotNone(wire.why_not_right(captured(bytes(octets), 97)), at)

    def test_what_was_not_captured_proves_nothing(self):
        self.assertIsNotNone(wire.why_not_right([]))
        self.assertIsNotNone(wire.why_not_right(captured(stream(), 90, terminate=False)))
        self.assertIsNotNone(wire.why_not_right(captured(stream(), 90)[1:]))


class Excuses(unittest.TestCase):
    def excuses(self, cell, frames=()):
        capture = type("Frames", (), {"frames": frames})
        return defects.Excuses(cell, capture)

    def connection(self, error):
        return {"ok": False, "error": error, "seed": 1}

    def test_a_misread_crc(self):
        good, bad = captured(stream(), 90), captured(stream()[:-1] + b"x", 90)
        self.assertTrue(self.excuses(CELL, good).covers(self.connection(MISREAD)))
        for frames, cell in ((bad, CELL), ((), CELL), (good, CELL | {"port": "packet"}),
                             (good, CELL | {"path": "clean"}), (good, CELL | {"crc": "off"})):
            self.assertFalse(self.excuses(cell, frames).covers(self.connection(MISREAD)))

    def test_a_stale_response(self):
        nothing = CELL | {"size": "zero"}
        self.assertTrue(self.excuses(nothing).covers(self.connection(STALE)))
        for cell in (CELL, nothing | {"operation": "write"}):
            self.assertFalse(self.excuses(cell).covers(self.connection(STALE)))

    def test_nothing_else(self):
        for error in ("rejected: rejected by the peer", "nothing happens any more",
                      STALE.replace("270", "271"), MISREAD.replace("received", "sent")):
            for cell in (CELL, CELL | {"size": "zero"}):
                excuses = self.excuses(cell, captured(stream(), 90))
                self.assertFalse(excuses.covers(self.connection(error)))
                self.assertEqual((excuses.seen, excuses.seeds), ([], set()))


if __name__ == "__main__":
    unittest.main(verbosity=2)
