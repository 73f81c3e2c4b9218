"""Reading C++ sources for the checks: which files there are, and their code without comments."""

import functools
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CODE_DIRS = ("lib", "drivers", "apps", "tests")

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"([^()\\\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""",
    re.DOTALL)
DIGIT_SEPARATOR = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")


@functools.cache
def sources(*suffixes, dirs=CODE_DIRS):
    """Paths below `dirs` with one of these suffixes, relative to the tree's top."""
    found = []
    for top in dirs:
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in names:
                if name.endswith(suffixes):
                    found.append(os.path.relpath(os.path.join(folder, name), ROOT))
    return tuple(sorted(found))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def blank(match):
    """Blanks of the same shape, so that line numbers and columns stay."""
    text = match.group(0)
    if text[0] in "\"'" or text[0] == "R":
        return text[0] + re.sub(r"[^\n]", " ", text[1:-1]) + text[-1]
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """The code with comments and the insides of literals blanked out."""
    return TOKEN.sub(blank, DIGIT_SEPARATOR.sub("_", text))


def includes(text):
    """(line number, path, quoted?) of each #include."""
    pattern = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
    for number, line in enumerate(text.splitlines(), 1):
        match = pattern.match(line)
        if match:
            yield number, match.group(2), match.group(1) == '"'
