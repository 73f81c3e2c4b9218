#!/usr/bin/env python3
"""check_ibverbs_page sees what is wrong with a page."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "scripts", "check_ibverbs_page")
with open(os.path.join(ROOT, "docs", "from-ibverbs.md"), encoding="utf-8") as PAGE_FILE:
    PAGE = PAGE_FILE.read()


class Page(unittest.TestCase):
    def checked(self, old, new, *headers):
        self.assertIn(old, PAGE)
        with tempfile.NamedTemporaryFile("w", suffix=".md", encoding="utf-8") as file:
            file.write(PAGE.replace(old, new, 1))
            file.flush()
            ran = subprocess.run([sys.executable, SCRIPT, file.name, *headers], check=False,
                                 capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0 if old == new else 1, ran.stdout + ran.stderr)
        return ran.stdout

    def test_the_page_as_it_is(self):
        self.checked("`ibv_poll_cq`", "`ibv_poll_cq`")

    def test_a_name_that_is_none(self):
        for old, new in (("`CompletionQueue::poll`", "`CompletionQueue::pol`"),
                         ("`CompletionQueue::poll`", "`MemoryRegion::poll`"),
                         ("`CompletionQueue::poll`", "`CompletionQueue::device_`"),
                         ("`event::Rejected`", "`event::Refused`"),
                         ("`blocking::Listener::accept`", "`blocking::Listener::listen`"),
                         ("`next_key`", "`following_key`")):
            with self.subTest(new=new):
                self.assertIn(f"{new} is in no public header", self.checked(old, new))

    def test_a_call_without_a_row(self):
        self.assertIn("`ibv_poll_cq` has no row", self.checked("`ibv_poll_cq`, ", ""))
        self.assertIn("`IBV_QPS_SQD` has no row", self.checked("`IBV_QPS_SQD`", "`IBV_QPS_X`"))

    def test_their_headers(self):
        """What their headers declare has a row, and a row is for what they declare."""
        cells = "".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))
        names = re.findall(r"`(\w+)`", cells)
        with tempfile.TemporaryDirectory() as directory:
            for folder in ("infiniband", "rdma"):
                os.mkdir(os.path.join(directory, folder))

            def write(header, text):
                with open(os.path.join(directory, header), "w", encoding="utf-8") as file:
                    file.write(text)

            write("infiniband/verbs.h", "".join(f"int {name}(void);\n" for name in names))
            write("rdma/rdma_cma.h", "/* rdma_told(int); */ enum ibv_kind (*read)(void);\n")
            same = ("`ibv_poll_cq`", "`ibv_poll_cq`")
            # Without the third header the list of the script is asked.
            self.assertIn("a list of their calls", self.checked(*same, directory))
            write("rdma/rdma_verbs.h", "// rdma_noted(int);\n")
            self.assertIn("calls of their headers", self.checked(*same, directory))
            self.assertIn("`ibv_polled_cq` is in none of their headers",
                          self.checked("`ibv_resize_cq`", "`ibv_resize_cq`, `ibv_polled_cq`",
                                       directory))
            write("rdma/rdma_verbs.h", "static inline int\nrdma_newer(int a) {}\n"
                                       "#define ibv_newest(a) newest(a)\n")
            found = self.checked("`ibv_resize_cq`", "`ibv_resize_cq` ", directory)
            self.assertIn("`rdma_newer` has no row", found)
            self.assertIn("`ibv_newest` has no row", found)
            self.assertIn("2 violations", found)

    def test_a_call_with_two_rows(self):
        self.assertIn("`ibv_poll_cq` has a row already",
                      self.checked("`ibv_resize_cq`", "`ibv_resize_cq`, `ibv_poll_cq`"))

    def test_a_row_that_says_nothing(self):
        self.assertIn("says neither", self.checked("| none | nothing to prefetch |", "| none | |"))


if __name__ == "__main__":
    unittest.main()
