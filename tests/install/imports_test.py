#!/usr/bin/env python3
"""What the archive asks of the system: nothing that brings code into the process, or starts any.

usage: imports_test.py ARCHIVE
"""

import os
import re
import subprocess
import sys
import unittest

ARCHIVE = sys.argv.pop(1)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# dlsym() is none of them: it finds what is loaded.
LOADING = {"dlopen", "dlmopen", "mprotect", "pkey_mprotect", "init_module", "finit_module",
           "kexec_load"}
STARTING = {"system", "popen", "posix_spawn", "posix_spawnp", "fexecve", "execve", "execv", "execvp",
            "execvpe", "execl", "execlp", "execle", "execveat", "fork", "vfork", "clone", "syscall"}


def imports(archive):
    """The names that the archive's members do not define themselves."""
    told = subprocess.run(["nm", "--undefined-only", "--format=posix", archive], check=True,
                          capture_output=True, text=True).stdout
    return {line.split()[0] for line in told.splitlines() if re.search(r" U\b", line)}


class Imports(unittest.TestCase):
    # DDP-8.3.1-03, RDMAP-8.1-01 (RFC 5040 s.8.1.1(12)): no peer reaches a path on which code or
    # firmware is loaded, as there is none. What the packets of a peer reach is in the archive; DPDK's
    # start-up, which loads the drivers that the configuration names, is not, and has ended before the
    # first packet.
    def test_nothing_loads_or_starts_code(self):
        found = imports(ARCHIVE)
        self.assertIn("recv", found, "the archive's imports were not read")
        self.assertEqual(found & (LOADING | STARTING), set())

    def test_no_memory_is_executable(self):
        for room in ("lib", "drivers"):
            for folder, _, names in os.walk(os.path.join(ROOT, room)):
                for name in names:
                    with open(os.path.join(folder, name), encoding="utf-8") as file:
                        self.assertNotIn("PROT_EXEC", file.read(), os.path.join(folder, name))


if __name__ == "__main__":
    unittest.main()
