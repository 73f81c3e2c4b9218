"""Where a siege takes place: a server of ours, and where its clients and the strangers come from.

OnSockets     the server stands on sockets of the system: loopback
OnSockets6    the same over IPv6, in a namespace whose loopback has the addresses that it takes
OnAfPacket    the server has a stack of its own on a packet socket: two namespaces, a veth between
OnAfPacket6   the same over IPv6

An IPv6 host chooses its addresses from a /64: strangers at "one address" have a thousand in one /64 there.
"""

import ipaddress
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import strangers

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = f"siege{os.getpid()}"


class Unavailable(Exception):
    """This machine cannot do it; the text says why, as tests/allowed-skips.txt has it."""


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def run(*command):
    output(*command)


class Server:
    """A server's process, until the block ends. `said` is what it wrote to stderr."""

    def __init__(self, command):
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8")
        self.child = subprocess.Popen(command, stderr=self.log, stdout=subprocess.DEVNULL,
                                      stdin=subprocess.DEVNULL)
        self.status = None
        self.last_words = None

    def said(self):
        if self.last_words is not None:
            return self.last_words
        size = os.fstat(self.log.fileno()).st_size
        return os.pread(self.log.fileno(), size, 0).decode(errors="replace")

    def memory_kb(self):
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def wait_for(self, text, seconds=60):
        end = time.monotonic() + seconds
        while text not in self.said():
            if self.child.poll() is not None:
                raise AssertionError("the server is gone: " + self.said())
            if time.monotonic() > end:
                raise AssertionError(f"the server does not say {text!r}: " + self.said()[-2000:])
            time.sleep(0.02)

    def __enter__(self):
        try:
            self.wait_for("listening on")
        except AssertionError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)
        try:
            self.status = self.child.wait(30)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.status = self.child.wait()
        self.last_words = self.said()
        self.log.close()


def is_sanitized(binary):
    with open(binary, "rb") as file:
        octets = file.read()
    return b"__asan_init" in octets or b"__tsan_init" in octets


def make_namespace(name):
    """Unavailable where that cannot be."""
    if os.geteuid() != 0:
        raise Unavailable("only root can make network namespaces")
    if shutil.which("ip") is None:
        raise Unavailable("no ip command to make network namespaces with")
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        raise Unavailable("this machine allows no network namespaces")


class OnSockets:
    name = "socket"
    address = "127.0.0.1"
    # Origins of strangers. The client's own is 127.0.0.1: every connect to it has it as its source.
    origins = {"other": "127.0.99.1", "own": "127.64.0.0/16", "client": "127.0.0.1"}

    def __init__(self, port):
        self.port = port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def flood(self, form):
        """None: the system's own TCP takes frames of no TCP from nobody."""
        del form

    def server(self, binary, *arguments):
        mode = [binary, "server", "--port", "socket", "--port", str(self.port)]
        return Server(self.outside(*mode, *arguments))

    def outside(self, *command):
        """A command where the client and the strangers are."""
        return list(command)


class OnSockets6(OnSockets):
    name = "socket over IPv6"
    address = "fd00:9::2"
    origins = {"other": "fd00:99::/64", "own": "fd01::/32", "client": "fd00:9::/64"}

    def __enter__(self):
        make_namespace(NAME)
        try:
            run(*self.outside("ip", "link", "set", "lo", "up"))
            run(*self.outside("ip", "address", "add", self.address + "/64", "dev", "lo", "nodad"))
            for origin in self.origins.values():
                run(*self.outside("ip", "-6", "route", "add", "local", origin, "dev", "lo"))
            run(*self.outside("sysctl", "-q", "-w", "net.ipv6.ip_nonlocal_bind=1"))
        except RuntimeError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        subprocess.run(["ip", "netns", "del", NAME], capture_output=True, check=False)

    def outside(self, *command):
        return ["ip", "netns", "exec", NAME, *command]


class OnAfPacket:
    name = "af_packet"
    address = "10.9.0.2"
    client = "10.9.0.1"
    prefix = 16
    gateway = ""
    # The system answers for all of 10.9.128.0/17 without having one of them configured.
    origins = {"other": "10.9.127.1", "own": "10.9.128.0/17", "client": client}

    def __init__(self, port):
        self.port = port
        self.near, self.far = NAME + "n", NAME + "f"
        self.folder = self.config = None

    def __enter__(self):
        if shutil.which("ethtool") is None:
            raise Unavailable("no ethtool to switch offloads off with")
        if shutil.which("nft") is None:
            raise Unavailable("no nft to keep the system's TCP out of it with")
        self.folder = tempfile.TemporaryDirectory(prefix="rnic-siege-")
        try:
            make_namespace(self.near)
            make_namespace(self.far)
            self.join()
        except (RuntimeError, Unavailable):
            self.__exit__()
            raise
        return self

    def join(self):
        run("ip", "link", "add", self.near, "netns", self.near, "type", "veth", "peer", "name",
            self.far, "netns", self.far)
        for name in (self.near, self.far):
            run("ip", "-n", name, "link", "set", name, "up")
            # The server's own stack sums what the system left to a NIC.
            run("ip", "netns", "exec", name, "ethtool", "-K", name, "tx", "off", "rx", "off", "tso",
                "off", "gso", "off", "gro", "off")
        run("ip", "-n", self.near, "link", "set", "lo", "up")
        self.add_addresses()
        # The system's ports and those of flood.py do not meet, and it says nothing about the latter.
        run(*self.outside("sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=1024 49999"))
        run(*self.outside("nft", "add table inet siege; add chain inet siege out { type filter hook "
                                 "output priority 0; }; add rule inet siege out tcp sport >= 50000 drop"))
        self.config = os.path.join(self.folder.name, "far.toml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f'[eal]\nhugepages = "off"\n[[device]]\nname = "rnic0"\n'
                       f'port = "net_af_packet0,iface={self.far}"\n'
                       f'address = "{self.address}/{self.prefix}"\n{self.gateway}')

    def add_addresses(self):
        for address in (self.client, self.origins["other"]):
            run("ip", "-n", self.near, "address", "add", f"{address}/{self.prefix}", "dev", self.near)
        run("ip", "-n", self.near, "route", "add", "local", self.origins["own"], "dev", "lo")

    def __exit__(self, *_):
        for name in (self.near, self.far):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        self.folder.cleanup()

    def server(self, binary, *arguments):
        return Server(["ip", "netns", "exec", self.far, binary, "server", "--config", self.config,
                       "--port", str(self.port), *arguments])

    def outside(self, *command):
        return ["ip", "netns", "exec", self.near, *command]

    def flood(self, form):
        """A command that sends frames of strangers who have no TCP."""
        told = json.loads(output("ip", "-n", self.far, "-json", "link", "show", self.far))
        return self.outside(sys.executable, os.path.join(HERE, "flood.py"), self.near,
                            told[0]["address"], self.address, str(self.port), "--origin",
                            self.origins[form])


class OnAfPacket6(OnAfPacket):
    name = "af_packet over IPv6"
    address = "fd00:9::2"
    client = "fd00:9::1"
    prefix = 64
    gateway = f'gateway6 = "{client}"\n'
    origins = {"other": "fd00:99::/64", "own": "fd01::/32", "client": "fd00:9::/64"}

    def add_addresses(self):
        """Who is asked for on the link has to be there: the system answers for no route."""
        neighbours = ipaddress.ip_network(self.origins["client"])
        batch = os.path.join(self.folder.name, "addresses")
        with open(batch, "w", encoding="utf-8") as file:
            for address in [self.client, *(strangers.address_in(neighbours, number)
                                           for number in range(strangers.HOSTS_OF_A_64))]:
                file.write(f"address add {address}/64 dev {self.near} nodad\n")
        run("ip", "-n", self.near, "-6", "-batch", batch)
        for form in ("other", "own"):
            run("ip", "-n", self.near, "-6", "route", "add", "local", self.origins[form], "dev", "lo")
        run(*self.outside("sysctl", "-q", "-w", "net.ipv6.ip_nonlocal_bind=1"))


PLACES = {("socket", 4): OnSockets, ("socket", 6): OnSockets6, ("af_packet", 4): OnAfPacket,
          ("af_packet", 6): OnAfPacket6}
