"""The table of goals: how figures are judged, which rounds count, what is printed."""

import argparse
import json
import os
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import cores  # noqa: E402
import goals  # noqa: E402
import measures  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import suite  # noqa: E402
import svg_plot  # noqa: E402
import sweeps  # noqa: E402
import table  # noqa: E402
from rounds import NotMeasured, Rounds, json_of, spread  # noqa: E402


def goal(**more):
    return goals.Goal({"what": "a row", "measure": "m", "must": 0.5, "wanted": 0.75, **more})


class Judged(unittest.TestCase):
    def test_more_is_better(self):
        for value, verdict in ((0.4, goals.SHORT), (0.5, goals.MET), (0.75, goals.WANTED)):
            self.assertEqual(goal().verdict(spread([value])), verdict)

    def test_less_is_better(self):
        row = goal(must=4, wanted=2, more=False)
        for value, verdict in ((5, goals.SHORT), (4, goals.MET), (2, goals.WANTED)):
            self.assertEqual(row.verdict(spread([value])), verdict)

    def test_a_quicker_base_is_no_fault(self):
        row = goal(must=0.9, wanted=0.95, spared=540)  # 60 ns a segment
        self.assertEqual(row.verdict(spread([0.8], extra_ns=60)), goals.SPARED)
        self.assertEqual(row.verdict(spread([0.8], extra_ns=61)), goals.SHORT)
        self.assertEqual(row.verdict(spread([0.8])), goals.SHORT)

    def test_a_row_that_is_only_shown(self):
        row = goals.Goal({"what": "a row", "measure": "m", "wanted": 0.75})
        self.assertEqual(row.verdict(spread([0.7])), goals.UNJUDGED)

    def test_rows_of_the_tree(self):
        rows = goals.rows()
        self.assertEqual(len({row.measure for row in rows}), len(rows))
        for row in rows:
            with self.subTest(row.measure):
                self.assertTrue(row.must is not None or row.wanted is not None)
                if row.must is not None and row.wanted is not None:
                    self.assertTrue(row.reaches(row.wanted, row.must))


def of(**values):
    """Variants that say one value after the other."""
    def teller(told):
        told = iter(told)
        return lambda: next(told)
    return {name: teller(told) for name, told in values.items()}


class OfRounds(unittest.TestCase):
    def test_a_ratio_is_taken_inside_a_round(self):
        base = [{"g": 10, "floor_best_gbps": 60}, {"g": 5, "floor_best_gbps": 60},
                {"g": 20, "floor_best_gbps": 60}]
        rounds = Rounds(of(base=base, ours=[{"g": 9}, {"g": 4}, {"g": 18}]), "base").run(3)
        figure = rounds.ratio("ours", "base", "g")
        self.assertEqual((figure["value"], figure["low"], figure["high"]), (0.9, 0.8, 0.9))
        self.assertEqual((figure["rounds"], figure["disturbed"]), (3, 0))

    def test_disturbed_rounds_are_counted_and_left_out(self):
        base = [{"g": 10, "floor_best_gbps": 60}, {"g": 10, "floor_best_gbps": 47}]
        rounds = Rounds(of(base=base, ours=[{"g": 9}, {"g": 1}]), "base").run(2)
        figure = rounds.ratio("ours", "base", "g")
        self.assertEqual((figure["value"], figure["rounds"], figure["disturbed"]), (0.9, 1, 1))

    def test_a_variant_is_judged_by_its_own_floor_too(self):
        base = [{"g": 10, "floor_best_gbps": 60}] * 3
        ours = [{"g": 5, "floor_best_gbps": 10}, {"g": 6, "floor_best_gbps": 10},
                {"g": 10_000, "floor_best_gbps": 0.001}]
        rounds = Rounds(of(base=base, ours=ours), "base").run(3)
        figure = rounds.figure("ours", "g")
        self.assertEqual((figure["high"], figure["rounds"], figure["disturbed"]), (6, 2, 1))
        self.assertEqual(rounds.ratio("ours", "base", "g")["high"], 0.6)
        self.assertEqual(rounds.figure("base", "g")["rounds"], 3)

    def test_a_variant_that_fails_once_has_no_figure(self):
        calls = []

        def fails():
            calls.append(1)
            if len(calls) == 2:
                raise NotMeasured("FAILED (1): verification failed")
            return {"g": 1}
        rounds = Rounds({"ours": fails, **of(base=[{"g": 1}] * 3)}).run(3)
        with self.assertRaisesRegex(NotMeasured, "verification failed"):
            rounds.figure("ours", "g")
        self.assertEqual(len(calls), 2)
        self.assertEqual(rounds.figure("base", "g")["rounds"], 3)

    def test_no_figure_without_a_window(self):
        rounds = Rounds(of(ours=[{"floor_best_gbps": 1}] * 2)).run(2)
        with self.assertRaisesRegex(NotMeasured, "disturbed"):
            rounds.figure("ours", "ratio_to_floor")

    def test_no_round_is_begun_behind_the_deadline(self):
        rounds = Rounds(of(ours=[{"g": 1}] * 9)).run(9, deadline=1, fewest=2)
        self.assertEqual(len(rounds.of("ours")), 2)

    def test_what_nobody_understands_ends_no_run(self):
        for broken in (lambda: {}["end"], lambda: next(iter(())), lambda: None.groups(),
                       lambda: float("no"), lambda: (_ for _ in ()).throw(RuntimeError("ip"))):
            rounds = Rounds({"ours": broken, **of(base=[{"g": 1}] * 2)}).run(2)
            with self.assertRaisesRegex(NotMeasured, "FAILED: what was said"):
                rounds.figure("ours", "g")
            self.assertEqual(rounds.figure("base", "g")["rounds"], 2)
            figures = measures.Figures()
            figures.add("m", broken)
            self.assertIn("missing", figures.by_measure["m"])

    def test_what_a_machine_lacks_is_no_failure(self):
        with self.assertRaisesRegex(NotMeasured, "^no memory$"):
            json_of(["sh", "-c", "echo no memory >&2; exit 2"])

    def test_slices_that_a_run_left_out_are_counted(self):
        runs = [{"g": 1, "rounds": 5, "disturbed_rounds": 2}, {"g": 1, "rounds": 6,
                                                              "disturbed_rounds": 0}]
        figure = Rounds(of(ours=runs)).run(2).figure("ours", "g")
        self.assertEqual((figure["slices"], figure["disturbed_slices"]), (11, 2))

    def test_programs(self):
        self.assertEqual(json_of(["echo", 'first\n{"g": 1}']), {"g": 1})
        with self.assertRaisesRegex(NotMeasured, "FAILED .1.: why"):
            json_of(["sh", "-c", "echo why >&2; exit 1"])
        with self.assertRaisesRegex(NotMeasured, "not there"):
            json_of(["/nowhere/program"])

    def test_a_run_that_compares_nothing_has_no_figure(self):
        with tempfile.TemporaryDirectory() as folder:
            perf = measures.Perf(folder)
            perf.program = os.path.join(folder, "rnic-perf")
            with open(perf.program, "w", encoding="utf-8") as file:
                file.write('#!/bin/sh\necho \'{"verified": false, "goodput_gbps": 9}\'\n')
            os.chmod(perf.program, 0o755)
            with self.assertRaisesRegex(NotMeasured, "not verified"):
                perf.loopback()


class OfCores(unittest.TestCase):
    """One-core runs are kept on the core that carries most."""

    def setUp(self):
        self.commands = []
        self.perf = measures.Perf("/nowhere")

    def choose(self, rates, allowed):
        """rates: by core; nothing: a run there fails."""
        def json_of(command, *_):
            self.commands.append(command)
            if "taskset" not in command:
                return {"verified": True}
            core = int(command[command.index("-c") + 1])
            if core not in rates:
                raise NotMeasured("FAILED (1): octet 7")
            return {"verified": True, "goodput_gbps": rates[core]}
        with unittest.mock.patch.object(measures, "json_of", side_effect=json_of):
            found = cores.choose(self.perf, allowed)
            self.perf.loopback("--no-floor")
            self.perf.loopback("--cores", "1")
            self.perf.loopback("--cores", "2")
        return found

    def test_that_carries_most(self):
        found = self.choose({0: 70.0, 3: 76.5}, {3, 0})
        self.assertEqual(found, {"core": 3, "probes": {"0": 70.0, "3": 76.5}})
        *one, two = self.commands[-3:]
        self.assertEqual([command[:3] for command in one], [["taskset", "-c", "3"]] * 2)
        self.assertNotIn("taskset", two)
        said = table.text([goal()], {**told(), **found}, None)
        self.assertIn("kept on core 3; probes of each before: 70.0 Gb/s on 0, 76.5 Gb/s on 3", said)

    def test_a_probe_that_fails(self):
        found = self.choose({0: 70.0}, {0, 1})
        self.assertEqual(found, {"no_core": "FAILED (1): octet 7"})
        self.assertNotIn("taskset", self.commands[-3])
        said = table.text([goal()], {**told(), **found}, None)
        self.assertIn("on no core of their own: FAILED (1): octet 7", said)

    def test_a_probe_that_nobody_understands(self):
        self.assertRegex(self.choose({0: "much"}, {0})["no_core"], "^FAILED: what was said")

    def test_a_few_of_many(self):
        self.assertEqual(cores.tried(range(1, 65)), [1, 22, 43, 64])
        self.assertEqual(cores.tried({5, 2}), [2, 5])


def write(floor=60, **more):
    """What a run of Writes says of itself."""
    return {"size": 1 << 20, "mtu": 1500, "crc": True, "markers": False, "depth": 16, "qps": 1,
            "region": 1 << 20, "cores": 1, "goodput_gbps": 30, "floor_gbps": floor,
            "floor_best_gbps": floor, "ratio_to_floor": 0.5, "rounds": 5, "disturbed_rounds": 1,
            **more}


def spectrum(trips, most, few):
    return [[most, trips * 98 // 100], [few, trips - trips * 98 // 100]]


def ping_pong(trips, p99=8000, **more):
    """What a run of round trips says: one of a hundred takes longer."""
    return {**write(), "size": 64, "cores": 2, "round_trips": trips, "ratio_to_floor": 4,
            "spectrum_ns": spectrum(trips, 4000, p99),
            "spectrum_of_p50": spectrum(trips, 1000, p99 // 4), "p99_of_p50": p99 / 4000,
            "p50_us": 4, "p99_us": p99 / 1000, "message_floor_ns": 1000, "line_ns": 100,
            "message_floor_p99_of_p50": 1.3, "messages_as_long_p99_of_p50": 1.3,
            "cpu_s": 2, "measured_s": 1, **more}


def figures_of(**runs):
    figures = measures.Figures()
    measures.from_rounds(figures, Rounds(of(**runs), "write-1500").run(
        len(next(iter(runs.values())))))
    return figures.by_measure


class Ruled(unittest.TestCase):
    """The rules of measuring, which docs/performance.md tells."""

    def test_percentiles_are_of_all_undisturbed_round_trips(self):
        told = figures_of(**{"write-1500": [write()] * 3, "ping-pong": [
            ping_pong(50_000), ping_pong(50_000), ping_pong(20_000, p99=6000)]})
        self.assertEqual(told["ping-pong-tail"]["value"], 2)
        self.assertIn("120000 round trips", told["ping-pong-tail"]["conditions"])
        self.assertEqual(told["ping-pong"]["value"], 4)

    def test_a_tail_is_that_of_slices_and_not_of_where_their_cores_lie(self):
        far = ping_pong(60_000, p50_us=12, p99_us=13.2, p99_of_p50=1.1,
                        spectrum_ns=spectrum(60_000, 12_000, 13_200),
                        spectrum_of_p50=spectrum(60_000, 1000, 1100))
        near = ping_pong(60_000, p99=4400)
        told = figures_of(**{"write-1500": [write()] * 2, "ping-pong": [near, far]})
        self.assertEqual(told["ping-pong-tail"]["value"], 1.1)

    def tail(self, ours, floor):
        """floor: of messages that take as long together as a round trip of ours."""
        return figures_of(**{"write-1500": [write()] * 2, "ping-pong": [
            ping_pong(60_000, p99=int(ours * 4000), messages_as_long_p99_of_p50=floor)] * 2})

    def test_a_tail_is_not_judged_where_the_floor_has_the_same(self):
        told = self.tail(ours=2.25, floor=1.9)
        self.assertIn("disturbed", table.cells(goal(measure="ping-pong-tail"), {"figures": told},
                                               None))
        self.assertIn("message floor 1.30, of as many messages as take as long 1.90",
                      told["ping-pong-tail"]["beside"])
        self.assertNotIn("disturbed_run", told["ping-pong"])

    def test_a_tail_is_judged_that_is_its_own_or_short(self):
        for ours, floor in ((2.25, 1.6), (2.5, 1.9), (1.5, 1.9)):
            with self.subTest(ours=ours, floor=floor):
                self.assertNotIn("disturbed_run", self.tail(ours, floor)["ping-pong-tail"])

    def test_runs_without_an_undisturbed_slice_are_not_judged(self):
        none = ping_pong(120_000, ratio_to_floor=10, rounds=5, disturbed_rounds=5,
                         one_core_rounds=4)
        told = figures_of(**{"write-1500": [write()] * 2, "ping-pong": [none, ping_pong(120_000)]})
        self.assertEqual(told["ping-pong"]["value"], 4)
        told = figures_of(**{"write-1500": [write()], "ping-pong": [none]})
        for name in ("ping-pong", "ping-pong-tail"):
            self.assertRegex(told[name]["missing"], "4 of 5 both cores were threads of one")

    def test_few_round_trips_make_no_percentile(self):
        told = figures_of(**{"write-1500": [write()] * 2, "ping-pong": [ping_pong(49_999)] * 2})
        for name in ("ping-pong", "ping-pong-tail"):
            self.assertRegex(told[name]["missing"], "only 99998 undisturbed round trips")

    def test_round_trips_of_disturbed_rounds_do_not_count(self):
        told = figures_of(**{"write-1500": [write(), write(floor=40)],
                             "ping-pong": [ping_pong(99_000), ping_pong(99_000)]})
        self.assertRegex(told["ping-pong-tail"]["missing"], "only 99000 undisturbed")

    def test_two_cores_only_beside_the_way_of_a_cache_line(self):
        fast = write(cores=2, cpu_s=2, measured_s=1)
        told = figures_of(**{"write-1500": [write()], "two-cores-1500": [{**fast, "line_ns": 99}],
                             "two-cores-9000": [fast]})
        self.assertRegex(told["two-cores-1500"]["beside"], "cache line 99 ns; 30.0 of 60.0 Gb/s")
        self.assertRegex(told["two-cores-9000"]["missing"], "no time of a cache line")

    def test_two_processes_are_a_row_of_two_cores(self):
        run = write(cores=2, processes=2, checksum="software", cpu_s=2, measured_s=1, line_ns=99)
        told = figures_of(**{"write-1500": [write()], "memif": [run]})
        self.assertEqual(told["memif"]["value"], 0.5)
        self.assertIn("cache line 99 ns", told["memif"]["beside"])
        self.assertIn("software TCP checksums, 2 cores, 2 processes", told["memif"]["conditions"])

    def test_conditions_are_beside_every_figure(self):
        said = measures.conditions(write(markers=True))
        for part in ("1 MB", "MTU 1500", "CRC", "markers", "16 deep", "region 1024 KB", "1 core"):
            self.assertIn(part, said)
        self.assertIn("NO CRC", measures.conditions(write(crc=False)))
        trips = measures.conditions(ping_pong(1))
        for part in ("64 octets", "MTU 1500", "CRC", "no markers", "one at a time", "2 cores"):
            self.assertIn(part, trips)

    def test_conditions_are_beside_instructions(self):
        layers = {"write-64": {"crc": 100, "copies": 50}}
        said = {"figures": {"write-1m": 2000, "write-64": 2100, "allocations-and-locks": 0},
                "layers": layers, "shares": {"receive": 900}}

        def writes(command, **_):
            with open(command[command.index("--json") + 1], "w", encoding="utf-8") as file:
                json.dump(said, file)
        figures = measures.Figures()
        with unittest.mock.patch.object(measures, "output_of", writes):
            measures.from_instructions(figures, "/nowhere", whole=False)
        self.assertEqual(figures.by_measure["instructions-write-64"]["value"], 2250)
        for name, size, depth in (("pair", "1 MB", 16), ("receive", "1 MB", 16),
                                  ("write-64", "64 octets", 64)):
            self.assertIn(f"{size}, MTU 1500, CRC, no markers, {depth} deep, region",
                          figures.by_measure[f"instructions-{name}"]["conditions"])

    def test_a_checksum_is_compared_with_what_its_cpu_would_have(self):
        def told_by(kernels):
            said = "".join(f"{length} {name} {ns}\n" for length in (1444, 8944)
                           for name, ns in kernels.items())
            figures = measures.Figures()
            with unittest.mock.patch.object(measures, "output_of", lambda _: said):
                measures.from_crc(figures, "/nowhere")
            return figures.by_measure
        old = {"sse42": 46, "isal": 40, "isal-00": 48, "isal-01": 45}
        told = told_by({**old, "isal": 22, "avx2": 30, "avx512": 11})
        self.assertEqual(told["crc-1444"]["value"], 1.5)
        self.assertIn("30.0 of 45.0 ns", told["crc-1444"]["beside"])
        self.assertIn("avx2; isal-01", told["crc-1444"]["conditions"])
        self.assertEqual(told["crc-8944-best"]["value"], 2)
        self.assertIn("avx512 of sse42, avx2, avx512;", told["crc-8944-best"]["conditions"])
        told = told_by(old)
        self.assertIn("no AVX2", told["crc-1444"]["missing"])
        self.assertEqual(told["crc-1444-best"]["value"], 40 / 46)
        self.assertIn("no figure of ISA-L", told_by({"avx2": 30})["crc-8944-best"]["missing"])

    def test_processor_time_is_that_of_whole_transfers(self):
        perf = measures.Perf("/nowhere")
        for measured, fits in ((1.9, False), (2.1, True)):
            with unittest.mock.patch.object(measures, "json_of", return_value={
                    "verified": True, "measured_s": measured}):
                if fits:
                    perf.whole(seconds=4)
                else:
                    self.assertRaisesRegex(NotMeasured, "only 1.9 s", perf.whole, seconds=4)

    def test_shorter_transfers_are_refused(self):
        arguments = ["bench", "--build-dir", "x", "--counted-dir", "x", "--seconds", "1"]
        with unittest.mock.patch.object(sys, "argv", arguments), \
                unittest.mock.patch.object(sys, "stderr"), self.assertRaises(SystemExit):
            suite.main()

    def of_loss(self, *said):
        """What becomes of the rows where one has these words, round by round, and others none."""
        lines = ["row share must Gbit/s\nreorder-1ms " + words for words in said]
        lines[:1] = lines[:1] * len(measures.LOSS_ROWS)  # the others are not asked again
        figures = measures.Figures()
        with unittest.mock.patch.object(measures, "output_of", side_effect=lines):
            measures.from_loss(figures, measures.loss_rounds("/nowhere", len(said), 4), 4)
        return figures.by_measure

    def test_a_time_out_of_a_row_of_loss_is_told(self):
        none = "0.61 0.60 met 6.10 10.00 - 1 0 0 0 0 0.00"
        told = self.of_loss(none, "0.61 0.60 met 6.10 10.00 - 3 2 0 0 0 0.00")["reorder-1ms"]
        self.assertRegex(told["beside"], "4 time-outs, 2 of them spur")
        self.assertRegex(told["conditions"], "RTT of the wire 0 us")
        self.assertEqual(goal(must=0.6).verdict(told), goals.SHORT)
        self.assertEqual(goal(must=0.6).verdict(self.of_loss(none)["reorder-1ms"]), goals.MET)
        self.assertIn("missing", self.of_loss(none)["loss-1"])

    def test_loss_is_the_median_of_its_rounds(self):
        told = self.of_loss(*(f"{share} 0.60 met {gbps} 10.00 - 0 0 0 0 0 0.00" for share, gbps in
                              ((0.9, 9), (0.7, 7), (0.8, 8))))["reorder-1ms"]
        self.assertEqual((told["value"], told["low"], told["high"]), (0.8, 0.7, 0.9))
        self.assertRegex(told["beside"], "8.00 of 10.00 Gb/s")


class EveryRow(unittest.TestCase):
    """On a machine that has none of the programs each row says so, and none is forgotten."""

    def setUp(self):
        def lacks(*_, **__):
            raise NotMeasured("not there")
        unavailable = unittest.mock.Mock(side_effect=peers.Unavailable("no namespaces"))
        for target, name, fake in ((measures, "json_of", lacks), (measures, "output_of", lacks),
                                   (peers, "check_machine", unavailable), (sys, "stderr", None)):
            patch = unittest.mock.patch.object(target, name, fake or unittest.mock.Mock())
            patch.start()
            self.addCleanup(patch.stop)

    def run_of(self, quick):
        run = suite.Run(argparse.Namespace(build_dir="/nowhere", counted_dir="/nowhere",
                                           quick=quick, limit=1, seconds=4))
        run.quick() if quick else run.whole()
        return run.finish()

    def test_quick(self):
        self.assertEqual(set(self.run_of(True)["figures"]),
                         {row.measure for row in goals.rows() if row.quick})

    def test_whole(self):
        told = self.run_of(False)
        self.assertEqual(set(told["figures"]), {row.measure for row in goals.rows()})
        for measure, figure in told["figures"].items():
            self.assertIn("missing", figure, measure)
        self.assertRegex(told["peers"][0], "no peers: no namespaces")


class OfPeers(unittest.TestCase):
    def test_one_that_is_missing_is_shown_as_missing(self):
        with unittest.mock.patch("shutil.which", return_value=None):
            table, missing = peers.variants(None, measures.Perf("/nowhere"), 1500, 4)
        self.assertEqual(list(table), ["ours"])
        self.assertEqual(missing, sorted(peers.PACKAGES))

    def test_lwip_where_it_was_built(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "tests/perf/lwip_cost")
            os.makedirs(os.path.dirname(program))
            with open(program, "w", encoding="utf-8") as file:
                file.write('#!/bin/sh\necho \'{"verified": false, "gb_per_cpu_s": 9}\'\n')
            os.chmod(program, 0o755)
            small, missing = peers.variants(None, measures.Perf(folder), 1500, 4)
            large, _ = peers.variants(None, measures.Perf(folder), 9000, 4)
            self.assertNotIn("lwIP", missing)
            name = next(name for name in small if name.startswith("lwIP"))
            self.assertNotIn(name, large)
            self.assertRaisesRegex(NotMeasured, "not verified", small[name])


def told(**figures):
    return {"date": "2026-01-02 03:04", "commit": "abc", "machine": "a machine", "seconds": 1,
            "load_before": 0.1, "load_after": 0.2, "rounds": 3, "disturbed_rounds": 1,
            "core_share": 0.99, "figures": figures}


class Printed(unittest.TestCase):
    def test_a_row(self):
        said = table.text([goal()], told(m=spread([0.55, 0.6, 0.65], conditions="CRC",
                                                  beside="1 of 2")), None)
        self.assertRegex(said, r"a row +0\.6 \(0\.55\.\.0\.65\) +0\.5 +0\.75 +met +1 of 2 +CRC")
        self.assertIn("3 rounds, 1 of them disturbed", said)
        self.assertNotIn("OVERLOADED", said)

    def test_no_number_where_there_is_none(self):
        for figures in ({}, {"m": {"missing": "FAILED (1): octet 7"}}):
            said = table.text([goal()], told(**figures), None)
            self.assertRegex(said, r"a row +not measured +0\.5 +0\.75 +-")

    def test_a_row_of_the_last_whole_run(self):
        said = table.text([goal()], told(), told(m=spread([0.6])))
        self.assertRegex(said, r"a row +0\.6\* .*\* 2026-01-02 03:04 abc")

    def test_a_row_that_failed_now_is_not_shown_from_before(self):
        said = table.text([goal()], told(m={"missing": "FAILED (1): octet 7"}),
                          told(m=spread([0.6])))
        self.assertRegex(said, r"a row +not measured .*octet 7")

    def test_a_row_that_a_whole_run_could_not_measure_is_marked_too(self):
        said = table.text([goal()], told(), told(m={"missing": "no namespaces"}))
        self.assertRegex(said, r"not measured\* .*no namespaces; \* 2026-01-02 03:04 abc")

    def test_a_whole_run_of_an_overloaded_machine_is_said_to_be_one(self):
        before = told(m=spread([0.6]))
        before["load_before"] = 99
        self.assertRegex(table.text([goal()], told(), before),
                         r"0\.6\* .*abc; of an overloaded machine")

    def test_what_was_left_out_is_told(self):
        said = table.text([goal()], told(m=spread([0.6], disturbed=1, slices=9,
                                                  disturbed_slices=2)), None)
        self.assertRegex(said, r"1 rounds disturbed; 2 of 9 slices disturbed")

    def test_an_overloaded_machine_is_said_to_be_one(self):
        busy = told(m=spread([0.6]))
        busy["core_share"] = 0.5
        self.assertIn("OVERLOADED: rnic-perf got 50% of its core", table.text([goal()], busy, None))

    def test_a_disturbed_run_is_not_judged(self):
        said = table.text([goal()], told(m=spread([0.6], disturbed_run="got 40% of its cores")),
                          None)
        self.assertRegex(said, r"a row +0\.6 .* disturbed +got 40%")


class Drawn(unittest.TestCase):
    def test_what_was_measured_is_drawn_and_nothing_else(self):
        self.assertEqual(sweeps.plots(told()), {})
        all_of_it = told(**{"loss-1": spread([0.5]), "reorder-1ms": {"missing": "why"}})
        all_of_it["sweeps"] = [
            {"plot": "size", "series": "Write", "x": 64, "goodput_gbps": 2.0, "msgs_per_s": 4e6},
            {"plot": "size", "series": "Write", "x": 1 << 20, "goodput_gbps": 30.0,
             "msgs_per_s": 4e3}]
        all_of_it["connections"] = [{"x": 1, "gb_per_cpu_s": 20.0}]
        all_of_it["instructions"] = {"layers": {"write-1m": {"tcp": 800, "crc": 9}}}
        drawn = sweeps.plots(all_of_it)
        self.assertEqual(set(drawn), {"goodput", "rate", "connections", "loss", "instructions"})
        for plot in drawn.values():
            xml.etree.ElementTree.fromstring(plot)
        self.assertIn("1M: 30", drawn["goodput"])
        self.assertNotIn("crc", drawn["instructions"])
        page = report.page([goal(measure="loss-1")], all_of_it)
        self.assertEqual(page.count("<svg"), 5)
        self.assertIn('<tr class="good">', page)

    def test_words_of_others_are_escaped(self):
        page = report.page([goal()], told(m={"missing": "<script>"}))
        self.assertNotIn("<script>", page)

    def test_decades(self):
        place, body = svg_plot.decades(2, 16000)
        self.assertEqual([line.split(">")[1].split("<")[0] for line in body if "<text" in line],
                         ["1", "10", "100", "1000", "10000", "100000"])
        self.assertAlmostEqual(place(10) - place(100), place(100) - place(1000))

    def test_steps(self):
        for span, step in ((1, 0.2), (4.9, 1), (30, 10), (144, 50), (3500, 1000), (0, 1)):
            self.assertAlmostEqual(svg_plot.nice_step(span), step)


if __name__ == "__main__":
    unittest.main()
