"""Builds the guest in which Linux siw runs: the kernel of guest_kernel.py and an initramfs with the RDMA
tools and guest_peer.c. Everything comes from Debian packages.

The initramfs is kept beside the kernel, by the hash of all that goes into it. As a program: builds
what is missing and prints where it is.
"""

import contextlib
import fcntl
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from guest_kernel import (Kernel, KernelBuild, Unavailable, cache, content, digest, find, run, say)

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
# On the host, to build and run the guest. scripts/setup installs them (rnic_siw_packages).
COMMANDS = ("qemu-system-x86_64", "busybox", "cpio", "modprobe", "depmod", "make", "gcc", "strip",
            "rping", "ibv_devices", "dpkg", "apt-get", "ip", "ethtool")
TOOLS = ("rping", "ucmatose", "ibv_devices", "ibv_devinfo", "ib_write_bw", "ib_read_bw", "ib_send_bw",
         "ib_write_lat", "ib_read_lat", "ib_send_lat", "tcpdump", "rdma", "ip", "tc", "ss", "ethtool")


class Image:
    """What QEMU boots: `vmlinux` and `initramfs`."""

    def __init__(self, kernel_build):
        self.kernel_build = kernel_build
        self.vmlinux = os.path.join(kernel_build.folder, "vmlinux")
        self.version = kernel_build.kernel.version
        self.init = os.path.join(HERE, "guest_init.sh")
        self.peer = os.path.join(HERE, "guest_peer.c")
        stamps = [f"{path} {os.stat(path).st_size} {os.stat(path).st_mtime_ns}"
                  for path in self.tools() + self.providers()]
        key = digest(kernel_build.folder, content(self.init), content(self.peer), *stamps)
        self.initramfs = os.path.join(cache(), f"initramfs-{key}.cpio")

    @staticmethod
    def tools():
        return [path for path in map(find, TOOLS) if path]

    @staticmethod
    def providers():
        found = glob.glob(f"{LIBRARIES}/libibverbs/libsiw-rdmav*.so")
        if not found:
            raise Unavailable("the packages of the Linux siw guest are not installed")
        return found

    def ensure(self):
        if os.path.exists(self.initramfs):
            return
        say("building the initramfs")
        with tempfile.TemporaryDirectory(prefix="build-", dir=cache()) as work:
            root = os.path.join(work, "root")
            self.fill(root)
            packed = os.path.join(work, "initramfs.cpio")
            run("sh", "-c", f"cd {root} && find . | cpio -o -H newc --quiet >{packed}")
            os.rename(packed, self.initramfs)

    def fill(self, root):
        for name in ("bin", "sbin", "usr/bin", "usr/sbin", "lib64", "proc", "sys", "dev", "run", "tmp",
                     "etc/libibverbs.d", LIBRARIES[1:] + "/libibverbs"):
            os.makedirs(os.path.join(root, name))
        shutil.copytree(os.path.join(self.kernel_build.folder, "lib"), os.path.join(root, "lib"))
        shutil.copy(find("busybox"), os.path.join(root, "bin/busybox"))
        run("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o",
            os.path.join(root, "usr/bin/guest_peer"), self.peer, "-lrdmacm", "-libverbs")
        for path in self.tools():
            shutil.copy(path, os.path.join(root, "usr/bin"))
        for path in self.providers():
            shutil.copy(path, root + LIBRARIES + "/libibverbs")
        shutil.copy("/etc/libibverbs.d/siw.driver", os.path.join(root, "etc/libibverbs.d"))
        self.copy_libraries(root)
        for name, text in (("passwd", "root:x:0:0:root:/root:/bin/sh\n"), ("group", "root:x:0:\n"),
                           ("hosts", "127.0.0.1 localhost\n"), ("kernel", self.version + "\n")):
            with open(os.path.join(root, "etc", name), "w", encoding="utf-8") as file:
                file.write(text)
        shutil.copy(self.init, os.path.join(root, "init"))
        os.chmod(os.path.join(root, "init"), 0o755)

    @staticmethod
    def copy_libraries(root):
        programs = glob.glob(root + "/usr/bin/*") + glob.glob(root + LIBRARIES + "/libibverbs/*.so")
        shown = subprocess.run(["ldd", *programs], capture_output=True, text=True,
                               check=False).stdout
        wanted = set(re.findall(r"(?:=> |^\t)(/\S+) \(0x", shown, re.MULTILINE))
        wanted.add("/lib/x86_64-linux-gnu/libgcc_s.so.1")  # which pthread_exit() opens
        for path in wanted:
            place = root + path
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copy(path, place)


@contextlib.contextmanager
def alone():
    """One builder at a time; whoever comes second finds everything made."""
    os.makedirs(cache(), exist_ok=True)
    with open(os.path.join(cache(), "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def prune(keep):
    """Removes what a killed build left, and images that nobody has used for a month."""
    for path in glob.glob(cache() + "/build-*"):
        shutil.rmtree(path)
    for path in glob.glob(cache() + "/kernel-*") + glob.glob(cache() + "/initramfs-*"):
        if path not in keep and time.time() - os.stat(path).st_mtime > 30 * 86400:
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def build():
    """The image, made if it is not there."""
    missing = [name for name in COMMANDS if not find(name)]
    if missing:
        say("not installed: " + " ".join(missing))
        raise Unavailable("the packages of the Linux siw guest are not installed")
    with alone():
        kernel = Kernel()
        if not kernel.version and os.geteuid() == 0:
            run("apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", "update")
            kernel = Kernel()
        if not kernel.version:
            raise Unavailable("the packages of the Linux siw guest cannot be downloaded")
        kernel_build = KernelBuild(kernel)
        kernel_build.ensure()
        image = Image(kernel_build)
        image.ensure()
        for path in (kernel_build.folder, image.initramfs):
            os.utime(path)
        prune((kernel_build.folder, image.initramfs))
        return image


if __name__ == "__main__":
    try:
        made = build()
    except (Unavailable, RuntimeError) as problem:
        say(str(problem))
        sys.exit(2)
    print(f"Linux {made.version}\n{made.vmlinux}\n{made.initramfs}")
