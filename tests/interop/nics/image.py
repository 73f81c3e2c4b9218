"""The image of a guest whose NICs belong to vfio-pci: Debian's kernel as it is, and an initramfs with modules.

Programs and libraries are the host's, which the guest mounts read-only (9p): what runs there is the build
under test. Kept in the user's cache by the kernel's version and the hash of this recipe.
"""

import glob
import lzma
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "siw"))
sys.dont_write_bytecode = True
from guest_kernel import (Kernel, KernelBuild, Unavailable, cache, content, digest, find,  # noqa: E402
                          run)

COMMANDS = ("qemu-system-x86_64", "busybox", "cpio", "modprobe", "depmod", "dpkg", "apt-get")
MODULES = ("vfio_iommu_type1", "vfio_pci", "virtio_pci", "9p", "9pnet_virtio", "crc32c_intel")


class PlainKernel(Kernel):
    """Debian's, of which no source is needed."""

    def packages(self):
        return [f"linux-image-{self.abi}"]


class Image(KernelBuild):
    """What QEMU boots: `vmlinux` and `initramfs`, in a folder of the cache."""

    def __init__(self, kernel):
        self.kernel = kernel
        self.init = os.path.join(HERE, "init.sh")
        recipe = digest(content(os.path.abspath(__file__)), content(self.init))
        self.cache = os.path.join(os.path.dirname(cache()), "nics")
        self.folder = os.path.join(self.cache, f"{kernel.version}-{recipe}")
        self.vmlinux = os.path.join(self.folder, "vmlinux")
        self.initramfs = os.path.join(self.folder, "initramfs")

    def ensure(self):
        if os.path.exists(self.folder):
            return
        os.makedirs(self.cache, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.cache) as work:
            self.download(work)
            tree, done = os.path.join(work, "tree"), os.path.join(work, "done")
            root = os.path.join(work, "root")
            run("dpkg", "-x", glob.glob(work + "/*.deb")[0], tree)
            self.collect(tree, root)
            self.fill(root)
            os.mkdir(done)
            packed = content(os.path.join(tree, "boot", f"vmlinuz-{self.kernel.abi}"))
            with open(os.path.join(done, "vmlinux"), "wb") as file:
                file.write(self.uncompressed(packed))
            run("sh", "-c", f"cd {root} && find . | cpio -o -H newc --quiet >{done}/initramfs")
            shutil.rmtree(self.folder, ignore_errors=True)
            os.rename(done, self.folder)

    @staticmethod
    def uncompressed(vmlinuz):
        """It starts about 5 s earlier under emulation."""
        at = vmlinuz.find(b"\xfd7zXZ\x00")
        if at < 0:
            raise RuntimeError("vmlinuz holds no xz payload")
        return lzma.LZMADecompressor().decompress(vmlinuz[at:])

    def collect(self, tree, done):
        """The modules, and all that they need, to where the guest looks for them."""
        modules = os.path.join(tree, "lib", "modules", self.kernel.abi)
        run(find("depmod"), "-b", tree, self.kernel.abi)
        target = os.path.join(done, "lib", "modules", self.kernel.abi)
        for name in MODULES:
            shown = run(find("modprobe"), "-n", "-D", "-d", tree, "-S", self.kernel.abi, name)
            for line in shown.splitlines():
                if line.startswith("insmod"):
                    path = line.split()[1]
                    place = os.path.join(target, os.path.relpath(path, modules))
                    os.makedirs(os.path.dirname(place), exist_ok=True)
                    shutil.copy(path, place)
        for path in glob.glob(os.path.join(modules, "modules.[ob]*")):
            shutil.copy(path, target)
        run(find("depmod"), "-b", done, self.kernel.abi)

    def fill(self, root):
        os.makedirs(os.path.join(root, "bin"))
        shutil.copy(find("busybox"), os.path.join(root, "bin/busybox"))
        shutil.copy(self.init, os.path.join(root, "init"))
        os.chmod(os.path.join(root, "init"), 0o755)


def build():
    missing = [name for name in COMMANDS if not find(name)]
    if missing:
        raise Unavailable("not installed: " + " ".join(missing))
    kernel = PlainKernel()
    if not kernel.version:
        raise Unavailable("Debian's kernel cannot be found: apt-get update")
    image = Image(kernel)
    image.ensure()
    os.utime(image.folder)
    for path in glob.glob(image.cache + "/*"):  # what nobody has used for a month
        if time.time() - os.stat(path).st_mtime > 30 * 86400:
            shutil.rmtree(path)
    return image
