#!/usr/bin/env python3
"""The program in the README is the one that is compiled and run as a test.

usage: readme_test.py SOURCE_ROOT
"""

import os
import re
import sys

ROOT = sys.argv[1]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def main():
    blocks = re.findall(r"^```cpp\n(.*?)^```$", read("README.md"), re.MULTILINE | re.DOTALL)
    if blocks != [read("tests/unit/verbs/readme_example.cpp")]:
        sys.exit("the C++ in README.md differs from tests/unit/verbs/readme_example.cpp: copy it")


if __name__ == "__main__":
    main()
