"""Runs a guest with NICs of QEMU's, all on one hub."""

import subprocess


class Nic:
    """One of the guest's: `model` as QEMU calls it, the n-th of all."""

    def __init__(self, number, model, options):
        self.name = f"{model.split('-')[0]}{number}"
        self.pci = f"0000:00:{0x10 + number:02x}.0"
        self.mac = f"52:54:00:4e:00:{number:02x}"
        self.arguments = ["-netdev", f"hubport,id=hub{number},hubid=0", "-device",
                          f"{model},netdev=hub{number},mac={self.mac},bus=pcie.0,"
                          f"addr=0x{0x10 + number:x},romfile={options}"]


def boot(image, folder, nics, capture, patience):
    """Runs the guest until /mnt/cells has ended; `folder` is its /mnt, `capture` gets all frames."""
    # 48 bits: an IOMMU of 39, QEMU's default, maps no address of a Linux process' heap. QEMU 7.2
    # has no timer with intremap=on under TCG. On a busy machine a timer comes too late for the
    # kernel's check of it, which panics.
    command = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "1536",
               "-machine", "q35,kernel-irqchip=split", "-nodefaults", "-display", "none", "-no-reboot",
               "-device", "intel-iommu,intremap=off,caching-mode=on,aw-bits=48",
               "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
               "-virtfs", f"local,path={folder},mount_tag=work,security_model=none",
               "-serial", f"file:{folder}/console", "-kernel", image.vmlinux, "-initrd", image.initramfs,
               "-append", "console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on "
                          "intel_iommu=on hugepages=320 no_timer_check"]
    for nic in nics:
        command += nic.arguments
    command += ["-object", f"filter-dump,id=dump,netdev=hub0,file={capture},maxlen=128"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=patience, check=False)
    except subprocess.TimeoutExpired:
        return f"the guest has not ended after {patience} s"
    return None if done.returncode == 0 else "QEMU: " + done.stderr.strip()[-500:]
