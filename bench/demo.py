# SPDX-License-Identifier: Apache-2.0
"""What ./dev demo prints, shortened for the README: of the progress the first line, one with an evaluation after half of the
steps and the last; the memory table at the end without the processes; no sample. Runs are called run-1.

Usage: bench/demo.py   (from the root of the repository)
"""
import re
import subprocess
import sys

NAMED = ("model ", "step  ", "schedule ", "machine ", "trained ", "held out ", "files ", "report ", "next ")


def progress_of(lines):
    """The three lines of progress that are kept."""
    steps = [(int(found[1]), int(found[2]), line) for line in lines if (found := re.match(r"step (\d+)/(\d+) ", line))]
    half = next((line for number, of, line in steps if number > of / 2 and " eval " in line), steps[0][2])
    return {steps[0][2], half, steps[-1][2]}


def shortened(lines):
    progress = progress_of(lines)
    table = max(i for i, line in enumerate(lines) if line.startswith("memory "))
    of_table = False
    for number, line in enumerate(lines):
        if re.match(r"\w", line):
            of_table = number == table
            if of_table or line.startswith(NAMED) or line in progress:
                yield line
        elif of_table and not line.startswith("  process "):
            yield line


def main():
    ended = subprocess.run(["./dev", "demo"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if ended.returncode != 0:
        sys.exit(ended.stdout[-2000:])
    print(re.sub(r"build/demo/run-\d+", "build/demo/run-1", "\n".join(shortened(ended.stdout.splitlines()))))


if __name__ == "__main__":
    main()
