"""Rules that an end breaks on purpose, and the Terminate that has to follow (layer/type/code)."""

import itertools

from plan import BREACHES

# What softrnic sends when siw breaks the rule.
WE_SEND = {
    "write-bad-stag": "1/1/0", "read-bad-stag": "0/1/0", "write-bounds": "1/1/1",
    "read-bounds": "0/1/1", "write-no-right": "0/1/2", "read-no-right": "0/1/2",
    "send-no-receive": "1/2/2", "send-too-long": "1/2/5", "send-too-long-segments": "1/2/5",
    "invalidate-bad-stag": "0/1/9", "write-invalidated": "1/1/0", "read-invalidated": "0/1/0",
}
# What siw sends when softrnic breaks it. siw has one code for all of a Send that it has no room for.
SIW_SENDS = {
    "write-bad-stag": "1/1/0", "read-bad-stag": "0/1/0", "write-bounds": "1/1/1",
    "read-bounds": "0/1/1", "write-no-right": "1/1/0", "send-no-receive": "1/2/2",
    "send-too-long": "1/2/2", "send-too-long-segments": "1/2/2", "write-invalidated": "1/1/0",
    "read-invalidated": "0/1/0",
}
# Breaches of ours that siw does not see, and why.
UNSEEN = {
    "read-no-right": "siw answers a Read of memory that nobody may read: it looks at no right for a "
                     "Read Response (siw_qp_sq_proc_tx)",
    "invalidate-bad-stag": "siw makes a Terminate ready, but the error that would send it is "
                           "overwritten (siw_rdmap_complete): only its receive fails",
}


def cells(long=False):
    """Each breach by each end that can be; the rest takes turns, or has all values."""
    ways = list(itertools.product(("we-connect", "siw-connects"), ("on", "off"),
                                  ("packet", "socket")))
    made = []
    for breach, breaker in itertools.product(BREACHES[1:], ("we", "siw")):
        if breaker == "we" and breach in UNSEEN:
            continue
        chosen = ways if long else [ways[len(made) % len(ways)]]
        for role, crc, port in chosen:
            made.append({"breach": breach, "breaker": breaker, "role": role, "crc": crc,
                         "port": port})
    return sorted(made, key=lambda cell: (cell["port"], cell["crc"]))


def expected(cell):
    """The event of our end and its fault."""
    if cell["breaker"] == "siw":
        return "terminate sent", WE_SEND[cell["breach"]]
    return "terminate received", SIW_SENDS[cell["breach"]]
