"""Cells, breaches and deaths carried out: siw_peer on this side, guest_peer or rping in the guest."""

import collections
import contextlib

import defects
import plan
import wire
from cells import settings_key, sizes
from guest import GUEST, GuestHangs
from host_peer import HostPeer, PeerEnded

PORT = 7471
RPING_PORT = 7174
PATIENCE = 60  # seconds without any completion that end a trial,
SLOWEST = 250_000  # and one for so many octets: an emulated guest on a machine with 30 running processes
RTR_WRITE, RTR_READ = 128, 64  # siw's rtr_type, in network order
DROPS = 5  # good segments of a connection that may be dropped on suspicion (decision 9)
ATTEMPTS = 4  # at a cell in which siw's own defects end too many connections
PATHS = {"clean": "", "loss": "delay 1ms loss 1%", "delay": "delay 5ms 2ms"}


class Failed(Exception):
    """A cell went wrong; the text says how."""


class DefectOfSiw(Failed):
    """It went wrong through siw's fault, and too little of it went well to be called done."""


class Bench:
    """One guest, our program with the settings of the cell at hand, and what both are set to."""

    seed = 1000  # of the latest trial; no two have the same, as the guest's server tells all by it

    def __init__(self, laboratory):
        self.laboratory = laboratory
        self.ours = None
        self.ours_key = None
        self.guest_key = None
        self.defects = collections.Counter()  # connections that siw lost, by name of the defect
        self.most_drops = 0  # on suspicion, a connection

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop_ours()

    @property
    def guest(self):
        return self.laboratory.guest

    def stop_ours(self):
        if self.ours:
            self.ours.stop()
        self.ours = self.ours_key = None

    def next_seed(self):
        Bench.seed += 1000
        return Bench.seed

    def set_ours(self, port="packet", mtu=1500, crc=True, rtr="none", **settings):
        """Our program with these settings; the one that runs, when it has them."""
        settings = {name.replace("__", "."): value for name, value in settings.items()
                    if value is not None}
        settings["mpa.crc"] = str(crc).lower()
        if rtr != "none":
            settings |= {f"mpa.rtr_{kind}": str(kind == rtr).lower()
                         for kind in ("send", "write", "read")}
        key = (port, mtu, sorted(settings.items()))
        if key != self.ours_key or self.ours is None or self.ours.child.poll() is not None:
            self.stop_ours()
            self.ours = HostPeer(self.laboratory.folder, port, mtu, settings)
            self.ours_key = key
        return self.ours

    def set_guest(self, revision=2, crc="off", rtr="none", mtu=1500, path="clean"):
        """siw's parameters, the link's MTU and what netem does to both directions."""
        key = (revision, crc, rtr, mtu, path)
        if key == self.guest_key:
            return
        kinds = {"none": RTR_WRITE | RTR_READ, "write": RTR_WRITE, "read": RTR_READ}
        values = {"mpa_version": revision, "mpa_crc_required": int(crc == "siw-asks"),
                  "peer_to_peer": int(rtr != "none"), "rtr_type": kinds[rtr]}
        commands = [f"echo {value} >/sys/module/siw/parameters/{name}"
                    for name, value in values.items()]
        commands.append(f"ip link set eth0 mtu {mtu}")
        if self.guest_key is None or path != self.guest_key[-1]:
            commands += self.path_commands(path)
        answer = self.guest.execute("set -e\n" + "\n".join(commands))
        if answer.status != 0:
            raise RuntimeError(f"the guest cannot be set to {key}: {answer.text}")
        self.guest_key = key

    @staticmethod
    def path_commands(path):
        tc = "/usr/bin/tc"
        commands = [f"{tc} qdisc del dev eth0 root 2>/dev/null || true",
                    f"{tc} qdisc del dev eth0 ingress 2>/dev/null || true"]
        if PATHS[path]:
            commands += [
                "modprobe -a sch_netem sch_ingress act_mirred cls_matchall",
                "[ -e /sys/class/net/ifb0 ] || modprobe ifb numifbs=1",
                f"ip link set ifb0 mtu 9000 up",
                f"{tc} qdisc add dev eth0 root netem limit 100000 {PATHS[path]}",
                f"{tc} qdisc add dev eth0 handle ffff: ingress",
                f"{tc} filter add dev eth0 parent ffff: matchall action mirred egress redirect "
                "dev ifb0",
                f"{tc} qdisc replace dev ifb0 root netem limit 100000 {PATHS[path]}"]
        return commands

    def restart_guest(self, why):
        self.laboratory.boot_again(why)
        self.guest_key = None

    def replace_guest(self):
        """After a test has killed it."""
        self.stop_ours()
        self.laboratory.replace()
        self.guest_key = None

    def serve_in_guest(self):
        """A server of ours in the guest, which listens when this returns. One that is gone though
        nobody killed it is the guest's failure, not our end's: it is told, and started again."""
        if self.guest.serves:
            found = self.guest.execute(f"grep -q ':{PORT:04X} 00000000:0000 0A' /proc/net/tcp || {{ "
                                       "pidof guest_peer; tail -n 5 /tmp/server.out; "
                                       "dmesg | tail -n 10; exit 9; }")
            if found.status != 9:
                return
            self.laboratory.tell_restart("server", f"nobody listens in the guest: {found.text}")
            self.kill_in_guest()
        answer = self.guest.execute(f"guest_peer server {PORT} >/tmp/server.out 2>&1")
        if answer.status != 0:
            raise GuestHangs("guest_peer does not listen")
        self.guest.serves = True

    def kill_in_guest(self):
        """Our processes there; one that cannot even be killed means that siw hangs."""
        self.guest.serves = False
        answer = self.guest.execute("killall -9 guest_peer; for turn in $(seq 30); do "
                                    "ps | grep -q '[g]uest_peer' || exit 0; sleep 0.1; done; exit 9")
        if answer.status == 9:
            raise GuestHangs("guest_peer cannot be killed")

    def trial(self, role, octets, count=1, revision=2, rtr=False, patience=PATIENCE):
        """Our end's result of a trial; `error` has what the guest's end says, too."""
        if role == "we-connect":
            self.serve_in_guest()
            return self.ours.connect(seconds=20 * patience, kind="trial", address=GUEST, port=PORT,
                                     qps=count, plan=octets.hex(), revision=revision, rtr=rtr)
        self.ours.serve(kind="trial", port=PORT, qps=count, patience=patience)
        answer = self.guest.execute(f"guest_peer client {self.ours.address} {PORT} {count} "
                                    + octets.hex(), 3 * patience)
        result = self.ours.answer(2 * patience)
        result["guest"] = answer.text
        if result["ok"] and answer.status != 0:
            result["ok"] = False
        return result

    def attempt(self, work):
        """Carries out `work`; once more when siw hangs, in a guest that is started anew."""
        try:
            return work()
        except GuestHangs as hang:
            self.stop_ours()
            self.restart_guest(hang)
            return work()

    def look_after_guest(self):
        """After a failure."""
        self.guest_key = None
        self.kill_in_guest()

    def run_cell(self, cell, long=False):
        """Raises Failed."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self.attempt(lambda: self.run_cell_once(cell, long))
            except DefectOfSiw:
                if attempt == ATTEMPTS:
                    raise

    def run_cell_once(self, cell, long):
        rtr = cell["rtr"] != "none"
        connects = cell["role"] == "we-connect"
        self.set_ours(cell["port"], cell["mtu"], cell["crc"] == "on",
                      cell["rtr"] if connects else "none")
        self.set_guest(cell["revision"], cell["crc"], "none" if connects else cell["rtr"],
                       cell["mtu"], cell["path"])
        all_sizes = sizes(cell, long)
        patience = PATIENCE + sum(all_sizes) * cell["qps"] // SLOWEST
        octets = plan.encode(cell["operation"], all_sizes, self.next_seed(), acceptor_speaks=rtr,
                             patience=patience)
        with contextlib.ExitStack() as stack:
            capture = None
            if defects.needs_capture(cell):
                capture = stack.enter_context(wire.Capture(self.guest.tap))
            result = self.trial(cell["role"], octets, cell["qps"], cell["revision"], rtr, patience)
        self.judge(result, cell, defects.Excuses(cell, capture))

    def run_breach(self, cell):
        """One end breaks a rule after a round in which all went well. The faults that our end was told
        of; raises Failed when the connection goes on, or the peer's end sees another thing."""
        return self.attempt(lambda: self.run_breach_once(cell))

    def run_breach_once(self, cell):
        self.set_ours(cell["port"], crc=cell["crc"] == "on")
        self.set_guest()
        initiator = "we" if cell["role"] == "we-connect" else "siw"
        octets = plan.encode("send", (64,), self.next_seed(), breach=cell["breach"],
                             breach_round=2 if cell["breaker"] == initiator else 1,
                             patience=PATIENCE)
        result = self.trial(cell["role"], octets)
        if not result["ok"]:
            self.look_after_guest()
            raise Failed("; ".join(problems_of(result)))
        said = result.get("guest") or self.guest.execute(
            f"for turn in $(seq 100); do grep '^{self.seed} ' /tmp/server.out && exit 0; sleep 0.1; "
            "done").text
        if f"{self.seed} broken" not in said:
            raise Failed("the guest's end says: " + said)
        return result["connections"][0]

    def judge(self, result, cell, excuses):
        excused = [connection for connection in result.get("connections", ())
                   if not connection["ok"] and excuses.covers(connection)]
        self.defects.update(excuses.seen)
        problems = problems_of(result, excuses.seeds)
        expected = {"revision": cell["revision"], "crc": cell["crc"] != "off",
                    "rtr": cell["rtr"] != "none"}
        for connection in result.get("connections", ()) if not problems else ():
            problems += [f"{name} is {connection[name]} instead of {value}"
                         for name, value in expected.items() if connection[name] != value]
        if not result["quiescent"]:
            problems.append("our device is not quiescent afterwards")
        drops = result["counters"].get("mpa.suspicious_drops", 0)
        self.most_drops = max(self.most_drops, -(-drops // cell["qps"]))
        if drops > DROPS * cell["qps"]:
            problems.append(f"{drops} good segments dropped on suspicion")
        if problems or excused:
            self.look_after_guest()
        if problems:
            raise Failed("; ".join(dict.fromkeys(problems)))
        if 2 * len(excused) > cell["qps"]:
            raise DefectOfSiw("; ".join(connection["error"] for connection in excused))


def problems_of(result, excused=()):
    """What a result complains of. `excused`: seeds of connections whose failures are siw's own."""
    found = [result["error"]] if result.get("error") else []
    found += [connection["error"] for connection in result.get("connections", ())
              if not connection["ok"] and str(connection.get("seed")) not in excused]
    if result.get("guest") and not result["ok"]:
        bad = [line for line in result["guest"].split("\n")
               if line and not line.endswith(" ok") and line.split()[0] not in excused
               and not (excused and line.endswith(" good"))]
        if bad:
            found.append("guest: " + " / ".join(bad[:3] + bad[3:][-3:]))
    return found or ([] if result["ok"] or excused else ["it failed"])


def run_cell(bench, cell, long=False):
    """What was wrong with it, or None."""
    try:
        bench.run_cell(cell, long)
    except (Failed, GuestHangs, PeerEnded) as failure:
        if not isinstance(failure, Failed):
            bench.stop_ours()
            bench.attempt(bench.look_after_guest)
        return str(failure)
    return None
