"""Plays a script against the adapter: injects what the peer sends, makes the calls, compares what comes
out. A difference is a Mismatch that names the line.
"""

import socket
import struct

import replay_packets as packets
from replay_script import Call, Check, Icmp, Packet, ScriptError

LISTEN_PORT, PEER_PORT, PEER_LISTENS = 8080, 40000, 8080
CONSTANTS = {
    "TCP_CA_Open": 0, "TCP_CA_Disorder": 1, "TCP_CA_CWR": 2, "TCP_CA_Recovery": 3, "TCP_CA_Loss": 4,
    "TCPI_OPT_TIMESTAMPS": 1, "TCPI_OPT_SACK": 2, "TCPI_OPT_WSCALE": 4, "TCPI_OPT_ECN": 8,
}
LEVELS = {"SOL_SOCKET": socket.SOL_SOCKET, "SOL_TCP": socket.IPPROTO_TCP}
OPTIONS = {name: getattr(socket, name) for name in (
    "SO_REUSEADDR SO_KEEPALIVE SO_LINGER SO_ERROR TCP_NODELAY TCP_CORK TCP_USER_TIMEOUT "
    "TCP_KEEPIDLE TCP_KEEPINTVL TCP_KEEPCNT").split()}
F_SETFL, O_RDWR, O_NONBLOCK = 4, 2, 0o4000
ERRNO = {"ETIMEDOUT": 110, "ECONNREFUSED": 111, "ECONNRESET": 104, "EPIPE": 32, "EHOSTUNREACH": 113}


class Mismatch(Exception):
    """The stack did something else than the script says."""


def octets(first, count):
    """What a stream carries: a function of the offset, so that a shifted or stale octet is seen."""
    return bytes((31 * (first + i) + ((first + i) >> 8)) & 0xff for i in range(count))


def differ(what, expected, actual):
    if expected != actual:
        raise Mismatch(f"{what}: expected {expected}, there is {actual}")


def integer(text):
    """A number, or a number in brackets."""
    try:
        return int(text.strip("[]"))
    except ValueError:
        raise ScriptError(f"not a number: {text}") from None


class Player:
    """\\param tolerance microseconds that an event may be off"""

    def __init__(self, adapter, local, remote, tolerance):
        self._adapter = adapter
        self._local, self._remote = packets.address(local), packets.address(remote)
        self._tolerance = tolerance
        self._ports = (LISTEN_PORT, PEER_PORT)  # ours, the peer's
        self._iss = 0  # on the wire, less the script's
        self._numbers_open = True  # the next SYN of ours tells it
        self._stamps = {}  # of the script -> on the wire
        self._first_stamp = None
        self._fds = {}  # of the script -> the adapter's
        self._written, self._read = {}, {}  # by descriptor: octets so far
        self._connected = None  # the last descriptor of a connection
        self._start = adapter.now()
        self._last = None

    def play(self, events):
        for event in events:
            self._last_was_inbound = self._last is not None and self._is_inbound(self._last)
            try:
                self._run(event)
            except (Mismatch, ScriptError, packets.BadPacket) as error:
                raise type(error)(f"line {event.line}: {error}") from None
            except AssertionError as error:
                raise Mismatch(f"line {event.line}: assertion failed: {error}") from None
            self._last = event
        self._nothing_is_left()

    @staticmethod
    def _is_inbound(event):
        return isinstance(event.what, Icmp) or isinstance(event.what, Packet) and not event.what.outbound

    def _run(self, event):
        # Segments of the peer that follow each other are timed from each other, all else from what
        # has really happened.
        if event.relative:
            inbound = self._is_inbound(event) and self._last_was_inbound
            base = self._last.at if inbound else self._now()
            event.at, event.until, event.relative = event.at + base, event.until + base, False
        if isinstance(event.what, Packet) and event.what.outbound:
            self._expect(event)
            return
        wait = event.at - self._now()
        if wait > 0:
            self._adapter.sleep(wait)
        self._check_time(event, self._now())
        kind = {Packet: self._inject, Icmp: self._inject_icmp, Call: self._call, Check: self._check}
        kind[type(event.what)](event.what)

    def _now(self):
        return self._adapter.now() - self._start

    def _check_time(self, event, at):
        if not event.at - self._tolerance <= at <= event.until + self._tolerance:
            raise Mismatch(f"time: expected at {event.at / 1e6:.6f} s, happened at {at / 1e6:.6f} s")

    # --- packets in ---

    def _inject(self, packet):
        options = [self._to_wire(option) for option in packet.options]
        if "S" not in packet.flags and any(o[0] == "TS" for o in packet.options):
            options = [self._echo(option) for option in options]
        behind_syn = 1 if "S" in packet.flags else 0
        payload = octets(packet.sequence - 1 + behind_syn, packet.length)
        raw = packets.tcp_packet(
            self._remote, self._local, self._ports[::-1], packet.sequence,
            packet.ack + self._iss if packet.ack is not None else 0, packet.flags, packet.window,
            packet.urgent, options, payload, packet.ecn or 0)
        if not self._adapter.inject(raw):
            raise Mismatch("the adapter does not take the packet")

    def _to_wire(self, option):
        if option[0] != "sack":
            return option
        return ("sack", tuple((a + self._iss & 0xffffffff, b + self._iss & 0xffffffff)
                              for a, b in option[1]))

    def _echo(self, option):
        """An echo names a timestamp that the script has seen."""
        if option[0] != "TS":
            return option
        if option[2] not in self._stamps:
            raise ScriptError(f"ecr {option[2]} was no outbound timestamp")
        return ("TS", option[1], self._stamps[option[2]])

    def _inject_icmp(self, icmp):
        v6 = len(self._local) == 16
        header = packets.icmp_header(icmp.kind, icmp.code, icmp.mtu, v6)
        tcp = struct.pack("!HHI", *self._ports, icmp.sequence + self._iss & 0xffffffff)
        raw = packets.icmp_packet(self._remote, self._local, self._remote, header, tcp,
                                  12 + icmp.length)
        if not self._adapter.inject(raw):
            raise Mismatch("the adapter does not take the packet")

    # --- packets out ---

    def _expect(self, event):
        """One line may stand for segments of one size that follow each other at once."""
        want, got, parts = event.what, 0, []
        while True:
            seen = self._next(event)
            parts.append(seen)
            got += len(seen.payload)
            if got >= want.length:
                break
            differ("segments of one size", len(parts[0].payload), len(seen.payload))
            if not seen.payload:
                break
        differ("octets", want.length, got)
        for i, seen in enumerate(parts):
            self._compare(want, seen, i == 0, i == len(parts) - 1)

    def _next(self, event):
        found = self._adapter.next_packet()
        if found is None:
            raise Mismatch("nothing will ever be sent")
        raw, when = found
        seen = packets.take_apart(raw)
        differ("addresses", (self._local, self._remote), (seen.source, seen.destination))
        if "S" in seen.flags:
            if "." not in seen.flags and seen.ports[0] != self._ports[0]:  # an active open
                self._ports = (seen.ports[0], PEER_LISTENS)
            if self._numbers_open:
                self._iss = seen.sequence - event.what.sequence
            self._numbers_open = False
        differ("ports", self._ports, seen.ports)
        self._check_time(event, when - self._start)
        return seen

    def _compare(self, want, seen, first, last):
        # Of several segments the last has PSH and FIN, the first CWR.
        flags = "".join(f for f in want.flags
                        if (f not in "PF" or last) and (f != "W" or first or "S" in want.flags))
        differ("flags", set(flags), set(seen.flags))
        sequence = seen.sequence - self._iss & 0xffffffff
        if first:
            differ("sequence number", want.sequence, sequence)
            self._at = sequence
        differ("sequence number", self._at, sequence)
        if seen.payload != octets(sequence - 1, len(seen.payload)) and not self._is_old(seen, sequence):
            raise Mismatch(f"the octets from {sequence} on are not those that were written")
        self._at += len(seen.payload)
        if want.ack is not None:
            differ("ack", want.ack, seen.ack)
        if want.window is not None:
            differ("window", want.window, seen.window)
        differ("urgent pointer", want.urgent, seen.urgent)
        if want.ecn is not None:
            differ("ECN", want.ecn, seen.ecn)
        if want.options is not None:
            self._compare_options(want.options, seen.options)

    @staticmethod
    def _is_old(seen, sequence):
        """A probe before the window: the octet before SND.UNA, which is the SYN's at 0."""
        return len(seen.payload) == 1 and sequence == 0

    def _compare_options(self, want, seen):
        differ("options", [o[0] for o in want], [o[0] for o in seen])
        for expected, actual in zip(want, seen, strict=True):
            if expected[0] == "sack":  # of the peer's numbers, which are the script's
                differ("SACK blocks", expected[1], actual[1])
            elif expected[0] == "TS":
                self._compare_stamp(expected, actual)
            else:
                differ("option", expected, actual)

    def _compare_stamp(self, expected, actual):
        """Timestamps tick each millisecond from a start of their own."""
        _, value, echo = expected
        self._stamps[value] = actual[1]
        if self._first_stamp is None:
            self._first_stamp = (value, actual[1])
        off = (actual[1] - self._first_stamp[1]) - (value - self._first_stamp[0])
        if abs(off) * 1000 > self._tolerance:
            raise Mismatch(f"timestamp: expected {value}, there is {value + off}")
        differ("echoed timestamp", echo, actual[2])

    def _nothing_is_left(self):
        now = self._now()
        found = self._adapter.next_packet()
        if found is not None and found[1] - self._start <= now:
            seen = packets.take_apart(found[0])
            sequence = seen.sequence - self._iss & 0xffffffff
            raise Mismatch(f"after the script: {seen.flags} {sequence}({len(seen.payload)}) was sent "
                           "and not expected")

    # --- calls ---

    def _call(self, call):
        begun = self._now()
        handler = getattr(self, "_do_" + call.name, None)
        if handler is None:
            raise ScriptError(f"no such call: {call.name}")
        result, error = handler(*call.arguments)
        differ(f"{call.name}()", (call.result, call.error), (result, error))
        if self._now() - begun > self._tolerance:
            raise Mismatch(f"{call.name}() had to wait")

    def _fd(self, text):
        """The adapter's descriptor for the script's."""
        if text not in self._fds:
            raise ScriptError(f"no such descriptor: {text}")
        return self._fds[text]

    def _new_fd(self, result, error):
        """A new descriptor is the lowest that the script has not open, from 3 on."""
        if error is not None:
            return result, error
        name = next(n for n in range(3, 4 + len(self._fds)) if str(n) not in self._fds)
        self._fds[str(name)] = result
        return name, None

    def _do_socket(self, domain, kind, protocol):
        differ("arguments", ("...", "SOCK_STREAM", "IPPROTO_TCP"), (domain, kind, protocol))
        family = socket.AF_INET if len(self._local) == 4 else socket.AF_INET6
        return self._new_fd(*self._adapter.call("socket", family, socket.SOCK_STREAM,
                                                socket.IPPROTO_TCP))

    def _sockaddr(self, address, port):
        if len(address) == 4:
            return struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + address + bytes(8)
        return (struct.pack("=H", socket.AF_INET6) + struct.pack("!HI", port, 0) + address + bytes(4))

    def _do_bind(self, fd, where, length):
        differ("arguments", ("...", "..."), (where, length))
        at = self._sockaddr(self._local, LISTEN_PORT)
        return self._adapter.call("bind", self._fd(fd), at, len(at))

    def _do_listen(self, fd, backlog):
        self._numbers_open = True
        return self._adapter.call("listen", self._fd(fd), integer(backlog))

    def _do_accept(self, fd, who, length):
        differ("arguments", ("...", "..."), (who, length))
        result, error = self._adapter.call("accept", self._fd(fd), None, None)
        self._connected = result if result >= 0 else self._connected
        return self._new_fd(result, error)

    def _do_connect(self, fd, where, length):
        differ("arguments", ("...", "..."), (where, length))
        to = self._sockaddr(self._remote, PEER_LISTENS)
        self._connected = self._fd(fd)
        self._numbers_open = True
        return self._adapter.call("connect", self._fd(fd), to, len(to))

    def _do_write(self, fd, what, count):
        differ("arguments", "...", what)
        fd = self._fd(fd)
        at = self._written.get(fd, 0)
        result, error = self._adapter.call("write", fd, octets(at, integer(count)), integer(count))
        self._written[fd] = at + max(result, 0)
        return result, error

    def _do_read(self, fd, into, count):
        differ("arguments", "...", into)
        fd = self._fd(fd)
        result, error, got = self._adapter.read(fd, integer(count))
        at = self._read.get(fd, 0)
        if got != octets(at, len(got)):
            raise Mismatch("the octets read are not those that the peer sent")
        self._read[fd] = at + len(got)
        return result, error

    def _do_close(self, fd):
        closed = self._fd(fd)
        del self._fds[fd]
        self._written.pop(closed, None)
        self._read.pop(closed, None)
        return self._adapter.call("close", closed)

    def _do_shutdown(self, fd, how):
        ways = {"SHUT_RD": 0, "SHUT_WR": 1, "SHUT_RDWR": 2}
        if how not in ways:
            raise ScriptError(f"no such way: {how}")
        return self._adapter.call("shutdown", self._fd(fd), ways[how])

    def _do_fcntl(self, fd, command, flags):
        differ("arguments", ("F_SETFL", {"O_RDWR", "O_NONBLOCK"}),
               (command, {flag.strip() for flag in flags.split("|")}))
        return self._adapter.call("fcntl", self._fd(fd), F_SETFL, O_RDWR | O_NONBLOCK)

    def _option(self, level, name):
        if level not in LEVELS or name not in OPTIONS:
            raise ScriptError(f"no such option: {level}, {name}")
        return LEVELS[level], OPTIONS[name]

    def _do_setsockopt(self, fd, level, name, value, length):
        if name == "SO_LINGER":
            parts = dict(part.strip().split("=") for part in value.strip("{}").split(","))
            differ("arguments", {"onoff", "linger"}, set(parts))
            data = struct.pack("=ii", int(parts["onoff"]), int(parts["linger"]))
        else:
            data = struct.pack("=i", integer(value))
            differ("arguments", 4, integer(length))
        return self._adapter.call("setsockopt", self._fd(fd), *self._option(level, name), data,
                                  len(data))

    def _do_getsockopt(self, fd, level, name, value, length):
        differ("arguments", "[4]", length)
        result, error, data = self._adapter.get_option(self._fd(fd), *self._option(level, name), 4)
        wanted = ERRNO.get(value.strip("[]"))
        if result == 0:
            differ(name, integer(value) if wanted is None else wanted, struct.unpack("=i", data)[0])
        return result, error

    def _check(self, check):
        if self._connected is None:
            raise ScriptError("no connection to ask")
        names = {"tcpi_" + key: value for key, value in self._adapter.tcp_info(self._connected).items()}
        try:
            exec(check.code, {**CONSTANTS, **names})  # the script's own assertion
        except NameError as error:
            raise ScriptError(str(error)) from None
