#!/bin/busybox sh
# The guest's /init. From the kernel's command line: siw.address=A/24 siw.mtu=N siw.shell=1
/bin/busybox mkdir -p /proc /sys /dev /run /tmp /root
/bin/busybox --install -s /bin
export PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev 2>/dev/null
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
ulimit -l unlimited
argument() { sed -n "s/.*\\bsiw\\.$1=\\([^ ]*\\).*/\\1/p" /proc/cmdline; }

for module in virtio_pci virtio_console crc32c_generic crc32c_intel virtio_net; do
  modprobe "$module" 2>/dev/null
done
hostname siw
echo 1 >/proc/sys/kernel/print-fatal-signals
ip link set lo up
turns=0
while [ ! -e /sys/class/net/eth0 ] && [ "$turns" -lt 100 ]; do
  sleep 0.1
  turns=$((turns + 1))
done
echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
ip link set eth0 mtu "$(argument mtu)" up
ip addr add "$(argument address)" dev eth0
modprobe ib_uverbs
modprobe rdma_ucm
modprobe siw
rdma link add siw0 type siw netdev eth0

# Commands come through a virtio-serial port, one a line: NUMBER SECONDS BASE64. The answer is
# NUMBER STATUS LINES, then so many lines of base64. The port has one opener at a time.
serve() {
  for port in /sys/class/virtio-ports/*; do
    [ "$(cat "$port/name")" = siw ] && exec 3<>"/dev/${port##*/}"
  done
  while :; do
    read -r number seconds command <&3 || { sleep 0.05; continue; }  # nobody is connected
    [ -n "$command" ] || continue
    echo "$command" | base64 -d >/tmp/.command
    timeout "$seconds" sh /tmp/.command >/tmp/.said 2>&1 </dev/null 3>&-
    status=$?
    base64 /tmp/.said >/tmp/.answer
    { echo "$number $status $(wc -l </tmp/.answer)"; cat /tmp/.answer; } >&3
  done
}

if [ -n "$(argument shell)" ]; then
  setsid cttyhack sh
else
  serve
fi
poweroff -f
