"""What our end put on the wire to the guest, as proof that it was right: every FPDU of a connection that siw
broke off, put together out of its segments, has the right CRC.
"""

import contextlib
import socket
import struct
import threading

ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
RESERVED = 256 << 20
SYN, RST = 2, 4
TERMINATE = 7  # the RDMAP opcode
CRC_TABLE = []
for octet in range(256):
    for _ in range(8):
        octet = octet >> 1 ^ (0x82F63B78 if octet & 1 else 0)
    CRC_TABLE.append(octet)


def crc32c(octets):
    value = 0xFFFFFFFF
    for octet in octets:
        value = value >> 8 ^ CRC_TABLE[(value ^ octet) & 0xFF]
    return value ^ 0xFFFFFFFF


class Capture(contextlib.AbstractContextManager):
    """All frames on an interface of this namespace while it is open."""

    def __init__(self, interface):
        self.frames = []
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, RESERVED)
        self.socket.bind((interface, 0))
        self.socket.settimeout(0.1)
        self.over = False
        self.thread = threading.Thread(target=self.take)
        self.thread.start()

    def take(self):
        while True:
            try:
                self.frames.append(self.socket.recv(65535))
            except TimeoutError:
                if self.over:
                    return

    def __exit__(self, *_):
        self.over = True
        self.thread.join()
        self.socket.close()


class Direction:
    """What one end of a TCP connection sent: its octets, by their place in the stream."""

    def __init__(self):
        self.first = None
        self.octets = bytearray()
        self.have = []
        self.last_payload = b""

    def add(self, sequence, flags, payload):
        if flags & SYN:
            self.first = sequence + 1
        elif self.first is not None and payload and not flags & RST:
            at = sequence - self.first & 0xFFFFFFFF
            if at < 1 << 31:
                self.octets.extend(bytes(max(0, at + len(payload) - len(self.octets))))
                self.octets[at:at + len(payload)] = payload
                self.have.append((at, at + len(payload)))
                self.last_payload = payload

    def without_gap(self):
        end = 0
        for begin, behind in sorted(self.have):
            if begin > end:
                break
            end = max(end, behind)
        return bytes(self.octets[:end])


def directions(frames):
    """By (source address and port, destination address and port)."""
    found = {}
    for frame in frames:
        if len(frame) < 54 or frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        end = 14 + struct.unpack_from(">H", frame, 16)[0]
        tcp = 14 + (frame[14] & 15) * 4
        source, destination, sequence = struct.unpack_from(">HHI", frame, tcp)
        key = (frame[26:30], source, frame[30:34], destination)
        payload = frame[tcp + (frame[tcp + 12] >> 4) * 4:end]
        found.setdefault(key, Direction()).add(sequence, frame[tcp + 13], payload)
    return found


def ends_with_terminate(payload):
    """Its last segment is a Terminate's FPDU: untagged, last, of that opcode."""
    return len(payload) > 4 and payload[2] == 0x41 and payload[3] & 0x0F == TERMINATE


def wrong_fpdu(stream):
    """Of a stream that begins with a start frame: what is wrong with one of its FPDUs, or nothing."""
    at = 20 + struct.unpack_from(">H", stream, 18)[0]
    while at + 2 <= len(stream):
        length = 2 + struct.unpack_from(">H", stream, at)[0]
        length += -length % 4
        if at + length + 4 > len(stream):
            return None
        if crc32c(stream[at:at + length]) != struct.unpack_from("<I", stream, at + length)[0]:
            return f"the FPDU at {at} has a wrong CRC"
        at += length + 4
    return None


def why_not_right(frames):
    """Nothing when each stream that was answered by a Terminate holds right FPDUs alone."""
    found = directions(frames)
    broken_off = [key for key, way in found.items() if ends_with_terminate(way.last_payload)]
    if not broken_off:
        return "no connection with a Terminate was captured"
    for source, port, destination, peer_port in broken_off:
        ours = found.get((destination, peer_port, source, port))
        stream = ours.without_gap() if ours else b""
        if len(stream) < 20:
            return "the beginning of a connection was not captured"
        if wrong := wrong_fpdu(stream):
            return wrong
    return None
