#!/usr/bin/env python3
"""Our TCP against the Linux kernel's, over a veth pair between network namespaces.

usage: interop_test.py RNIC_STREAM [--long] [unittest arguments]

--long: more octets, more sizes, every combination of options.
"""

import os
import socket
import struct
import subprocess
import sys
import time
import unittest

import kernel_peer
from kernel_peer import Information, Task
from network import (Network, Unavailable, check_machine, end_cleanly_when_terminated, inside,
                     OURS4, OURS6)
from ours import Ours, PORT, counter

LONG = "--long" in sys.argv
MB = 1 << 20
BULK = (256 if LONG else 64) * MB
SHORT = (32 if LONG else 8) * MB


class Case(unittest.TestCase):
    """Helpers; `family` is that of the addresses."""

    family = 4

    def ours_address(self):
        return OURS4 if self.family == 4 else OURS6

    def kernel_address(self, network):
        return network.kernel4 if self.family == 4 else network.kernel6

    def network(self, **arguments):
        return self.enterContext(Network(**arguments))

    def ours(self, network, *arguments, **keys):
        return self.enterContext(Ours(network, self.family, *arguments, **keys))

    def client(self, network, *arguments, **keys):
        return self.ours(network, "client", self.kernel_address(network), *arguments, **keys)

    def server(self, network, *arguments, **keys):
        return self.ours(network, "server", *arguments, **keys)

    def af(self):
        return socket.AF_INET if self.family == 4 else socket.AF_INET6

    def listen(self, network, backlog=512):
        with inside(network.kernel):
            listener = socket.socket(self.af(), socket.SOCK_STREAM)
        self.addCleanup(listener.close)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.settimeout(30)
        listener.bind((self.kernel_address(network), PORT))
        listener.listen(backlog)
        return listener

    def accept(self, listener):
        sock = kernel_peer.accept(listener)
        self.addCleanup(sock.close)
        sock.settimeout(30)
        return sock

    def connect(self, network, buffers=0):
        with inside(network.kernel):
            sock = socket.socket(self.af(), socket.SOCK_STREAM)
        self.addCleanup(sock.close)
        sock.settimeout(30)
        if buffers:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffers)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers)
        sock.connect((self.ours_address(), PORT))
        return sock

    def duplex(self, sock, octets, is_client):
        """Both ways at once at the kernel's end, every octet checked."""
        sending = Task(kernel_peer.send_content, sock, octets, is_client)
        got, hashed = kernel_peer.receive_content(sock, is_client)
        self.assertEqual(sending.result(), octets)
        self.assertEqual(got, octets)
        return hashed

    def good(self, ours, connections=1, octets=None):
        result = ours.result()
        self.assertEqual(result["errors"], [], ours.said())
        self.assertEqual((result["connections"], result["verified"]), (connections, connections))
        self.assertEqual(result["status"], 0)
        if octets is not None:
            self.assertEqual(result["octets_received"], octets * connections)
        return result

    def duplex_active(self, network, octets=SHORT, **keys):
        """We connect. Returns our result and the kernel's TCP_INFO."""
        with self.listen(network) as listener:  # closed even if this is one of many and fails
            ours = self.client(network, "--job", "duplex", "--octets", str(octets), **keys)
            sock = self.accept(listener)
        sending = Task(kernel_peer.send_content, sock, octets, False)
        got, hashed = kernel_peer.receive_content(sock, False)
        information = Information(sock)
        self.assertEqual((sending.result(), got), (octets, octets))
        result = self.good(ours, octets=octets)
        self.assertEqual(result["hashes_sent"], [f"{hashed:08x}"])
        sock.close()
        return result, information

    def duplex_passive(self, network, octets=SHORT, **keys):
        """The kernel connects."""
        ours = self.server(network, "--job", "duplex", "--octets", str(octets), "--exit-after", "1",
                           **keys)
        sock = self.connect(network)
        sending = Task(kernel_peer.send_content, sock, octets, True)
        got, hashed = kernel_peer.receive_content(sock, True)
        information = Information(sock)
        self.assertEqual((sending.result(), got), (octets, octets))
        result = self.good(ours, octets=octets)
        self.assertEqual(result["hashes_sent"], [f"{hashed:08x}"])
        return result, information


class Bulk(Case):
    """64 MB each way at once."""

    def test_active(self):
        result, information = self.duplex_active(self.network(), BULK)
        self.assertTrue(information.sack and information.timestamps and information.window_scale)
        self.assertEqual(counter(result, "tcp", "checksum_errors"), 0)

    def test_passive(self):
        _, information = self.duplex_passive(self.network(), BULK)
        self.assertTrue(information.sack and information.timestamps and information.window_scale)


class Messages(Case):
    """Small messages, one after the other."""

    def test_active(self):
        network = self.network()
        listener = self.listen(network)
        for size, count in ((1, 300), (100, 300), (1448, 300), (5000, 100)):
            with self.subTest(size=size):
                ours = self.client(network, "--job", "echo", "--message", str(size),
                                   "--octets", str(size * count))
                Task(kernel_peer.echo, self.accept(listener)).result()
                result = self.good(ours, octets=size * count)
                self.assertEqual(result["messages"], count)

    def test_passive(self):
        network = self.network()
        sizes = ((1, 300), (100, 300), (1449, 300), (5000, 100))
        ours = self.server(network, "--job", "echo", "--no-verify", "--exit-after", str(len(sizes)))
        for size, count in sizes:
            sock = self.connect(network)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(count):
                message = struct.pack("=I", i) * (size // 4 + 1)
                sock.sendall(message[:size])
                got = b""
                while len(got) < size:
                    piece = sock.recv(size - len(got))
                    self.assertTrue(piece)
                    got += piece
                self.assertEqual(got, message[:size])
            sock.shutdown(socket.SHUT_WR)
            self.assertEqual(sock.recv(1), b"")
        self.good(ours, connections=len(sizes))


class HalfClose(Case):
    """One direction ends, the other goes on."""

    def test_ours_first(self):
        network = self.network()
        listener = self.listen(network)
        ours = self.client(network, "--job", "check", "--octets", "1M")
        sock = self.accept(listener)
        time.sleep(0.2)  # our FIN is long there when the kernel answers
        kernel_peer.check(sock, False)
        result = self.good(ours)
        self.assertEqual(result["ends"], {"closed": 1})

    def test_kernel_first(self):
        network = self.network()
        ours = self.server(network, "--job", "check", "--exit-after", "2")
        for octets in (0, 3 * MB):
            sock = self.connect(network)
            kernel_peer.send_content(sock, octets, True)
            answer = sock.makefile().read()
            self.assertRegex(answer, rf"^{octets} [0-9a-f]{{8}} ok\n$")
        self.good(ours, connections=2)

    def test_much_after_the_kernels_end(self):
        network = self.network()
        ours = self.server(network, "--job", "receive", "--octets", "4M", "--exit-after", "1")
        sock = self.connect(network)
        sock.shutdown(socket.SHUT_WR)
        time.sleep(0.1)
        got, _ = kernel_peer.receive_content(sock, True)
        self.assertEqual(got, 4 * MB)
        self.good(ours)

    def test_both_at_once_and_nothing_sent(self):
        network = self.network()
        ours = self.server(network, "--job", "duplex", "--octets", "0", "--exit-after", "1")
        sock = self.connect(network)
        sock.shutdown(socket.SHUT_WR)
        self.assertEqual(sock.recv(1), b"")
        self.good(ours)


class Reset(Case):
    def test_by_the_kernel(self):
        network = self.network()
        ours = self.server(network, "--job", "receive", "--octets", "1G", "--exit-after", "1")
        sock = self.connect(network)
        kernel_peer.receive_content(sock, True, limit=MB)
        kernel_peer.reset(sock)
        result = ours.result()
        self.assertEqual(result["ends"], {"reset by peer": 1})
        self.assertEqual(result["status"], 1)
        self.assertRegex(result["errors"][0], "reset")

    def test_by_us(self):
        network = self.network()
        listener = self.listen(network)
        ours = self.client(network, "--job", "duplex", "--octets", "1G", "--reset-after", "1M")
        sock = self.accept(listener)
        sending = Task(kernel_peer.send_content, sock, 1 << 30, False)
        with self.assertRaises(ConnectionError):  # the kernel tells it once, to either call
            kernel_peer.receive_content(sock, False)
            sending.result()
        self.assertEqual(ours.result()["ends"], {"aborted": 1})

    def test_nobody_listens(self):
        network = self.network()
        ours = self.client(network, "--octets", "1")
        result = ours.result()
        self.assertEqual(result["ends"], {"refused": 1})
        self.assertRegex(result["errors"][0], "refuse")

    def test_nobody_of_us_listens(self):
        network = self.network()
        self.server(network)
        with inside(network.kernel):
            sock = socket.socket(self.af(), socket.SOCK_STREAM)
        self.addCleanup(sock.close)
        sock.settimeout(10)
        with self.assertRaises(ConnectionRefusedError):
            sock.connect((self.ours_address(), PORT + 1))


class PeerGone(Case):
    def test_killed(self):
        network = self.network()
        ours = self.server(network, "--job", "duplex", "--octets", "1G", "--exit-after", "1")
        program = kernel_peer.__file__
        child = subprocess.Popen(["ip", "netns", "exec", network.kernel, sys.executable, program,
                                  "sender", self.ours_address(), str(PORT)],
                                 stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline().strip(), "connected")
        self.assertEqual(child.stdout.readline().strip(), "much is sent")
        child.kill()
        result = ours.result()
        self.assertEqual(result["ends"], {"reset by peer": 1})
        self.assertGreater(result["octets_received"], 0)

    def test_silent(self):
        """The kernel's end is unplugged: the user time-out ends the connection."""
        network = self.network()
        ours = self.server(network, "--job", "receive", "--octets", "1G", "--exit-after", "1",
                           settings=(("tcp.user_timeout", "1s"),))
        sock = self.connect(network)
        kernel_peer.receive_content(sock, True, limit=MB)
        network.filter(network.kernel, "drop", hook="input")
        network.filter(network.kernel, "drop", hook="output")
        result = ours.result()
        self.assertEqual(result["ends"], {"timed out": 1})


class Crowd(Case):
    """200 connections at once."""

    COUNT = 200
    OCTETS = 100_000

    def test_active(self):
        network = self.network()
        listener = self.listen(network)
        ours = self.client(network, "--job", "duplex", "--octets", str(self.OCTETS),
                           "--connections", str(self.COUNT), buffer=65536)
        socks = [self.accept(listener) for _ in range(self.COUNT)]  # all open before octets flow
        tasks = [Task(self.duplex, sock, self.OCTETS, False) for sock in socks]
        for task in tasks:
            task.result()
        self.good(ours, connections=self.COUNT, octets=self.OCTETS)

    def test_passive(self):
        network = self.network()
        ours = self.server(network, "--job", "duplex", "--octets", str(self.OCTETS),
                           "--exit-after", str(self.COUNT), buffer=65536)
        socks = [self.connect(network) for _ in range(self.COUNT)]
        tasks = [Task(self.duplex, sock, self.OCTETS, True) for sock in socks]
        for task in tasks:
            task.result()
        self.good(ours, connections=self.COUNT, octets=self.OCTETS)


class Mtu(Case):
    SIZES = (576, 1006, 1280, 4000, 9000) if LONG else (576, 9000)

    def test_sizes(self):
        for mtu in self.SIZES:
            with self.subTest(mtu=mtu), Network(mtu=mtu) as network:
                octets = SHORT if mtu >= 1280 else MB
                for duplex in (self.duplex_active, self.duplex_passive):
                    result, information = duplex(network, octets)
                    payload = mtu - (52 if self.family == 4 else 72)  # timestamps are on
                    self.assertEqual(information.rcv_mss, payload)
                    segments = counter(result, "tcp", "data_segments_out")
                    self.assertLessEqual(segments, 1.1 * octets / payload + 10)

    def test_larger_than_ours(self):
        """Each end has its own MTU: the smaller MSS counts."""
        with Network(mtu=9000) as network:
            self.duplex_active(network, mtu=1500)
            self.duplex_passive(network, mtu=1500)


class KernelOptions(Case):
    """The kernel's end without, or with, an option."""

    def both(self, network, **keys):
        yield self.duplex_active(network, **keys)
        yield self.duplex_passive(network, **keys)

    def test_without_sack(self):
        network = self.network()
        network.kernel_sysctl("net.ipv4.tcp_sack", 0)
        for result, information in self.both(network, impair={"drop": 0.003}):
            self.assertFalse(information.sack)
            self.assertGreater(counter(result, "tcp", "retransmitted_segments"), 0)

    def test_with_sack(self):
        network = self.network()
        for result, information in self.both(network, impair={"drop": 0.003}):
            self.assertTrue(information.sack)
            self.assertGreater(counter(result, "tcp", "retransmitted_segments"), 0)

    def test_without_timestamps(self):
        network = self.network()
        network.kernel_sysctl("net.ipv4.tcp_timestamps", 0)
        for _, information in self.both(network):
            self.assertFalse(information.timestamps)
            self.assertEqual(information.rcv_mss, 1460 if self.family == 4 else 1440)

    def test_without_window_scaling(self):
        network = self.network()
        network.kernel_sysctl("net.ipv4.tcp_window_scaling", 0)
        for _, information in self.both(network):
            self.assertFalse(information.window_scale)

    def test_with_nothing(self):
        network = self.network()
        for option in ("sack", "timestamps", "window_scaling"):
            network.kernel_sysctl("net.ipv4.tcp_" + option, 0)
        for _, information in self.both(network, impair={"drop": 0.003}):
            self.assertFalse(information.sack or information.timestamps)

    def test_ours_without(self):
        network = self.network()
        for option in ("sack", "timestamps", "window_scaling"):
            _, information = self.duplex_passive(network, MB, settings=((f"tcp.{option}", "false"),))
            self.assertEqual([information.sack, information.timestamps, information.window_scale],
                             [option != "sack", option != "timestamps", option != "window_scaling"])

    def test_every_combination(self):
        if not LONG:
            return
        network = self.network()
        for bits in range(8):
            for option, bit in (("sack", 1), ("timestamps", 2), ("window_scaling", 4)):
                network.kernel_sysctl("net.ipv4.tcp_" + option, 1 if bits & bit else 0)
            for drop in (0, 0.01):
                with self.subTest(bits=bits, drop=drop):
                    list(self.both(network, impair={"drop": drop} if drop else None))

    def test_with_small_buffers(self):
        """The window closes again and again."""
        network = self.network()
        ours = self.server(network, "--job", "duplex", "--octets", str(MB), "--exit-after", "1",
                           buffer=8192)
        sock = self.connect(network, buffers=4096)
        self.duplex(sock, MB, True)
        self.good(ours, octets=MB)


class Impaired(Case):
    """Our end sends through a bad network."""

    BAD = {"loss": {"drop": 0.01},
           # Half of the frames end a burst. A sender whose window is lost sends one frame a
           # time-out: at 0.2 each of them is lost four times of five while its timer doubles. So
           # bursts are of two frames on average; those of five are the simulator's.
           "burst": {"burst_enter": 0.01, "burst_leave": 0.5},
           "reorder": {"reorder": 0.05, "reorder_max": 16},
           "duplicate": {"duplicate": 0.05},
           "corrupt": {"corrupt": 0.005},
           "all": {"drop": 0.005, "reorder": 0.02, "duplicate": 0.01, "corrupt": 0.002}}

    def test_all(self):
        network = self.network()
        for name, impair in self.BAD.items():
            with self.subTest(impair=name):
                for duplex in (self.duplex_active, self.duplex_passive):
                    result, _ = duplex(network, SHORT // 2, impair=impair)
                    if name in ("loss", "burst", "corrupt"):
                        self.assertGreater(counter(result, "tcp", "retransmitted_segments"), 0)
        self.assertGreater(network.kernel_counter("TcpInCsumErrors"), 0)
        self.assertGreater(network.kernel_counter("TcpExtTCPDSACKOldSent"), 0)

    def test_both_directions(self):
        """Routers lose one frame of a hundred, whichever way it goes."""
        network = self.network(routed=True)
        network.filter(network.near, "numgen random mod 100 0 drop")
        result, _ = self.duplex_active(network, SHORT // 2)
        self.assertGreater(counter(result, "tcp", "retransmitted_segments"), 0)
        self.assertGreater(counter(result, "tcp", "out_of_order_octets_in"), 0)
        self.duplex_passive(network, SHORT // 2)


class Ecn(Case):
    OURS = (("tcp.ecn", "offer"),)

    def marked(self):
        """Routers mark a packet of fifty instead of losing it."""
        network = self.network(routed=True)
        network.kernel_sysctl("net.ipv4.tcp_ecn", 1)
        ip = "ip" if self.family == 4 else "ip6"
        network.filter(network.near,
                       f"{ip} ecn {{ ect0, ect1 }} numgen random mod 50 0 {ip} ecn set ce")
        return network

    def test_marks_both_ways(self):
        network = self.marked()
        for duplex in (self.duplex_active, self.duplex_passive):
            result, information = duplex(network, settings=self.OURS)
            self.assertTrue(information.ecn and information.ecn_seen)
            for name in ("ecn_connections", "ce_in", "ece_in", "ecn_reductions"):
                self.assertGreater(counter(result, "tcp", name), 0, name)

    def test_dctcp_of_ours(self):
        """Our SYNs are ECN-capable then (RFC 8257 s.3.6), which a kernel without DCTCP declines."""
        network = self.marked()
        settings = (*self.OURS, ("tcp.congestion_control", "dctcp"))
        _, information = self.duplex_active(network, MB, settings=settings)
        self.assertFalse(information.ecn)
        result, information = self.duplex_passive(network, settings=settings)
        self.assertTrue(information.ecn and information.ecn_seen)
        self.assertGreater(counter(result, "tcp", "ece_in"), 0)

    def test_only_one_side_wants_it(self):
        network = self.network()
        for kernel, ours in ((0, "offer"), (1, "off")):
            network.kernel_sysctl("net.ipv4.tcp_ecn", kernel)
            for duplex in (self.duplex_active, self.duplex_passive):
                _, information = duplex(network, MB, settings=(("tcp.ecn", ours),))
                self.assertFalse(information.ecn)


class PathMtu(Case):
    """A link between the routers carries less than those at the ends."""

    def filter_messages(self, network):
        for namespace in (network.near, network.far):
            network.filter(namespace, "icmp type destination-unreachable drop",
                           "icmpv6 type packet-too-big drop", hook="output")

    def test_routers_tell(self):
        network = self.network(routed=True, middle_mtu=1400)
        for duplex in (self.duplex_active, self.duplex_passive):
            _, information = duplex(network)
            self.assertEqual(information.pmtu, 1400)
            self.assertLess(information.rcv_mss, 1400)

    def duplex_over_shrinking_path(self, network):
        """Half the bulk each way; the link in the middle shrinks while it runs."""
        ours = self.server(network, "--job", "duplex", "--octets", str(BULK // 2),
                           "--exit-after", "1")
        sock = self.connect(network)
        sending = Task(kernel_peer.send_content, sock, BULK // 2, True,
                       in_the_middle=lambda: network.set_middle_mtu(1300))
        receiving = Task(kernel_peer.receive_content, sock, True)
        self.assertEqual(sending.result(), BULK // 2)
        self.assertEqual(receiving.result()[0], BULK // 2)
        self.good(ours, octets=BULK // 2)
        return sock

    def test_smaller_on_the_way(self):
        sock = self.duplex_over_shrinking_path(self.network(routed=True))
        self.assertEqual(Information(sock).pmtu, 1300)

    def test_black_hole(self):
        """Nobody says that packets are too big for the link."""
        network = self.network(routed=True, middle_mtu=1400)
        network.kernel_sysctl("net.ipv4.tcp_mtu_probing", 1)
        self.filter_messages(network)
        self.duplex_active(network, MB)
        self.duplex_passive(network, MB)

    def test_black_hole_on_the_way(self):
        network = self.network(routed=True)
        network.kernel_sysctl("net.ipv4.tcp_mtu_probing", 1)
        self.filter_messages(network)
        self.duplex_over_shrinking_path(network)


def add_ipv6():
    """The cases again over IPv6; what does not depend on the IP version only with --long."""
    for case in list(globals().values()):
        if not isinstance(case, type) or not issubclass(case, Case) or case is Case:
            continue
        if LONG or case not in (Messages, KernelOptions):
            name = case.__name__ + "V6"
            more = {"family": 6, "SIZES": (1280, 9000)}
            if case is PathMtu and not LONG:  # the kernel takes its time to find them
                more.update(test_black_hole=None, test_black_hole_on_the_way=None)
            globals()[name] = type(name, (case,), more)


add_ipv6()


def remove_private_arguments():
    arguments = [argument for argument in sys.argv[2:] if argument != "--long"]
    return sys.argv[:1] + arguments


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    end_cleanly_when_terminated()
    Ours.program = os.path.abspath(sys.argv[1])
    try:
        check_machine()
        with Network():
            pass
    except Unavailable as reason:
        print(reason)
        sys.exit(77)
    unittest.main(argv=remove_private_arguments(), verbosity=2)
