"""Ports that a test may listen on, on a machine that does other things, too."""

import os
import socket

EPHEMERAL = "/proc/sys/net/ipv4/ip_local_port_range"


def is_free(port):
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            with socket.socket(family) as probe:
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind((address, port))
        except OSError:
            return False
    return True


def free_port():
    """A port that nobody listens on now. The system gives none of these to who connects without a
    port of its own, so that nobody's connection takes it before the test listens."""
    with open(EPHEMERAL, encoding="ascii") as file:
        end = int(file.read().split()[0])
    begin = min(10000, end // 2)
    for step in range(end - begin):
        port = begin + (os.getpid() * 37 + step) % (end - begin)
        if is_free(port):
            return port
    raise OSError("no port is free")
