"""The guest's kernel: Debian's own, which leaves siw out, with siw built out of Debian's linux-source.

It is kept in the user's cache ($XDG_CACHE_HOME/softrnic/siw) by its version and the hash of this recipe.
"""

import glob
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile

MODULES = ("virtio_pci", "virtio_net", "virtio_console", "ib_uverbs", "rdma_ucm", "siw", "sch_netem",
           "sch_ingress", "act_mirred", "cls_matchall", "ifb", "crc32c_generic", "crc32c_intel")
# siw's constants that become module parameters of the same default; nothing else of it changes.
SWITCHES = ("zcopy_tx", "try_gso", "loopback_enabled", "mpa_crc_required", "mpa_crc_strict",
            "siw_tcp_nagle", "peer_to_peer")
OBJECTS = ("siw_cm", "siw_cq", "siw_main", "siw_mem", "siw_qp", "siw_qp_tx", "siw_qp_rx", "siw_verbs")


class Unavailable(Exception):
    """The guest cannot be built here; the text says why, as tests/allowed-skips.txt has it."""


def say(text):
    print("siw: " + text, file=sys.stderr, flush=True)


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "softrnic", "siw")


def run(*command, **keys):
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, **keys)
    if done.returncode != 0:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise RuntimeError(f"{' '.join(command)}: {said}")
    return done.stdout


def find(command):
    return shutil.which(command, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def digest(*parts):
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(part if isinstance(part, bytes) else str(part).encode())
        hashed.update(b"\0")
    return hashed.hexdigest()[:16]


def content(path):
    with open(path, "rb") as file:
        return file.read()


class Kernel:
    """Which kernel Debian has for this release: `abi` is 6.1.0-56-amd64, `version` 6.1.192-2."""

    def __init__(self):
        self.abi = os.environ.get("SIW_KERNEL") or self.newest()
        shown = run("apt-cache", "policy", f"linux-headers-{self.abi}") if self.abi else ""
        found = re.search(r"Candidate: (\d\S*)", shown)
        self.version = found.group(1) if found else None

    @staticmethod
    def newest():
        shown = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True,
                               text=True, check=False).stdout
        found = re.search(r"Depends: linux-image-(\d\S+)", shown)
        return found.group(1) if found else None

    def series(self):
        return ".".join(self.abi.split(".")[:2])

    def packages(self):
        flavourless = self.abi.rsplit("-", 1)[0]
        return [f"linux-image-{self.abi}", f"linux-headers-{self.abi}",
                f"linux-headers-{flavourless}-common", f"linux-kbuild-{self.series()}",
                f"linux-source-{self.series()}"]


class KernelBuild:
    """vmlinux, siw.ko and the modules that the guest loads, in a folder of the cache."""

    def __init__(self, kernel):
        self.kernel = kernel
        recipe = digest(content(os.path.abspath(__file__)))
        self.folder = os.path.join(cache(), f"kernel-{kernel.version}-{recipe}")

    def ensure(self):
        if os.path.exists(self.folder):
            return
        say(f"building siw for Linux {self.kernel.version} (225 MB to download)")
        packages = os.path.join(cache(), "packages-" + self.kernel.version)
        os.makedirs(packages, exist_ok=True)
        self.download(packages)
        with tempfile.TemporaryDirectory(prefix="build-", dir=cache()) as work:
            tree = self.unpack(packages, os.path.join(work, "tree"))
            self.compile(tree)
            done = os.path.join(work, "done")
            self.collect(tree, done)
            os.rename(done, self.folder)
        shutil.rmtree(packages)

    def download(self, folder):
        """What is there already stays. Package lists older than the mirror are updated once."""
        for attempt in (1, 2):
            named = [f"{name}={self.kernel.version}" for name in self.kernel.packages()]
            try:
                run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *named,
                    cwd=folder)
                return
            except RuntimeError as error:
                say(str(error).splitlines()[-1])
                if attempt == 2 or os.geteuid() != 0:
                    raise Unavailable("the packages of the Linux siw guest cannot be downloaded") \
                        from error
                subprocess.run(["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", "update"],
                               capture_output=True, check=False, stdin=subprocess.DEVNULL)

    def unpack(self, packages, tree):
        os.mkdir(tree)
        source = None
        for package in glob.glob(os.path.join(packages, "*.deb")):
            if os.path.basename(package).startswith("linux-source-"):
                source = package
            else:
                run("dpkg", "-x", package, tree)
        archive = f"./usr/src/linux-source-{self.kernel.series()}.tar.xz"
        siw = "*/drivers/infiniband/sw/siw/*"
        run("sh", "-c", f"dpkg --fsys-tarfile {source} | tar -xO {archive} | xz -dcT0 | "
                        f"tar -x -C {tree} --strip-components=4 --wildcards '{siw}'")
        headers = f"{tree}/usr/src/linux-headers-{self.kernel.abi}/Makefile"
        run("sed", "-i", f"s#/usr/src/#{tree}/usr/src/#", headers)
        return tree

    def compile(self, tree):
        source = os.path.join(tree, "siw")
        main = os.path.join(source, "siw_main.c")
        self.substitute(os.path.join(source, "siw.h"), r"(?m)^extern const bool", "extern bool")
        for name in SWITCHES:
            self.substitute(main, rf"(?m)^const bool ({name}( = true)?;)",
                            rf"bool \1\nmodule_param({name}, bool, 0644);")
        self.substitute(main, r"(?m)^(u_char mpa_version = .*;)",
                        r"\1\nmodule_param(mpa_version, byte, 0644);")
        # In network order: 128 is a Write, 64 a Read, 192 either.
        self.substitute(os.path.join(source, "siw_cm.c"), r"(?m)^(static )__be16 (rtr_type = .*;)",
                        r"\1u16 \2\nmodule_param(rtr_type, ushort, 0644);")
        with open(os.path.join(source, "Makefile"), "w", encoding="utf-8") as file:
            objects = " ".join(name + ".o" for name in OBJECTS)
            file.write(f"obj-m := siw.o\nsiw-y := {objects}\n")
        run("nice", "make", "-s", f"-j{os.cpu_count() or 1}", "-C",
            f"{tree}/usr/src/linux-headers-{self.kernel.abi}", f"M={source}", "modules")

    @staticmethod
    def substitute(path, pattern, replacement):
        text = content(path).decode()
        text, count = re.subn(pattern, replacement, text)
        if count == 0:
            raise RuntimeError(f"{os.path.basename(path)} of this kernel has no {pattern}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def collect(self, tree, done):
        modules = os.path.join(tree, "lib", "modules", self.kernel.abi)
        os.makedirs(os.path.join(modules, "extra"))
        shutil.copy(os.path.join(tree, "siw", "siw.ko"), os.path.join(modules, "extra"))
        run("strip", "-g", os.path.join(modules, "extra", "siw.ko"))
        run(find("depmod"), "-b", tree, self.kernel.abi)
        wanted = set()
        for name in MODULES:
            shown = subprocess.run([find("modprobe"), "-n", "-D", "-d", tree, "-S", self.kernel.abi,
                                    name], capture_output=True, text=True, check=False).stdout
            wanted.update(line.split()[1] for line in shown.splitlines()
                          if line.startswith("insmod"))
        target = os.path.join(done, "lib", "modules", self.kernel.abi)
        for path in sorted(wanted):
            place = os.path.join(target, os.path.relpath(path, modules))
            os.makedirs(os.path.dirname(place), exist_ok=True)
            shutil.copy(path, place)
        for path in glob.glob(os.path.join(modules, "modules.[ob]*")):
            shutil.copy(path, target)
        run(find("depmod"), "-b", done, self.kernel.abi)
        # Not compressed it starts about 5 s earlier under emulation.
        packed = content(os.path.join(tree, "boot", f"vmlinuz-{self.kernel.abi}"))
        at = packed.find(b"\xfd7zXZ\x00")
        if at < 0:
            raise RuntimeError("vmlinuz holds no xz payload")
        with open(os.path.join(done, "vmlinux"), "wb") as file:
            file.write(lzma.LZMADecompressor().decompress(packed[at:]))
        os.makedirs(os.path.join(done, "source"))
        for path in glob.glob(os.path.join(tree, "siw", "*.[ch]")):
            if not path.endswith(".mod.c"):
                shutil.copy(path, os.path.join(done, "source"))
