"""libpd_adapter.so through its table of functions (interface_table.hpp), by ctypes."""

import ctypes
import errno
import os
import struct

POINTER = ctypes.c_void_p
# The table's order; what a script never calls has no signature.
NAMES = ("self free socket bind listen accept connect read readv recv recvfrom recvmsg write writev "
         "send sendto sendmsg fcntl ioctl close shutdown getsockopt setsockopt poll netdev_send "
         "netdev_receive usleep gettimeofday epoll_create epoll_ctl epoll_wait pipe splice").split()
INT, LONG, SIZE = ctypes.c_int, ctypes.c_long, ctypes.c_size_t
BUFFER = ctypes.c_char_p
SIGNATURES = {
    "free": (None,), "socket": (INT, INT, INT, INT), "bind": (INT, INT, BUFFER, INT),
    "listen": (INT, INT, INT), "accept": (INT, INT, POINTER, POINTER),
    "connect": (INT, INT, BUFFER, INT), "read": (LONG, INT, POINTER, SIZE),
    "write": (LONG, INT, BUFFER, SIZE), "fcntl": (INT, INT, INT, LONG), "close": (INT, INT),
    "shutdown": (INT, INT, INT), "getsockopt": (INT, INT, INT, INT, POINTER, POINTER),
    "setsockopt": (INT, INT, INT, INT, BUFFER, INT), "netdev_send": (INT, BUFFER, SIZE),
    "netdev_receive": (INT, POINTER, POINTER, POINTER), "usleep": (INT, ctypes.c_uint),
    "gettimeofday": (INT, POINTER, POINTER),
}
# struct tcp_info of Linux: what the adapter fills in, in the kernel's order.
TCP_INFO_FORM = "=8B24I4Q6I4Q2I2Q4I"
TCP_INFO_NAMES = (
    "state ca_state retransmits probes backoff options wscales flags "
    "rto ato snd_mss rcv_mss unacked sacked lost retrans fackets last_data_sent last_ack_sent "
    "last_data_recv last_ack_recv pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd advmss "
    "reordering rcv_rtt rcv_space total_retrans "
    "pacing_rate max_pacing_rate bytes_acked bytes_received "
    "segs_out segs_in notsent_bytes min_rtt data_segs_in data_segs_out "
    "delivery_rate busy_time rwnd_limited sndbuf_limited delivered delivered_ce "
    "bytes_sent bytes_retrans dsack_dups reord_seen rcv_ooopack snd_wnd").split()


class Table(ctypes.Structure):
    _fields_ = [(name, POINTER) for name in NAMES]


class Adapter:
    """One stack in virtual time; close() ends it."""

    def __init__(self, library, flags):
        self._library = ctypes.CDLL(os.path.abspath(library), mode=os.RTLD_LOCAL)
        self._table = Table()
        self._library.packetdrill_interface_init(flags.encode(), ctypes.byref(self._table))

    def close(self):
        self._call("free")

    def _call(self, name, *arguments):
        result, *parameters = SIGNATURES[name]
        kind = ctypes.CFUNCTYPE(result, POINTER, *parameters, use_errno=True)
        ctypes.set_errno(0)
        return kind(getattr(self._table, name))(self._table.self, *arguments)

    def call(self, name, *arguments):
        """A call of a socket. \\return (its result, errno's name or None)"""
        result = self._call(name, *arguments)
        return result, errno.errorcode.get(ctypes.get_errno(), "?") if result < 0 else None

    def read(self, fd, count):
        """\\return (result, errno's name or None, the octets)"""
        buffer = ctypes.create_string_buffer(max(count, 1))
        result, error = self.call("read", fd, buffer, count)
        return result, error, buffer.raw[:max(result, 0)]

    def get_option(self, fd, level, name, size):
        """\\return (result, errno's name or None, the octets)"""
        buffer = ctypes.create_string_buffer(size)
        length = ctypes.c_uint(size)
        result, error = self.call("getsockopt", fd, level, name, buffer, ctypes.byref(length))
        return result, error, buffer.raw[:length.value]

    def tcp_info(self, fd):
        size = struct.calcsize(TCP_INFO_FORM)
        result, error, data = self.get_option(fd, 6, 11, 512)
        if result < 0 or len(data) < size:
            raise OSError(f"TCP_INFO: {error}, {len(data)} octets")
        info = dict(zip(TCP_INFO_NAMES, struct.unpack_from(TCP_INFO_FORM, data), strict=True))
        info["snd_wscale"], info["rcv_wscale"] = info["wscales"] & 15, info["wscales"] >> 4
        return info

    def inject(self, packet):
        return self._call("netdev_send", packet, len(packet)) == 0

    def next_packet(self):
        """Waits in virtual time. \\return (octets, microseconds); None: none will ever come."""
        buffer = ctypes.create_string_buffer(65536)
        length, when = SIZE(65536), ctypes.c_longlong(0)
        self._call("netdev_receive", buffer, ctypes.byref(length), ctypes.byref(when))
        return (buffer.raw[:length.value], when.value) if length.value else None

    def now(self):
        """Microseconds."""
        value = (LONG * 2)()
        self._call("gettimeofday", value, None)
        return value[0] * 1_000_000 + value[1]

    def sleep(self, micros):
        most = 1_000_000_000  # useconds_t has 32 bits
        while micros > 0:
            self._call("usleep", min(micros, most))
            micros -= most
