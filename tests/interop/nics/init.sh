#!/bin/busybox sh
# The guest's /init: gives every NIC to vfio-pci, mounts the host's file system, read-only, and the folder
# of the run at its /mnt, and runs /mnt/cells in there.
/bin/busybox mkdir -p /proc /sys /dev /host
/bin/busybox --install -s /bin
export PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
ulimit -l unlimited

modprobe vfio_iommu_type1 allow_unsafe_interrupts=1
modprobe vfio-pci
# Before a driver of virtio's takes some of them.
for device in /sys/bus/pci/devices/*; do
  [ "$(cat "$device/class")" = 0x020000 ] || continue
  echo vfio-pci >"$device/driver_override"
  echo "${device##*/}" >/sys/bus/pci/drivers_probe
done
for module in virtio_pci 9pnet_virtio 9p crc32c_intel; do modprobe "$module"; done

mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=262144 host /host
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 work /host/mnt
mount -t proc proc /host/proc
mount -t sysfs sys /host/sys
mount -t devtmpfs dev /host/dev
mkdir -p /host/dev/shm /host/dev/hugepages
mount -t hugetlbfs huge /host/dev/hugepages
for place in tmp run dev/shm; do mount -t tmpfs tmpfs "/host/$place"; done
echo "nics: $(uname -r), $(grep HugePages_Free /proc/meminfo)" >/host/mnt/booted
chroot /host /bin/sh /mnt/cells
poweroff -f
