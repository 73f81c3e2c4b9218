"""RDMA programs as Debian has them, on softrnic: no kernel module, no right, nothing rebuilt."""

import concurrent.futures
import ctypes
import ctypes.util
import gzip
import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest

RUN = os.path.abspath(sys.argv[1])
ASYNC_EVENTS = os.path.abspath(sys.argv[2])
STARVED_VERBS = os.path.join(os.path.dirname(ASYNC_EVENTS), "starved_verbs")
MANY_THREADS = os.path.join(os.path.dirname(ASYNC_EVENTS), "many_threads")
LAST_MESSAGE = os.path.join(os.path.dirname(ASYNC_EVENTS), "last_message")
CM_STATES = os.path.join(os.path.dirname(ASYNC_EVENTS), "cm_states")
PEER_GONE = os.path.join(os.path.dirname(ASYNC_EVENTS), "peer_gone")
MEETINGS = os.path.join(os.path.dirname(ASYNC_EVENTS), "meetings")
VERBS_RULES = os.path.join(os.path.dirname(ASYNC_EVENTS), "verbs_rules")
DESCRIPTORS = os.path.join(os.path.dirname(ASYNC_EVENTS), "descriptors")
EVENT_CHANNELS = os.path.join(os.path.dirname(ASYNC_EVENTS), "event_channels")
EXIT_IN_HANDLER = os.path.join(os.path.dirname(ASYNC_EVENTS), "exit_in_handler")
EXIT_IN_TWO_THREADS = os.path.join(os.path.dirname(ASYNC_EVENTS), "exit_in_two_threads")
FOLDER = os.path.dirname(RUN)
HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = pwd.getpwnam("nobody").pw_uid
# The runtime of the sanitizer that the plugin was built with, if any, and what it is told.
SANITIZER = {name: os.environ[name] for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS")
             if "RNIC_PRELOADED" in os.environ}
if SANITIZER:
    SANITIZER["LD_PRELOAD"] = os.environ["RNIC_PRELOADED"]
# It would guess that Sends are RPC over RDMA, and call what it does not understand of them malformed.
TSHARK = ("tshark", "--disable-protocol", "rpcordma")
SECONDS = 120 if SANITIZER else 30  # no program takes longer, or it hangs
CHOSEN = "RNIC_NETWORK_IS_CHOSEN"  # the address in the network made for the test, or "none"
ADDRESS = "10.9.0.1"
SECOND = "10.9.0.2"  # another one there
# Where a target of iSER is: installed, or unpacked by ./scripts/test.
TGT = next((folder for folder in ("/usr/sbin", os.path.join(HERE, "../../out/debian/usr/sbin"))
            if os.path.exists(os.path.join(folder, "tgtd"))), "")


def free_port():
    """A port that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return str(probe.getsockname()[1])


def listens(port):
    """Whether somebody waits for connections there."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table, encoding="ascii") as lines:
            for line in lines:
                field = line.split()
                if field[1].endswith(f":{int(port):04X}") and field[3] == "0A":
                    return True
    return False


def rping_again(run, before_each=lambda: None):
    """Runs rping, again where its one thread has closed the channel that its other one goes on to
    read from: it ends with 255 then."""
    for _ in range(3):
        try:
            return run()
        except AssertionError as error:
            if "rdma_get_cm_event: Bad file descriptor" not in str(error):
                raise
            before_each()
    return run()


def rstream_again(run):
    """Runs rstream -T a, again where it ends with 16: rsockets told it of its peer's farewell together
    with the last octets, and it reads no more then. See decision 54."""
    for _ in range(4):
        try:
            return run()
        except AssertionError as error:
            if not str(error).startswith("16 != 0"):
                raise
    return run()


def dumpable():
    # The kernel forgets who may read /proc/self of a process that has changed its user.
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)


def kill_all_of(process):
    """Kills a program and those that it has forked, unless its end has been told."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


class OnSoftrnic(unittest.TestCase):
    patience = SECONDS

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.chmod(self.folder, 0o777)
        self.root = os.getuid() == 0
        # A user who has nothing has to be able to read what was built.
        self.run_as = RUN
        if self.root:
            self.run_as = os.path.join(self.folder, "rnic-run")
            for name in ("rnic-run", "librnic-door.so", "librnic-rdmav34.so",
                         "librnic-dpdk-rdmav34.so"):
                if os.path.exists(os.path.join(FOLDER, name)):
                    shutil.copy(os.path.join(FOLDER, name), self.folder)

    def frames(self, capture, which):
        """-> the frames of a capture that tshark takes for such"""
        shown = subprocess.run([*TSHARK, "-r", os.path.join(self.folder, capture), "-Y", which],
                               capture_output=True, text=True, check=True)
        return shown.stdout.splitlines()

    def nobody(self):
        """-> what subprocess is told to run a program as nobody, where that is possible"""
        return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if self.root else {}

    def start(self, *words, options=(), output=subprocess.PIPE, variables=()):
        """Starts a program on softrnic, as nobody where that is possible."""
        self.assertIsNotNone(shutil.which(words[0]), f"{words[0]} is not installed")
        as_nobody = {**self.nobody(), "preexec_fn": dumpable} if self.root else {}
        return subprocess.Popen([self.run_as, *options, *words], text=True, stdin=subprocess.DEVNULL,
                                stdout=output, stderr=subprocess.STDOUT,
                                cwd=self.folder, process_group=0,
                                env={"PATH": os.environ["PATH"], **SANITIZER, **dict(variables)},
                                **as_nobody)

    def hangs(self, process):
        """Ends a program that hangs, and those that it has forked: they hold its output open."""
        kill_all_of(process)
        self.fail(f"{process.args[1:]} hangs: {process.communicate()[0][-2000:]}")

    def end(self, process, status=0):
        """-> what the process has said; its status is as expected"""
        try:
            said, _ = process.communicate(timeout=self.patience)
        except subprocess.TimeoutExpired:
            self.hangs(process)
        self.assertEqual(process.returncode, status, f"{process.args[1:]}: {said[-2000:]}")
        return said

    def serve(self, port, *words, output=subprocess.PIPE, options=(), variables=()):
        """Starts a server that serves until it is ended, and waits until it listens."""
        serving = self.start(*words, output=output, options=options, variables=variables)
        if serving.stdout is not None:
            self.addCleanup(serving.stdout.close)
        self.addCleanup(serving.wait)
        self.addCleanup(kill_all_of, serving)
        deadline = time.monotonic() + SECONDS
        while not listens(port):
            self.assertIsNone(serving.poll(), "the server has ended before it listened")
            self.assertLess(time.monotonic(), deadline, "the server does not listen")
            time.sleep(0.02)
        return serving

    def pair(self, server, client, port, options=()):
        """Runs a server, and a client as soon as it listens. -> what both have said"""
        serving = self.serve(port, *server, options=options)
        # Both are read at once: one of them may say more than a pipe holds.
        with concurrent.futures.ThreadPoolExecutor(1) as reader:
            heard = reader.submit(self.end, serving)
            try:
                said = self.end(self.start(*client, options=options))
            except AssertionError:
                kill_all_of(serving)
                raise
        return heard.result(), said

    def fio_jobs(self, host, port, verb):
        """-> what the files of a server and of a client begin with: 8 MB in blocks of 64 KB. What is
        sent the server compares; of a Write and a Read it knows no block. The client closes as soon
        as TCP has all that it sends, while the server still posts receives."""
        jobs = os.path.join(self.folder, verb)
        compared = "verify=crc32c\ndo_verify=0\n" if verb == "send" else ""
        with open(jobs + ".server", "w", encoding="ascii") as file:
            file.write(f"[global]\nioengine=rdma\nport={port}\nbs=64k\nsize=8m\niodepth=32\n"
                       f"{compared.replace('do_verify=0', 'do_verify=1')}[in]\nrw=read\n")
        with open(jobs + ".client", "w", encoding="ascii") as file:
            file.write(f"[global]\nioengine=rdma\nhostname={host}\nport={port}\nbs=64k\n"
                       f"size=8m\niodepth=32\nverb={verb}\n{compared}[out]\nrw=write\n")
        return jobs

    def said_by(self, process):
        """-> what the process says until it ends, with whatever status"""
        try:
            return process.communicate(timeout=self.patience)[0]
        except subprocess.TimeoutExpired:
            self.hangs(process)


class Perftest(OnSoftrnic):
    """What runs one program of perftest."""

    def perftest(self, name, *options, iterations=200):
        # It listens, is connected to, ends that, and listens a second time: a client that is faster
        # than that is refused (-111), on every device.
        for _ in range(10):
            port = free_port()
            common = (name, "-R", "-F", "-p", port, "-n", "200", *options)
            try:
                server, client = self.pair(common, (*common, "127.0.0.1"), port)
                break
            except AssertionError as error:
                if "RDMA_CM_EVENT_REJECTED; error: -111" not in str(error):
                    raise
        else:
            self.fail(f"{name} is refused each time")
        self.assertNotRegex(server + client, "(?i)error|fail")
        # The row of figures: octets, iterations, and what was measured.
        self.assertRegex(client, re.compile(rf"^ *\d+ +{iterations} +\d+\.\d+", re.MULTILINE))


class Programs(Perftest):
    def test_device(self):
        self.assertRegex(self.end(self.start("ibv_devices")), r"rnic0\s+020000fffe000001")
        said = self.end(self.start("ibv_devinfo", "-v"))
        for line in (r"hca_id:\s+rnic0", r"transport:\s+iWARP \(1\)", r"state:\s+PORT_ACTIVE",
                     r"max_sge:\s+16\b", r"atomic_cap:\s+ATOMIC_HCA", r"link_layer:\s+Ethernet"):
            self.assertRegex(said, line)

    def test_a_program_that_changes_its_user(self):
        if not self.root:
            self.skipTest("only root may")
        changed = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups",
                   "ibv_devinfo")
        with tempfile.TemporaryDirectory() as closed:  # nobody else may enter it
            for variables in ({}, {"XDG_RUNTIME_DIR": closed}):
                ran = subprocess.run(["sh", "-c", "umask 077; exec \"$@\"", "sh", self.run_as, *changed],
                                     capture_output=True, text=True, check=False, timeout=SECONDS,
                                     env={"PATH": os.environ["PATH"], **SANITIZER, **variables})
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertRegex(ran.stdout, r"hca_id:\s+rnic0")

    def test_rping(self):
        # It compares every octet (-V).
        for address in ("127.0.0.1", "::1"):
            with self.subTest(address=address):
                port = free_port()
                common = ("-V", "-S", "65000", "-C", "100", "-p", port, "-a", address)
                for said in rping_again(lambda: self.pair(
                        ("rping", "-s", *common), ("rping", "-c", *common), port)):
                    self.assertNotIn("error", said)

    def test_rdma_server_and_client(self):
        # They have a fixed port.
        for kind in ("", "x"):
            with self.subTest(kind=kind):
                port = "7471"
                self.assertFalse(listens(port), f"somebody listens on port {port} already")
                server, client = self.pair((f"rdma_{kind}server",), (f"rdma_{kind}client",), port)
                self.assertIn("end 0", server)
                self.assertIn("end 0", client)

    def test_ucmatose(self):
        # The server sends first, on each of its connections.
        port = free_port()
        common = ("ucmatose", "-c", "64", "-C", "20", "-p", port)
        for said in self.pair(common, (*common, "-s", "127.0.0.1"), port):
            self.assertIn("return status 0", said)

    def test_cmtime(self):
        # The client destroys its queue pairs at once after it has disconnected, and waits for the
        # events; the server serves for ever.
        port = free_port()
        serving = self.serve(port, "cmtime", "-p", port)
        said = self.end(self.start("cmtime", "-p", port, "-c", "400", "-s", "127.0.0.1"))
        self.assertRegex(said, r"disconnect +: +\d+\.\d+")
        self.assertNotIn("event:", said)  # none has failed
        self.assertIsNone(serving.poll(), "the server has ended")

    def test_perftest_bandwidth(self):
        for name in ("ib_write_bw", "ib_read_bw", "ib_send_bw"):
            with self.subTest(name=name):
                self.perftest(name, "-s", "65536")
        with self.subTest(name="ib_atomic_bw"):
            self.perftest("ib_atomic_bw")
        with self.subTest(name="shared receive queue"):
            self.perftest("ib_send_bw", "-s", "4096", "--use-srq")

    def test_perftest_latency(self):
        # The server of ib_write_lat polls its memory, and makes no call meanwhile.
        for name in ("ib_send_lat", "ib_write_lat", "ib_read_lat"):
            with self.subTest(name=name):
                self.perftest(name, "-s", "64")
        with self.subTest(name="completion events"):
            self.perftest("ib_send_lat", "-s", "64", "-e")

    def test_perftest_without_the_connection_manager(self):
        # Queue pairs of GIDs and numbers are not iWARP's. The program is told so, and ends.
        port = free_port()
        common = ("ib_write_bw", "-p", port, "-n", "10")
        self.serve(port, *common)
        calling = self.start(*common, "127.0.0.1")
        self.assertIn("softrnic: modify_qp: an iWARP queue pair is connected by the connection "
                      "manager (rdma_cm), not by GID and number: give perftest -R, or rnic-run "
                      "--roce",
                      self.end(calling, 1))

    def test_what_iwarp_has_not(self):
        # One line at the call that fails, under either face.
        for face in ((), ("--roce",)):
            with self.subTest(face=face):
                said = self.said_by(self.start("ibv_xsrq_pingpong", "-g", "0", "-p", free_port(),
                                               options=face))
                self.assertRegex(said, r"softrnic: open_xrcd: .* and no XRC\n")
        self.assertIn("softrnic: rdma_create_id: iWARP has the port space of TCP alone",
                      self.said_by(self.start("rdma_xserver", "-c", "x")))
        self.assertNotIn("softrnic:", self.said_by(self.start("rping", "-c", "-a", "127.0.0.1",
                                                              "-p", free_port(), "-C", "1")))

    def test_rsockets(self):
        def run(options, size):
            port = free_port()
            common = ("rstream", "-p", port, "-S", {"64k": "65536", "4k": "4096"}[size], "-C", "50",
                      *options)
            self.assertRegex(self.pair(common, (*common, "-s", "127.0.0.1"), port)[1],
                             rf"{size} +50 ")

        run((), "64k")
        # With "-T a" it takes the end for an error that comes with the last octets.
        for options, size in (("-T", "a"), "64k"), (("-T", "a", "-T", "v"), "4k"):
            with self.subTest(options=options):
                rstream_again(lambda: run(options, size))

    def test_riostream(self):
        # It compares the octets, which its client writes into memory of the server's.
        for mode in ("blocking", "nonblocking", "async"):
            with self.subTest(mode=mode):
                port = free_port()
                common = ("riostream", "-p", port, "-S", "65536", "-C", "50", "-T", mode, "-T",
                          "verify")
                for said in self.pair(common, (*common, "-s", "127.0.0.1"), port):
                    self.assertRegex(said, r"64k +50 ")

    def test_rcopy(self):
        port = free_port()
        sent = os.path.join(self.folder, "sent")
        with open(sent, "wb") as file:
            file.write(os.urandom(1_000_000))
        os.chmod(sent, 0o644)
        self.serve(port, "rcopy", "-p", port)
        come = os.path.join(self.folder, "come")
        self.end(self.start("rcopy", sent, f"127.0.0.1:{come}", "-p", port))
        with open(sent, "rb") as one, open(come, "rb") as other:
            self.assertTrue(one.read() == other.read(), "another file has come")

    def test_fio(self):
        for verb in ("write", "read", "send"):
            with self.subTest(verb=verb):
                port = free_port()
                jobs = self.fio_jobs("127.0.0.1", port, verb)
                _, client = self.pair(("fio", jobs + ".server"), ("fio", jobs + ".client"), port)
                self.assertRegex(client, r"issued rwts: total=0,128,0,0 .*dropped=0,0,0,0")

    def test_libfabric(self):
        # It leaves out the loopback interface.
        if os.environ[CHOSEN] != ADDRESS:
            self.skipTest("no network of its own can be made here")
        for provider, endpoint in (("verbs", "msg"), ("verbs;ofi_rxm", "rdm")):
            with self.subTest(provider=provider):
                port = free_port()
                common = ("fi_pingpong", "-p", provider, "-e", endpoint, "-I", "20", "-c")
                for said in self.pair((*common, "-B", port), (*common, "-P", port, ADDRESS), port):
                    self.assertRegex(said, r"1m +20 +=20 ")

    def test_qperf(self):
        port = free_port()
        self.serve(port, "qperf", "-lp", port)
        for test, figure in (("rc_bw", "bw"), ("rc_lat", "latency"), ("rc_rdma_read_bw", "bw"),
                             ("rc_rdma_write_bw", "bw")):
            with self.subTest(test=test):
                # The server tells its port before it listens there: a fast client is refused.
                for _ in range(20):
                    client = self.start("qperf", "127.0.0.1", "-lp", port, "-cm", "1", "-t", "1", test)
                    said = self.said_by(client)
                    if client.returncode == 0:
                        break
                    self.assertRegex(said, "connection refused|rejected|REJECTED")
                self.assertRegex(said, rf"{figure} += +[1-9]")

    def test_async_events(self):
        # A program of this tree, which reads events as no other here does.
        program = shutil.copy(ASYNC_EVENTS, self.folder)
        self.assertRegex(self.end(self.start(program)), r"(?m)^ok$")

    def test_descriptors(self):
        # The numbers of channels become files', are duplicated, and inherited.
        program = shutil.copy(DESCRIPTORS, self.folder)
        self.assertRegex(self.end(self.start(program)), r"(?m)^ok$")

    def test_event_channels(self):
        # What makes a channel readable, and what its events say.
        program = shutil.copy(EVENT_CHANNELS, self.folder)
        self.assertRegex(self.end(self.start(program)), r"(?m)^ok$")

    def test_order_of_locks(self):
        # It knows no more of the plugin than its locks, and calls races what it does not understand.
        program = EVENT_CHANNELS + "_thread"
        if not os.path.exists(program):
            self.skipTest("no program has a sanitizer")
        program = shutil.copy(program, self.folder)
        said = self.end(self.start(program, variables={"TSAN_OPTIONS": "exitcode=0"}))
        self.assertRegex(said, r"(?m)^ok$")
        self.assertIn("ThreadSanitizer", said, "it leaves out the plugin")
        self.assertNotIn("lock-order-inversion", said)

    def test_last_message(self):
        # What a peer sends last is there before the program is told of the end.
        program = shutil.copy(LAST_MESSAGE, self.folder)
        self.assertRegex(self.end(self.start(program)), r"(?m)^ok$")

    def test_many_threads(self):
        # A program of this tree: two threads on each queue pair, and others that make objects.
        program = shutil.copy(MANY_THREADS, self.folder)
        self.assertRegex(self.end(self.start(program, "1000")), r"(?m)^ok$")

    def test_programs_with_a_sanitizer(self):
        # Their own faults are reported, and nothing of the device's. A wrapper in front of one, and
        # options of its user's, do not keep it from starting.
        def run(name, *arguments, wrapper=(), status=0, options=""):
            variables = {"TSAN_OPTIONS": "atexit_sleep_ms=0", "ASAN_OPTIONS": options}
            program = shutil.copy(os.path.join(os.path.dirname(ASYNC_EVENTS), name), self.folder)
            return self.end(self.start(*wrapper, program, *arguments, variables=variables), status)

        found = 0
        for kind, fault, status, told in (
                ("address", "leak", 77, r"AddressSanitizer: 13 byte\(s\) leaked in 1 allocation"),
                ("thread", "race", 66, r"(?s)data race.*reported 1 warnings")):
            if not os.path.exists(os.path.join(os.path.dirname(ASYNC_EVENTS), "sanitized_" + kind)):
                continue  # the compiler has no runtime, or the plugin has a sanitizer itself
            found += 1
            with self.subTest(kind=kind):
                guess = "intercept_tls_get_addr=1"  # at the size of memory of threads
                self.assertEqual(run("sanitized_" + kind, options=guess), "ok\n")
                self.assertEqual(run("sanitized_" + kind, wrapper=("env", "ASAN_OPTIONS=" + guess)), "ok\n")
                self.assertEqual(run("many_threads_" + kind, "100"), "ok\n")
                self.assertRegex(run("sanitized_" + kind, fault, status=status, options="exitcode=77"),
                                 told)
        if found == 0:
            self.skipTest("no program has a sanitizer")

    def test_peer_gone(self):
        # rsockets waits for completions, and is told of the end by an event that another thread reads.
        program = shutil.copy(PEER_GONE, self.folder)
        self.assertRegex(self.end(self.start(program)), r"(?m)^ok$")

    def test_verbs_rules(self):
        # A program of this tree, which asks for what is wrong, and about what others take on trust.
        program = shutil.copy(VERBS_RULES, self.folder)
        self.assertRegex(self.end(self.start(program)), r"(?m)^ok$")

    def test_states_of_an_id(self):
        # A program of this tree: what is not its turn is refused, and changes nothing.
        program = shutil.copy(CM_STATES, self.folder)
        self.assertRegex(self.end(self.start(program)), r"(?m)^ok$")

    def test_starved_verbs(self):
        # Whatever request for memory is refused, the program learns of it by errno.
        program = shutil.copy(STARVED_VERBS, self.folder)
        said = self.end(self.start(program))
        self.assertRegex(said, r"(?m)^ok$")
        self.assertGreater(int(re.search(r"(\d+) requests refused", said).group(1)), 20)

    def test_nobody_listens(self):
        said = self.start("rping", "-c", "-a", "127.0.0.1", "-p", free_port(), "-C", "1")
        said.communicate(timeout=SECONDS)
        self.assertNotEqual(said.returncode, 0)
        self.assertGreater(said.returncode, 0, "it was ended by a signal")


class OverRoce(OnSoftrnic):
    """What runs two programs that connect queue pairs by GID and number, without rdma_cm."""

    FACE = ("--roce",)

    def pingpong(self, *options, sides=(FACE, FACE)):
        """-> what both sides say, which compare what comes"""
        port = free_port()
        common = ("ibv_rc_pingpong", "-p", port, "-g", "0", "-c", *options)
        serving = self.serve(port, *common, options=sides[0])
        said = self.end(self.start(*common, "127.0.0.1", options=sides[1]))
        return self.end(serving), said

    def perftest(self, name, *options, figures=r"\d+ +200 +\d+\.\d+"):
        port = free_port()
        common = (name, "-F", "-p", port, "-n", "200", *options)
        server, client = self.pair(common, (*common, "127.0.0.1"), port, options=self.FACE)
        self.assertNotRegex(server + client, "(?i)error|fail")
        self.assertRegex(client, re.compile(rf"^ *{figures}", re.MULTILINE))


class Roce(OverRoce):
    def test_device(self):
        said = self.end(self.start("ibv_devinfo", "-v", options=self.FACE))
        for line in (r"hca_id:\s+rnic0", r"transport:\s+InfiniBand \(0\)",
                     r"link_layer:\s+Ethernet", r"port_lid:\s+0\b",
                     r"GID\[ +0\]:\s+::ffff:[\d.]+, RoCE v2"):
            self.assertRegex(said, line)
        if os.environ[CHOSEN] == ADDRESS:
            self.assertIn(f"::ffff:{ADDRESS}, RoCE v2", said)
            self.assertIn(f"::ffff:{SECOND}, RoCE v2", said)

    def test_pingpong(self):
        for options in ((), ("-e",), ("-s", "65536", "-n", "200")):
            with self.subTest(options=options):
                for said in self.pingpong(*options):
                    self.assertRegex(said, r"(?m)^\d+ iters in ")

    def test_pingpong_without_a_gid(self):
        # Its message of error reads what is there of its peer's end: the one that fails is told.
        port = free_port()
        common = ("ibv_rc_pingpong", "-p", port)
        serving = self.serve(port, *common, options=self.FACE)
        self.end(self.start(*common, "127.0.0.1", options=self.FACE), 1)
        said = self.end(serving, 1)
        self.assertIn("softrnic: modify_qp: the peer has to be named by its GID", said)
        self.assertIn("Failed to modify QP to RTR", said)

    def test_no_such_gid(self):
        self.assertIn("can't read sgid of index 200",
                      self.end(self.start("ibv_rc_pingpong", "-g", "200", "-p", free_port(),
                                          "127.0.0.1", options=self.FACE), 1))

    def test_perftest(self):
        for name in ("ib_read_bw", "ib_send_lat"):
            with self.subTest(name=name):
                self.perftest(name)
        with self.subTest(name="queue pairs"):
            self.perftest("ib_write_bw", "-q", "8", figures=r"\d+ +1600 +\d+\.\d+")

    def test_meetings(self):
        # A program of this tree, which has both ends: in every order, and with strangers.
        program = shutil.copy(MEETINGS, self.folder)
        said = self.end(self.start(program, options=(*self.FACE, "--explain")))
        self.assertRegex(said, r"(?m)^ok$")
        self.assertIn("asked for by somebody who is no queue pair: refused", said)
        self.assertIn("asked for to a queue pair that is not there: refused", said)
        self.assertIn("somebody else than its peer has answered", said)

    def test_on_a_wire(self):
        sides = [(*self.FACE, "--wire", os.path.join(self.folder, "wire"), "--address", address)
                 for address in ("10.77.0.5/16", "10.77.0.6/16")]
        server, client = self.pingpong(sides=sides)
        self.assertIn("GID ::ffff:10.77.0.6", server)
        self.assertIn("GID ::ffff:10.77.0.5", client)

    def test_the_connection_manager_is_not_there(self):
        said = self.said_by(self.start("rping", "-s", options=self.FACE))
        self.assertIn("softrnic: rdma_create_id: under the RoCE face there is no connection manager",
                      said)


class Iser(OnSoftrnic):
    """A target and an initiator of iSCSI over RDMA: two programs that know nothing of each other."""

    INITIATOR = "iqn.2026-11.example:initiator"
    TARGET = "iqn.2026-11.example:target"
    OCTETS = 16 << 20

    def target(self):
        """Starts a target with one disk. It listens on every address of both versions of IP."""
        for program in ("tgtd", "tgtadm"):
            shutil.copy(os.path.join(TGT, program), self.folder)
        disk = os.path.join(self.folder, "disk")
        with open(disk, "wb") as file:
            file.truncate(self.OCTETS)
        os.chmod(disk, 0o666)
        self.variables = {"TGT_IPC_SOCKET": os.path.join(self.folder, "control")}
        self.serve(3260, os.path.join(self.folder, "tgtd"), "-f", "-C", "7",
                   "--iscsi", f"portal=127.0.0.1:{free_port()}", "--iser", "pool_sz_mb=64",
                   output=subprocess.DEVNULL, variables=self.variables)
        self.control("target", "new", "-T", self.TARGET)
        self.control("logicalunit", "new", "--lun", "1", "-b", disk)
        self.control("target", "bind", "-I", "ALL")
        self.control("target", "bind", "-Q", self.INITIATOR)

    def control(self, mode, operation, *words):
        subprocess.run([os.path.join(self.folder, "tgtadm"), "-C", "7", "--lld", "iser",
                        "--mode", mode, "--op", operation, "--tid", "1", *words],
                       env=self.variables, check=True, timeout=SECONDS, **self.nobody())

    def test_a_disk(self):
        if os.environ[CHOSEN] != ADDRESS:
            self.skipTest("no network of its own can be made here")
        self.target()
        for address in ("127.0.0.1", "[::1]"):
            with self.subTest(address=address):
                disk = f"iser://{address}:3260/{self.TARGET}/1"
                who = ("-i", self.INITIATOR)
                self.assertRegex(self.end(self.start("iscsi-inq", *who, disk)), "VIRTUAL-DISK")
                self.assertRegex(self.end(self.start("iscsi-readcapacity16", *who, disk)),
                                 f"Total size:{self.OCTETS}")
                # It writes, has the target change what it wrote, reads that, and compares.
                said = self.end(self.start("iscsi-test-cu", "--dataloss", *who, "-n",
                                           "-t", "SCSI.OrWrite.Verify", disk))
                self.assertRegex(said, r"asserts +3584 +3584 +3584 +0")


class Faults(OnSoftrnic):
    """What the device does wrong on purpose, over sockets."""

    CATASTROPHE = "layer RDMAP, type local catastrophic error, code 0x00"

    def run_once(self, *options):
        """-> what rping's two sides say; the client's device has the options"""
        port = free_port()
        common = ("-V", "-S", "1000", "-C", "10", "-p", port, "-a", "127.0.0.1")
        serving = self.serve(port, "rping", "-s", *common)
        client = self.start("rping", "-c", *common, options=options)
        return [self.said_by(each) for each in (client, serving)]

    def test_a_terminate(self):
        for line in ("terminate now", "terminate at message 5"):
            with self.subTest(line=line):
                client, server = self.run_once("--fault", line)
                self.assertIn(f"Terminate sent: {self.CATASTROPHE}", client)
                self.assertIn(f"Terminate received: {self.CATASTROPHE}", server)

    def test_a_stalled_responder(self):
        begin = time.monotonic()
        client, server = self.run_once("--fault", "stall the responder 700ms at request 3",
                                       "--fault", "stall the responder 1ms")
        self.assertGreater(time.monotonic() - begin, 0.7)
        for said in (client, server):
            self.assertNotIn("error", said)
        self.assertIn("done: the responder is stalled", client)

    def test_what_is_refused(self):
        for lines, why in ((("drop fpdu 3 of message 7",),
                            "is done to frames, and a device on the system's sockets sends none: "
                            "name a local wire by --wire FOLDER"),
                           (("terminate now", "drop"), '"drop" is not whole: write "drop fpdu 3 of '
                                                       'message 7"')):
            options = [word for line in lines for word in ("--fault", line)]
            self.assertIn(f"--fault: \"{lines[-1]}\" {why}" if len(lines) == 1
                          else f"--fault: {why}",
                          self.end(self.start("true", options=options), 2))


class Captures(OnSoftrnic):
    """Of what goes over sockets, which show no frames."""

    def test_rping(self):
        for address in ("127.0.0.1", "::1"):
            with self.subTest(address=address):
                for said in rping_again(lambda: self.rping(address)):
                    self.assertNotIn("error", said)
                for capture in ("server.pcapng", "client.pcapng"):
                    self.look_at(capture)

    def rping(self, address):
        """-> what both have said of octets that they compare (-V)"""
        port = free_port()
        common = ("-V", "-S", "65000", "-C", "20", "-p", port, "-a", address)
        serving = self.serve(port, "rping", "-s", *common, options=("--capture", "server.pcapng"))
        client = self.start("rping", "-c", *common, options=("--capture", "client.%p.pcapng"))
        said = self.end(client)
        os.rename(os.path.join(self.folder, f"client.{client.pid}.pcapng"),
                  os.path.join(self.folder, "client.pcapng"))
        return said, self.end(serving)

    def look_at(self, capture):
        fields = ("_ws.malformed", "tcp.analysis.flags", "tcp.flags", "frame.protocols",
                  "iwarp_mpa.req", "iwarp_mpa.rep")
        shown = subprocess.run([*TSHARK, "-r", os.path.join(self.folder, capture),
                                "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE",
                                "-T", "fields", *(word for name in fields for word in ("-e", name))],
                               capture_output=True, text=True, check=True)
        frames = [dict(zip(fields, line.split("\t"))) for line in shown.stdout.splitlines()]
        for field in ("_ws.malformed", "tcp.analysis.flags"):
            self.assertEqual([frame for frame in frames if frame[field]], [], field)
        self.assertEqual([int(frame["tcp.flags"], 16) for frame in frames[:3]], [0x02, 0x12, 0x10])
        for field in ("iwarp_mpa.req", "iwarp_mpa.rep"):
            self.assertEqual(len([frame for frame in frames if frame[field]]), 1, field)
        # 20 Reads, as many Writes, and the Sends that ask for them.
        carried = [frame for frame in frames if "iwarp_ddp" in frame["frame.protocols"]]
        self.assertGreater(len(carried), 60)
        self.assertTrue(int(frames[-1]["tcp.flags"], 16) & 0x05, "no FIN and no RST")
        with open(os.path.join(self.folder, capture), "rb") as file:
            comment = file.read(600)
        self.assertIn(b"The frames are made up", comment)
        self.assertIn(b"disable its protocol rpcordma", comment)

    def test_other_programs(self):
        ways = [(("ib_send_bw", "-R", "-F", "-n", "50", "-s", "4096", "-b"), ("-p",), ("127.0.0.1",)),
                (("rstream", "-S", "4096", "-C", "20"), ("-p",), ("-s", "127.0.0.1"))]
        if os.environ[CHOSEN] == ADDRESS:  # it leaves out the loopback interface
            ways.append((("fi_pingpong", "-p", "verbs", "-e", "msg", "-I", "20", "-S", "4096"),
                         ("-B", "-P"), (ADDRESS,)))
        for words, at, server in ways:
            with self.subTest(words=words):
                port = free_port()
                serving = self.serve(port, *words, at[0], port)
                client = self.start(*words, at[-1], port, *server, options=("--capture", "%p.pcapng"))
                self.said_by(client)
                kill_all_of(serving)
                self.assertNotEqual(self.frames(f"{client.pid}.pcapng", "iwarp_ddp"), [])
                self.assertEqual(self.frames(f"{client.pid}.pcapng", "_ws.malformed"), [])

    def test_a_file_has_one_writer(self):
        port = free_port()
        self.serve(port, "rping", "-s", "-p", port, "-a", "127.0.0.1", options=("--capture", "one.pcapng"))
        said = self.end(self.start("ibv_devinfo", options=("--capture", "one.pcapng")), 1)
        self.assertIn("one.pcapng cannot be written: another device or program writes it", said)

    def test_a_pipe_that_nobody_reads(self):
        os.mkfifo(os.path.join(self.folder, "pipe"), 0o666)
        os.chmod(os.path.join(self.folder, "pipe"), 0o666)
        self.assertIn("it is a pipe that nobody reads",
                      self.end(self.start("ibv_devinfo", options=("--capture", "pipe")), 1))
        self.assertIn("is no regular file",
                      self.end(self.start("ibv_devinfo", options=("--config", "pipe")), 2))


class OnWire(OnSoftrnic):
    """What runs two programs over frames of softrnic's own."""

    ADDRESS = "10.77.0.1"  # of the one that comes first

    def new_wire(self):
        # A new one each time: those that are gone leave their files behind.
        self.wires = getattr(self, "wires", 0) + 1
        self.wire = os.path.join(self.folder, f"wire{self.wires}")

    def setUp(self):
        super().setUp()
        self.new_wire()

    def member(self, address):
        """-> the file of a member of the wire"""
        return os.path.join(self.wire, "0200" + socket.inet_aton(address).hex())

    def wait_for(self, process, file):
        """Waits until the process has joined the wire; it is ended with the test."""
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + SECONDS
        while not os.path.exists(file):
            self.assertIsNone(process.poll(), "it has ended before it joined the wire")
            self.assertLess(time.monotonic(), deadline, "it does not join the wire")
            time.sleep(0.02)

    def on_wire(self, server, client, options=("", "")):
        """Runs a server and a client on the wire. -> what both have said"""
        serving = self.start(*server, options=("--wire", self.wire, *options[0]))
        self.wait_for(serving, self.member("10.77.0.1"))
        said = self.end(self.start(*client, options=("--wire", self.wire, *options[1])))
        return self.end(serving), said

    def pingpong(self, provider, endpoint, options=("", "")):
        """Runs libfabric's, which compares what comes. -> what both sides have said"""
        port = free_port()
        common = ("fi_pingpong", "-p", provider, "-e", endpoint, "-I", "20", "-c")
        wire = ("--wire", self.wire, "--address")
        serving = self.serve(port, *common, "-B", port,
                             options=(*wire, f"{ADDRESS}/24", *options[0]))
        said = self.end(self.start(*common, "-P", port, ADDRESS,
                                   options=(*wire, f"{SECOND}/24", *options[1])))
        return self.end(serving), said


class Wire(OnWire):
    """The same over frames of softrnic's own, between the two processes."""

    def rping(self, address, *options):
        """-> what both have said of octets that they compare (-V)"""
        common = ("-V", "-S", "65000", "-C", "20", "-a", address)
        said = rping_again(lambda: self.on_wire(("rping", "-s", *common), ("rping", "-c", *common),
                                                options or ("", "")), self.new_wire)
        for each in said:
            self.assertNotIn("error", each)
        return said

    def test_rping(self):
        for address in (self.ADDRESS, "fd77::1"):
            with self.subTest(address=address):
                self.new_wire()
                server, client = self.rping(address)
                self.assertIn(f"on the local wire {self.wire} as 10.77.0.1, fd77::1", server)
                self.assertIn(f"on the local wire {self.wire} as 10.77.0.2, fd77::2", client)

    def test_rping_on_a_bad_wire(self):
        damage = "loss=2%,reorder=2%,corrupt=1%,seed="
        said = self.rping(self.ADDRESS, ("--impair", damage + "5", "--capture", "server.pcapng"),
                          ("--impair", damage + "6", "--capture", "client.pcapng"))
        for each, seed in zip(said, "56"):
            self.assertIn(f"its frames suffer {damage}{seed}", each)
            self.assertNotIn("give it the same", each)
        for capture in ("server.pcapng", "client.pcapng"):
            # A frame that was damaged on its way is one that TCP does not take.
            self.assertGreater(len(self.frames(capture, "tcp.analysis.retransmission")), 5)
            self.assertGreater(len(self.frames(capture, "iwarp_ddp")), 100)

    def test_captures_decode(self):
        self.rping(self.ADDRESS, ("--capture", "server.pcapng"), ("--capture", "client.pcapng"))
        for capture in ("server.pcapng", "client.pcapng"):
            self.assertEqual(self.frames(capture, "_ws.malformed"), [])
            self.assertNotEqual(self.frames(capture, "iwarp_mpa.rep"), [])
            # The end of the connection is there, too.
            self.assertNotEqual(self.frames(capture, "tcp.flags.fin == 1 or tcp.flags.reset == 1"),
                                [])

    def test_a_capture_of_a_configuration_has_the_last_frames(self):
        # The connections end with the process, and so do the captures.
        options = []
        for number in (1, 2):
            path = os.path.join(self.folder, f"{number}.toml")
            with open(path, "w", encoding="ascii") as file:
                file.write(f'[[device]]\nname = "rnic0"\nport = "local:{self.wire}"\n'
                           f'address = "10.77.0.{number}/16"\n[device.capture]\n'
                           f'file = "{self.folder}/{number}.pcapng"\n[net]\ndad_transmits = 0\n')
            options.append(("--config", path))
        common = ("-V", "-C", "5", "-a", self.ADDRESS)
        serving = self.start("rping", "-s", *common, options=options[0])
        self.wait_for(serving, self.member(self.ADDRESS))
        self.said_by(self.start("rping", "-c", *common, options=options[1]))
        self.said_by(serving)
        ends = "tcp.flags.fin == 1 or tcp.flags.reset == 1"
        for number in (1, 2):
            self.assertNotEqual(self.frames(f"{number}.pcapng", ends), [], number)

    def test_a_dropped_fpdu(self):
        line = "drop fpdu 3 of message 3"  # the response to the first Read, 45 FPDUs long
        server, client = self.rping(self.ADDRESS, (), ("--fault", line, "--capture", "faults.pcapng"))
        self.assertIn(f"it does wrong on purpose (device.fault): {line}", client)
        self.assertEqual(client.count(f"done: {line}"), 1)
        self.assertNotIn("wrong", server)
        # The capture has what was sent: the gap, and what fills it.
        lost = "tcp.analysis.lost_segment or tcp.analysis.out_of_order or tcp.analysis.retransmission"
        self.assertNotEqual(self.frames("faults.pcapng", lost), [])

    def test_a_bad_crc(self):
        line = "bad crc on read response 2"
        common = ("-V", "-S", "65000", "-C", "20", "-a", self.ADDRESS)
        serving = self.start("rping", "-s", *common, options=("--wire", self.wire))
        self.wait_for(serving, self.member(self.ADDRESS))
        client = self.said_by(self.start("rping", "-c", *common,
                                         options=("--wire", self.wire, "--fault", line)))
        server = self.said_by(serving)
        self.assertEqual(client.count(f"done: {line}"), 1)
        error = "layer LLP, type MPA error, code 0x02 CRC mismatch"
        self.assertIn(f"Terminate sent: {error}", server)
        self.assertIn(f"Terminate received: {error}", client)

    def test_damage_on_one_side_alone(self):
        server, client = self.rping(self.ADDRESS, ("--impair", "loss=1%,seed=1"), ())
        self.assertIn(f"another program on the wire {self.wire} damages its frames (--impair "
                      "loss=1%,seed=1), and this one does not: give it the same", client)
        self.assertNotIn("give it the same", server)

    def test_rsockets(self):
        common = ("rstream", "-S", "65536", "-C", "20")
        _, client = self.on_wire(common, (*common, "-s", self.ADDRESS))
        self.assertRegex(client, r"64k +20 ")

    def test_riostream(self):
        common = ("riostream", "-S", "65536", "-C", "50", "-T", "v")
        for said in self.on_wire(common, (*common, "-s", self.ADDRESS)):
            self.assertRegex(said, r"64k +50 ")

    def test_libfabric(self):
        # It looks for devices at the addresses of the machine's interfaces alone, and agrees with its
        # peer by the system's TCP there.
        if os.environ[CHOSEN] != ADDRESS:
            self.skipTest("no network of its own can be made here")
        for provider, endpoint in (("verbs", "msg"), ("verbs;ofi_rxm", "rdm")):
            with self.subTest(provider=provider):
                self.new_wire()
                for said in self.pingpong(provider, endpoint):
                    self.assertRegex(said, r"1m +20 +=20 ")

    def test_ucmatose(self):
        common = ("ucmatose", "-c", "10", "-C", "10")
        for said in self.on_wire(common, (*common, "-s", self.ADDRESS)):
            self.assertIn("return status 0", said)

    def test_an_address_of_its_own(self):
        rping_again(self.takes_an_address, self.new_wire)

    def takes_an_address(self):
        common = ("-V", "-C", "5", "-a", "10.5.0.9")
        its_own = ("--wire", self.wire, "--address", "10.5.0.9/24")
        serving = self.start("rping", "-s", *common, options=its_own)
        self.wait_for(serving, self.member("10.5.0.9"))
        refused = self.start("rping", "-s", *common, options=its_own)
        said, _ = refused.communicate(timeout=SECONDS)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("another port on", said)
        self.end(self.start("rping", "-c", *common,
                            options=("--wire", self.wire, "--address", "10.5.0.1/24")))
        self.end(serving)

    def test_exit_in_the_handler_of_a_signal(self):
        # It interrupts a thread that drives the device, more often than not.
        program = shutil.copy(EXIT_IN_HANDLER, self.folder)
        for _ in range(5):
            self.new_wire()
            process = self.start(program, self.ADDRESS, options=("--wire", self.wire))
            self.assertRegex(self.end(process), r"(?m)^ok$")

    def test_exit_in_two_threads(self):
        # What the first one has begun the second one does not cut short, wherever it comes.
        program = shutil.copy(EXIT_IN_TWO_THREADS, self.folder)
        overlaps = 0
        for _ in range(20):
            self.new_wire()
            serving = self.start("rping", "-s", "-a", self.ADDRESS, options=("--wire", self.wire))
            self.wait_for(serving, self.member(self.ADDRESS))
            process = self.start(program, self.ADDRESS,
                                 options=("--wire", self.wire, "--capture", "twice.pcapng"))
            said = self.said_by(process)
            self.assertRegex(said, r"(?m)^ok$")
            # A second one that comes when the first is through with it all may overtake it.
            self.assertIn(process.returncode, (0, 3), said)
            self.assertNotEqual(self.frames("twice.pcapng", "tcp.flags.reset == 1"), [], said)
            self.said_by(serving)
            overlaps += "the second thread exits" in said
            if overlaps == 3:
                return
        self.fail(f"both have exited at once in {overlaps} of 20 processes")

    def test_a_killed_peer_is_missed(self):
        # Nobody says farewell for it; the next segment to it is answered by the wire.
        forever = ("-C", "100000000", "-a", self.ADDRESS)
        serving = self.start("rping", "-s", *forever, options=("--wire", self.wire))
        self.wait_for(serving, self.member(self.ADDRESS))
        calling = self.start("rping", "-c", *forever, options=("--wire", self.wire))
        self.wait_for(calling, self.member("10.77.0.2"))
        time.sleep(0.3)
        serving.kill()
        serving.wait()
        said, _ = calling.communicate(timeout=SECONDS)
        self.assertGreaterEqual(calling.returncode, 0, "it was ended by a signal")
        self.assertRegex(said, "DISCONNECT EVENT|cq completion failed")


class Pyverbs(OnSoftrnic):
    """libibverbs' and librdmacm's Python, which Debian has for its own interpreter."""

    PYTHON = "/usr/bin/python3"
    TESTS = "/usr/share/doc/rdma-core/tests"

    def setUp(self):
        super().setUp()
        found = subprocess.run([self.PYTHON, "-c", "import pyverbs"], stderr=subprocess.DEVNULL,
                               check=False)
        self.assertEqual(found.returncode, 0, "python3-pyverbs is not installed")

    def test_objects(self):
        program = shutil.copy(os.path.join(HERE, "pyverbs_objects.py"), self.folder)
        said = self.end(self.start(self.PYTHON, program, "127.0.0.1", free_port()))
        self.assertRegex(said, r"(?m)^ok$")

    def test_objects_on_a_wire(self):
        program = shutil.copy(os.path.join(HERE, "pyverbs_objects.py"), self.folder)
        said = self.end(self.start(self.PYTHON, program, "10.77.0.1", "7471",
                                   options=("--wire", os.path.join(self.folder, "wire"))))
        self.assertRegex(said, r"(?m)^ok$")

    def unpack(self):
        """-> the folder of rdma-core's own tests, of the version that is installed"""
        if not os.path.isdir(self.TESTS):
            self.skipTest("the system was installed without documentation, and so without them")
        into = os.path.join(self.folder, "rdma-core", "tests")
        os.makedirs(into)
        for name in os.listdir(self.TESTS):
            source = os.path.join(self.TESTS, name)
            opened = gzip.open(source) if name.endswith(".gz") else open(source, "rb")
            with opened as packed, open(os.path.join(into, name.removesuffix(".gz")), "wb") as out:
                out.write(packed.read())
        return os.path.dirname(into)

    def outcomes(self, folder, names, options=()):
        """Runs tests of rdma-core's. -> how each has ended, and why"""
        driver = shutil.copy(os.path.join(HERE, "rdma_core_driver.py"), self.folder)
        result = os.path.join(self.folder, "result.json")
        self.end(self.start(self.PYTHON, driver, folder, result, *names, options=options))
        with open(result, encoding="utf-8") as file:
            return json.load(file)

    def test_rdma_core_by_gid_and_number(self):
        with open(os.path.join(HERE, "rdma_core_roce.toml"), "rb") as file:
            lists = tomllib.load(file)
        expected = {f"tests.{module}.{name}": how for module, rows in lists.items()
                    for how, names in (("passed", rows["must_pass"]),
                                       ("failed", rows.get("cannot", {}))) for name in names}
        found = self.outcomes(self.unpack(), list(expected), options=OverRoce.FACE)
        for name, how in expected.items():
            with self.subTest(name=name):
                self.assertEqual(found[name][0], how, found[name][1][-2000:])

    def test_rdma_core(self):
        with open(os.path.join(HERE, "rdma_core.toml"), "rb") as file:
            lists = tomllib.load(file)
        folder = self.unpack()
        found = self.outcomes(folder, [f"tests.{module}" for module in lists])
        must = {f"tests.{module}.{name}" for module, rows in lists.items()
                for name in rows["must_pass"]}
        cannot = {f"tests.{module}.{name}" for module, rows in lists.items()
                  for name in rows.get("cannot", {})}
        early = {f"tests.{module}.{name}" for module, rows in lists.items()
                 for name in rows.get("early", [])}
        self.assertLessEqual(early, must)
        self.assertEqual(must | cannot, set(found), "rdma_core.toml has every test once")
        self.assertEqual(must & cannot, set())
        for name in sorted(must):
            with self.subTest(name=name):
                for _ in range(3 if name in early else 0):
                    if found[name][0] == "passed":
                        break
                    found |= self.outcomes(folder, [name])
                self.assertEqual(found[name][0], "passed", found[name][1][-2000:])
        passed = {name for name in cannot if found[name][0] == "passed"}
        self.assertEqual(passed, set(), "they can, after all: they belong to must_pass")


class Command(unittest.TestCase):
    def run_it(self, *words):
        return subprocess.run([RUN, *words], capture_output=True, text=True, check=False,
                              timeout=SECONDS)

    def test_bad_arguments(self):
        for words, status, what in (
                ((), 2, "name a program to run"),
                (("--colour", "ls"), 2, "--colour"),
                (("--config", "/no/such/file", "ls"), 2, "/no/such/file"),
                (("no-such-program",), 127, "no-such-program: No such file or directory"),
                (("/etc/passwd",), 126, "/etc/passwd: Permission denied")):
            with self.subTest(words=words):
                ran = self.run_it(*words)
                self.assertEqual(ran.returncode, status)
                self.assertEqual(ran.stdout, "")
                self.assertRegex(ran.stderr, "^rnic-run: .*" + re.escape(what))
                self.assertEqual(ran.stderr.count("\n"), 1, ran.stderr)

    def test_bad_configuration(self):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write('[[device]]\nname = "rnic0"\nport = "socket"\nspeed = 3\n')
            file.flush()
            ran = self.run_it("--config", file.name, "true")
            self.assertEqual(ran.returncode, 2)
            self.assertRegex(ran.stderr, "^rnic-run: .*speed")

    def test_a_program_without_rdma_is_left_alone(self):
        ran = self.run_it("sh", "-c", "echo said; exit 7")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (7, "said\n", ""))

    def test_devices_of_the_machine(self):
        # They are in the tree that libibverbs reads, as long as they are there.
        if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
            self.skipTest("no file systems of its own can be mounted here")
        script = """
            mount -t tmpfs none /sys/class && cd /sys/class && mkdir -p net/lo &&
            mkdir -p infiniband/mlx5_7 infiniband_verbs/uverbs0 && echo 1 > infiniband/mlx5_7/node_type &&
            echo mlx5_7 > infiniband_verbs/uverbs0/ibdev
            "$0" sh -c 'cat $SYSFS_PATH/class/infiniband/mlx5_7/node_type;
                        cat $SYSFS_PATH/class/infiniband_verbs/uverbs0/ibdev; ibv_devices'
            """
        said = subprocess.run(["unshare", "-m", "sh", "-c", script, RUN], capture_output=True,
                              text=True, check=False, timeout=SECONDS)
        self.assertRegex(said.stdout, r"(?s)^1\nmlx5_7\n.*rnic0", said.stderr)
        gone = self.run_it("sh", "-c", "ls $SYSFS_PATH/class/infiniband; ibv_devices | grep -c rnic0")
        self.assertEqual(gone.stdout, "rnic0\n1\n", gone.stderr)

    def test_programs_that_nothing_is_preloaded_into(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            # mov edi, 7; mov eax, 60 (exit); syscall
            code = bytes.fromhex("bf07000000b83c0000000f05")
            at, size = 0x400000, 64 + 56 + len(code)
            program = os.path.join(folder, "static")
            with open(program, "wb") as file:
                file.write(b"\x7fELF\x02\x01\x01".ljust(16, b"\0") +
                           struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, at + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0) +
                           struct.pack("<IIQQQQQQ", 1, 5, 0, at, at, size, size, 0x1000) + code)
            script = os.path.join(folder, "script")
            with open(script, "w", encoding="ascii") as file:
                file.write(f"#! {program} -x\n")
            for each in (program, script):
                os.chmod(each, 0o755)
                ran = self.run_it(each)
                self.assertEqual(ran.returncode, 7)  # it has run nevertheless
                self.assertEqual(ran.stderr, f"rnic-run: {program} runs without the device, as "
                                 "nothing can be preloaded into it: it is linked statically\n")
            if os.getuid() != 0 or os.statvfs(folder).f_flag & os.ST_NOSUID:
                return
            with_rights = shutil.copy(shutil.which("true"), folder)
            os.chmod(with_rights, 0o755 | stat.S_ISUID)
            for user, said in ((0, ""), (NOBODY, "it gets rights that its user does not have")):
                ran = subprocess.run(["setpriv", "--reuid", str(user), RUN, with_rights], text=True,
                                     capture_output=True, check=False, timeout=SECONDS)
                self.assertEqual(ran.returncode, 0)
                self.assertRegex(ran.stderr, said + "\n?$" if said else "^$")

    def test_without_proc(self):
        if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
            self.skipTest("no file systems of its own can be mounted here")
        ran = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /proc; exec \"$0\" true",
                              RUN], capture_output=True, text=True, check=False, timeout=SECONDS)
        self.assertIn("/proc/self/exe: No such file or directory", ran.stderr)
        self.assertNotIn("beside", ran.stderr)

    def test_variables_on_top_of_others(self):
        for before, word, what in (((), "0", r"transport:\s+iWARP"),
                                   (("--roce",), "1", r"transport:\s+InfiniBand"),
                                   ((), "1", "RNIC_ROCE is 1, and the device of SYSFS_PATH is one of iWARP"),
                                   (("--roce",), "0", "RNIC_ROCE is not 1, and the device of SYSFS_PATH "
                                                      "is one of RoCE"),
                                   ((), "yes", "RNIC_ROCE: \"yes\" says neither yes nor no")):
            with self.subTest(before=before, word=word):
                ran = self.run_it(*before, "env", "RNIC_ROCE=" + word, "ibv_devinfo")
                self.assertRegex(ran.stdout + ran.stderr, what)

    def test_few_descriptors(self):
        for few in ("40", "300", "1024", "1200"):
            for face in ((), ("--roce",)):
                ran = subprocess.run(["sh", "-c", "ulimit -n \"$0\"; exec \"$@\"", few, RUN, *face,
                                      "ibv_devinfo"], capture_output=True, text=True, check=False,
                                     timeout=SECONDS)
                self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_the_list_of_devices(self):
        ran = self.run_it("ls", "/sys/class/infiniband/", "/sys/class/infiniband/rnic0/ports/1")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("rnic0\n", ran.stdout)
        self.assertIn("state\n", ran.stdout)

    def test_a_tree_that_is_gone(self):
        ran = self.run_it("env", "SYSFS_PATH=/no/such/tree", "ibv_devinfo")
        self.assertIn("softrnic: there is no device, since /no/such/tree cannot be read", ran.stderr)

    def test_many_starts_at_once(self):
        # Whatever their faces are, each finds a whole tree, in a folder where there was none.
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            show = "cd $SYSFS_PATH/class && ls infiniband_verbs infiniband/rnic0/ports/1/gids && " \
                   "cat infiniband/rnic0/ports/1/gids/0"
            faces = ((), ("--roce",), ("--roce", "--wire", folder + "/wire", "--address", "10.77.0.9/16"))
            environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
            runs = [subprocess.Popen([RUN, *faces[i % 3], "sh", "-c", show], text=True, env=environment,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                    for i in range(60)]
            said = [(run.communicate(timeout=SECONDS)[0], run.returncode) for run in runs]
            for i, each in enumerate(said):
                self.assertEqual(each, said[i % 3])
                self.assertRegex(each[0], r"^infiniband/rnic0.*:\n0\n", each)
                self.assertEqual(each[1], 0, each)
            # One tree for each face, and no draft.
            trees = os.listdir(os.path.join(folder, f"softrnic-{os.getuid()}"))
            self.assertEqual(len(trees), 3, trees)

    def test_a_tree_that_was_cleaned_up_is_made_again(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            again = ["env", "XDG_RUNTIME_DIR=" + folder, RUN, "sh", "-c",
                     "cat $SYSFS_PATH/class/infiniband/rnic0/node_type && "
                     "rm $SYSFS_PATH/class/infiniband/rnic0/node_type"]
            for _ in range(2):
                self.assertEqual(subprocess.run(again, capture_output=True, text=True, check=True,
                                                timeout=SECONDS).stdout, "4: RNIC\n")

    def test_no_place_for_the_tree(self):
        if os.getuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
            self.skipTest("no file systems of its own can be mounted here")
        if RUN.startswith("/tmp/"):
            self.skipTest("the program would be hidden with it")
        ran = subprocess.run(["unshare", "-m", "sh", "-c",
                              "mount -t tmpfs -o ro none /tmp && exec \"$0\" true", RUN],
                             capture_output=True, text=True, check=False, timeout=SECONDS,
                             env={"PATH": os.environ["PATH"]})
        self.assertEqual(ran.stderr, "rnic-run: the device's files have no place: /tmp: Read-only file "
                         "system: make it one that can be written, or set XDG_RUNTIME_DIR to a "
                         "folder of yours alone\n")

    def test_environment(self):
        ran = self.run_it("--print-environment")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        shell = subprocess.run(["sh", "-c", ran.stdout + "ibv_devices"], capture_output=True,
                               text=True, check=False, timeout=SECONDS)
        self.assertIn("rnic0", shell.stdout)


class Plugin(unittest.TestCase):
    def test_gives_nothing(self):
        for name in ("librnic-rdmav34.so", "librnic-dpdk-rdmav34.so"):
            names = subprocess.run(["nm", "-D", "--defined-only", os.path.join(FOLDER, name)],
                                   capture_output=True, text=True, check=True).stdout
            # A small letter is a local name, but for these kinds of global ones.
            self.assertEqual(re.findall(r"(?m)^\w+ ([A-Zuvw] .*)$", names), [], name)

    def test_has_no_memory_of_threads_that_is_allocated(self):
        # LeakSanitizer guesses at the size of such memory, and may die of that.
        names = subprocess.run(["nm", "-D", "--undefined-only", os.path.join(FOLDER, "librnic-rdmav34.so")],
                               capture_output=True, text=True, check=True).stdout
        self.assertNotIn("__tls_get_addr", names)

    def test_brings_no_dpdk_into_a_program(self):
        for name, has_it in (("librnic-rdmav34.so", False), ("librnic-dpdk-rdmav34.so", True)):
            with self.subTest(name=name):
                needed = subprocess.run(["readelf", "-d", os.path.join(FOLDER, name)],
                                        capture_output=True, text=True, check=True).stdout
                self.assertEqual("librte_" in needed, has_it, needed)


class Door(unittest.TestCase):
    def test_a_path_that_is_none_is_the_kernels_to_refuse(self):
        calls = ("import ctypes, errno\n"
                 "c = ctypes.CDLL(None, use_errno=True)\n"
                 "room = ctypes.create_string_buffer(512)\n"
                 "for call in (lambda: c.open(None, 0), lambda: c.stat(None, room),\n"
                 "             lambda: c.lstat(None, room), lambda: c.access(None, 0),\n"
                 "             lambda: c.fstatat(-100, None, room, 0),\n"
                 "             lambda: c.statx(-100, None, 0, 0, room)):\n"
                 "    print(call(), errno.errorcode[ctypes.get_errno()])\n")
        ran = subprocess.run([RUN, sys.executable, "-c", calls], capture_output=True, text=True,
                             check=False, timeout=SECONDS)
        self.assertEqual(ran.stdout.split("\n"), ["-1 EFAULT"] * 6 + [""], ran.stderr)

    def test_programs_linked_with_an_older_libc_find_the_device(self):
        # They call these instead of stat(), lstat() and fstatat(), and of fstat().
        calls = ("import ctypes\n"
                 "c = ctypes.CDLL(None)\n"
                 "room = ctypes.create_string_buffer(512)\n"
                 "shown = b'/sys/class/infiniband/rnic0'\n"
                 "for bits in ('', '64'):\n"
                 "    print(c['__xstat' + bits](1, shown, room), c['__lxstat' + bits](1, shown, room),\n"
                 "          c['__fxstatat' + bits](1, -100, shown, room, 0),\n"
                 "          c['__fxstat' + bits](1, 0, room))\n")
        ran = subprocess.run([RUN, sys.executable, "-c", calls], capture_output=True, text=True,
                             check=False, timeout=SECONDS)
        self.assertEqual(ran.stdout, "0 0 0 0\n" * 2, ran.stderr)

    def test_what_was_preloaded_stays_in_front(self):
        # A sanitizer's runtime has to be the first. The door stands once in the list, however often
        # rnic-run is run within itself.
        first = ctypes.util.find_library("m")
        ran = subprocess.run([RUN, RUN, "sh", "-c", "echo $LD_PRELOAD"], capture_output=True, text=True,
                             check=False, timeout=SECONDS,
                             env={**os.environ, "LD_PRELOAD": f"{first} libdl.so.2"})
        self.assertEqual(ran.stdout, f"{first}:libdl.so.2:{FOLDER}/librnic-door.so\n", ran.stderr)

    def test_a_folder_that_the_loader_cannot_name(self):
        with tempfile.TemporaryDirectory(prefix="a b") as folder:
            for name in ("rnic-run", "librnic-door.so", "librnic-rdmav34.so"):
                shutil.copy(os.path.join(FOLDER, name), folder)
            ran = subprocess.run([os.path.join(folder, "rnic-run"), "true"], capture_output=True,
                                 text=True, check=False, timeout=SECONDS)
            self.assertEqual(ran.returncode, 2)
            self.assertIn("has a space or a colon: move it", ran.stderr)

    def test_gives_what_is_meant_and_needs_libc_alone(self):
        door = os.path.join(FOLDER, "librnic-door.so")
        names = subprocess.run(["nm", "-D", "--defined-only", door], capture_output=True,
                               text=True, check=True).stdout.split()[2::3]
        self.assertEqual(sorted(names), [
            "__asan_default_options", "__fxstat", "__fxstat64", "__fxstatat", "__fxstatat64",
            "__lsan_default_options", "__lxstat", "__lxstat64", "__tsan_default_suppressions", "__xstat",
            "__xstat64", "access", "close", "close_range", "closefrom", "dup", "dup2", "dup3", "fcntl",
            "fcntl64", "fopen", "fopen64", "fstat", "fstat64", "fstatat", "fstatat64", "lstat",
            "lstat64", "open", "open64", "openat", "openat64", "opendir", "rnic_door_attach", "socket",
            "stat", "stat64", "statx", "write"])
        needed = subprocess.run(["readelf", "-d", door], capture_output=True, text=True,
                                check=True).stdout
        self.assertEqual(re.findall(r"\(NEEDED\).*\[(.*)\]", needed), ["libc.so.6"])


def in_own_network(script):
    """Begins the script anew in a network where no port is taken, if that may be made."""
    own = ["unshare", "--net"] + ([] if os.getuid() == 0 else ["--map-root-user"])
    make = ("ip link set lo up && ip link add rnic-a type veth peer name rnic-b && "
            f"ip addr add {ADDRESS}/24 dev rnic-a && ip addr add {SECOND}/24 dev rnic-a && "
            "ip link set rnic-a up && "
            "ip link set rnic-b up && exec \"$@\"")
    inside = ["sh", "-c", make, "sh"]
    os.environ[CHOSEN] = "none"
    if subprocess.run([*own, *inside, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        return
    os.environ[CHOSEN] = ADDRESS
    os.execvp(own[0], [*own, *inside, sys.executable, script, *sys.argv[1:]])


def main(script):
    """Runs the tests of a script. Behind the two programs stand names of tests, if any."""
    if CHOSEN not in os.environ:
        in_own_network(script)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])


class Memif(OnSoftrnic):
    """Memory that two processes share, by a driver of DPDK's."""

    def configuration(self, role, number):
        """-> the options for one end"""
        path = os.path.join(self.folder, f"{role}.toml")
        with open(path, "w", encoding="ascii") as file:
            file.write('[eal]\nhugepages = "off"\n[[device]]\nname = "rnic0"\n'
                       f'address = "10.1.0.{number}/24"\nport = "net_memif0,role={role},id=0,'
                       f'socket={self.folder}/memif,socket-abstract=no"\n')
        return ("--config", path)

    def test_rping(self):
        common = ("-V", "-S", "65000", "-C", "20", "-a")
        serving = self.start("rping", "-s", *common, "0.0.0.0",
                             options=self.configuration("server", 1))
        self.addCleanup(serving.stdout.close)
        self.addCleanup(serving.wait)
        self.addCleanup(kill_all_of, serving)
        for _ in range(20):
            # Nothing tells from outside that the server listens.
            calling = self.start("rping", "-c", *common, "10.1.0.1",
                                 options=self.configuration("client", 2))
            said, _ = calling.communicate(timeout=SECONDS)
            if calling.returncode == 0:
                break
            self.assertIsNone(serving.poll(), said)
            time.sleep(0.1)
        self.assertEqual(calling.returncode, 0, said)
        self.assertIn("DISCONNECT", self.end(serving))


if __name__ == "__main__":
    main(os.path.abspath(__file__))
