"""RDMA programs on softrnic: what programs_test.py has, and longer ones, which are every size and
option, a thousand connections, programs that are killed, and programs on a bad wire.
./scripts/programs runs them."""

import os
import re
import shutil
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


class Clang(short.OnSoftrnic):
    """What clang builds with a sanitizer has the runtime in itself, and in another place than gcc's."""

    def test_sanitizers(self):
        if shutil.which("clang++") is None:
            self.skipTest("clang++ is not installed")
        source = os.path.join(short.HERE, "many_threads.cpp")
        # ThreadSanitizer does not ask the door what it may leave out (docs/run-your-program.md).
        told = {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1:atexit_sleep_ms=0"}
        for kind in ("address", "leak", "thread"):
            with self.subTest(kind=kind):
                program = os.path.join(self.folder, kind)
                subprocess.run(["clang++", "-std=c++20", "-O1", f"-fsanitize={kind}", source, "-o", program,
                                "-lrdmacm", "-libverbs", "-lpthread"], check=True, timeout=LONG)
                self.assertEqual(self.end(self.start(program, "100", variables=told)), "ok\n")


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


class Absent(short.OnWire):
    """A peer that is not on the wire."""

    def test_a_client_is_told(self):
        begun = time.monotonic()
        calling = self.start("rping", "-c", "-C", "1", "-a", "10.77.0.200",
                             options=("--wire", self.wire))
        said = self.said_by(calling)
        self.assertGreater(calling.returncode, 0, said)
        self.assertIn("RDMA_CM_EVENT_UNREACHABLE", said)
        self.assertLess(time.monotonic() - begun, 20)


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
        # A test that fails in the midst of others leaves out its line, and no more.
        for options in ((), ("-T", "a")):
            with self.subTest(options=options):
                port = free_port()
                common = ("rstream", "-p", port, *options)
                serving = self.serve(port, *common)
                calling = self.start(*common, "-s", "127.0.0.1")
                said, _ = calling.communicate(timeout=LONG)
                self.assertEqual(calling.returncode, 0, said[-2000:])
                serving.communicate(timeout=LONG)
                for size in ("64", "4k", "64k", "1m"):
                    self.assertRegex(said, rf"(?m)^{size}_lat ")
                    self.assertRegex(said, rf"(?m)^{size}_bw ")


class RoceMatrix(short.OverRoce):
    """perftest without rdma_cm: every test, size and way to wait; many queue pairs."""

    patience = LONG

    def test_perftest_all(self):
        for kind in ("write", "read", "send", "atomic"):
            for what in ("bw", "lat"):
                with self.subTest(kind=kind, what=what):
                    self.perftest(f"ib_{kind}_{what}")

    def test_options(self):
        for name, options in (("ib_send_bw", ("--use-srq", "-s", "4096")),
                              ("ib_send_bw", ("-b",)), ("ib_write_bw", ("-b",)),
                              ("ib_write_bw", ("-Q", "1")), ("ib_read_bw", ("-e",)),
                              ("ib_send_lat", ("-e",))):
            with self.subTest(name=name, options=options):
                self.perftest(name, *options)

    def test_sizes(self):
        for name in ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_write_lat", "ib_send_lat"):
            with self.subTest(name=name):
                self.perftest(name, "-a", figures=r"8388608 +200 +\d+\.\d+")

    def test_many_queue_pairs(self):
        # More than one port of the process has.
        self.perftest("ib_write_bw", "-q", "300", "-s", "4096", figures=r"4096 +60000 +\d+\.\d+")

    def test_pingpong_again_and_again(self):
        # One side ends while the other one polls still, with receives posted.
        for options in ((), ("-e",)):
            for _ in range(30):
                self.pingpong("-n", "100", *options)

    def test_patience(self):
        program = shutil.copy(short.MEETINGS, self.folder)
        self.assertRegex(self.end(self.start(program, "patience", options=self.FACE)), r"(?m)^ok$")

    def test_on_a_bad_wire(self):
        wire = ("--wire", os.path.join(self.folder, "bad"))
        sides = [(*self.FACE, *wire, "--impair", f"loss=1%,reorder=1%,repair=0,seed={seed}",
                  "--address", f"10.77.0.{seed}/16") for seed in (5, 6)]
        for _ in range(5):
            self.pingpong(sides=sides)


class BadWire(short.OnWire):
    """Programs over frames that are lost, reordered and corrupted, in both directions."""

    damage = "loss=1%,reorder=1%,corrupt=1%,seed="
    # The kernel's own address in the network made for the test: qperf agrees with its server by TCP
    # there before it connects, so that the server's device has the same one on the wire.
    SHARED = short.ADDRESS
    CLIENT = ("--address", f"{short.SECOND}/24")

    patience = 120

    def bad(self, seed, *options):
        """-> the options of a side, whose frames suffer"""
        return ("--wire", self.wire, "--impair", f"{self.damage}{seed}", *options)

    def have_suffered(self, *outputs):
        for said in outputs:
            self.assertIn(f"its frames suffer {self.damage}", said)
            self.assertNotIn("give it the same", said)
            self.assertNotIn("vanish", said, "the wire takes every size: no MTU is to be doubted")

    def begin(self, *server):
        """Starts a server, and waits until it is on a new wire, where it listens soon after."""
        self.new_wire()
        serving = self.start(*server, options=self.bad(5))
        self.wait_for(serving, self.member(self.ADDRESS))
        return serving

    def begin_shared(self, port, *server):
        """The same of one that listens to the system's TCP first, with an address of both."""
        if os.environ[short.CHOSEN] != self.SHARED:
            self.skipTest("no network of its own can be made here")
        self.new_wire()
        return self.serve(port, *server, options=self.bad(5, "--address", f"{self.SHARED}/24"))

    def refused(self, calling, said):
        """Whether a client came before its server listened, or has lost a start frame, which has no
        CRC: both may be tried again."""
        return calling.returncode != 0 and re.search("(?i)refused|reject|does not speak MPA", said)

    def on_bad_wire(self, server, client):
        """Runs a server that ends with its client. -> what both have said"""
        for _ in range(10):
            serving = self.begin(*server)
            calling = self.start(*client, options=self.bad(6))
            said = self.said_by(calling)
            if not self.refused(calling, said):
                break
            serving.kill()
        if calling.returncode != 0:
            serving.kill()
            self.fail(f"{client}: {calling.returncode} {said[-2000:]}\n{serving.communicate()[0]}")
        server_said = self.end(serving)
        self.have_suffered(server_said, said)
        return server_said, said

    def served(self, serving, client, options=()):
        """Runs a client of a server that goes on. -> what the client has said"""
        for _ in range(10):
            calling = self.start(*client, options=self.bad(6, *options))
            said = self.said_by(calling)
            if not self.refused(calling, said):
                break
            time.sleep(0.1)
        self.assertEqual(calling.returncode, 0, f"{client}: {said[-2000:]}")
        self.assertIsNone(serving.poll(), "the server, which serves for ever, has ended")
        self.have_suffered(said)
        return said

    def test_rping(self):
        for address in (self.ADDRESS, "fd77::1"):
            with self.subTest(address=address):
                common = ("-V", "-S", "65000", "-C", "200", "-a", address)
                for said in short.rping_again(lambda: self.on_bad_wire(
                        ("rping", "-s", *common), ("rping", "-c", *common))):
                    self.assertNotIn("error", said)

    def test_ucmatose(self):
        # Of so many connections one would lose a start frame, and ucmatose ends with the first that
        # fails: here the checksum of TCP sees each corruption.
        self.damage = "repair=0," + self.damage
        common = ("ucmatose", "-c", "50", "-C", "20")
        for said in self.on_bad_wire(common, (*common, "-s", self.ADDRESS)):
            self.assertIn("return status 0", said)

    def test_rdma_server_and_client(self):
        for kind in ("", "x"):
            with self.subTest(kind=kind):
                for said in self.on_bad_wire((f"rdma_{kind}server",),
                                             (f"rdma_{kind}client", "-s", self.ADDRESS)):
                    self.assertIn("end 0", said)

    def test_perftest(self):
        for name in ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_send_lat"):
            with self.subTest(name=name):
                common = (name, "-R", "-F", "-n", "200", "-s", "65536")
                server, client = self.on_bad_wire(common, (*common, self.ADDRESS))
                self.assertNotRegex(server + client, "(?i)error|fail")
                self.assertRegex(client, r"(?m)^ *65536 +200 +\d+\.\d+")

    def test_rsockets(self):
        # They compare the octets.
        for name in ("rstream", "riostream"):
            with self.subTest(name=name):
                common = (name, "-S", "65536", "-C", "200", "-T", "v")
                for said in self.on_bad_wire(common, (*common, "-s", self.ADDRESS)):
                    self.assertRegex(said, r"64k +200 ")

    def test_rcopy(self):
        sent = os.path.join(self.folder, "sent")
        with open(sent, "wb") as file:
            file.write(os.urandom(10_000_000))
        os.chmod(sent, 0o644)
        come = os.path.join(self.folder, "come")
        self.served(self.begin("rcopy"), ("rcopy", sent, f"{self.ADDRESS}:{come}"))
        with open(sent, "rb") as one, open(come, "rb") as other:
            self.assertTrue(one.read() == other.read(), "another file has come")

    def test_fio(self):
        for verb in ("write", "read", "send"):
            with self.subTest(verb=verb):
                jobs = self.fio_jobs(self.ADDRESS, "7471", verb)
                _, client = self.on_bad_wire(("fio", jobs + ".server"), ("fio", jobs + ".client"))
                self.assertRegex(client, r"issued rwts: total=0,128,0,0 .*dropped=0,0,0,0")

    def test_libfabric(self):
        if os.environ[short.CHOSEN] != short.ADDRESS:
            self.skipTest("no network of its own can be made here")
        for provider, endpoint in (("verbs", "msg"), ("verbs;ofi_rxm", "rdm")):
            with self.subTest(provider=provider):
                self.new_wire()
                damage = [("--impair", f"{self.damage}{seed}") for seed in (5, 6)]
                said = self.pingpong(provider, endpoint, damage)
                self.have_suffered(*said)
                for each in said:
                    self.assertRegex(each, r"1m +20 +=20 ")

    def test_qperf(self):
        port = free_port()
        serving = self.begin_shared(port, "qperf", "-lp", port)
        for test, figure in (("rc_bw", "bw"), ("rc_lat", "latency"), ("rc_rdma_read_bw", "bw"),
                             ("rc_rdma_write_bw", "bw")):
            with self.subTest(test=test):
                said = self.served(serving, ("qperf", self.SHARED, "-lp", port, "-cm", "1",
                                             "-t", "1", test), self.CLIENT)
                self.assertRegex(said, rf"{figure} += +[1-9]")


if __name__ == "__main__":
    short.main(os.path.abspath(__file__))
