#!/usr/bin/env python3
"""Tests what scripts/clang says to .ci/run, which goes on without clang when it hears 2: of a
machine that has none, and of a tree that clang does not accept. The programs it calls are stand-ins."""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MACHINE = {"dpkg-query": "printf installed", "apt-get": "exit 1", "ninja": "exit 0",
           "meson": "mkdir -p build-clang && touch build-clang/build.ninja && "
                    "echo '[{\"directory\": \".\", \"file\": \"one.cpp\", "
                    "\"command\": \"clang++ -MD -MF one.d -o one.o -c one.cpp\"}]' "
                    "> build-clang/compile_commands.json",
           "clang++": "[ \"$*\" = --version ] && echo clang; "
                      "[ \"$*\" = 'one.cpp -fsyntax-only' ] || [ \"$*\" = --version ]",
           "mktemp": ": >log && echo log"}


class ClangScript(unittest.TestCase):
    def status(self, **programs):
        """Of the script in a tree of its own, with these programs in front of the machine's."""
        with tempfile.TemporaryDirectory(prefix="rnic-clang-") as folder:
            for name in ("scripts", "bin"):
                os.mkdir(os.path.join(folder, name))
            for name in ("clang", "parse_each.py", "setup"):
                shutil.copy(os.path.join(ROOT, "scripts", name), os.path.join(folder, "scripts"))
            texts = {name.replace("_", "-"): text for name, text in programs.items()}
            for name, text in {**MACHINE, **texts}.items():
                path = os.path.join(folder, "bin", name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(f"#!/bin/sh\n{text}\n")
                os.chmod(path, 0o755)
            path = os.path.join(folder, "bin") + os.pathsep + os.environ["PATH"]
            return subprocess.run([os.path.join(folder, "scripts", "clang")], cwd=folder,
                                  env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL,
                                  capture_output=True, check=False).returncode

    def test_what_is_accepted_is_clean(self):
        self.assertEqual(self.status(), 0)

    def test_what_does_not_compile_is_found(self):
        refuses = "[ \"$*\" = --version ]"
        self.assertEqual(self.status(**{"clang++": refuses}), 1)

    def test_what_it_warns_of_is_found(self):
        self.assertEqual(self.status(**{"clang++": "echo a warning"}), 1)

    def test_what_meson_cannot_configure_is_found(self):
        self.assertEqual(self.status(meson="exit 1"), 1)

    def test_a_machine_without_clang_is_told_from_it(self):
        self.assertEqual(self.status(dpkg_query="exit 1"), 2)


if __name__ == "__main__":
    unittest.main()
