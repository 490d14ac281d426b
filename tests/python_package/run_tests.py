#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: builds and installs it, then runs the tests test_*.py of this folder.

Usage: run_tests.py PATH/TO/penstock [NAME of a test file...]

Exit 0: all passed; 1: not; 77: skipped, packages cannot be had.
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
import wheel


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.path[:0] = [HERE, *wheel.install(sys.argv[1])]
    os.environ["PENSTOCK_PROGRAM"] = os.path.abspath(sys.argv[1])
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[1:3])  # of the interpreters that tests start
    loader = unittest.defaultTestLoader
    names = sys.argv[2:]
    suite = loader.loadTestsFromNames(names) if names else loader.discover(HERE, top_level_dir=HERE)
    result = unittest.TextTestRunner(verbosity=2 if names else 1).run(suite)
    sys.exit(not result.wasSuccessful() or result.testsRun == 0)


if __name__ == "__main__":
    main()
