"""Runs tests of rdma-core's pyverbs and writes how each has ended, and why, as JSON.
usage: rdma_core_driver.py FOLDER RESULT MODULE..."""

import json
import os
import sys
import unittest


class Told(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.told = {}

    def addSuccess(self, test):
        self.told[test.id()] = ["passed", ""]

    def addSkip(self, test, reason):
        self.told[test.id()] = ["skipped", reason]

    def addFailure(self, test, err):
        self.told[test.id()] = ["failed", self._exc_info_to_string(err, test)]

    addError = addFailure


def main():
    folder, result, modules = sys.argv[1], sys.argv[2], sys.argv[3:]
    sys.path[:0] = [os.path.join(folder, "tests"), folder]
    from args_parser import parser  # pylint: disable=import-outside-toplevel
    # The one identifier of our device has no interface in it, as those of iWARP: it is named.
    sys.argv = ["run_tests.py", "--dev", "rnic0", "--gid", "0"]
    parser.parse_args()
    told = Told()
    unittest.defaultTestLoader.loadTestsFromNames(modules).run(told)
    with open(result, "w", encoding="utf-8") as file:
        json.dump(told.told, file)


main()
