#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the skipped tests of ctest's JUnit files, each with its reason and the command that enables it.

Usage: skipped.py FILE...

A test says both in one line, "REASON; enable it with: COMMAND": scripts that exit with 77 behind "SKIPPED: ", tests of
GoogleTest by GTEST_SKIP.
"""
import re
import sys
import xml.etree.ElementTree

GTEST = re.compile(r"^\S+:\d+: Skipped\n(.*)\n(?:.*\n)*?\[  SKIPPED \] (\S+)", re.MULTILINE)
SCRIPT = re.compile(r"^SKIPPED: (.*)$", re.MULTILINE)


def skipped_in(path):
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        said = case.findtext("system-out") or ""
        if case.find("skipped") is not None:
            found = SCRIPT.search(said)
            yield case.get("name"), found.group(1) if found else "gives no reason"
        for reason, test in GTEST.findall(said):
            yield f"{case.get('name')} {test}", reason


def main():
    skipped = dict(entry for path in sys.argv[1:] for entry in skipped_in(path))
    print(f"skipped tests: {len(skipped) or 'none'}")
    for name, reason in skipped.items():
        why, _, command = reason.partition("; enable it with: ")
        print(f"  {name}: {why}" + (f"\n    enable it with: {command}" if command else ""))


if __name__ == "__main__":
    main()
