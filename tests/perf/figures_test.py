"""The figures of docs/tcp.md are those that ./scripts/bench instructions keeps."""

import json
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# A cell of a table or a piece of a sentence in docs/tcp.md -> the figure it tells, rounded.
TOLD = {
    r"data segment in order \| (\d+) \|": "receive-data",
    r"data segment in order \| \d+ \| (\d+) \|": "receive-data-whole",
    r"the application being the limit \| (\d+) \|": "receive-ack",
    r"the application being the limit \| \d+ \| (\d+) \|": "receive-ack-whole",
    r"CUBIC in congestion avoidance \| (\d+) \|": "receive-ack-avoidance",
    r"An ACK sent costs\s+(\d+)": "send-ack",
    r"a data segment sent (\d+)": "send-data",
}


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


class Figures(unittest.TestCase):
    kept = json.loads(read("tests", "perf", "instructions.json"))

    def test_page_of_tcp(self):
        page = read("docs", "tcp.md")
        for pattern, name in TOLD.items():
            with self.subTest(name):
                found = re.findall(pattern, page)
                self.assertEqual(len(found), 1, f"docs/tcp.md tells {name} once: {pattern}")
                self.assertLessEqual(abs(int(found[0]) - self.kept[name]), 1,
                                     f"docs/tcp.md tells {found[0]} for {name}")

    def test_checksum_is_the_difference(self):
        told = re.search(r"software\s+adds (\d+) for 1448 octets", read("docs", "tcp.md"))
        adds = self.kept["receive-data-checksum"] - self.kept["receive-data"]
        self.assertLessEqual(abs(int(told[1]) - adds), 1)


if __name__ == "__main__":
    unittest.main()
