#!/usr/bin/env python3
"""Has the compiler of a build look at each of its sources as it would compile it, and make nothing.
usage: parse_each.py BUILD. Exit status: 0 clean, 1 something was found."""

import concurrent.futures
import json
import os
import shlex
import subprocess
import sys

MADE = {"-o": 2, "-c": 1, "-MD": 1, "-MQ": 2, "-MF": 2}  # what makes files, with its arguments


def looks(command):
    """The command without what it would make."""
    words, out, at = shlex.split(command), [], 0
    while at < len(words):
        if words[at] in MADE:
            at += MADE[words[at]]
        else:
            out.append(words[at])
            at += 1
    return out + ["-fsyntax-only"]


def look(row):
    command = looks(row["command"])
    done = subprocess.run(command, cwd=row["directory"], capture_output=True, text=True,
                          check=False)
    return row["file"], done.returncode, done.stdout + done.stderr


def main():
    with open(os.path.join(sys.argv[1], "compile_commands.json"), encoding="utf-8") as file:
        rows = json.load(file)
    found = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, (source, status, said) in enumerate(pool.map(look, rows), 1):
            if status != 0 or said:
                found += 1
                print(f"{source}:\n{said}", file=sys.stderr)
            if number % 100 == 0 or number == len(rows):
                print(f"clang: {number} of {len(rows)} sources", file=sys.stderr, flush=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
