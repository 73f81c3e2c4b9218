"""What ./scripts/siw does."""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time

import cells
import guest_image
import plan
from bench import PORT, RPING_PORT, Bench, problems_of
from guest import (BOOT_PATIENCE, GUEST, HOST, INTERFACE, OURS, Console, Guest, GuestHangs, Laboratory,
                   enter_network)
from guest_kernel import Unavailable, cache, say
from host_peer import HostPeer, PeerEnded

HERE = os.path.dirname(os.path.abspath(__file__))
STANDING = os.path.join(cache(), "standing")  # the guest of `start`
DESCRIPTION = f"""Tries softrnic against Linux siw (Soft-iWARP) in a virtual machine that is built out of Debian
packages: QEMU, Debian's kernel, siw from Debian's linux-source. Needs root and /dev/net/tun; nothing of
this machine's network is touched, and no module is loaded here. More in docs/siw.md."""
STANDING_HELP = f"""In the guest: rping, ucmatose, ib_write_bw and the like, ibv_devinfo, rdma, tcpdump, ip, tc, ss. Its
address is {GUEST}. `host` runs a program of this machine beside it: for softrnic's own stack
port = "net_af_packet0,iface={INTERFACE}" and address = "{OURS}/24", for --port socket {HOST}."""


class Failure(Exception):
    pass


def build(_):
    image = guest_image.build()
    print(f"Linux {image.version}\n{image.vmlinux}\n{image.initramfs}")


def test(options):
    command = [sys.executable, os.path.join(HERE, "siw_test.py"), HostPeer.program,
               *(["--long"] if options.long else []), *(["--anew"] if options.anew else []),
               *options.tests]
    return subprocess.run(command, check=False).returncode


def show_table(_):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader may have seen enough
    print(cells.explain())


def with_bench(work):
    """A guest of its own for `work`."""
    image = guest_image.build()
    enter_network()
    with Laboratory(image) as laboratory, Bench(laboratory) as bench:
        return work(bench)


def rping(options):
    def exchange(bench):
        ours = bench.set_ours(options.port, options.mtu)
        bench.set_guest(mtu=options.mtu)
        size, count = options.size, options.count
        if options.role == "we-connect":
            bench.guest.start("rping", f"rping -s -S {size} -C {count} -V -v")
            bench.guest.execute("sleep 1")
            result = ours.connect(kind="rping", address=GUEST, port=RPING_PORT, size=size,
                                  count=count)
            text = bench.guest.collect("rping", 20).text
        else:
            ours.serve(kind="rping", port=RPING_PORT, size=size)
            text = bench.guest.execute(f"rping -c -a {ours.address} -S {size} -C {count} -V -v",
                                       600).text
            result = ours.answer()
        print(text, end="")
        problems = problems_of(result)
        if problems:
            raise Failure("; ".join(problems))
        print(f"{result['connections'][0]['exchanges']} exchanges of {size} octets, all verified")
    with_bench(exchange)


def connections(options):
    """One after the other against the guest's server: how many fail, and why."""
    def measure(bench):
        ours = bench.set_ours(options.port, mpa__first_fpdu_delay=options.delay)
        bench.set_guest()
        bench.serve_in_guest()
        octets = plan.encode("send", (64,), 10 ** 6, acceptor_speaks=False,
                             patience=options.patience)
        ours.start(do="connections", kind="trial", address=GUEST, port=PORT, count=options.count,
                   plan=octets.hex())
        result = ours.answer(options.count * (options.patience + 1) + 60)
        for failure in result["failures"][:20]:
            print(f"connection {failure['number']}: {failure['error']}")
        nudged = result["counters"].get("rdmap.nudges_out", 0)
        print(f"{result['failed']} of {result['count']} connections failed; {nudged} were silent at first and "
              "nudged")
        return 1 if result["failed"] else 0
    return with_bench(measure)


def standing():
    """The guest of `start`: what its process wrote, or nothing."""
    try:
        with open(os.path.join(STANDING, "state"), encoding="utf-8") as file:
            state = json.load(file)
        with open(f"/proc/{state['pid']}/stat", encoding="utf-8") as file:
            return state if file.read().split()[21] == state["started"] else None
    except (OSError, ValueError):
        return None


def stand(image):
    """In a process of its own: holds the namespace and the guest until it is told to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    enter_network()
    guest = Guest(image, STANDING)
    try:
        guest.await_boot()
        guest.console.close()
        with open("/proc/self/stat", encoding="utf-8") as file:
            started = file.read().split()[21]
        path = os.path.join(STANDING, "state")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"pid": os.getpid(), "started": started}, file)
        os.rename(path + ".new", path)
        guest.child.wait()
    finally:
        guest.stop()


def start(_):
    if standing():
        raise Failure("a guest is running: ./scripts/siw stop")
    image = guest_image.build()
    shutil.rmtree(STANDING, ignore_errors=True)
    os.makedirs(STANDING)
    if os.fork() == 0:
        os.setsid()
        log = os.open(os.path.join(STANDING, "log"), os.O_WRONLY | os.O_CREAT)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        try:
            stand(image)
        finally:
            os._exit(0)
    end = time.monotonic() + BOOT_PATIENCE + 30
    while not standing():
        if time.monotonic() > end:
            with open(os.path.join(STANDING, "log"), encoding="utf-8") as file:
                raise Failure("the guest does not start: " + file.read())
        time.sleep(0.1)
    print(f"Linux {image.version} with siw at {GUEST}")


def stop(_):
    state = standing()
    if state:
        os.kill(state["pid"], signal.SIGTERM)
        while standing():
            time.sleep(0.05)
    shutil.rmtree(STANDING, ignore_errors=True)


def need_standing():
    state = standing()
    if not state:
        raise Failure("no guest is running: ./scripts/siw start")
    return state


def execute(options):
    need_standing()
    console = Console(os.path.join(STANDING, "commands"))
    words = options.words  # one alone may be a whole line for the guest's shell
    line = words[0] if len(words) == 1 else shlex.join(words)
    answer = console.execute(line, options.seconds)
    print(answer.text, end="")
    return answer.status


def host(options):
    command = ["nsenter", f"--net=/proc/{need_standing()['pid']}/ns/net", *options.words]
    os.execvp(command[0], command)


def shell(options):
    image = guest_image.build()
    enter_network()
    os.makedirs(cache(), exist_ok=True)
    folder = os.path.join(cache(), f"shell-{os.getpid()}")
    os.makedirs(folder)
    try:
        return Guest.on_terminal(image, folder, options.mtu)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def parser():
    top = argparse.ArgumentParser(prog="./scripts/siw", description=DESCRIPTION,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = top.add_subparsers(dest="verb", metavar="COMMAND")

    def verb(name, work, text, epilog=None):
        made = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:],
                                epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter)
        made.set_defaults(work=work)
        return made

    verb("build", build, "build the guest, if it is not in the cache")
    one = verb("test", test, "run the tests that ./scripts/test runs, with a build of build/")
    one.add_argument("--long", action="store_true", help="every triple of values, every size")
    one.add_argument("--anew", action="store_true",
                     help="with --long: also what was right in an earlier run")
    one.add_argument("tests", nargs="*", help="unittest names, such as Rping; default: all")
    verb("table", show_table, "show dimensions, cells, and which combinations cannot exist and why")
    one = verb("rping", rping, "exchange with the guest's rping and verify")
    one.add_argument("role", nargs="?", choices=cells.DIMENSIONS["role"], default="we-connect")
    one.add_argument("--size", type=int, default=1000, help="octets")
    one.add_argument("--count", type=int, default=10, help="exchanges")
    one.add_argument("--port", choices=cells.DIMENSIONS["port"], default="packet",
                     help="our own stack on a packet socket, or the system's TCP")
    one.add_argument("--mtu", type=int, default=1500)
    one = verb("connections", connections,
               "connect so many times in a row to the guest's server; count the failures")
    one.add_argument("count", nargs="?", type=int, default=500)
    one.add_argument("--port", choices=cells.DIMENSIONS["port"], default="packet")
    one.add_argument("--delay", help="mpa.first_fpdu_delay, such as 0s; default: the product's")
    one.add_argument("--patience", type=int, default=10, help="seconds that make a failure")
    verb("start", start, "start a guest that stays until `stop`", STANDING_HELP)
    one = verb("exec", execute, "run a command, or a line for its shell, in the guest of `start`",
               STANDING_HELP)
    one.add_argument("--seconds", type=int, default=60)
    one.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    one = verb("host", host, "run a program of this machine in the namespace of `start`",
               STANDING_HELP)
    one.add_argument("words", nargs=argparse.REMAINDER, metavar="PROGRAM")
    verb("stop", stop, "end the guest of `start`")
    one = verb("shell", shell, "a guest of its own on this terminal; poweroff -f ends it")
    one.add_argument("--mtu", type=int, default=1500)
    return top


def main():
    HostPeer.program = os.environ.get("SIW_PEER", "")
    top = parser()
    options = top.parse_args()
    if options.verb is None:
        top.print_help()
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return options.work(options) or 0
    except Unavailable as reason:
        say(str(reason))
        return 2
    except (Failure, GuestHangs, PeerEnded, RuntimeError) as problem:
        say(str(problem))
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
