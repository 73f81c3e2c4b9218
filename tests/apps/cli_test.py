#!/usr/bin/env python3
"""The applications as a newcomer meets them: help, wrong input, the results of short runs.

usage: cli_test.py RNIC_PERF RNIC_PING RNIC_DEMO RNIC_STREAM
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
import ports  # noqa: E402

PERF, PING, DEMO, STREAM = (os.path.abspath(path) for path in sys.argv[1:5])
APPS = {"rnic-perf": PERF, "rnic-ping": PING, "rnic-demo": DEMO, "rnic-stream": STREAM}
PERF_KEYS = ["op", "size", "mtu", "cores", "checksum", "crc", "markers", "goodput_gbps",
             "floor_gbps", "ratio_to_floor", "ratio_min", "ratio_max", "rounds", "msgs_per_s",
             "p50_us", "p99_us", "verified"]
RUN_KEYS = ["op", "size", "wire", "goodput_gbps", "msgs_per_s", "aligned_pct",
            "ooo_placed_octets", "held_octets", "retransmissions", "crc_drops", "verified"]
ATOMICS = ("fetch-add", "masked-add", "cmp-swap", "masked-swap")
WORD_OPS = ("imm", *ATOMICS)
NO_HUGE = ["--set", "eal.hugepages=off"]


def free_hugepages():
    total = 0
    root = "/sys/kernel/mm/hugepages"
    for folder in os.listdir(root) if os.path.isdir(root) else []:
        with open(os.path.join(root, folder, "free_hugepages"), encoding="ascii") as file:
            total += int(file.read())
    return total


WIRE = """[eal]
hugepages = "off"
[[wire]]
name = "loop"
[[device]]
name = "rnic0"
port = "wire:loop:0"
address = "10.0.0.1/24"
[[device]]
name = "rnic1"
port = "wire:loop:1"
address = "10.0.0.2/24"
"""
NULL = """[eal]
hugepages = "off"
[[device]]
port = "net_null0"
address = "10.0.0.1/24"
"""


class Server:
    """A server without a configuration, until the block ends."""

    def __init__(self, program, folder, *args):
        self.log = os.path.join(folder, "server.log")
        with open(self.log, "wb") as log:
            self.child = subprocess.Popen([program, "server", *args], stderr=log, cwd=folder,
                                          stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def said(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def __enter__(self):
        while "listening on" not in self.said():
            if self.child.poll() is not None:
                raise AssertionError("the server does not listen: " + self.said())
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.child.send_signal(signal.SIGINT)
        self.status = self.child.wait(20)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rnic-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_app(self, app, *args):
        return subprocess.run([APPS[app], *args], cwd=self.folder, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=100, check=False)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def refuses(self, app, *args, says):
        """Exit 2, one line on stderr that begins with the program's name, nothing on stdout."""
        with self.subTest(app=app, args=args):
            done = self.run_app(app, *args)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual(done.stdout, "")
            lines = done.stderr.splitlines()
            self.assertEqual(len(lines), 1, done.stderr)
            self.assertTrue(lines[0].startswith(app + ": "), lines[0])
            self.assertRegex(lines[0], says)

    def result(self, app, *args):
        """The JSON object that is the last line of stdout."""
        done = self.run_app(app, *args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])


class Help(Case):
    def test_help_shows_an_example(self):
        for app in APPS:
            with self.subTest(app=app):
                done = self.run_app(app, "--help")
                self.assertEqual(done.returncode, 0)
                self.assertEqual(done.stderr, "")
                self.assertRegex(done.stdout, rf"Examples?:\s+{app} ")
        for command in ("loopback", "server", "client"):
            done = self.run_app("rnic-perf", command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("--config", done.stdout)


class WrongCommandLine(Case):
    def test_options(self):
        for app in APPS:
            self.refuses(app, "--bogus", says="--bogus.*--help")
        self.refuses("rnic-perf", "loopback", "--bogus", says="--bogus")
        self.refuses("rnic-perf", says="subcommand is required")
        self.refuses("rnic-perf", "nonsense", says="nonsense.*loopback.*server.*client")
        self.refuses("rnic-perf", "client", says="address")

    def test_values(self):
        for size in ("3Q", "0", "-1", "M", "2000M", "", "99999999999999999999", "17592186044417M",
                     " -18446744073709551552", "64KiB"):
            self.refuses("rnic-perf", "loopback", "--size=" + size, says="--size")
        self.refuses("rnic-perf", "loopback", "--op", "erase", says="erase")
        self.refuses("rnic-perf", "loopback", "--op", "cmp-swap", "--size", "64",
                     says="--size 64.*cmp-swap moves 8 octets")
        self.refuses("rnic-ping", "--op", "read", says="--op")
        self.refuses("rnic-perf", "loopback", "--mtu", "100", says="--mtu")
        self.refuses("rnic-perf", "loopback", "--cores", "3", says="--cores")
        self.refuses("rnic-perf", "loopback", "--seconds", "x", says="--seconds")
        self.refuses("rnic-perf", "server", "--port", "70000", says="--port")
        self.refuses("rnic-ping", "--size", "0", says="--size")
        self.refuses("rnic-ping", "--count", "many", says="--count")
        self.refuses("rnic-ping", "server", "--silence", "nan", says="--silence: nan is not a number")
        self.refuses("rnic-perf", "loopback", "--seconds", "nan", says="--seconds")
        self.refuses("rnic-stream", "loopback", "--seconds", "nan", says="--seconds")
        self.refuses("rnic-stream", "loopback", "--timeout", "nan", says="--timeout")
        self.refuses("rnic-demo", "--largest", "40", says="--largest")
        for octets in ("3Q", "-1", "M", "2000G", "", " -18446744073709551552"):
            self.refuses("rnic-stream", "loopback", "--octets=" + octets, says="--octets")
        self.refuses("rnic-stream", "loopback", "--message", "0", says="--message")
        self.refuses("rnic-stream", "server", "--job", "erase", says="erase")
        self.refuses("rnic-stream", "client", "10.0.0.2", "--connections", "0",
                     says="--connections")

    # What a script has in a variable that is empty must not choose something else.
    def test_empty_values(self):
        for option in ("--config", "--device", "--address"):
            for app, *mode in (["rnic-ping", "10.0.0.2"], ["rnic-perf", "client", "10.0.0.2"],
                               ["rnic-stream", "client", "10.0.0.2"]):
                self.refuses(app, *mode, option, "", says=option + ": is empty")
        self.refuses("rnic-perf", "loopback", "--size", "", says="--size: is empty")
        self.refuses("rnic-stream", "loopback", "--reset-after", "", says="--reset-after: is empty")

    def test_addresses(self):
        for address in ("10.0.0.300", "nowhere", "10.0.0"):
            self.refuses("rnic-perf", "client", address, *NO_HUGE, says="not an IP address")
            self.refuses("rnic-ping", address, *NO_HUGE, says="not an IP address")


class WrongConfiguration(Case):
    def both(self, *args, says):
        for app in ("rnic-perf", "rnic-ping", "rnic-stream"):
            self.refuses(app, "loopback", *args, says=says)

    def test_file(self):
        self.both("--config", "/does/not/exist.toml", says="/does/not/exist.toml.*TOML")
        self.both("--config", self.write("broken.toml", "[tcp\n"), says=r"broken\.toml:1")
        self.both("--config", self.folder, says="cannot be read \\(.*\\): is it a file")

    def test_unknown_key_names_line_and_remedy(self):
        path = self.write("typo.toml", "[tcp]\nrto_mim = \"5ms\"\n")
        self.both("--config", path, says=r"typo\.toml:2: tcp\.rto_mim.*tcp\.rto_min")
        self.both("--set", "tcp.sak=1", says="tcp.sak.*tcp.sack")

    def test_values(self):
        self.both("--set", "device.rnic0.address=10.0.0.999/24", says="10.0.0.999")
        self.both("--set", "device.rnic0.port=wire:loop:1", says="wire:loop:1")
        self.both("--set", "device.rnic0.address=10.0.0.2/24", says="10.0.0.2")
        self.both("--set", "nonsense", says="nonsense")

    def test_ethdev_that_does_not_exist(self):
        port = "device.rnic0.port=net_af_packet0,iface=doesnotexist"
        self.both(*NO_HUGE, "--set", port, says="doesnotexist")

    def test_capture_to_a_place_that_does_not_exist(self):
        self.both(*NO_HUGE, "--set", "device.rnic0.capture.file=/does/not/exist/a.pcapng",
                  says="/does/not/exist/a.pcapng")

    def test_a_wire_reaches_no_other_process(self):
        wire = ["--config", self.write("wire.toml", WIRE)]
        says = "rnic0 stands on wire:loop:0, a wire in the memory of this process"
        self.refuses("rnic-ping", "server", *wire, says=says)
        self.refuses("rnic-ping", "10.0.0.2", *wire, says=says)
        for app in ("rnic-perf", "rnic-stream"):
            self.refuses(app, "server", *wire, says=says)
            self.refuses(app, "client", "10.0.0.2", *wire, says=says)

    def test_streams_between_processes_need_a_port(self):
        for args in (["server"], ["client", "10.0.0.2"]):
            self.refuses("rnic-stream", *args, says="need a port of softrnic's own.*--config")

    def test_sockets_have_no_streams(self):
        config = self.write("socket.toml", "[[device]]\nport = \"socket\"\n")
        for args in (["server"], ["client", "127.0.0.1"]):
            self.refuses("rnic-stream", *args, "--config", config, says="no streams of plain octets")

    def test_loopback_has_both_devices(self):
        self.refuses("rnic-ping", "loopback", "--device", "rnic1", says="leave --device out")

    def test_connecting_to_oneself(self):
        config = self.write("null.toml", NULL)
        for app, *args in (["rnic-ping"], ["rnic-perf", "client"], ["rnic-stream", "client"]):
            self.refuses(app, *args, "10.0.0.1", "--config", config, says="10.0.0.1 is this device's")
            self.refuses(app, *args, "10.0.0.9", "--config", config, "--address", "10.0.0.9/24",
                         says="10.0.0.9 is this device's own address.*device.rnic0.address")

    def test_device_name(self):
        self.refuses("rnic-ping", "server", "--device", "rnic9", *NO_HUGE, says="rnic9.*rnic0")
        self.refuses("rnic-perf", "server", "--device", "rnic9", *NO_HUGE, says="rnic9.*rnic0")

    def test_missing_hugepages(self):
        if free_hugepages() == 0:
            self.both("--set", "eal.hugepages=require", says="hugepages.*scripts/hugepages")

    def test_report_that_cannot_be_written(self):
        done = self.run_app("rnic-demo", "--largest", "6", "--report", "/proc/nowhere/report.html")
        self.assertEqual(done.returncode, 2)
        self.assertIn("rnic-demo: cannot write /proc/nowhere/report.html", done.stderr)


class Results(Case):
    def perf(self, *args):
        return self.result("rnic-perf", "loopback", "--seconds", "0.3", "--json", *args)

    def test_perf(self):
        for op in ("write", "read", "send"):
            with self.subTest(op=op):
                result = self.perf("--op", op, "--size", "64K")
                self.assertEqual([key for key in PERF_KEYS if key not in result], [])
                self.assertIs(result["verified"], True)
                self.assertEqual((result["op"], result["size"]), (op, 65536))
                self.assertEqual((result["mtu"], result["cores"]), (1500, 1))
                self.assertIs(result["crc"], True)
                self.assertIs(result["markers"], False)
                self.assertGreater(result["goodput_gbps"], 0)
                self.assertGreater(result["rounds"], 0)
                self.assertLessEqual(result["ratio_min"], result["ratio_to_floor"])
                self.assertLessEqual(result["ratio_to_floor"], result["ratio_max"])
                self.assertLessEqual(result["p50_us"], result["p99_us"])

    # R7306-5-04, R7306-5-05, R7306-6-01: each value is compared, over our TCP and over the system's.
    def test_perf_words(self):
        for op in WORD_OPS + ("write-imm",):
            for port in ((), ("--port", "socket")):
                with self.subTest(op=op, port=port):
                    done = self.run_app("rnic-perf", "loopback", "--op", op, "--no-floor",
                                        "--seconds", "0.1", "--json", *port)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    result = json.loads(done.stdout.splitlines()[-1])
                    self.assertIs(result["verified"], True)
                    size = 1 << 20 if op == "write-imm" else 8
                    self.assertEqual((result["op"], result["size"]), (op, size))
                    self.assertEqual(result["checksum"] == "system", port != ())

    def test_perf_options(self):
        self.assertIs(self.perf("--no-verify", "--no-floor")["verified"], False)
        two = self.perf("--cores", "2", "--mtu", "9000")
        self.assertEqual((two["cores"], two["mtu"], two["verified"]), (2, 9000, True))
        self.assertGreater(two["line_ns"], 0)
        bare = self.perf("--markers", "--no-crc", "--size", "7", "--no-floor", *NO_HUGE)
        self.assertEqual((bare["markers"], bare["crc"], bare["verified"]), (True, False, True))

    def test_perf_queue_pairs(self):
        for op in ("write", "read", "send"):
            with self.subTest(op=op):
                many = self.perf("--op", op, "--qps", "3", "--size", "640", "--region", "64K",
                                 "--depth", "4", "--no-lists", "--no-floor")
                self.assertEqual((many["qps"], many["region"], many["verified"]), (3, 65280, True))
                self.assertIs(many["lists"], False)
                self.assertGreater(many["cpu_s"], 0)
                self.assertGreater(many["msgs_per_s"], many["msgs_per_cpu_s"] / 100)

    def test_perf_two_processes(self):
        for more in ((), ("--markers", "--mtu", "9000", "--size", "640", "--no-floor")):
            with self.subTest(more=more):
                two = self.perf("--processes", "2", *NO_HUGE, *more)
                self.assertEqual((two["processes"], two["cores"], two["verified"]), (2, 2, True))
                self.assertGreater(two["line_ns"], 0)
                self.assertGreater(two["mean_gbps"], 0)
                self.assertEqual("floor_gbps" in two, not more)
        self.refuses("rnic-perf", "loopback", "--processes", "2", "--set", "eal.memory_mb=1",
                     says="memory")

    def test_perf_of_two_processes_ends_when_it_is_told_to(self):
        for ending in (signal.SIGTERM, signal.SIGINT):
            with subprocess.Popen([PERF, "loopback", "--processes", "2", "--seconds", "60",
                                   *NO_HUGE], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  text=True, env={**os.environ, "TMPDIR": self.folder}) as perf:
                self.assertRegex(perf.stderr.readline(), "CRC kernel")
                other = self.child_of(perf.pid)
                # Their sockets are not needed any more when they have met.
                self.until(lambda: os.listdir(self.folder) == [])
                perf.send_signal(ending)
                self.assertEqual(perf.wait(20), -ending)
                self.until(lambda gone=f"/proc/{other}": not os.path.exists(gone))

    def until(self, there):
        end = time.monotonic() + 20
        while not there():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    @staticmethod
    def child_of(process):
        end = time.monotonic() + 20
        other = []
        while not other and time.monotonic() < end:
            with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
                other = file.read().split()
        return int(other[0])

    def test_perf_whose_other_process_is_killed(self):
        command = [PERF, "loopback", "--processes", "2", "--seconds", "60", *NO_HUGE]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "TMPDIR": self.folder}) as perf:
            os.kill(self.child_of(perf.pid), signal.SIGKILL)
            self.assertEqual(perf.wait(20), 1)
            self.assertEqual(perf.stdout.read(), b"")
        self.assertEqual(os.listdir(self.folder), [])

    def test_perf_ping_pong(self):
        for op in ("write", "send"):
            for cores in ("1", "2"):
                with self.subTest(op=op, cores=cores):
                    run = self.perf("--ping-pong", "--op", op, "--cores", cores)
                    self.assertEqual((run["size"], run["verified"]), (64, True))
                    self.assertGreaterEqual(run["round_trips"], 10_000)
                    self.assertLessEqual(run["p50_us"], run["p99_us"])
                    self.assertLessEqual(run["p99_us"], run["max_us"])
                    self.assertEqual("ratio_to_floor" in run, cores == "2")
        for bad in (["--op", "read"], ["--size", "63"], ["--size", "128K"], ["--qps", "2"]):
            self.refuses("rnic-perf", "loopback", "--ping-pong", *bad, says=bad[0])
        self.refuses("rnic-perf", "loopback", "--op", "imm", "--qps", "2", says="--qps")
        self.refuses("rnic-perf", "loopback", "--region", "1K", says="--region")
        for bad in (["--op", "read"], ["--ping-pong"], ["--qps", "2"], ["--port", "socket"]):
            self.refuses("rnic-perf", "loopback", "--processes", "2", *bad, says="--processes 2")

    def test_perf_for_people(self):
        done = self.run_app("rnic-perf", "loopback", "--seconds", "0.1", "--no-floor")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"goodput_gbps\s+\d")

    def test_ping(self):
        result = self.result("rnic-ping", "loopback", "--count", "5", "--size", "3000", "--json")
        self.assertEqual((result["count"], result["size"]), (5, 3000))
        self.assertIs(result["verified"], True)
        self.assertLessEqual(result["min_us"], result["max_us"])
        done = self.run_app("rnic-ping")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "10 exchanges of 64 octets, all verified")
        for op in WORD_OPS:
            for port in ((), ("--port", "socket")):
                with self.subTest(op=op, port=port):
                    result = self.result("rnic-ping", "--op", op, "--json", *port)
                    self.assertEqual((result["op"], result["size"]), (op, 8))
                    self.assertIs(result["verified"], True)

    # What one types first, on two machines: no configuration, no rights, and it meets.
    def test_server_and_client_without_a_configuration(self):
        for app, args in (("rnic-ping", []), ("rnic-perf", ["client"])):
            port = str(ports.free_port())
            with self.subTest(app=app):
                with Server(APPS[app], self.folder, "--port", port) as server:
                    result = self.result(app, *args, "127.0.0.1", "--port", port, "--json")
                    self.assertIs(result["verified"], True)
                self.assertEqual(server.status, 0)

    def stream(self, *args):
        return self.result("rnic-stream", "loopback", "--json", *NO_HUGE, *args)

    def test_stream(self):
        for job in ("send", "receive", "duplex", "check"):
            with self.subTest(job=job):
                result = self.stream("--job", job, "--octets", "3M", "--connections", "3")
                self.assertEqual((result["connections"], result["verified"]), (3, 3))
                self.assertEqual((result["ends"], result["errors"]), ({"closed": 3}, []))
                sent, received = result["octets_sent"], result["octets_received"]
                self.assertEqual(sent, 0 if job == "receive" else 9 << 20)
                self.assertEqual(received, 9 << 20 if job in ("receive", "duplex") else 0)
                self.assertEqual(sorted(result["hashes_sent"]),
                                 sorted(result["server"]["hashes_received"]))
                self.assertGreater(result["goodput_gbps"], 0)

    def test_stream_messages(self):
        result = self.stream("--job", "echo", "--octets", "10000", "--message", "100")
        self.assertEqual((result["verified"], result["messages"]), (1, 100))
        self.assertLessEqual(result["min_us"], result["p99_us"])

    def test_stream_reset(self):
        result = self.stream("--job", "duplex", "--octets", "8M", "--reset-after", "1M")
        self.assertEqual(result["ends"], {"aborted": 1})


class Interrupted(Case):
    """Ctrl-C ends what waits for a peer, and no time is named that has not gone by."""

    def test_a_client_that_waits(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = str(listener.getsockname()[1])
            for app, *mode in (["rnic-ping"], ["rnic-perf", "client"]):
                with self.subTest(app=app):
                    child = subprocess.Popen([APPS[app], *mode, "127.0.0.1", "--port", port],
                                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                             text=True)
                    peer = listener.accept()[0]
                    with peer:
                        peer.recv(100)  # the Request
                        child.send_signal(signal.SIGINT)
                        told = child.communicate(timeout=20)[1]
                    self.assertEqual(told, app + ": interrupted\n")
                    self.assertNotEqual(child.returncode, 0)


class Demo(Case):
    def test_short_demo(self):
        done = self.run_app("rnic-demo", "--largest", "20", "--json", "result.json",
                            "--report", "out/report.html")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(self.folder, "result.json"), encoding="utf-8") as file:
            self.check_runs(json.load(file)["runs"])
        with open(os.path.join(self.folder, "out/report.html"), encoding="utf-8") as file:
            self.check_page(file.read())

    def check_runs(self, runs):
        sizes = {2 ** k for k in range(21)} | {2 ** k - 1 for k in range(2, 21)}
        wanted = {(op, size, wire) for op in ("send", "write", "read") for size in sizes
                  for wire in ("clean", "hostile")}
        wanted |= {(op, 8, wire) for op in WORD_OPS for wire in ("clean", "hostile")}
        self.assertEqual({(r["op"], r["size"], r["wire"]) for r in runs}, wanted)
        self.assertEqual(len(runs), len(wanted))
        for run in runs:
            self.assertEqual([key for key in RUN_KEYS if key not in run], [])
            self.assertIs(run["verified"], True)
            self.assertGreater(run["goodput_gbps"], 0)
            self.assertTrue(0 <= run["aligned_pct"] <= 100)
        hostile = [run for run in runs if run["wire"] == "hostile"]
        clean = [run for run in runs if run["wire"] == "clean"]
        for key in ("ooo_placed_octets", "crc_drops", "retransmissions"):
            self.assertGreater(sum(run[key] for run in hostile), 0, key)
        self.assertEqual(sum(run["crc_drops"] for run in clean), 0)

    def check_page(self, page):
        self.assertTrue(page.lstrip().lower().startswith("<!doctype html>"))
        self.assertEqual(page.count("<svg"), 3)
        self.assertNotIn("http://", page)
        self.assertNotIn("https://", page)
        self.assertIsNone(re.search(r"<(script|link|img|iframe)\b|\bsrc=|@import|url\(", page))
        for target in re.findall(r'href="([^"]*)"', page):
            self.assertTrue(target.startswith("#"), target)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
