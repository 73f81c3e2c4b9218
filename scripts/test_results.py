"""Runs the Meson tests of a build directory and counts single cases; reads the results back.

scripts/test calls it as a program, scripts/requirement_proofs.py imports it. A GoogleTest program
counts its cases, any other Meson test counts as one.
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ALLOWED_SKIPS = os.path.join(ROOT, "tests", "allowed-skips.txt")
SAVED = "test-results.json"  # in the build directory
SHOWN_LINES = 40  # of a failure's output
UNITTEST_FAILURE = "=" * 70  # the line of Python's unittest before each failure
LONG = "long"  # the suite that ./scripts/test leaves to --long

Case = collections.namedtuple("Case", "test name result detail")  # result: passed, failed, skipped


def one_line(text):
    return " ".join(text.split())


def skip_reason(message):
    """GoogleTest writes "file:line", then the reason."""
    lines = [line for line in message.splitlines() if line.strip()]
    if lines and re.search(r":\d+:?$", lines[0].strip()):
        lines = lines[1:]
    if lines and lines[0].strip() == "Skipped":
        lines = lines[1:]
    return one_line(" ".join(lines)) or "no reason given"


def gtest_case(test, element):
    suite = element.get("classname") or ""
    name = f"{suite}.{element.get('name')}"
    failures = element.findall("failure")
    if failures:
        text = "\n".join(f.text or f.get("message") or "" for f in failures)
        return Case(test, name, "failed", text)
    if element.get("status") == "notrun":
        return Case(test, name, "skipped", "disabled by its name")
    skipped = element.find("skipped")
    if skipped is not None or element.get("result") == "skipped":
        message = "" if skipped is None else (skipped.get("message") or skipped.text or "")
        return Case(test, name, "skipped", skip_reason(message))
    return Case(test, name, "passed", "")


def output_shown(record):
    """The end of what a test said. A Python test's first failure is kept, too: the ones behind it
    are often its consequences."""
    text = (record.get("stdout") or "") + "\n" + (record.get("stderr") or "")
    lines = [line for line in text.splitlines() if line.strip()]
    first = next((at for at, line in enumerate(lines) if line == UNITTEST_FAILURE), len(lines))
    if first >= len(lines) - SHOWN_LINES:
        return "\n".join(lines[-SHOWN_LINES:])
    half = SHOWN_LINES // 2
    return "\n".join([*lines[first:first + half], "...", *lines[half + 1 - SHOWN_LINES:]])


def gtest_cases(test, path):
    """The cases in a program's XML; None when it wrote none: it died before."""
    try:
        return [gtest_case(test, element) for element in ET.parse(path).getroot().iter("testcase")]
    except (OSError, ET.ParseError):
        return None


def cases_of(record, xml_of, filtered=False):
    """The cases of one line of Meson's testlog.json. filtered: a program may have none to run"""
    test = record["name"].split(" / ")[-1]
    status = record["result"]
    cases = []
    if status == "SKIP":
        lines = [line for line in (record.get("stdout") or "").splitlines() if line.strip()]
        return [Case(test, test, "skipped", one_line(lines[-1]) if lines else "no reason given")]
    if test in xml_of:
        written = gtest_cases(test, xml_of[test])
        cases = written or []
        fails = any(case.result == "failed" for case in cases)
        if status == "OK" and written is None:
            status = "no results"
        elif status == "OK" and not cases and not filtered:
            status = "not one case"
        elif status == "OK" or (status == "FAIL" and fails):
            return cases
    elif status in ("OK", "EXPECTEDFAIL"):
        return [Case(test, test, "passed", "")]
    what = f"{status.lower()}, exit status {record['returncode']}"
    return cases + [Case(test, test, "failed", f"{what}\n{output_shown(record)}")]


def allowed_skips():
    with open(ALLOWED_SKIPS, encoding="utf-8") as file:
        lines = [one_line(line) for line in file]
    return {line for line in lines if line and not line.startswith("#")}


def load(build_dir):
    """The cases of the last run, as scripts/test saved them; None when there was none."""
    try:
        with open(os.path.join(build_dir, SAVED), encoding="utf-8") as file:
            return [Case(*row) for row in json.load(file)["cases"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def scripts_of(build_dir):
    """Which Meson tests run which script: file name -> names of tests."""
    table = collections.defaultdict(list)
    for test in introspect(build_dir, "--tests"):
        for word in test["cmd"]:
            if word.endswith(".py"):
                table[os.path.basename(word)].append(test["name"])
    return table


def introspect(build_dir, what):
    return json.loads(subprocess.run(["meson", "introspect", what, build_dir], check=True,
                                     capture_output=True, text=True).stdout)


def choose(build_dir, names, pattern, long):
    """The Meson tests to run, and the names of the long ones that nobody has asked for."""
    tests = introspect(build_dir, "--tests")
    known = {test["name"] for test in tests}
    for name in names:
        if name not in known:
            exit2(f"no test '{name}': ./scripts/test --list shows them")
    chosen = [t for t in tests if not names or t["name"] in names]
    if pattern:
        chosen = [t for t in chosen if t["protocol"] == "gtest"]
    left = [] if names or long else [t["name"] for t in chosen if is_long(t)]
    chosen = [t for t in chosen if t["name"] not in left]
    if not chosen:
        exit2("no such test")
    return chosen, left


def needs(build_dir, chosen):
    """What Ninja has to build for these tests, by its names for it."""
    used = {target for test in chosen for target in test["depends"]}
    files = [file for target in introspect(build_dir, "--targets") if target["id"] in used
             for file in target["filename"]]
    return sorted(os.path.relpath(file, build_dir) for file in files)


def places_of_results(build_dir, chosen):
    """Where those that are GoogleTest programs will write their XML."""
    xml_of = {t["name"]: os.path.join(t["workdir"] or build_dir, t["name"] + ".xml")
              for t in chosen if t["protocol"] == "gtest"}
    for path in xml_of.values():
        if os.path.exists(path):  # a stale file must not stand for a program that dies
            os.remove(path)
    return xml_of


def is_long(test):
    return any(suite.split(":")[-1] == LONG for suite in test["suite"])


def run(build_dir, names, pattern, multiplier):
    log = os.path.join(build_dir, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.remove(log)
    env = dict(os.environ)
    if pattern:
        env["GTEST_FILTER"] = pattern
    command = ["meson", "test", "-C", build_dir, "--no-rebuild", "--timeout-multiplier",
               str(multiplier), "--num-processes", str(os.cpu_count() or 1), *names]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as child:
        said = []
        for line in child.stdout:
            said.append(line)
            if re.match(r"\s*\d+/\d+ ", line):  # Meson's line for a test that ended
                print(one_line(line), flush=True)
    try:
        with open(log, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except OSError:
        exit2("meson test gave no results: " + one_line("".join(said[-5:])))


def report(cases, filtered, left):
    """Prints failures, then the two lines that every caller reads; returns the exit status."""
    allowed = allowed_skips()
    # A reason may end in a count: "no such tool (12 scripts)".
    bad_skips = [c for c in cases if c.result == "skipped"
                 and re.sub(r" \(\d+ \w+\)$", "", c.detail) not in allowed]
    failures = [c for c in cases if c.result == "failed"]
    for case in failures:
        print(f"\nFAILED {case.test}: {case.name}")
        print("\n".join("  " + line for line in case.detail.splitlines()[:SHOWN_LINES + 1]))
    for case in bad_skips:
        print(f"\nFAILED {case.test}: {case.name}\n  skipped for a reason that "
              f"tests/allowed-skips.txt does not list: {case.detail}")
    if not cases:
        print("no test ran" + (": nothing matches the filter" if filtered else ""))
    reasons = collections.Counter(c.detail for c in cases if c.result == "skipped")
    passed = sum(c.result == "passed" for c in cases)
    failed = len(failures) + len(bad_skips)
    text = ", ".join(f"{reason} x{count}" for reason, count in sorted(reasons.items()))
    print()
    print(f"{sum(reasons.values())} skipped" + (f": {text}" if text else "") +
          (f"; left to --long: {', '.join(left)}" if left else ""))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not cases else 0


def exit2(message):
    print(f"test: {message}", file=sys.stderr)
    sys.exit(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build-dir", required=True)
    parser.add_argument("--filter", default="")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--needs", action="store_true",
                        help="print what has to be built for these tests, and run nothing")
    parser.add_argument("--timeout-multiplier", type=int, default=1)
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    build_dir = os.path.abspath(options.build_dir)
    chosen, left = choose(build_dir, options.tests, options.filter, options.long)
    if options.needs:
        print("\n".join(needs(build_dir, chosen)))
        return
    names = [test["name"] for test in chosen]
    xml_of = places_of_results(build_dir, chosen)
    cases = []
    for record in run(build_dir, names, options.filter, options.timeout_multiplier):
        cases += cases_of(record, xml_of, bool(options.filter))
    if not options.filter and not options.tests:
        with open(os.path.join(build_dir, SAVED), "w", encoding="utf-8") as file:
            json.dump({"cases": cases}, file)
    sys.exit(report(cases, bool(options.filter), left))


if __name__ == "__main__":
    main()
