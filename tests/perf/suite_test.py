"""The table of goals: how figures are judged, which rounds count, what is printed."""

import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import goals  # noqa: E402
import measures  # noqa: E402
import report  # noqa: E402
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
