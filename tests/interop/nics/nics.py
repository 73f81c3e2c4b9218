#!/usr/bin/env python3
"""rnic-ping over emulated NICs: a guest with vmxnet3, virtio-net and e1000e, two of each, on one hub.

usage: nics.py RNIC_PING [--keep FOLDER] [--patience SECONDS] [--only WORD]

A cell is a server on one NIC and a client on another one, at an MTU: ten exchanges of 64 octets, of 100,000
and two of 1 MB, each verified by rnic-ping at both ends. What went over the hub proves that segments
were as long as the MTU lets them be. A line for each cell; exit 1 when one failed, 77 when this machine
cannot do it.
"""

import argparse
import collections
import json
import os
import shutil
import struct
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import guest  # noqa: E402
import image  # noqa: E402

VIRTIO = ",disable-legacy=on,iommu_platform=on,host_mtu=9000"
MODELS = (("virtio-net-pci", VIRTIO), ("virtio-net-pci", VIRTIO), ("vmxnet3", ""), ("vmxnet3", ""),
          ("e1000e", ""), ("e1000e", ""))
PAIRS = ((0, 1), (2, 3), (4, 5), (0, 2), (3, 1))  # server, client
MTUS = (1500, 9000)
EXCHANGES = ((10, 64), (10, 100_000), (2, 1 << 20))
SERVER, CLIENT = "10.66.0.1", "10.66.0.2"

CONFIG = """[eal]
hugepages = "require"
memory_mb = 192
[[device]]
name = "{name}"
port = "{pci}"
address = "{address}/24"
mtu = {mtu}
"""

# $1 the cell, $2 its TCP port. Everything that is said goes to files of the cell.
CELL = """
cell() {
  "$ping" server --config "/mnt/$1.server.toml" --port "$2" >"/mnt/$1.server" 2>&1 &
  server=$!
  turns=0
  until grep -q 'listening on' "/mnt/$1.server"; do
    turns=$((turns + 1))
    [ $turns -lt 300 ] && kill -0 $server 2>/dev/null || { echo 'no server' >"/mnt/$1.status"; break; }
    sleep 0.2
  done
  if [ ! -e "/mnt/$1.status" ]; then
    while read -r count size; do
      timeout 120 "$ping" {server} --config "/mnt/$1.client.toml" --port "$2" --count $count \\
        --size $size --json >>"/mnt/$1.client" 2>>"/mnt/$1.said" </dev/null
      echo "$?" >>"/mnt/$1.status"
    done </mnt/exchanges
  fi
  kill -INT $server 2>/dev/null
  turns=0
  while kill -0 $server 2>/dev/null && [ $turns -lt 100 ]; do sleep 0.1; turns=$((turns + 1)); done
  kill -KILL $server 2>/dev/null
  wait $server
  echo "$?" >"/mnt/$1.ended"
}
"""


class Cell:
    def __init__(self, number, server, client, mtu):
        self.server, self.client, self.mtu = server, client, mtu
        self.name = f"{server.name}-{client.name}-{mtu}"
        self.port = 7500 + number

    def write(self, folder):
        for end, nic, address in (("server", self.server, SERVER), ("client", self.client, CLIENT)):
            with open(f"{folder}/{self.name}.{end}.toml", "w", encoding="utf-8") as file:
                file.write(CONFIG.format(name=nic.name, pci=nic.pci, address=address, mtu=self.mtu))

    def judge(self, folder, longest):
        """What is wrong; nothing: it passed."""
        status = text_of(f"{folder}/{self.name}.status").split()
        if status != ["0"] * len(EXCHANGES):
            return f"the clients' status is {' '.join(status) or 'missing'}"
        told = [json.loads(line) for line in text_of(f"{folder}/{self.name}.client").splitlines()
                if line.startswith("{")]
        asked = [(t["count"], t["size"]) for t in told]
        if asked != list(EXCHANGES):
            return f"the clients tell of {asked}"
        if text_of(f"{folder}/{self.name}.ended").strip() != "0":
            return "the server ended with " + text_of(f"{folder}/{self.name}.ended").strip()
        if longest.get(self.port) != self.mtu:
            return f"the longest packet had {longest.get(self.port)} octets"
        return None


def text_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def longest_packets(path):
    """Octets of the longest IPv4 packet, by the server's TCP port, out of a capture."""
    longest = collections.defaultdict(int)
    with open(path, "rb") as file:
        capture = file.read()
    at = 24
    while at + 16 <= len(capture):
        _, _, kept, _ = struct.unpack_from("<IIII", capture, at)
        frame = capture[at + 16:at + 16 + kept]
        at += 16 + kept
        if frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        ports = struct.unpack_from(">HH", frame, 14 + 4 * (frame[14] & 15))
        length, = struct.unpack_from(">H", frame, 16)
        for port in ports:
            longest[port] = max(longest[port], length)
    return longest


def write_run(folder, ping, cells):
    shutil.copy(ping, folder + "/rnic-ping")
    for cell in cells:
        cell.write(folder)
    with open(folder + "/exchanges", "w", encoding="utf-8") as file:
        file.write("".join(f"{count} {size}\n" for count, size in EXCHANGES))
    with open(folder + "/cells", "w", encoding="utf-8") as file:
        file.write("ping=/mnt/rnic-ping\n" + CELL.replace("{server}", SERVER))
        file.write("".join(f"cell {cell.name} {cell.port}\n" for cell in cells))


def run(options, folder):
    nics = [guest.Nic(number, *model) for number, model in enumerate(MODELS)]
    cells = [Cell(number, nics[server], nics[client], mtu)
             for number, ((server, client), mtu) in
             enumerate((pair, mtu) for pair in PAIRS for mtu in MTUS)]
    cells = [cell for cell in cells if options.only in cell.name]
    booted = image.build()
    write_run(folder, options.ping, cells)
    capture = folder + "/capture.pcap"
    trouble = guest.boot(booted, folder, nics, capture, options.patience)
    print(text_of(folder + "/booted").strip() or
          "the guest has not booted: " + text_of(folder + "/console")[-2000:])
    if trouble:
        print(trouble)
    longest = longest_packets(capture)
    failed = 0
    for cell in cells:
        wrong = cell.judge(folder, longest)
        failed += wrong is not None
        print(f"{cell.name}: {'pass' if wrong is None else 'FAILED: ' + wrong}")
        for end in ("server", "said") if wrong else ():
            print("  " + "\n  ".join(text_of(f"{folder}/{cell.name}.{end}").splitlines()[-12:]))
    print(f"{len(cells) - failed} of {len(cells)} cells passed")
    return 1 if failed or trouble else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ping")
    parser.add_argument("--keep", help="a folder for what everybody said, and the capture")
    parser.add_argument("--patience", type=float, default=1800)
    parser.add_argument("--only", default="", help="cells whose name has it")
    options = parser.parse_args()
    folder = options.keep or tempfile.mkdtemp(prefix="softrnic-nics-")
    os.makedirs(folder, exist_ok=True)
    try:
        return run(options, os.path.abspath(folder))
    except image.Unavailable as why:
        print(why)
        return 77
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
