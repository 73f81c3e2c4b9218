#!/usr/bin/env python3
"""Tests scripts/proof_record in a repository of its own: what a row says, when a run is refused,
what makes a proof stale."""

import contextlib
import io
import os
import subprocess
import sys
import tempfile
import types
import unittest
from importlib.machinery import SourceFileLoader

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
LOADER = SourceFileLoader("proof_record", os.path.join(ROOT, "scripts", "proof_record"))
proof_record = types.ModuleType(LOADER.name)
sys.modules[LOADER.name] = proof_record
LOADER.exec_module(proof_record)


class ProofRecord(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="rnic-proofs-")
        self.root = self.folder.name
        for folder in ("docs", "lib", "drivers", "tests/sim", "tests/support", "apps"):
            os.makedirs(os.path.join(self.root, folder))
        self.git("init", "-q")
        self.change("lib/a.cpp", "int a;")

    def tearDown(self):
        self.folder.cleanup()

    def git(self, *words):
        author = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", self.root, *author, *words], check=True, capture_output=True)

    def change(self, path, text):
        with open(os.path.join(self.root, path), "w", encoding="utf-8") as file:
            file.write(text + "\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"change {path}")

    def call(self, *words):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = proof_record.main(list(words), self.root)
        return status, out.getvalue()

    def row(self):
        rows = proof_record.Page(self.root).rows
        self.assertEqual(len(rows), 1)
        return rows[0]

    def test_a_run_writes_commit_command_seed_and_result(self):
        status, out = self.call("run", "sim", "--", "sh", "-c",
                                "echo first seed 77; echo '9 seeds, 0 failures'; echo more")
        self.assertEqual(status, 0)
        self.assertIn("9 seeds", out)
        row = self.row()
        head = subprocess.run(["git", "-C", self.root, "rev-parse", "HEAD"], text=True,
                              capture_output=True, check=True).stdout
        self.assertTrue(head.startswith(row.commit))
        self.assertEqual((row.seed, row.result), ("77", "9 seeds, 0 failures"))
        self.assertTrue(row.command.startswith("sh -c "))

    def test_of_a_line_its_group_is_written_and_what_is_left_out_is_not_hidden(self):
        lines = ("socket over IPv4, strangers at own: 99 of 100 clients in, the slowest after 0.03 s; server",
                 "siege: af_packet over IPv6 is left out", "the last line")
        status, _ = self.call("run", "siege", "--", "printf", "%s\\n" * 3, *lines)
        self.assertEqual(status, 0)
        self.assertEqual(self.row().result,
                         "socket over IPv4, strangers at own: 99 of 100 clients in, the slowest after "
                         "0.03 s; af_packet over IPv6 is left out")

    def test_totals_of_the_conformance_table_are_kept_whole(self):
        line = "MUST covered 464 of 532, SHOULD covered 7 of 102, failing 0, excepted 0"
        self.call("run", "conformance", "--", "echo", line)
        self.assertEqual(self.row().result, line)

    def test_what_a_command_says_on_its_error_stream_counts(self):
        self.call("run", "clang", "--", "sh", "-c", "echo 'clang: 3 files, 0 findings' >&2")
        self.assertEqual(self.row().result, "3 files, 0 findings")

    def test_a_failure_is_written_as_one(self):
        status, _ = self.call("run", "sim", "--", "sh", "-c", "echo '9 seeds, 2 failures'; exit 1")
        self.assertEqual(status, 1)
        self.assertEqual(self.row().result, "9 seeds, 2 failures (exit 1)")

    def test_the_same_command_replaces_its_row_and_bars_are_kept(self):
        words = ("run", "fuzz", "--", "sh", "-c", "cat lib/a.cpp | cat")
        self.call(*words)
        self.assertEqual(self.row().result, "int a;")
        self.change("lib/a.cpp", "int b | c;")
        self.call(*words)
        self.assertEqual(self.row().result, "int b | c;")
        self.assertEqual(self.row().command, "sh -c 'cat lib/a.cpp | cat'")

    def test_a_tree_that_is_not_the_commits_is_refused(self):
        with open(os.path.join(self.root, "lib/a.cpp"), "a", encoding="utf-8") as file:
            file.write("int more;\n")
        with self.assertRaises(proof_record.Refused):
            self.call("run", "sim", "--", "true")

    def test_a_proof_is_stale_when_what_it_proves_changes_and_only_then(self):
        self.call("run", "sim", "--", "echo", "1 seeds, 0 failures")
        self.change("docs/page.md", "text")
        self.change("apps/a.cpp", "int a;")
        self.assertIn("holds", self.call("check")[1])
        for path in ("drivers/a.cpp", "tests/sim/a.cpp", "lib/a.cpp"):
            self.call("run", "sim", "--", "echo", "1 seeds, 0 failures")
            self.assertIn("holds", self.call("check")[1])
            self.change(path, "int changed;")
            status, out = self.call("check")
            self.assertEqual(status, 0)
            self.assertRegex(out, rf"stale since \w+ change {path}")

    def test_a_proof_holds_where_a_change_was_taken_back(self):
        self.change("lib/a.cpp", "int before;")
        self.call("run", "sim", "--", "echo", "1 seeds, 0 failures")
        self.change("lib/a.cpp", "int changed;")
        self.assertIn("stale", self.call("check")[1])
        self.change("lib/a.cpp", "int before;")
        self.assertIn("holds", self.call("check")[1])

    def test_a_commit_that_does_not_exist_fails(self):
        self.call("write", "siw", "--command", "x", "--result", "y")
        page = proof_record.Page(self.root)
        row = page.rows[0]
        row.commit = "0123456789ab"
        page.put(row)
        status, out = self.call("check")
        self.assertEqual(status, 1)
        self.assertIn("0123456789ab", out)


if __name__ == "__main__":
    unittest.main()
