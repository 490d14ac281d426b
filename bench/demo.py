# SPDX-License-Identifier: Apache-2.0
"""What ./dev demo prints, shortened for the README: of the progress the first line, one with an evaluation after half of the
steps and the last; the memory table at the end without the processes; of the sample the first lines. Runs are called run-1.

Usage: bench/demo.py   (from the root of the repository)
"""
import re
import subprocess
import sys

NAMED = ("model ", "step  ", "schedule ", "machine ", "trained ", "held out ", "files ", "report ", "next ")
SAMPLE_LINES = 4


def progress_of(lines):
    """The three lines of progress that are kept."""
    steps = [(int(found[1]), int(found[2]), line) for line in lines if (found := re.match(r"step (\d+)/(\d+) ", line))]
    half = next((line for number, of, line in steps if number > of / 2 and " eval " in line), steps[0][2])
    return {steps[0][2], half, steps[-1][2]}


def shortened(lines):
    progress = progress_of(lines)
    table = max(i for i, line in enumerate(lines) if line.startswith("memory "))
    part = ""
    for number, line in enumerate(lines):
        if re.match(r"\w", line) and (line.startswith(NAMED) or line.startswith(("memory ", "sample ")) or line in progress):
            part = line.split()[0] if line.startswith(("memory ", "sample ")) else ""
            sample_left = SAMPLE_LINES
            if part != "memory" or number == table:
                yield line
        elif part == "memory" and number > table and not line.startswith("  process "):
            yield line
        elif part == "sample" and sample_left:
            sample_left -= 1
            yield line if sample_left else "..."


def main():
    ended = subprocess.run(["./dev", "demo"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if ended.returncode != 0:
        sys.exit(ended.stdout[-2000:])
    print(re.sub(r"build/demo/run-\d+", "build/demo/run-1", "\n".join(shortened(ended.stdout.splitlines()))))


if __name__ == "__main__":
    main()
