"""The plugin is loaded by a libibverbs of each version that it knows, and takes it for what it is.

The libraries are stubs (libibverbs_stub.cpp): they have the functions that tell one version from
another. The numbers are those of the headers of rdma-core.
"""

import os
import subprocess
import sys
import unittest

RNIC_RUN, STUBS = (os.path.abspath(folder) for folder in sys.argv[1:3])
SECONDS = 30
CONTEXT = 328  # octets of ibv_context, with which verbs_context ends
SCRIPT = """
import ctypes, sys
stub = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
stub.stub_open.restype = ctypes.c_size_t
ctypes.CDLL(sys.argv[2])
size = stub.stub_open()
print(size, [slot for slot in map(int, sys.argv[3:]) if size and stub.stub_has(ctypes.c_size_t(slot))])
"""


class Versions(unittest.TestCase):
    def load(self, release, name, *slots):
        """-> what the library of that release saw of the plugin, and what was said on stderr"""
        ran = subprocess.run(
            [sys.executable, "-c", SCRIPT, os.path.join(STUBS, f"libibverbs-of-{release}.so"),
             os.path.join(RNIC_RUN, name), *map(str, slots)],
            env={**os.environ, "LD_PRELOAD": os.path.join(RNIC_RUN, "librnic-door.so")},
            capture_output=True, text=True, check=True, timeout=SECONDS)
        return ran.stdout.strip(), ran.stderr

    def test_the_layout_is_that_of_the_library(self):
        # The first and the last operation that the plugin has, alloc_mw and resize_cq.
        for release, version, in_front, first, last in (
                (36, 34, 320, 2, 71), (57, 57, 320, 2, 71), (59, 59, 344, 3, 74),
                (62, 59, 352, 3, 76), (64, 64, 368, 4, 78)):
            with self.subTest(release=release):
                said, errors = self.load(release, f"librnic-rdmav{version}.so", first - 1, first,
                                         last, last + 1)
                self.assertEqual(said, f"{in_front + CONTEXT} [{first}, {last}]", errors)

    def test_a_library_that_is_too_old_is_told_so(self):
        said, errors = self.load(35, "librnic-rdmav34.so")
        self.assertEqual(said, "0 []")
        self.assertIn("softrnic: this libibverbs is of no release", errors)

    def test_the_plugin_is_tied_to_no_version(self):
        needed = subprocess.run(["readelf", "-V", os.path.join(RNIC_RUN, "librnic-rdmav34.so")],
                                capture_output=True, text=True, check=True).stdout
        self.assertNotIn("IBVERBS", needed)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
