#!/usr/bin/env python3
"""What the documents say to type can be typed: the program in the README is the one that is compiled
and run as a test; every command of the project in README, docs, apps and --help exists, knows its
options and finds its files; the lines for two machines do not give both one address.

usage: readme_test.py SOURCE_ROOT RNIC_PERF RNIC_PING RNIC_DEMO RNIC_STREAM
"""

import glob
import os
import re
import shlex
import subprocess
import sys

ROOT = sys.argv[1]
PROGRAMS = {os.path.basename(path): os.path.abspath(path) for path in sys.argv[2:6]}
COMMANDS = ("loopback", "server", "client")
# Build directories and generated pages that the two commands of the README make.
MADE = ("out/", "build/")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def pages():
    patterns = ("README.md", "docs/*.md", "apps/*/README.md", "tests/*/README.md")
    return sorted(os.path.relpath(path, ROOT) for pattern in patterns
                  for path in glob.glob(os.path.join(ROOT, pattern)))


def help_of(*command):
    return subprocess.run([*command, "--help"], capture_output=True, text=True, timeout=60,
                          check=False).stdout


def commands_of_page(text):
    """Lines to paste: blocks of code, and what stands between back-ticks."""
    for block in re.findall(r"^ *```\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        yield from block.splitlines()
    yield from (line for line in text.splitlines() if line.startswith("    "))
    yield from (span.replace("\n", " ") for span in re.findall(r"`([^`]+)`", text))


def commands():
    for page in pages():
        for line in commands_of_page(read(page)):
            yield page, line
    for name, path in PROGRAMS.items():
        for line in help_of(path).splitlines():
            yield name + " --help", re.sub(r"^Examples?: *", "", line.strip())


def words_of(line):
    """Of a command of ours, without comments and prompts; else nothing."""
    line = re.sub(r"\s(#| {3,}).*$", "", line.strip().removeprefix("sudo "))
    first = line.split(" ")[0]
    if first not in PROGRAMS and not first.startswith(("./scripts/", "scripts/")):
        return []
    try:
        return shlex.split(line)
    except ValueError:
        return []


class Checker:
    def __init__(self):
        self.faults = []
        self.helps = {}
        self.checked = 0

    def known_options(self, words):
        key = tuple(words[:2]) if words[1:] and words[1] in COMMANDS else (words[0],)
        if key not in self.helps:
            name = words[0]
            sub = list(key[1:]) if name in ("rnic-perf", "rnic-stream") else []
            self.helps[key] = help_of(PROGRAMS[name], *sub) + help_of(PROGRAMS[name])
        return self.helps[key]

    def check(self, where, words):
        self.checked += 1
        if words[0] not in PROGRAMS:
            path = os.path.join(ROOT, words[0])
            if not os.access(path, os.X_OK):
                self.faults.append(f"{where}: there is no {words[0]}")
        else:
            known = self.known_options(words)
            for word in words[1:]:
                option = word.split("=")[0]
                if option.startswith("--") and not re.search(option + r"\b", known):
                    self.faults.append(f"{where}: {words[0]} has no option {option}")
        for option, value in zip(words, words[1:]):
            if option != "--config" or not value.endswith(".toml"):
                continue
            if not value.startswith(MADE) and not os.path.exists(os.path.join(ROOT, value)):
                self.faults.append(f"{where}: there is no {value}")

    def check_pair(self, where, server, client):
        """A server's line with the client's behind it: who is connected to, and from where."""
        def value(words, option):
            return words[words.index(option) + 1] if option in words[:-1] else None
        if server[0] != client[0] or value(server, "--config") is None:
            return
        if value(server, "--config") != value(client, "--config"):
            return
        here, there = (value(words, "--address") for words in (server, client))
        target = next((w for w in client[1:] if re.match(r"^[0-9.]+$|^[0-9a-f:]+$", w)), None)
        if here is None or there is None or here == there or target != here.split("/")[0]:
            self.faults.append(f"{where}: these two cannot meet: {' '.join(server)} | "
                               f"{' '.join(client)}")


def main():
    blocks = re.findall(r"^```cpp\n(.*?)^```$", read("README.md"), re.MULTILINE | re.DOTALL)
    if blocks != [read("tests/unit/verbs/readme_example.cpp")]:
        sys.exit("the C++ in README.md differs from tests/unit/verbs/readme_example.cpp: copy it")
    checker = Checker()
    server = None
    for where, line in commands():
        words = words_of(line)
        if not words:
            continue
        checker.check(where, words)
        if server and server[0] == where and "server" not in words:
            checker.check_pair(where, server[1], words)
        server = (where, words) if "server" in words else None
    print("\n".join(sorted(set(checker.faults))))
    print(f"{checker.checked} commands, {len(set(checker.faults))} faults")
    sys.exit(1 if checker.faults or checker.checked < 40 else 0)


if __name__ == "__main__":
    main()
