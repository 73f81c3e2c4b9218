#!/usr/bin/env python3
"""Every pair and every triple of values that can occur together is in a cell of the tables, found by
going through all cells that there can be."""

import itertools
import unittest

import cells
from plan import MAX_SIZES


def everything():
    for values in itertools.product(*cells.DIMENSIONS.values()):
        cell = dict(zip(cells.NAMES, values))
        if cells.why_impossible(cell) is None:
            yield cell


class Tables(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.possible = list(everything())

    def occurring(self, cells_of, strength):
        found = set()
        for cell in cells_of:
            for names in itertools.combinations(cells.NAMES, strength):
                found.add(tuple((name, cell[name]) for name in names))
        return found

    def check(self, strength, at_most):
        made = cells.table(strength)
        for cell in made:
            self.assertIsNone(cells.why_impossible(cell), cell)
        wanted = self.occurring(self.possible, strength)
        self.assertEqual(wanted - self.occurring(made, strength), set())
        self.assertEqual(cells.targets(strength), wanted)
        self.assertLessEqual(len(made), at_most)

    def test_pairs(self):
        self.check(2, 60)
        self.assertEqual(cells.table(2), cells.table(2), "another table each time")

    def test_triples(self):
        self.check(3, 320)

    def test_a_missing_cell_is_seen(self):
        """The check itself: without any one cell of the table of pairs, or with few, pairs miss."""
        made = cells.table(2)
        wanted = self.occurring(self.possible, 2)
        self.assertNotEqual(wanted - self.occurring(made[:-1], 2), set())

    def test_rules_forbid(self):
        """No rule is idle, and none forbids a value altogether."""
        for rule, reason in cells.IMPOSSIBLE:
            self.assertTrue(reason)
            part = {name: values[0] for name, values in rule.items()}
            self.assertEqual(cells.why_impossible(part), reason)
            self.assertFalse(cells.can_be_completed(part))
        for name, values in cells.DIMENSIONS.items():
            for value in values:
                self.assertTrue(cells.can_be_completed({name: value}))

    def test_sizes(self):
        """They fit a plan; the short form has the boundaries by which FPDUs are cut."""
        for cell in self.possible[:: 97]:
            for long in (False, True):
                self.assertLessEqual(len(cells.sizes(cell, long)), MAX_SIZES)
                self.assertLessEqual(set(cells.SIZES.get(cell["size"], ())),
                                     set(cells.sizes(cell, True)))
        around = cells.sizes({"size": "mulpdu", "mtu": 1500})
        for payload in (1424, 1428):
            self.assertLessEqual({payload - 1, payload, payload + 1}, set(around))


if __name__ == "__main__":
    unittest.main(verbosity=2)
