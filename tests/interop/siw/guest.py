"""A guest with Linux siw, and the network namespace in which it meets programs of this machine.

    guest eth0 (10.77.0.2) ---- tap == bridge br0 (10.77.0.1) == veth ---- peer0

A program on br0's address speaks through the system's TCP; softrnic's own stack has a packet socket on
peer0 and the address 10.77.0.9. All links carry up to 9000 octets, offloads are off everywhere.

The namespace has no name: it ends with the processes in it, and they end with the process that
started them, however that ends. Several networks exist side by side.
"""

import base64
import contextlib
import ctypes
import mmap
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from guest_kernel import Unavailable, run

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
GUEST, HOST, OURS = "10.77.0.2", "10.77.0.1", "10.77.0.9"
INTERFACE = "peer0"
LARGEST_MTU = 9000
OFFLOADS = ",".join(f"{name}=off" for name in (
    "csum", "guest_csum", "gso", "guest_tso4", "guest_tso6", "guest_ufo", "guest_ecn", "host_tso4",
    "host_tso6", "host_ufo", "host_ecn"))
BOOT_PATIENCE = 300  # emulated, on a busy machine; some 6 s of a processor
MEMORY_MB = 1280  # 32 queue pairs with 16 MB each, and the system


class GuestHangs(Exception):
    """The guest does not answer any more: a process of it waits in the kernel for ever."""


def check_machine():
    if os.geteuid() != 0:
        raise Unavailable("only root can make network namespaces")
    if not os.path.exists("/dev/net/tun"):
        raise Unavailable("no /dev/net/tun to connect a guest with")
    if shutil.which("ip") is None:
        raise Unavailable("no ip command to make network namespaces with")
    if shutil.which("ethtool") is None:
        raise Unavailable("no ethtool to switch offloads off with")


def dies_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def enter_network():
    """Moves this process, and what it starts from now on, into a new namespace with the bridge."""
    check_machine()
    if LIBC.unshare(CLONE_NEWNET) != 0:
        raise Unavailable("this machine allows no network namespaces")
    with contextlib.suppress(OSError), open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w",
                                            encoding="utf-8") as file:
        file.write("1")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "br0", "type", "bridge", "stp_state", "0", "forward_delay", "0",
        "mcast_snooping", "0")
    run("ip", "link", "add", INTERFACE, "type", "veth", "peer", "name", "port0")
    for name in (INTERFACE, "port0"):
        run("ethtool", "-K", name, "tx", "off", "rx", "off", "tso", "off", "gso", "off", "gro", "off")
        run("ip", "link", "set", name, "mtu", str(LARGEST_MTU), "up")
    run("ip", "link", "set", "port0", "master", "br0")
    run("ip", "link", "set", "br0", "mtu", str(LARGEST_MTU), "up")
    run("ip", "addr", "add", HOST + "/24", "dev", "br0")


def accelerator():
    """KVM only where the processor has it: a software KVM hangs before the guest's first line."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        real = re.search(r"\b(vmx|svm)\b", file.read())
    return "kvm" if real and os.access("/dev/kvm", os.W_OK) else "tcg"


def tsc_khz():
    """Of this machine's time stamp counter, which a guest has, too, emulated or not."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(bytes.fromhex("0f31"  # rdtsc, its halves put together, ret
                                 "48c1e220" "4809d0" "c3"))
        place = ctypes.c_char.from_buffer(page)
        count = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(place))
        ticks, time_ns = count(), time.monotonic_ns()
        time.sleep(0.1)
        rate = (count() - ticks) * 10 ** 6 // (time.monotonic_ns() - time_ns)
        del place
        return rate


class Answer:
    def __init__(self, status, text):
        self.status = status
        self.text = text


class Console:
    """Commands for a guest through its virtio-serial port; see guest_init.sh."""

    def __init__(self, path):
        self.path = path
        self.number = int(time.time() * 1000) % 10 ** 9
        self.socket = None
        self.buffer = b""

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def connect(self, end):
        while self.socket is None:
            try:
                self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.socket.connect(self.path)
            except OSError as error:
                self.close()
                if time.monotonic() > end:
                    raise GuestHangs("nobody opens the guest's console") from error
                time.sleep(0.05)

    def line(self, end):
        while b"\n" not in self.buffer:
            self.socket.settimeout(max(0.01, end - time.monotonic()))
            try:
                got = self.socket.recv(65536)
            except TimeoutError as error:
                raise GuestHangs("the guest does not answer") from error
            except OSError as error:
                raise GuestHangs("the guest has ended") from error
            if not got:
                raise GuestHangs("the guest has ended")
            self.buffer += got
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line

    def execute(self, command, seconds):
        """Runs `command` in the guest's shell; after `seconds` it is ended there (status 143)."""
        end = time.monotonic() + seconds + 30
        self.connect(end)
        self.number += 1
        text = base64.b64encode(command.encode()).decode()
        try:
            self.socket.sendall(f"{self.number} {seconds} {text}\n".encode())
        except OSError as error:
            raise GuestHangs("the guest has ended") from error
        while True:  # the answer to a command that somebody gave up may come first
            head = self.line(end).split()
            if len(head) == 3 and head[0] == str(self.number).encode():
                break
        lines = [self.line(end) for _ in range(int(head[2]))]
        return Answer(int(head[1]), base64.b64decode(b"".join(lines)).decode(errors="replace"))


class Guest:
    """A running guest; in the namespace that this process is in."""

    def __init__(self, image, folder, mtu=1500):
        self.set_up(folder)
        self.log_path = os.path.join(folder, "qemu")
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.child = subprocess.Popen(self.command(image, mtu), stdin=subprocess.DEVNULL,
                                          stdout=log, stderr=log, preexec_fn=dies_with_parent)
        self.console = Console(self.socket_path)
        self.serves = False  # guest_peer

    def set_up(self, folder):
        """The guest's files and its end of the bridge."""
        self.tap = "tap0"
        self.console_log = os.path.join(folder, "console")
        self.socket_path = os.path.join(folder, "commands")
        for path in (self.console_log, self.socket_path):
            if os.path.exists(path):
                os.remove(path)
        run("ip", "tuntap", "add", self.tap, "mode", "tap")
        run("ip", "link", "set", self.tap, "mtu", str(LARGEST_MTU), "master", "br0", "up")

    @classmethod
    def on_terminal(cls, image, folder, mtu):
        """A guest whose shell is on this terminal, until it ends; its exit status."""
        guest = cls.__new__(cls)
        guest.set_up(folder)
        return subprocess.run(guest.command(image, mtu, shell=True), check=False,
                              preexec_fn=dies_with_parent).returncode

    def command(self, image, mtu, shell=False):
        accel = accelerator()
        # On a busy machine the kernel misses the ticks that it looks for, and panics; and it measures a
        # TSC of a tenth of its frequency, so that a second of the guest lasts 100 ms. (The HPET is
        # right, but each look at it waits for QEMU's lock.)
        append = ("console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on "
                  f"no_timer_check tsc=reliable tsc_early_khz={tsc_khz()} "
                  "cryptomgr.notests lsm=capability "
                  f"siw.address={GUEST}/24 siw.mtu={mtu}" + (" siw.shell=1" if shell else ""))
        return ["qemu-system-x86_64", "-machine", "q35", "-accel", accel,
                "-cpu", "host" if accel == "kvm" else "max", "-smp", "1", "-m", str(MEMORY_MB),
                "-display", "none", "-no-reboot", "-nodefaults",
                "-netdev", f"tap,id=net,ifname={self.tap},script=no,downscript=no",
                "-device", f"virtio-net-pci,netdev=net,mac=52:54:00:77:00:02,romfile=,{OFFLOADS},"
                           f"host_mtu={LARGEST_MTU}",
                "-device", "virtio-serial-pci",
                "-chardev", f"socket,id=commands,path={self.socket_path},server=on,wait=off",
                "-device", "virtserialport,chardev=commands,name=siw",
                "-serial", "mon:stdio" if shell else f"file:{self.console_log}",
                "-kernel", image.vmlinux, "-initrd", image.initramfs, "-append", append]

    def await_boot(self):
        """Returns when siw is there; nothing else makes it a guest."""
        end = time.monotonic() + BOOT_PATIENCE
        while not os.path.exists(self.socket_path):
            if self.child.poll() is not None or time.monotonic() > end:
                raise RuntimeError("QEMU does not start: " + self.said())
            time.sleep(0.05)
        try:
            answer = self.console.execute("ibv_devices", BOOT_PATIENCE)
        except GuestHangs as error:
            raise RuntimeError(f"the guest does not boot: {error}\n{self.said()}") from error
        if "siw0" not in answer.text:
            raise RuntimeError(f"the guest has no siw: {answer.text}\n{self.said()}")

    def said(self):
        """The ends of what QEMU and the guest's kernel wrote."""
        text = ""
        for path in (self.log_path, self.console_log):
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    text += "".join(file.readlines()[-15:])
        return text

    def execute(self, command, seconds=60):
        return self.console.execute(command, seconds)

    def start(self, name, command):
        """In the background; collect() or kill() end it."""
        answer = self.execute(f"rm -f /tmp/{name}.*; ( {command} >/tmp/{name}.out 2>&1 & "
                              f"echo $! >/tmp/{name}.pid; wait $!; echo $? >/tmp/{name}.status; "
                              ") </dev/null >/dev/null 2>&1 &")
        if answer.status != 0:
            raise RuntimeError(f"{command}: {answer.text}")

    def collect(self, name, seconds):
        """Awaits the end of a background command. A process that cannot even be killed hangs siw."""
        answer = self.execute(
            f"turns={10 * seconds}; while [ ! -s /tmp/{name}.status ] && [ $turns -gt 0 ]; do "
            "sleep 0.1; turns=$((turns - 1)); done; "
            f"[ -s /tmp/{name}.status ] || {{ echo '[still running]'; kill -9 $(cat /tmp/{name}.pid); "
            f"sleep 1; }}; cat /tmp/{name}.out; exit $(cat /tmp/{name}.status || echo 99)",
            seconds + 30)
        if answer.status == 99:
            raise GuestHangs(f"{name} cannot be ended: {answer.text}")
        return answer

    def kill(self, name):
        self.execute(f"kill -9 $(cat /tmp/{name}.pid)")

    def stop(self):
        self.console.close()
        self.child.kill()
        self.child.wait()
        subprocess.run(["ip", "link", "del", self.tap], capture_output=True, check=False)


class Laboratory:
    """A folder and a guest that is started anew when it hangs; `restarts` tells what and why, each
    time."""

    def __init__(self, image):
        self.image = image
        self.folder = tempfile.mkdtemp(prefix="softrnic-siw-")
        self.guest = None
        self.restarts = []

    def __enter__(self):
        try:
            self.boot()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.guest:
            self.guest.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def boot(self):
        self.guest = Guest(self.image, self.folder)
        self.guest.await_boot()

    def tell_restart(self, what, why):
        self.restarts.append(f"{what}: {why}")
        print(f"siw: the {what} is started anew: {why}", file=sys.stderr, flush=True)

    def boot_again(self, why):
        self.tell_restart("guest", why)
        self.replace()

    def replace(self):
        self.guest.stop()
        self.boot()
