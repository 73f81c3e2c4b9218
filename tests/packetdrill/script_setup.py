"""What a script needs around it: the flags of the adapter that its comments, its sysctls and the host
that it was written for stand for, and whether we can run it at all.
"""

import dataclasses
import math
import os
import re

import replay_script

HERE = os.path.dirname(os.path.abspath(__file__))

# What scripts of others expect of a kernel that was set up as usual, and is not our default. Ours are
# run with the product's defaults.
USUAL = {
    "cc": "cubic", "ts": "1", "sack": "1", "ws": "1", "iw": "10", "mtu": "1500",
    "rwnd": str(15 << 20), "rcvbuf": "540000", "sndbuf": str(256 << 10), "delack": "40",
    "rto_min": "200", "rto_max": "120000", "user_timeout": "924600", "close_timeout": "60000",
    "time_wait": "60000", "growth": "65536", "ecn": "0", "tlp_ack_delay": "200",
}
NETWORK = {
    "ipv4": ["--ip_version=ipv4", "--local_ip=192.168.0.1", "--gateway_ip=192.168.0.1",
             "--netmask_ip=255.255.0.0", "--remote_ip=192.0.2.1"],
    "ipv6": ["--ip_version=ipv6", "--mtu=1520", "--local_ip=fd3d:a0b:17d6::1",
             "--gateway_ip=fd3d:a0b:17d6:8888::1", "--remote_ip=fd3d:fa7b:d17d::1"],
}
LOCAL = {"ipv4": "192.168.0.1", "ipv6": "fd3d:a0b:17d6::1"}
REMOTE = {"ipv4": "192.0.2.1", "ipv6": "fd3d:fa7b:d17d::1"}


# ../common/defaults.sh and the like of others' scripts.
# The kernel acknowledges the first segments of a connection at once.
DEFAULTS = {"idle_restart": "0", "delack": "1"}


def flag(name, values=None):
    """A setter of one flag: the sysctl's value, or what `values` translates it to."""
    def set_flag(flags, value):
        if values is not None and value not in values:
            return False
        flags[name] = value if values is None else values[value]
        return True
    return set_flag


def only(*harmless):
    """A sysctl that has no flag: these values are what we do anyway."""
    return lambda flags, value: value in harmless


def ignored(flags, value):
    return True


def receive_memory(flags, value):
    """tcp_rmem: least, usual and largest receive buffer; the window's scale follows the last."""
    sums = re.sub(r"\$\(\(([\d* ]+)\)\)",
                  lambda sum: str(math.prod(int(n) for n in sum.group(1).split("*"))), value)
    numbers = sums.split()
    if len(numbers) != 3 or not all(n.isdigit() for n in numbers):
        return False
    flags["rcvbuf"], flags["rwnd"] = numbers[1], numbers[2]
    return True


def cookies(flags, value):
    """2: for every SYN."""
    if value == "2":
        flags["half_open"] = "0"
    return value in ("0", "1", "2")


SYSCTLS = {
    "tcp_timestamps": flag("ts", {"0": "0", "1": "1"}),
    "tcp_sack": flag("sack"),
    "tcp_window_scaling": flag("ws"),
    "tcp_congestion_control": flag("cc", {"reno": "reno", "cubic": "cubic", "dctcp": "dctcp"}),
    "tcp_syn_retries": flag("synretries"),
    "tcp_synack_retries": flag("synretries"),
    "tcp_ecn": flag("ecn", {"0": "0", "1": "1", "2": "2"}),
    "tcp_slow_start_after_idle": flag("idle_restart", {"0": "0", "1": "1"}),
    "tcp_early_retrans": flag("tlp", {"0": "0", "3": "1", "4": "1"}),
    "tcp_frto": flag("frto", {"0": "0", "1": "1", "2": "1"}),
    "tcp_dsack": only("1"), "tcp_fack": ignored, "tcp_reordering": only("3"),
    "tcp_recovery": only("1"), "tcp_tso_win_divisor": ignored, "tcp_min_tso_segs": ignored,
    "tcp_pacing_ss_ratio": ignored, "tcp_pacing_ca_ratio": ignored, "tcp_notsent_lowat": ignored,
    "tcp_fastopen": ignored, "tcp_fastopen_key": ignored, "tcp_syncookies": cookies,
    "tcp_rto_max_ms": flag("rto_max"),
    "tcp_rmem": receive_memory, "tcp_wmem": ignored, "tcp_ecn_option": ignored,
    "tcp_no_metrics_save": ignored,
    "tcp_base_mss": ignored, "tcp_mtu_probing": flag("probe_from_base", {"0": "0", "2": "1"}), "tcp_autocorking": ignored,
    "tcp_moderate_rcvbuf": ignored, "tcp_limit_output_bytes": ignored,
}

UNSUPPORTED = [
    (r"\b(epoll_create|epoll_ctl|epoll_wait)\(", "epoll"),
    (r"\b(pipe|splice|sendfile)\(", "pipes"),
    (r"FASTOPEN|\bFO\b|\bFOEXP\b|TFO", "TCP Fast Open is not offered"),
    (r"MSG_ZEROCOPY|SO_ZEROCOPY|TCP_ZEROCOPY", "zero copy of Linux sockets"),
    (r"TCP_MD5SIG|\bmd5\b", "TCP MD5 signatures"),
    (r"SCM_TIMESTAMPING|SO_TIMESTAMPING|MSG_ERRQUEUE|TCP_INQ|TCP_CM_INQ", "control messages"),
    (r"TCP_NOTSENT_LOWAT", "TCP_NOTSENT_LOWAT"),
    (r"TCP_REPAIR|TCP_QUEUE_SEQ", "TCP_REPAIR"),
    (r"IPPROTO_UDP|SOCK_DGRAM|\budp\b", "not TCP"),
    (r"ipv4-mapped", "IPv4-mapped addresses of sockets"),
    (r"\bpsp\b|PSP_", "PSP"),
    (r"(?m)^--mss=", "packets that its host has joined (GRO)"),
]


class Script:
    """One script, taken apart."""

    def __init__(self, path, family):
        self.path = path
        self.family = family
        with open(path, encoding="utf-8", errors="replace") as file:
            self.source = file.read()
        self.own = os.path.abspath(path).startswith(os.path.join(HERE, "scripts") + os.sep)
        self.flags = {} if self.own else dict(USUAL)
        self.sysctls = []
        self.linux = "yes"
        self.skip = ""
        self.text = self.source
        if re.search(r"^--ip_version=ipv6", self.source, re.M):
            self.family = "ipv6"
        own = re.search(r"^--local_ip=(\S+)", self.source, re.M)
        self.flags["local"] = own.group(1) if own else LOCAL[self.family]
        if self.family == "ipv6":
            self.flags["mtu"] = "1520"
        self.read_comments()
        self.strip_commands()
        self.find_pushes()
        self.find_unsupported()

    def read_comments(self):
        for kind, value in re.findall(r"^//\s*(sysctl|flags|linux):\s*(.*?)\s*$", self.source, re.M):
            if kind == "sysctl":
                name, _, number = value.partition("=")
                self.sysctls.append((name.strip(), number.strip()))
                self.take_sysctl(name.strip(), number.strip())
            elif kind == "flags":
                self.flags.update(word.split("=", 1) for word in value.split(","))
            else:
                self.linux = value

    def take_sysctl(self, name, value):
        short = re.sub(r"^(/proc/sys/)?net[./]ipv4[./]", "", name)
        setter = SYSCTLS.get(short)
        if setter is None or not setter(self.flags, value.strip().strip('"')):
            self.skip = self.skip or f"sysctl {short}={value}: no such setting here"

    def take_command(self, command, timed):
        if "defaults.sh" in command:
            self.flags.update(DEFAULTS)
        if timed and re.search(r"\btc qdisc\b", command):
            self.skip = self.skip or "changes the queue of its device on the way"
        for name, value in re.findall(
                r"((?:/proc/sys/)?net[./]ipv4[./]\w+)=(\"[^\"]*\"|[^\s;#`\\]+)", command):
            if timed:
                self.skip = self.skip or f"changes sysctl {name} on the way"
            self.take_sysctl(name, value)
        link = re.search(r"ip link set dev tun0 mtu (\d+)", command)
        if link:
            if timed:
                self.skip = self.skip or "changes the MTU of its device on the way"
            self.flags["mtu"] = link.group(1)
        route = re.search(r"ip (-6 )?route (change|add|replace)(.*)", command)
        if not route:
            return
        if timed:
            self.skip = self.skip or "changes a route on the way"
        size = re.search(r"mtu lock (\d+)|mtu (\d+)", route.group(3))
        window = re.search(r"initcwnd (\d+)", route.group(3))
        if size:
            self.flags["mtu"] = size.group(1) or size.group(2)
        if window:
            self.flags["iw"] = window.group(1)

    def strip_commands(self):
        without_comments = re.sub(r"//[^\n]*", lambda m: m.group(0).replace("`", "'"), self.source)

        def strip(match):
            timed = match.group(1) is not None
            self.take_command(match.group(2), timed)
            return "\n" * match.group(0).count("\n")

        self.text = re.sub(r"(?m)(^[ \t]*[+*~.\d][^`\n]*)?`([^`]*)`", strip, without_comments)

    def find_pushes(self):
        """Where a script expects PSH: a sender may set it anywhere (RFC 9293 s.3.9.1.2)."""
        ends = re.findall(r"(?m)^[^/\n]*>\s*(?:\[[^\]]*\]\s*)?\w*P\w*\.?\w*\s+\d+:(\d+)\(", self.text)
        if ends and not self.own:
            self.flags["psh"] = ":".join(sorted(set(ends), key=int))

    def find_unsupported(self):
        code = re.sub(r"//[^\n]*|/\*.*?\*/", "", self.source, flags=re.DOTALL)
        for pattern, reason in UNSUPPORTED:
            if re.search(pattern, code) and not self.skip:
                self.skip = reason


def below(*places):
    paths = []
    for place in places:
        if os.path.isfile(place):
            paths.append(place)
        for folder, _, names in os.walk(place):
            paths += [os.path.join(folder, name) for name in names if name.endswith(".pkt")]
    return sorted(set(os.path.abspath(path) for path in paths))


@dataclasses.dataclass
class Setup:
    """What `replay` is called with."""
    adapter: str
    flags: str
    local: str
    remote: str
    events: list


def of(path, adapter):
    """A script of ours, set up and parsed."""
    script = Script(path, "ipv4")
    options, events = replay_script.parse(script.text)
    family = options.get("ip_version", "ipv4")
    return Setup(adapter=adapter, local=LOCAL[family], remote=REMOTE[family], events=events,
                 flags=",".join(f"{name}={value}" for name, value in script.flags.items()))
