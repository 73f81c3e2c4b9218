"""IP packets of a script: made, taken apart, checked."""

import dataclasses
import ipaddress
import struct

TCP, ICMP, ICMPV6 = 6, 1, 58
BITS = {"F": 0x01, "S": 0x02, "R": 0x04, "P": 0x08, ".": 0x10, "U": 0x20, "E": 0x40, "W": 0x80}
KINDS = {0: "eol", 1: "nop", 2: "mss", 3: "wscale", 4: "sackOK", 5: "sack", 8: "TS"}

# RFC 792 and RFC 4443: type, code; the names are packetdrill's.
ICMPV4_CODES = {
    "net_unreachable": 0, "host_unreachable": 1, "protocol_unreachable": 2, "port_unreachable": 3,
    "frag_needed": 4, "source_route_failed": 5, "net_unknown": 6, "host_unknown": 7,
    "source_host_isolated": 8, "net_prohibited": 9, "host_prohibited": 10,
    "net_unreachable_for_tos": 11, "host_unreachable_for_tos": 12, "packet_filtered": 13,
    "precedence_violation": 14, "precedence_cutoff": 15,
}
ICMPV6_CODES = {"no_route": 0, "admin_prohibited": 1, "not_neighbour": 2, "address_unreachable": 3,
                "port_unreachable": 4}
ICMPV6_PROBLEMS = {"header_field": 0, "unknown_next_header": 1, "unknown_option": 2}


class BadPacket(Exception):
    """What the stack sent is no right packet."""


@dataclasses.dataclass
class Seen:
    """A segment that the stack sent; numbers are those of the wire."""
    source: bytes
    destination: bytes
    ecn: int
    ports: tuple
    sequence: int
    ack: int
    bits: int
    window: int
    urgent: int
    options: list
    payload: bytes

    @property
    def flags(self):
        return "".join(name for name, bit in BITS.items() if self.bits & bit)


def checksum(*parts):
    data = b"".join(parts)
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def address(text):
    return ipaddress.ip_address(text).packed


def pseudo_header(source, destination, protocol, length):
    return source + destination + struct.pack("!II", length, protocol)


def ip_packet(source, destination, protocol, payload, traffic_class=0):
    if len(source) == 16:
        return struct.pack("!IHBB", 6 << 28 | traffic_class << 20, len(payload), protocol,
                           255) + source + destination + payload
    head = struct.pack("!BBHHHBBH", 0x45, traffic_class, 20 + len(payload), 0, 0x4000, 255, protocol, 0)
    head += source + destination
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def write_options(options):
    out = b""
    for name, *values in options:
        if name == "sack":
            (blocks,) = values
            out += struct.pack("!BB", 5, 2 + 8 * len(blocks))
            out += b"".join(struct.pack("!II", *block) for block in blocks)
        else:
            out += {"eol": lambda: b"\0", "nop": lambda: b"\1", "sackOK": lambda: b"\4\2",
                    "mss": lambda v: struct.pack("!BBH", 2, 4, v),
                    "wscale": lambda v: struct.pack("!BBB", 3, 3, v),
                    "TS": lambda v, e: struct.pack("!BBII", 8, 10, v, e)}[name](*values)
    if len(out) % 4 != 0:
        raise BadPacket(f"options of {len(out)} octets do not fill whole words")
    return out


def read_options(data):
    options, at = [], 0
    while at < len(data):
        kind = KINDS.get(data[at])
        if kind in ("eol", "nop"):
            options.append((kind,))
            at += 1
            continue
        length = data[at + 1] if at + 1 < len(data) else 0
        body = data[at + 2:at + length]
        if kind is None or length < 2 or at + length > len(data):
            raise BadPacket(f"option {data[at]} of length {length}")
        if kind == "sack":
            numbers = struct.unpack(f"!{len(body) // 4}I", body)
            options.append((kind, tuple(zip(numbers[::2], numbers[1::2], strict=True))))
        else:
            form = {"mss": "!H", "wscale": "!B", "sackOK": "!", "TS": "!II"}[kind]
            options.append((kind, *struct.unpack(form, body)))
        at += length
    return options


def tcp_packet(source, destination, ports, sequence, ack, flags, window, urgent, options, payload,
               traffic_class):
    """\\param flags letters of BITS"""
    written = write_options(options)
    bits = sum(BITS[flag] for flag in flags)
    head = struct.pack("!HHIIBBHHH", *ports, sequence & 0xffffffff, ack & 0xffffffff,
                       (20 + len(written)) << 2, bits, window, 0, urgent)
    whole = head + written + payload
    total = checksum(pseudo_header(source, destination, TCP, len(whole)), whole)
    whole = whole[:16] + struct.pack("!H", total) + whole[18:]
    return ip_packet(source, destination, TCP, whole, traffic_class)


def icmp_header(kind, code, mtu, v6):
    """Type, code and the four octets behind the checksum."""
    if not v6:
        if kind == "unreachable" and code in ICMPV4_CODES:
            return 3, ICMPV4_CODES[code], struct.pack("!HH", 0, mtu)
        if (kind, code) == ("source_quench", ""):
            return 4, 0, bytes(4)
    elif (kind, code) == ("packet_too_big", ""):
        return 2, 0, struct.pack("!I", mtu)
    elif kind == "unreachable" and code in ICMPV6_CODES:
        return 1, ICMPV6_CODES[code], bytes(4)
    elif kind == "parameter_problem" and code in ICMPV6_PROBLEMS:
        return 4, ICMPV6_PROBLEMS[code], bytes(4)
    raise BadPacket(f"no such ICMP message: {kind} {code}")


def icmp_packet(router, quoted_source, quoted_destination, header, quoted_tcp, quoted_length):
    """About a segment of `quoted_length` octets that begins with `quoted_tcp`."""
    kind, code, rest = header
    quoted = ip_packet(quoted_source, quoted_destination, TCP, quoted_tcp + bytes(quoted_length))
    v6 = len(router) == 16
    quoted = quoted[:(40 if v6 else 20) + len(quoted_tcp)]
    message = struct.pack("!BBH", kind, code, 0) + rest + quoted
    protocol = ICMPV6 if v6 else ICMP
    over = pseudo_header(router, quoted_source, protocol, len(message)) if v6 else b""
    message = message[:2] + struct.pack("!H", checksum(over, message)) + message[4:]
    return ip_packet(router, quoted_source, protocol, message)


def take_apart(packet):
    """\\return Seen; raises BadPacket for lengths and checksums that are wrong."""
    version = packet[0] >> 4
    if version == 4:
        length, protocol = struct.unpack("!H", packet[2:4])[0], packet[9]
        source, destination, tcp = packet[12:16], packet[16:20], packet[20:]
        traffic_class = packet[1]
        if packet[0] != 0x45 or checksum(packet[:20]) != 0:
            raise BadPacket("IPv4 header")
    else:
        length, protocol = 40 + struct.unpack("!H", packet[4:6])[0], packet[6]
        source, destination, tcp = packet[8:24], packet[24:40], packet[40:]
        traffic_class = struct.unpack("!H", packet[:2])[0] >> 4 & 0xff
    if version not in (4, 6) or length != len(packet) or protocol != TCP or len(tcp) < 20:
        raise BadPacket(f"IP version {version}, {length} of {len(packet)} octets, protocol {protocol}")
    if checksum(pseudo_header(source, destination, TCP, len(tcp)), tcp) != 0:
        raise BadPacket("TCP checksum")
    fields = struct.unpack("!HHIIBBHHH", tcp[:20])
    header = fields[4] >> 4 << 2
    if header < 20 or header > len(tcp) or fields[4] & 15:
        raise BadPacket(f"TCP data offset {fields[4]:#x}")
    return Seen(source=source, destination=destination, ecn=traffic_class & 3, ports=fields[:2],
                sequence=fields[2], ack=fields[3], bits=fields[5], window=fields[6],
                urgent=fields[8], options=read_options(tcp[20:header]), payload=tcp[header:])
