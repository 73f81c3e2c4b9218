"""RDMA programs on softrnic: what programs_test.py has, and longer ones, which are every size and
option, a thousand connections, and programs that are killed. ./scripts/programs runs them."""

import os
import subprocess
import time
import unittest

import programs_test as short
from programs_test import *  # noqa: F403 pylint: disable=wildcard-import,unused-wildcard-import
from programs_test import SECONDS, free_port

CLIENTS = 1000
LONG = 300  # seconds


def use_of(process):
    """-> what a program has of the system: descriptors, threads, and KB of memory that it asked for"""
    folder = f"/proc/{process}"
    with open(f"{folder}/status", encoding="ascii") as file:
        data = next(int(line.split()[1]) for line in file if line.startswith("VmData"))
    return len(os.listdir(f"{folder}/fd")), len(os.listdir(f"{folder}/task")), data


class Churn(short.OnSoftrnic):
    def client(self, port):
        return self.start("rping", "-c", "-V", "-C", "3", "-a", "127.0.0.1", "-p", port)

    def serve_many(self, port):
        """-> a server of many clients, whose output nobody reads"""
        serving = self.serve(port, "rping", "-s", "-P", "-a", "127.0.0.1", "-p", port,
                             output=subprocess.DEVNULL)
        self.end_client(self.client(port))
        return serving

    def end_client(self, process):
        """It has to go well, but for rping's own race (rping_again())."""
        said, _ = process.communicate(timeout=LONG)
        if "rdma_get_cm_event: Bad file descriptor" not in said:
            self.assertEqual(process.returncode, 0, said[-1000:])

    def settled(self, serving, before, more_memory):
        """Waits until the server has given back what the clients took. Of many clients at once rping's
        server forgets some: it has one place for a request that it has not begun to serve."""
        deadline = time.monotonic() + SECONDS
        while True:
            fds, threads, data = use_of(serving.pid)
            if fds <= before[0] and threads <= before[1] and data <= before[2] + more_memory:
                return
            self.assertLess(time.monotonic(), deadline,
                            f"before {before}, now {(fds, threads, data)}")
            time.sleep(0.1)

    def test_one_after_the_other(self):
        port = free_port()
        serving = self.serve_many(port)
        for _ in range(20):
            self.end_client(self.client(port))
        before = use_of(serving.pid)
        for _ in range(CLIENTS):
            self.end_client(self.client(port))
        self.settled(serving, before, 1024)


class Mpi(short.OnSoftrnic):
    """Open MPI over libfabric: mpirun and all that it starts inherit the device."""

    def test_a_ring(self):
        # libfabric leaves out the loopback interface.
        if os.environ[short.CHOSEN] != short.ADDRESS:
            self.skipTest("no network of its own can be made here")
        program = os.path.join(self.folder, "ring")
        subprocess.run(["mpicxx", "-o", program, os.path.join(short.HERE, "mpi_ring.cpp")],
                       check=True)
        chosen = []
        for name, value in (("pml", "cm"), ("mtl", "ofi"), ("btl", "self"),
                            ("mtl_ofi_provider_include", "verbs;ofi_rxm")):
            chosen += ["--mca", name, value]
        home = {"HOME": self.folder, "TMPDIR": self.folder, "HWLOC_COMPONENTS": "-gl"}
        for processes in ("2", "4"):
            with self.subTest(processes=processes):
                said = self.end(self.start("mpirun", "-n", processes, "--oversubscribe", *chosen,
                                           program, variables=home))
                self.assertRegex(said, f"{processes} processes: ok")


class Kills(short.OnSoftrnic):
    """kill -9 of one side while the other one is in a call that waits."""

    def killed(self, survivor, victim):
        time.sleep(0.5)
        self.assertIsNone(survivor.poll(), "it has ended before the kill")
        victim.kill()
        victim.wait()
        survivor.communicate(timeout=SECONDS)
        self.assertGreaterEqual(survivor.returncode, 0, "it was ended by a signal")

    def test_a_client_that_waits_for_a_completion(self):
        port = free_port()
        forever = ("-C", "100000000", "-a", "127.0.0.1", "-p", port)
        serving = self.serve(port, "rping", "-s", *forever)
        self.killed(self.start("rping", "-c", *forever), serving)

    def test_a_server_whose_client_is_killed(self):
        port = free_port()
        forever = ("-C", "100000000", "-a", "127.0.0.1", "-p", port)
        serving = self.serve(port, "rping", "-s", *forever)
        calling = self.start("rping", "-c", *forever)
        self.addCleanup(calling.stdout.close)
        self.killed(serving, calling)

    def test_an_rsocket_in_rpoll(self):
        port = free_port()
        common = ("rstream", "-p", port, "-S", "65536", "-C", "100000000")
        serving = self.serve(port, *common)
        self.killed(self.start(*common, "-s", "127.0.0.1"), serving)


class Sizes(short.Perftest):
    """perftest with every size, and its options; rstream with all of its own."""

    def all_sizes(self, name, *options):
        port = free_port()
        common = (name, "-R", "-F", "-p", port, "-n", "100", "-a", *options)
        for _ in range(10):
            serving = self.serve(port, *common)
            calling = self.start(*common, "127.0.0.1")
            said, _ = calling.communicate(timeout=LONG)
            if "error: -111" not in said:
                break
            serving.kill()
            serving.wait()
        self.assertEqual(calling.returncode, 0, said[-2000:])
        self.assertRegex(said, r"(?m)^ *8388608 ")

    def test_bandwidth(self):
        for name in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
            for options in ((), ("-b",)):
                with self.subTest(name=name, options=options):
                    self.all_sizes(name, *options)

    def test_latency(self):
        for name in ("ib_write_lat", "ib_read_lat", "ib_send_lat"):
            with self.subTest(name=name):
                self.all_sizes(name)

    def test_events(self):
        # With few messages ib_send_bw may post them all but the last before its peer grants more
        # receives. That is a Write, which completes nothing, and it sleeps until a completion.
        for name in ("ib_send_bw", "ib_read_bw"):
            with self.subTest(name=name):
                self.perftest(name, "-s", "65536", "-e", "-n", "1000", iterations=1000)

    def test_queue_pairs(self):
        self.perftest("ib_write_bw", "-s", "65536", "-q", "8", iterations=1600)
        self.perftest("ib_atomic_lat")

    def test_rstream_all(self):
        port = free_port()
        serving = self.serve(port, "rstream", "-p", port)
        calling = self.start("rstream", "-p", port, "-s", "127.0.0.1")
        said, _ = calling.communicate(timeout=LONG)
        self.assertEqual(calling.returncode, 0, said[-2000:])
        serving.communicate(timeout=LONG)


if __name__ == "__main__":
    short.main(os.path.abspath(__file__))
