#!/usr/bin/env python3
"""meson install into an empty place, then a program built with pkg-config alone.

usage: install_test.py BUILD_DIR CXX SOURCE [flags for linking the program]
"""

import json
import os
import subprocess
import sys
import tempfile

BUILD, CXX, SOURCE, *LINK_FLAGS = sys.argv[1:]
PROGRAMS = ("rnic-perf", "rnic-ping", "rnic-demo")


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def find(root, name):
    found = [os.path.join(folder, name) for folder, _, names in os.walk(root) if name in names]
    if len(found) != 1:
        sys.exit(f"{name} is installed {len(found)} times")
    return found[0]


def pkg_config(place, description, *what):
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(description),
               PKG_CONFIG_SYSROOT_DIR=place)
    return run("pkg-config", *what, "softrnic", env=env).split()


def sanitizers():
    """Flags that the archive was built with and that the program needs too."""
    options = run("meson", "introspect", "--buildoptions", BUILD)
    value = next(o["value"] for o in json.loads(options) if o["name"] == "b_sanitize")
    return [] if value == "none" else ["-fsanitize=" + value]


def main():
    with tempfile.TemporaryDirectory(prefix="rnic-install-") as place:
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--destdir", place)
        for program in PROGRAMS:
            if "Example" not in run(find(place, program), "--help"):
                sys.exit(f"{program} --help shows no example")
        description = find(place, "softrnic.pc")
        flags = pkg_config(place, description, "--cflags")
        stray = [f for f in flags if not f.startswith("-I")]
        if stray:
            sys.exit(f"flags forced upon users: {stray}")
        libraries = pkg_config(place, description, "--libs")
        program = os.path.join(place, "outside")
        run(CXX, "-std=c++20", "-Wall", "-Wextra", "-Werror", *sanitizers(), *flags, SOURCE, "-o",
            program, *libraries, *LINK_FLAGS)
        if run(program).split() != ["rnic0", "rnic1"]:
            sys.exit("the program outside of the tree says something else")


if __name__ == "__main__":
    main()
