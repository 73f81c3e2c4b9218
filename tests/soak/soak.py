"""A server and its clients, for as long as one likes, with one client in a hundred killed.

Over sockets of the system and over memory shared by processes (memif). The clients do all
operations with messages of all sizes and verify what comes back. The server's tables are small, and
at the end as many clients are killed as they have slots: it cannot serve any more when each of them
leaves one behind, on whatever wire and however few were killed before.

What has to hold: each client that was not killed ends well; at the end, with no client left, the
server's memory and descriptors are where they were after the first minute, and as many clients as
the tables hold (over memif, which has two ends, one) are served at the same time.

Exit: 0; 1 when something did not hold; 2 usage or environment.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

ATOMICS = ("fetch-add", "masked-add", "cmp-swap", "masked-swap")
OPERATIONS = {"rnic-ping": ("send", "imm", *ATOMICS),
              "rnic-perf": ("send", "write", "read", "imm", "write-imm", *ATOMICS)}
SLOTS = 12  # connections and queue pairs of the server
SIZES = (1, 3, 63, 64, 1023, 1460, 4096, 65535, 1 << 20)
CLIENT_SECONDS = 120  # one that takes longer hangs
SERVER_SECONDS = 60  # to start
SETTLE_SECONDS = 15  # for what a killed client leaves behind to be noticed and returned
SILENCE_SECONDS = 60  # after which a server lets go of who was killed while nothing was on its way
FULL_SECONDS = 60  # for all slots to be taken at once
MEMORY_SLACK = 4 << 20  # octets: pages of the allocator's own
WIRES = ("socket", "memif")

LIMITS = f"""[limits]
max_qps = {SLOTS}
max_connections = {SLOTS}
max_pds = {SLOTS}
max_cqs = {2 * SLOTS}
max_pending_requests = {SLOTS}
"""
MEMIF = """[eal]
hugepages = "off"
memory_mb = 128
[[device]]
name = "rnic0"
port = "net_memif0,role={role},id=0,socket={path},socket-abstract=no"
address = "10.9.0.{host}/24"
"""


class Wire:
    """How server and clients of one program are started on one kind of wire."""

    def __init__(self, kind, program, folder, port):
        self.kind, self.program, self.port = kind, program, port
        self.name = os.path.basename(program)
        self.at_once = SLOTS if kind == "socket" else 1  # a memif has two ends
        self.server_config = os.path.join(folder, f"{kind}-server.toml")
        self.client_config = os.path.join(folder, f"{kind}-client.toml")
        path = os.path.join(folder, "memif.sock")
        for config, role, host in ((self.server_config, "server", 1),
                                   (self.client_config, "client", 2)):
            device = '[[device]]\nname = "rnic0"\nport = "socket"\n'
            if kind == "memif":
                device = MEMIF.format(role=role, host=host, path=path)
            with open(config, "w", encoding="utf-8") as file:
                file.write((LIMITS if role == "server" else "") + device)
        self.address = "127.0.0.1" if kind == "socket" else "10.9.0.1"

    def server_command(self):
        return [self.program, "server", "--config", self.server_config, "--port", str(self.port)]

    def client_command(self, *more):
        who = ["client", self.address] if self.name == "rnic-perf" else [self.address]
        return [self.program, *who, "--config", self.client_config, "--port", str(self.port), *more]


class Server:
    def __init__(self, wire, log):
        self.log_path = log
        with open(log, "w", encoding="utf-8") as file:
            self.child = subprocess.Popen(wire.server_command(),
                                          stdout=file, stderr=subprocess.STDOUT,
                                          stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + SERVER_SECONDS
        while "listening" not in self.said():
            if self.child.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"soak: the server does not listen:\n{self.said()}")
            time.sleep(0.1)

    def said(self):
        with open(self.log_path, encoding="utf-8") as file:
            return file.read()

    def memory(self):
        """Octets that are resident."""
        with open(f"/proc/{self.child.pid}/statm", encoding="utf-8") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        return self.child.wait(SERVER_SECONDS)


class Client:
    def __init__(self, wire, dice, lives=None):
        """lives: seconds after which it is killed, or nothing"""
        killed = lives is not None
        operation = dice.choice(OPERATIONS[wire.name])
        sized = operation in ("send", "write", "read", "write-imm")
        size = dice.choice(SIZES) if sized else 8
        # One that is killed would go on for longer than it lives.
        if wire.name == "rnic-perf":
            more = ["--seconds", "3600" if killed else f"{dice.uniform(0.1, 1):.2f}"]
        else:
            count = dice.randint(1, 200 if size < 65535 else 20)
            more = ["--count", str(10000000 if killed else count)]
        more += ["--op", operation, *(["--size", str(size)] if sized else [])]
        self.what = " ".join([wire.name, *more])
        self.child = subprocess.Popen(wire.client_command(*more),
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      stdin=subprocess.DEVNULL, text=True)
        self.begun = time.monotonic()
        self.ends = self.begun + lives if killed else None

    def finished(self, faults):
        """True when it is over; what it has to complain of goes to `faults`."""
        status = self.child.poll()
        now = time.monotonic()
        if status is None and self.ends is not None and now >= self.ends:
            self.child.kill()
            self.child.communicate()
            return True
        if status is None and now - self.begun < CLIENT_SECONDS:
            return False
        if status is None:
            self.child.kill()
        told = self.child.communicate()[0]
        if status != 0 or self.ends is not None:  # a killed one has not ended by itself
            faults.append(f"{self.what}: exit {status}\n{told[-1000:]}")
        return True


class Soak:
    def __init__(self, options, wire, folder):
        self.options, self.wire = options, wire
        self.dice = random.Random(f"{options.seed} {wire.kind} {wire.name}")
        self.title = f"{wire.kind} {wire.name}"
        self.server = Server(wire, os.path.join(folder, f"{wire.kind}.log"))
        self.clients, self.faults = [], []
        self.served = self.killed = 0

    def turn(self, going_on):
        over = [c for c in self.clients if c.finished(self.faults)]
        self.clients = [c for c in self.clients if c not in over]
        self.served += sum(c.ends is None for c in over)
        if going_on and len(self.clients) < max(1, self.wire.at_once // 3):
            kill = self.dice.random() < self.options.kills
            self.killed += kill
            self.begin(kill)
        time.sleep(0.01)

    def begin(self, kill):
        lives = self.dice.uniform(0.05, 3) if kill else None
        self.clients.append(Client(self.wire, self.dice, lives))

    def run_for(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.faults:
            if self.server.child.poll() is not None:
                self.faults.append(f"the server ended:\n{self.server.said()[-2000:]}")
                return
            self.turn(True)

    def drain(self, seconds=SETTLE_SECONDS):
        while self.clients:
            self.turn(False)
        time.sleep(seconds)

    def kill_as_many_as_there_are_slots(self):
        """One behind the other: over memif there is no other way."""
        for _ in range(SLOTS):
            if self.faults or self.server.child.poll() is not None:
                return
            self.killed += 1
            self.begin(True)
            self.drain(0)

    def fill(self, descriptors):
        """As many clients at the same time as there are slots. descriptors: of a server without any"""
        if self.wire.kind != "socket":
            self.begin(False)
            self.drain(0)
            return
        self.clients = [Client(self.wire, self.dice, 2 * FULL_SECONDS) for _ in range(SLOTS)]
        end = time.monotonic() + FULL_SECONDS
        while self.server.descriptors() < descriptors + SLOTS and not self.faults:
            if time.monotonic() > end:
                self.faults.append(f"of {SLOTS} clients at once no more than "
                                   f"{self.server.descriptors() - descriptors} are served")
            for client in self.clients:
                client.finished(self.faults)
            time.sleep(0.05)
        for client in self.clients:
            client.child.kill()
            client.child.communicate()
        self.clients = []

    def run(self):
        seconds = self.options.minutes * 60 / len(OPERATIONS)
        warm = min(60, seconds / 4)
        self.run_for(warm)
        self.drain()
        memory, descriptors = self.server.memory(), self.server.descriptors()
        self.run_for(seconds - warm)
        self.drain(SILENCE_SECONDS + SETTLE_SECONDS)
        if self.server.child.poll() is None:
            grown = self.server.memory() - memory
            print(f"{self.title}: {self.served} clients served, {self.killed} killed; "
                  f"memory {memory >> 10} KB, then {grown / 1024:+.0f} KB; descriptors "
                  f"{descriptors}, then {self.server.descriptors()}", flush=True)
            if grown > MEMORY_SLACK:
                self.faults.append(f"the server's memory grew by {grown} octets")
            self.kill_as_many_as_there_are_slots()
            self.drain(SILENCE_SECONDS + SETTLE_SECONDS)
            if self.server.descriptors() != descriptors:
                self.faults.append("the server's descriptors are not what they were")
            self.fill(descriptors)
            if self.server.stop() != 0:
                self.faults.append(f"the server ended badly:\n{self.server.said()[-2000:]}")
        for fault in self.faults:
            print(f"{self.title}: FAILED {fault}", flush=True)
        if self.faults:
            print(f"{self.title}: the server said:\n{self.server.said()[-2000:]}", flush=True)
        return not self.faults

    def stop(self):
        for child in [self.server.child, *(c.child for c in self.clients)]:
            if child.poll() is None:
                child.kill()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--minutes", type=float, default=60, help="of each wire (default 60)")
    parser.add_argument("--wire", choices=WIRES, action="append", help="default: both")
    parser.add_argument("--kills", type=float, default=0.01, help="share of clients (default 0.01)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=7801, help="TCP port")
    options = parser.parse_args()
    # What it has started ends with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    good = True
    print(f"seed {options.seed}, {options.minutes:g} minutes a wire", flush=True)
    with tempfile.TemporaryDirectory(prefix="rnic-soak-") as folder:
        for kind, name in ((k, n) for k in options.wire or WIRES for n in OPERATIONS):
            program = os.path.join(options.programs, name, name)
            soak = Soak(options, Wire(kind, program, folder, options.port), folder)
            try:
                good = soak.run() and good
            finally:
                soak.stop()
    print("all held" if good else "not all held")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
