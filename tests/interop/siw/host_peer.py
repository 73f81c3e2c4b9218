"""A run of siw_peer, our end of the connections: it takes commands until it is stopped."""

import json
import os
import select
import subprocess
import time

from guest import HOST, INTERFACE, OURS, dies_with_parent

PACKET = """[eal]
hugepages = "off"
memory_mb = 128
[[device]]
name = "rnic0"
port = "net_af_packet0,iface={interface}"
address = "{address}/24"
mtu = {mtu}
"""
SOCKET = """[[device]]
name = "rnic0"
port = "socket"
address = "{address}/24"
"""


class PeerEnded(Exception):
    """siw_peer has ended, or does not answer."""


class HostPeer:
    """Our program: over `port` "packet" or "socket", with settings "mpa.crc": "false" and so on."""

    program = ""  # set by whoever runs the tests

    def __init__(self, folder, port="packet", mtu=1500, settings=None):
        self.address = HOST if port == "socket" else OURS
        config = os.path.join(folder, "host.toml")
        with open(config, "w", encoding="utf-8") as file:
            template = SOCKET if port == "socket" else PACKET
            file.write(template.format(interface=INTERFACE, address=self.address, mtu=mtu))
        overrides = [part for key, value in (settings or {}).items()
                     for part in ("--set", f"{key}={value}")]
        self.log_path = os.path.join(folder, "host.log")
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.child = subprocess.Popen([self.program, "--config", config, *overrides],
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                          preexec_fn=dies_with_parent)
        self.buffer = b""

    def said(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return "".join(file.readlines()[-20:])

    def start(self, **command):
        try:
            self.child.stdin.write(json.dumps(command).encode() + b"\n")
            self.child.stdin.flush()
        except OSError as error:
            raise PeerEnded("siw_peer has ended: " + self.said()) from error

    def answer(self, seconds=120):
        """The next object that it prints."""
        end = time.monotonic() + seconds
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([self.child.stdout], [], [], max(0, end - time.monotonic()))
            got = os.read(self.child.stdout.fileno(), 1 << 16) if ready else b""
            if not got:
                why = "has ended" if ready else "does not answer"
                raise PeerEnded(f"siw_peer {why}: {self.said()}")
            self.buffer += got
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def serve(self, **command):
        """Returns when it listens; answer() is the result."""
        self.start(do="serve", **command)
        told = self.answer()
        if "listening" not in told:
            raise PeerEnded(f"siw_peer does not listen: {told}")

    def connect(self, seconds=120, **command):
        self.start(do="connect", **command)
        return self.answer(seconds)

    def kill(self):
        self.child.kill()
        self.child.wait()

    def stop(self):
        """Ended by the end of its commands; killed when it does not care."""
        try:
            self.child.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
