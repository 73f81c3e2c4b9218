"""The plan of a trial as the Request's private data carry it; peer/plan.hpp and guest_peer.c read it."""

import struct

MAGIC = 0x54524C31
MAX_SIZES = 40
OPERATIONS = ("send", "send-se", "send-inv", "write", "read")
BREACHES = ("none", "write-bad-stag", "read-bad-stag", "write-bounds", "read-bounds", "write-no-right",
            "read-no-right", "send-no-receive", "send-too-long", "send-too-long-segments",
            "invalidate-bad-stag", "write-invalidated", "read-invalidated")
ENDLESS = 255


def encode(operation, sizes, seed, acceptor_speaks=False, breach="none", breach_round=0, patience=60,
           pairs=1):
    """The octets. `pairs` of rounds: each end is active in one of a pair; ENDLESS has no last one."""
    if len(sizes) > MAX_SIZES:
        raise ValueError(f"{len(sizes)} sizes, at most {MAX_SIZES}")
    return struct.pack(f">IBBBBQHBB{len(sizes)}I", MAGIC, OPERATIONS.index(operation),
                       acceptor_speaks, BREACHES.index(breach), breach_round, seed, patience,
                       len(sizes), pairs, *sizes)
