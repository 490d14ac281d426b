# SPDX-License-Identifier: Apache-2.0
"""The program that the package must agree with."""
import json
import os
import subprocess


def run(*words, code=0):
    """What the program prints on stdout; its errors where it must end with another code."""
    done = subprocess.run([os.environ["PENSTOCK_PROGRAM"], *map(str, words)], capture_output=True, text=True)
    if done.returncode != code:
        raise AssertionError(f"penstock {' '.join(map(str, words))} ended with {done.returncode}: {done.stderr}")
    return done.stdout if code in (0, 1) and done.stdout else done.stderr


def answer(*words, code=0):
    return json.loads(run(*words, "--json", code=code))


def refusal(*words, code=2):
    return run(*words, code=code).removeprefix("penstock: ").rstrip("\n")
