#!/usr/bin/env python3
"""tshark decodes a capture of every operation: nothing is missing, nothing malformed.

usage: decode_test.py CAPTURE_PROGRAM
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
CHECKSUMS = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
OPCODES = {0: "Write", 1: "Read Request", 2: "Read Response", 3: "Send",
           4: "Send with Invalidate", 5: "Send with SE", 6: "Send with SE and Invalidate",
           7: "Terminate", 8: "Immediate Data", 9: "Immediate Data with SE",
           10: "Atomic Request", 11: "Atomic Response"}


class Decode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="rnic-tshark-")
        cls.capture = os.path.join(cls.folder.name, "operations.pcapng")
        made = subprocess.run([PROGRAM, cls.capture], capture_output=True, text=True, check=False)
        if made.returncode:
            raise RuntimeError(made.stderr)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def tshark(self, *args):
        done = subprocess.run(["tshark", "-n", "-r", self.capture, *CHECKSUMS, *args],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def values(self, field, display_filter=""):
        """Every value of a field, in the order of the capture."""
        out = self.tshark("-Y", display_filter or field, "-T", "fields", "-e", field)
        return [value for line in out.splitlines() for value in line.split(",") if value]

    def numbers(self, field, display_filter=""):
        return [int(value, 0) for value in self.values(field, display_filter)]

    def frames(self, display_filter):
        return self.tshark("-Y", display_filter).splitlines()

    def test_every_operation_is_there(self):
        seen = set(self.numbers("iwarp_rdma.opcode"))
        self.assertEqual(seen, set(OPCODES))

    def test_nothing_is_malformed(self):
        self.assertEqual(self.frames("_ws.malformed"), [])
        self.assertEqual(self.frames('_ws.expert.message contains "Malformed"'), [])

    def test_checksums_and_crcs_are_good(self):
        self.assertEqual(self.frames("tcp.checksum.status == 0 or ip.checksum.status == 0"), [])
        self.assertGreater(len(self.frames("tcp.checksum.status == 1")), 20)
        text = self.tshark("-V", "-Y", "iwarp_mpa")
        self.assertNotIn("Bad CRC32", text)
        # One CRC for each FPDU: nothing that carries data escaped the dissector.
        self.assertGreater(text.count("Good CRC32"), 20)
        self.assertEqual(text.count("Good CRC32"), text.count("ULPDU length"))

    def test_no_payload_escapes_the_dissector(self):
        self.assertEqual(self.frames("tcp.len > 0 and not iwarp_mpa and not tcp.segment"), [])

    def test_start_up(self):
        self.assertEqual(len(self.frames("iwarp_mpa.req")), 5)
        self.assertEqual(len(self.frames("iwarp_mpa.rep")), 5)
        # The dissector does not know RFC 6581: S is reserved, IRD and ORD are private data.
        self.assertEqual(set(self.numbers("iwarp_mpa.rev")), {1, 2})
        self.assertEqual(self.numbers("iwarp_mpa.rej_flag", "iwarp_mpa.rej_flag == 1"), [1])
        self.assertEqual(self.numbers("iwarp_mpa.pdlength", "iwarp_mpa.rej_flag == 1"), [11])
        self.assertIn(20, self.numbers("iwarp_mpa.pdlength", "iwarp_mpa.req"))

    def test_terminate_codes(self):
        layers = self.numbers("iwarp_rdma.term_layer")
        self.assertEqual(layers, [0, 0, 1])  # Write and Read without the right, Send unexpected
        self.assertEqual(self.numbers("iwarp_rdma.term_etype_rdma"), [1, 1])
        self.assertEqual(self.numbers("iwarp_rdma.term_errcode_rdma"), [2, 2])
        self.assertEqual(self.numbers("iwarp_rdma.term_etype_ddp"), [2])
        self.assertEqual(self.numbers("iwarp_rdma.term_errcode_ddp_untagged"), [2])

    def test_atomics(self):
        def field(name):
            return self.numbers("iwarp_rdma.atomic." + name)
        self.assertEqual(field("opcode"), [0, 2])
        self.assertEqual(field("add_data"), [0x1122334455667788])
        self.assertEqual(field("add_mask"), [0x8000000000000000])
        self.assertEqual(field("swap_data"), [5])
        self.assertEqual(field("swap_mask"), [0xff])
        self.assertEqual(field("compare_data"), [0, 0x1122334455667788])
        self.assertEqual(field("compare_mask"), [0xffffffffffffffff, 0xffffffffffffff00])
        self.assertEqual(field("original_remote_data_value"), [0, 0x1122334455667788])
        self.assertEqual(field("request_identifier"), field("original_request_identifier"))
        self.assertEqual(self.numbers("iwarp_ddp.qn", "iwarp_rdma.opcode == 10"), [1, 1])
        self.assertEqual(self.numbers("iwarp_ddp.qn", "iwarp_rdma.opcode == 11"), [3, 3])

    def test_every_fpdu_fits_its_segment(self):
        # An FPDU of three segments, had it been cut, would be shown as reassembled.
        self.assertEqual(self.frames("tcp.segments"), [])


if __name__ == "__main__":
    if shutil.which("tshark") is None:
        print("tshark is not installed")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
