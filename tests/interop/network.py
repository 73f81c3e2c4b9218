"""Network namespaces for the tests against the Linux kernel's TCP.

    ours ---- kernel                      Network()
    ours ---- near == far ---- kernel     Network(routed=True): two routers, a link between them

The kernel's end has addresses, ours has none: there the stack of the process under test lives, on a
packet socket. Offloads are off everywhere, because veth hands packet sockets what a NIC would
still have to cut and sum.
"""

import contextlib
import ctypes
import os
import re
import shutil
import signal
import subprocess
import sys

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
PREFIX = f"rnic{os.getpid()}"
OURS4, KERNEL4 = "10.77.0.1", "10.77.0.2"
OURS6, KERNEL6 = "fd77::1", "fd77::2"
# Routed: one subnet at each end, the routers' addresses end in 254 or fe.
FAR_KERNEL4, FAR_KERNEL6 = "10.77.2.2", "fd77:0:0:2::2"
GATEWAY4, GATEWAY6 = "10.77.0.254", "fd77::fe"


class Unavailable(Exception):
    """This machine cannot do it; the text says why, as tests/allowed-skips.txt has it."""


def check_machine():
    if os.geteuid() != 0:
        raise Unavailable("only root can make network namespaces")
    if shutil.which("ip") is None:
        raise Unavailable("no ip command to make network namespaces with")
    if shutil.which("ethtool") is None:
        raise Unavailable("no ethtool to switch offloads off with")


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


@contextlib.contextmanager
def inside(namespace):
    """Sockets that this thread opens in the block belong to the namespace."""
    def enter(path):
        with open(path, "rb") as file:
            if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
    back = os.open(f"/proc/self/task/{ctypes.CDLL(None).gettid()}/ns/net", os.O_RDONLY)
    enter(f"/var/run/netns/{namespace}")
    try:
        yield
    finally:
        LIBC.setns(back, CLONE_NEWNET)
        os.close(back)


def end_cleanly_when_terminated():
    """A time limit ends the program by SIGTERM: the namespaces go as after an error."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


class Network:
    """The namespaces, until the block ends."""

    def __init__(self, mtu=1500, routed=False, middle_mtu=1500):
        self.mtu = mtu
        self.routed = routed
        self.middle_mtu = middle_mtu
        self.ours = PREFIX + "o"
        self.kernel = PREFIX + "k"
        self.near = PREFIX + "n"
        self.far = PREFIX + "f"
        self.interface = "ours0"
        self.kernel4 = FAR_KERNEL4 if routed else KERNEL4
        self.kernel6 = FAR_KERNEL6 if routed else KERNEL6

    def namespaces(self):
        return [self.ours, self.kernel] + ([self.near, self.far] if self.routed else [])

    def __enter__(self):
        try:
            for name in self.namespaces():
                try:
                    run("ip", "netns", "add", name)
                except RuntimeError as error:
                    raise Unavailable("this machine allows no network namespaces") from error
            self.sysctl(self.ours, "net.ipv6.conf.default.disable_ipv6", 1)
            self.sysctl(self.kernel, "net.ipv6.conf.default.accept_dad", 0)
            if self.routed:
                self.make_routed()
            else:
                self.cable(self.ours, "ours0", self.kernel, "kernel0", self.mtu)
                self.address(self.kernel, "kernel0", KERNEL4, KERNEL6)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.namespaces():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def make_routed(self):
        for name in (self.near, self.far):
            self.sysctl(name, "net.ipv4.ip_forward", 1)
            self.sysctl(name, "net.ipv6.conf.default.accept_dad", 0)
            self.sysctl(name, "net.ipv6.conf.all.forwarding", 1)
            # A test makes more errors in a second than the routers' limits let out.
            self.sysctl(name, "net.ipv4.icmp_ratelimit", 0)
            self.sysctl(name, "net.ipv6.icmp.ratelimit", 0)
        self.cable(self.ours, "ours0", self.near, "near0", self.mtu)
        self.cable(self.near, "middle0", self.far, "middle1", self.middle_mtu)
        self.cable(self.far, "far0", self.kernel, "kernel0", self.mtu)
        self.address(self.near, "near0", GATEWAY4, GATEWAY6)
        self.address(self.near, "middle0", "10.77.1.1", "fd77:0:0:1::1")
        self.address(self.far, "middle1", "10.77.1.2", "fd77:0:0:1::2")
        self.address(self.far, "far0", "10.77.2.254", "fd77:0:0:2::fe")
        self.address(self.kernel, "kernel0", FAR_KERNEL4, FAR_KERNEL6)
        self.route(self.near, "10.77.1.2", "fd77:0:0:1::2")
        self.route(self.far, "10.77.1.1", "fd77:0:0:1::1")
        self.route(self.kernel, "10.77.2.254", "fd77:0:0:2::fe")

    def cable(self, one, one_name, other, other_name, mtu):
        run("ip", "link", "add", one_name, "netns", one, "type", "veth",
            "peer", "name", other_name, "netns", other)
        for namespace, name in ((one, one_name), (other, other_name)):
            run("ip", "-n", namespace, "link", "set", name, "mtu", str(mtu), "up")
            run("ip", "netns", "exec", namespace, "ethtool", "-K", name, "tx", "off", "rx", "off",
                "tso", "off", "gso", "off", "gro", "off")

    def address(self, namespace, interface, four, six):
        run("ip", "-n", namespace, "addr", "add", four + "/24", "dev", interface)
        # Below 1280 octets there is no IPv6.
        if self.mtu >= 1280:
            run("ip", "-n", namespace, "addr", "add", six + "/64", "dev", interface, "nodad")

    @staticmethod
    def route(namespace, four, six):
        run("ip", "-n", namespace, "route", "add", "default", "via", four)
        run("ip", "-n", namespace, "-6", "route", "add", "default", "via", six)

    @staticmethod
    def sysctl(namespace, key, value):
        run("ip", "netns", "exec", namespace, "sysctl", "-qw", f"{key}={value}")

    def kernel_sysctl(self, key, value):
        self.sysctl(self.kernel, key, value)

    def set_middle_mtu(self, mtu):
        run("ip", "-n", self.near, "link", "set", "middle0", "mtu", str(mtu))
        run("ip", "-n", self.far, "link", "set", "middle1", "mtu", str(mtu))

    def filter(self, namespace, *rules, hook="forward"):
        """nft rules at a hook of a namespace: `icmp type destination-unreachable drop`."""
        text = f"add table inet rnic\nadd chain inet rnic {hook} " \
               f"{{ type filter hook {hook} priority 0; }}\n"
        text += "".join(f"add rule inet rnic {hook} {rule}\n" for rule in rules)
        done = subprocess.run(["ip", "netns", "exec", namespace, "nft", "-f", "-"], input=text,
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError("nft: " + done.stderr)

    def kernel_counter(self, name):
        """Of the kernel's end: "TcpExtTCPSackRecovery", "TcpInCsumErrors"."""
        shown = run("ip", "netns", "exec", self.kernel, "cat", "/proc/net/snmp",
                    "/proc/net/netstat").splitlines()
        for names, values in zip(shown[::2], shown[1::2]):
            prefix = names.split(":")[0]
            for key, value in zip(names.split()[1:], values.split()[1:]):
                if prefix + key == name:
                    return int(value)
        raise KeyError(name)

    def stopped(self):
        """Nothing of these namespaces is left."""
        return not any(re.search(rf"^{PREFIX}", line)
                       for line in run("ip", "netns", "list").splitlines())
