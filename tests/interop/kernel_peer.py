"""The kernel's end of a connection: plain sockets that do what rnic-stream's other end does.

As a program: kernel_peer.py sender HOST PORT  connects and sends for ever, until a test kills it.
"""

import socket
import struct
import sys
import threading
import weakref
import zlib

BLOCK = 65521
CHUNK = 1 << 18


def make_block():
    octets = bytearray(BLOCK)
    x = 1
    for i in range(BLOCK):
        x = (x * 6364136223846793005 + 1442695040888963407) & (2 ** 64 - 1)
        octets[i] = x >> 56
    return bytes(octets)


CONTENT = memoryview(make_block() * (CHUNK // BLOCK + 3))
UP, DOWN = 0, 1  # seen from the client


class Content:
    """The octets of one direction of a connection; see apps/rnic-stream/content.hpp."""

    def __init__(self, client_port, way):
        self.begin = (client_port * 7919 + way * 32749) % BLOCK

    def at(self, offset, n):
        start = (self.begin + offset) % BLOCK
        return CONTENT[start:start + min(n, CHUNK)]


PORTS = weakref.WeakKeyDictionary()


def accept(listener):
    sock, address = listener.accept()
    # The kernel forgets it when the connection is over, with octets still to be read.
    PORTS[sock] = address[1]
    return sock


def client_port(sock, is_client):
    return sock.getsockname()[1] if is_client else PORTS[sock]


def send_content(sock, octets, is_client, finish=True, in_the_middle=None, middle=None):
    """in_the_middle: called when half, or `middle`, has been sent, and before the rest is."""
    middle = octets // 2 if middle is None else middle
    content = Content(client_port(sock, is_client), UP if is_client else DOWN)
    sent = 0
    while sent < octets:
        if in_the_middle is not None and sent >= middle:
            in_the_middle()
            in_the_middle = None
        sent += sock.send(content.at(sent, octets - sent))
    if finish:
        sock.shutdown(socket.SHUT_WR)
    return sent


def receive_content(sock, is_client, limit=None):
    """Until the end of the stream (or `limit` octets). Returns their count and hash; raises
    AssertionError for an octet that is wrong."""
    content = Content(client_port(sock, is_client), DOWN if is_client else UP)
    got = 0
    hashed = 0
    buffer = bytearray(CHUNK)
    view = memoryview(buffer)
    while limit is None or got < limit:
        n = sock.recv_into(view)
        if n == 0:
            break
        if view[:n] != content.at(got, n):
            raise AssertionError(f"wrong octets between {got} and {got + n}")
        hashed = zlib.crc32(view[:n], hashed)
        got += n
    return got, hashed


def echo(sock):
    while True:
        octets = sock.recv(CHUNK)
        if not octets:
            break
        sock.sendall(octets)
    sock.shutdown(socket.SHUT_WR)


def check(sock, is_client):
    """Receives to the end, then answers with count, hash and verdict."""
    got, hashed = receive_content(sock, is_client)
    sock.sendall(f"{got} {hashed:08x} ok\n".encode())
    sock.shutdown(socket.SHUT_WR)


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


class Information:
    """What TCP_INFO says about a connection."""

    def __init__(self, sock):
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        options = info[5]
        self.timestamps = bool(options & 1)
        self.sack = bool(options & 2)
        self.window_scale = bool(options & 4)
        self.ecn = bool(options & 8)
        self.ecn_seen = bool(options & 16)
        self.snd_mss, self.rcv_mss = struct.unpack_from("=II", info, 16)
        self.pmtu = struct.unpack_from("=I", info, 60)[0]


class Task(threading.Thread):
    """A call on a thread of its own; result() raises what it raised."""

    def __init__(self, call, *args, **kwargs):
        super().__init__(daemon=True)
        self.call = lambda: call(*args, **kwargs)
        self.value = None
        self.error = None
        self.start()

    def run(self):
        try:
            self.value = self.call()
        except BaseException as error:  # handed to the thread that asks
            self.error = error

    def result(self, timeout=60):
        self.join(timeout)
        if self.is_alive():
            raise TimeoutError("the kernel's end does not finish")
        if self.error is not None:
            raise self.error
        return self.value


def main():
    with socket.create_connection((sys.argv[2], int(sys.argv[3]))) as sock:
        print("connected", flush=True)
        # More than all buffers hold: the other end has taken some of it.
        send_content(sock, 1 << 40, True, middle=32 << 20,
                     in_the_middle=lambda: print("much is sent", flush=True))


if __name__ == "__main__":
    main()
