"""The rows of goals.toml, and how a figure is judged."""

import os
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, "goals.toml")

MET, SPARED, SHORT, WANTED, UNJUDGED = "met", "met (ns)", "NOT MET", "met (wanted)", "-"


class Goal:
    """A row: what is measured, and how much of it there has to be."""

    def __init__(self, row):
        self.what = row["what"]
        self.measure = row["measure"]
        self.must = row.get("must")
        self.wanted = row.get("wanted")
        self.more = row.get("more", True)
        self.quick = row.get("quick", False)
        self.spared = row.get("spared")

    def reaches(self, value, limit):
        return value >= limit if self.more else value <= limit

    def verdict(self, figure):
        """figure: of rounds.spread(); its "extra_ns" is what a segment takes longer than in the
        base that it is compared with, its "fault" what must not be, whatever the value."""
        value = figure["value"]
        if figure.get("fault"):
            return SHORT
        if self.wanted is not None and self.reaches(value, self.wanted):
            return WANTED
        if self.must is None:
            return UNJUDGED
        if self.reaches(value, self.must):
            return MET
        allowed = self.spared and self.spared * (1 / self.must - 1)
        if allowed and figure.get("extra_ns", allowed + 1) <= allowed:
            return SPARED
        return SHORT


def rows():
    with open(FILE, "rb") as file:
        return [Goal(row) for row in tomllib.load(file)["row"]]
