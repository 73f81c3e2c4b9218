"""Defects of Linux siw that end a connection through no fault of the peer: where they can show, how, and what
proves that it was siw. What fits nothing here is a failure. docs/siw.md has the evidence.
"""

import re

import wire
from cells import sizes


class Defect:
    def __init__(self, name, possible, error, proof=None):
        self.name = name
        self.possible = possible  # of a cell
        self.error = re.compile(error)  # of a connection of ours
        self.proof = proof  # takes what was on the wire; why it is not siw's, or nothing


DEFECTS = (
    # siw_activate_tx() leaves the length of the request before in a Response of no octets that had to
    # wait its turn; siw_qp_sq_proc_tx() sends it. 270: the header, and 256 of a control message.
    Defect("a Read Response of what was sent before, to a Read of nothing",
           lambda cell: cell["operation"] == "read" and 0 in sizes(cell),
           r"^terminate sent: .*rule BUG-01; segment of 270 octets"),
    # siw_get_trailer() puts the second piece of a pad and CRC over the first one. Only the system's
    # TCP cuts there: with SACK blocks to send its segments are shorter than it says.
    Defect("a CRC misread that came in two segments",
           lambda cell: cell["port"] == "socket" and cell["crc"] != "off" and cell["path"] != "clean",
           r"^terminate received: .*code 0x02 CRC mismatch", wire.why_not_right),
)


def possible(cell):
    """Those that can show in a cell."""
    return [defect for defect in DEFECTS if defect.possible(cell)]


class Excuses:
    """What may be siw's in a run of a cell. `capture` is of the whole run."""

    def __init__(self, cell, capture):
        self.defects = possible(cell)
        self.capture = capture
        self.seen = []  # names, one a connection
        self.seeds = set()

    def covers(self, connection):
        """A connection's failure is siw's."""
        for defect in self.defects:
            if defect.error.search(connection["error"]):
                against = defect.proof and defect.proof(self.capture.frames)
                if against:
                    connection["error"] += f" [not siw's: {against}]"
                    return False
                self.seen.append(defect.name)
                self.seeds.add(str(connection["seed"]))
                return True
        return False


def needs_capture(cell):
    return any(defect.proof for defect in possible(cell))
