#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists what needs a look in ctest's JUnit files: skipped tests, each with its reason and the command that enables it, and failed
ones, each with what it said.

Usage: outcomes.py FILE...

A skipped test says both in one line, "REASON; enable it with: COMMAND": scripts that exit with 77 behind "SKIPPED: ", tests of
GoogleTest by GTEST_SKIP.
"""
import re
import sys
import xml.etree.ElementTree

GTEST_SKIPPED = re.compile(r"^\S+:\d+: Skipped\n(.*)\n(?:.*\n)*?\[  SKIPPED \] (\S+)", re.MULTILINE)
GTEST_RUN = re.compile(r"^\[ RUN      \] (\S+)\n(.*?)^(?:\[       OK \]|\[  SKIPPED \]|\[  FAILED  \]|\Z)", re.MULTILINE | re.DOTALL)
GTEST_FAILURE = re.compile(r"^\S+:\d+: Failure\n|^unknown file: Failure\n", re.MULTILINE)
SCRIPT = re.compile(r"^SKIPPED: (.*)$", re.MULTILINE)
LINES = 25  # shown of a failure


def cases_of(paths):
    """Their names, elements and what they said."""
    for path in paths:
        for case in xml.etree.ElementTree.parse(path).iter("testcase"):
            yield case.get("name"), case, case.findtext("system-out") or ""


def skipped_in(paths):
    for name, case, said in cases_of(paths):
        if case.find("skipped") is not None:
            found = SCRIPT.search(said)
            yield name, found.group(1) if found else "gives no reason"
        for reason, test in GTEST_SKIPPED.findall(said):
            yield f"{name} {test}", reason


def failed_in(paths):
    """The failed cases of GoogleTest, the one included in which the program died; of other tests, the end of what they said."""
    for name, case, said in cases_of(paths):
        if case.find("failure") is None:
            continue
        runs = [(run.group(1), run.group(2), run.group(0)) for run in GTEST_RUN.finditer(said)]
        failed = [(test, text) for test, text, whole in runs if GTEST_FAILURE.search(text) or not whole.endswith("]")]
        for test, text in failed:
            failure = GTEST_FAILURE.search(text)
            yield f"{name} {test}", text[failure.start():].splitlines()[:LINES] if failure else text.splitlines()[-LINES:]
        if not failed:
            yield name, said.splitlines()[-LINES:]


def main():
    skipped = dict(skipped_in(sys.argv[1:]))
    print(f"skipped tests: {len(skipped) or 'none'}")
    for name, reason in skipped.items():
        why, _, command = reason.partition("; enable it with: ")
        print(f"  {name}: {why}" + (f"\n    enable it with: {command}" if command else ""))
    failed = dict(failed_in(sys.argv[1:]))
    if failed:
        print(f"failed tests: {len(failed)}")
    for name, said in failed.items():
        print(f"  {name}", *said, sep="\n    ")


if __name__ == "__main__":
    main()
