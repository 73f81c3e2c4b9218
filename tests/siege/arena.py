"""Where a siege takes place: a server of ours, and where its clients and the strangers come from.

OnSockets     the server stands on sockets of the system: loopback
OnAfPacket    the server has a stack of its own on a packet socket: two namespaces, a veth between
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

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
        return Server([*mode, *arguments])

    def outside(self, *command):
        """A command where the client and the strangers are."""
        return list(command)


class OnAfPacket:
    name = "af_packet"
    address = "10.9.0.2"
    client = "10.9.0.1"
    # The system answers for all of 10.9.128.0/17 without having one of them configured.
    origins = {"other": "10.9.127.1", "own": "10.9.128.0/17", "client": client}

    def __init__(self, port):
        self.port = port
        self.near, self.far = NAME + "n", NAME + "f"
        self.folder = self.config = None

    def __enter__(self):
        if os.geteuid() != 0:
            raise Unavailable("only root can make network namespaces")
        if shutil.which("ip") is None:
            raise Unavailable("no ip command to make network namespaces with")
        if shutil.which("ethtool") is None:
            raise Unavailable("no ethtool to switch offloads off with")
        if shutil.which("nft") is None:
            raise Unavailable("no nft to keep the system's TCP out of it with")
        self.folder = tempfile.TemporaryDirectory(prefix="rnic-siege-")
        for name in (self.near, self.far):
            if subprocess.run(["ip", "netns", "add", name], capture_output=True,
                              check=False).returncode:
                self.__exit__()
                raise Unavailable("this machine allows no network namespaces")
        try:
            self.join()
        except RuntimeError:
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
        run("ip", "-n", self.near, "address", "add", self.client + "/16", "dev", self.near)
        run("ip", "-n", self.near, "address", "add", self.origins["other"] + "/16", "dev", self.near)
        run("ip", "-n", self.near, "route", "add", "local", self.origins["own"], "dev", "lo")
        # The system's ports and those of flood.py do not meet, and it says nothing about the latter.
        run(*self.outside("sysctl", "-q", "-w", "net.ipv4.ip_local_port_range=1024 49999"))
        run(*self.outside("nft", "add table ip siege; add chain ip siege out { type filter hook output "
                                 "priority 0; }; add rule ip siege out tcp sport >= 50000 drop"))
        self.config = os.path.join(self.folder.name, "far.toml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f'[eal]\nhugepages = "off"\n[[device]]\nname = "rnic0"\n'
                       f'port = "net_af_packet0,iface={self.far}"\naddress = "{self.address}/16"\n')

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
