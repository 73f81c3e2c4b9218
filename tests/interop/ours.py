"""Our end of a connection: rnic-stream in a namespace of its own."""

import json
import os
import signal
import subprocess
import tempfile
import time

from network import GATEWAY4, GATEWAY6, OURS4, OURS6

PORT = 7473
PATIENCE = 60
CONFIG = """[eal]
hugepages = "off"
[tcp]
time_wait = "50ms"
[limits]
stream_buffer = {buffer}
stream_octets = 268435456
[[device]]
name = "rnic0"
port = "net_af_packet0,iface={interface}"
mtu = {mtu}
{addresses}
{impair}
"""


class Ours:
    """A run of rnic-stream. As a server it listens when the constructor returns."""

    program = ""  # set by whoever runs the tests

    def __init__(self, network, family, *arguments, mtu=None, settings=(), impair=None,
                 buffer=512 << 10):
        self.folder = tempfile.TemporaryDirectory(prefix="rnic-interop-")
        self.family = family
        path = os.path.join(self.folder.name, "ours.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(interface=network.interface, mtu=mtu or network.mtu,
                                     buffer=buffer, addresses=self.addresses(network),
                                     impair=self.impairment(impair)))
        overrides = [part for key, value in settings for part in ("--set", f"{key}={value}")]
        self.log_path = os.path.join(self.folder.name, "log")
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.child = subprocess.Popen(
                ["ip", "netns", "exec", network.ours, self.program, *arguments, "--json",
                 "--port", str(PORT), "--config", path, *overrides],
                stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True)
        if arguments[0] == "server":
            self.await_listening()

    def addresses(self, network):
        """The keys of the device's addresses."""
        if self.family == 4:
            lines = [f'address = "{OURS4}/24"', f'gateway = "{GATEWAY4}"']
        else:
            lines = [f'address = "{OURS6}/64"', f'gateway6 = "{GATEWAY6}"']
        return "\n".join(lines if network.routed else lines[:1])

    @staticmethod
    def impairment(impair):
        if not impair:
            return ""
        return "[device.impair]\nrepair = 0.0\n" + "\n".join(f"{k} = {v}" for k, v in impair.items())

    def said(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def await_listening(self):
        end = time.monotonic() + PATIENCE
        while "listening on" not in self.said():
            if self.child.poll() is not None or time.monotonic() > end:
                self.stop()
                raise AssertionError("the server does not listen: " + self.said())
            time.sleep(0.02)

    def result(self, timeout=PATIENCE):
        """Awaits the end: the JSON object; `status` is the exit status."""
        try:
            out, _ = self.child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            self.stop()
            raise AssertionError("rnic-stream does not end: " + self.said()) from error
        if not out.strip():
            raise AssertionError("rnic-stream gives no result: " + self.said())
        result = json.loads(out.splitlines()[-1])
        result["status"] = self.child.returncode
        return result

    def stop(self):
        """Interrupted, unless it has ended."""
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGINT)
            try:
                self.child.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.communicate()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.child.stdout.close()
        self.folder.cleanup()


def counter(result, layer, name):
    return result["counters"].get(layer, {}).get(name, 0)
